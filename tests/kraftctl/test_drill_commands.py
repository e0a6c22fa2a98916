import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.suite import Summary
from chaos.drills.verdict import Criterion
from chaos.history import HistoryWriter, Json
from chaos.live.run_directory import META, RunDirectory
from kraftctl.drill_commands import FOUND, _row
from tests.chaos.drills.results import result
from tests.chaos.live.test_leftovers import sleeper
from tests.kraftctl.conftest import invoke


def history_of(directory: RunDirectory, *read: int) -> None:
    place: dict[str, Json] = {"topic": "orders", "partition": 0}
    with HistoryWriter(directory.history) as history:
        for value in (0, 1):
            sent = history.invoke("producer-0", "send", {**place, "value": value})
            history.ok(sent, {"offset": value})
        polled = history.invoke("final", "poll", place)
        history.ok(polled, {**place, "records": [(each, each) for each in read]})


def test_ls_shows_all_drills() -> None:
    ran = invoke("drill", "ls", "-o", "json")
    assert ran.code == 0
    names = {row["name"] for row in json.loads(ran.out)["data"]}
    assert {"kill-controller-leader", "rolling-restart", "monkey"} <= names
    assert "kill-controller-leader" in invoke("drill", "ls").out


def test_a_name_that_is_nearly_right_is_guessed() -> None:
    ran = invoke("drill", "run", "kill-contoller-leader")
    assert ran.code == 2
    assert "did you mean kill-controller-leader?" in ran.err


@pytest.mark.parametrize("arguments", [(), ("baseline", "--suite", "chaos")])
def test_either_names_or_a_suite(arguments: tuple[str, ...]) -> None:
    ran = invoke("drill", "run", *arguments)
    assert ran.code == 2
    assert "which drills?" in ran.err


@pytest.mark.parametrize(
    "arguments", [("--seed", "-1"), ("--repeat", "0"), ("--backend", "magic"), ("--engine", "x")]
)
def test_values_that_make_no_sense_are_usage(arguments: tuple[str, ...]) -> None:
    assert invoke("drill", "run", "baseline", *arguments).code == 2


def test_a_drill_that_the_peer_cannot_play_is_refused_with_those_it_can() -> None:
    ran = invoke("drill", "run", "pause-broker", "--engine", "pysyncobj")
    assert ran.code == 2
    assert "the drill pause-broker on the engine pysyncobj" in ran.err
    assert "it plays kill-controller-leader, stop-controller-leader" in ran.err


def test_the_table_of_a_run_has_every_target_and_says_what_was_missed(tmp_path: Path) -> None:
    found = result(tmp_path, 3.0)
    fenced = Criterion("t_fence", 1.0, 2.0, "s", "it is fenced")
    summary = Summary(find_drill("baseline"), (replace(found, criteria=(*found.criteria, fenced)),))
    row = dict(zip(FOUND, _row(summary), strict=True))
    assert row["U_WRITE"] == "3.00 <= 2.5 MISSED"
    assert row["OTHERS"] == "t_fence 1.00 <= 2"
    assert row["T_CONTROLLER"] == "-"


def test_verify_judges_a_history_again(tmp_path: Path) -> None:
    directory = result(tmp_path).directory
    history_of(directory, 0, 1)
    good = invoke("drill", "verify", directory.run_id, "--out", str(tmp_path))
    assert good.code == 0
    assert "VERDICT PASS" in good.out
    history_of(directory, 1)
    bad = invoke("drill", "verify", str(directory.history), "-o", "json")
    assert bad.code == 3
    assert bad.pick("verdict") == "FAIL"
    assert bad.pick("counts", "lost") == 1


def test_a_run_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    for verb in ("verify", "replay", "clean"):
        ran = invoke("drill", verb, "nothing", "--out", str(tmp_path))
        assert ran.code == 5
        assert "there is no run 'nothing'" in ran.err


def test_replay_of_a_drill_that_is_gone_is_named(tmp_path: Path) -> None:
    directory = result(tmp_path).directory
    directory.write(META, {"drill": "kill-everything", "seed": 1})
    ran = invoke("drill", "replay", str(directory.path))
    assert ran.code == 2
    assert "there is no drill 'kill-everything'" in ran.err


def test_clean_ends_what_a_killed_run_left_and_leaves_running_ones(tmp_path: Path) -> None:
    running = result(tmp_path).directory
    killed = result(tmp_path).directory
    killed.write(META, {"harness": [2**22 + 1, 5]})
    with sleeper(running.path) as kept, sleeper(killed.path) as left:
        ran = invoke("drill", "clean", "--out", str(tmp_path), "-o", "json")
        assert ran.code == 0
        left.wait(40)
        assert kept.poll() is None
    rows = {row["run"]: (row["state"], row["processes"]) for row in json.loads(ran.out)["data"]}
    assert rows == {running.run_id: ("running", 0), killed.run_id: ("clean", 1)}
    assert invoke("drill", "clean", killed.run_id, "--purge", "--out", str(tmp_path)).code == 0
    assert not killed.path.exists()
    assert running.path.is_dir()
    empty = invoke("drill", "clean", "--out", str(tmp_path / "none"))
    assert "no runs in" in empty.out
