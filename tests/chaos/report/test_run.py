import json
from pathlib import Path

import pytest

from chaos.history import HistoryDamaged, Json
from chaos.report.run import Criterion, number, read_run
from kraftlog.errors import ConfigError
from tests.chaos.report.runs import a_broken_leader, results, write_run


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, a_broken_leader()))
    assert (run.drill, run.seed, run.verdict) == ("kill-broker", "7", "PASS")
    assert run.criteria == (Criterion("no ack for", 1.5, 2.5, "s", True, 1.0, "session"),)
    assert run.counts == {"acked": "87", "read": "87", "lost": "0"}
    assert run.meta["title"] == "kill -9 the leader of a partition"
    assert len(run.history.operations) == len(a_broken_leader().operations)


def test_a_skipped_drill_has_no_history(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, None, results("SKIPPED")))
    assert (run.history.operations, run.history.events) == ((), ())


def test_a_finding_may_be_in_fields(tmp_path: Path) -> None:
    finding: Json = {
        "anomaly": "lost",
        "key": "orders-0",
        "words": "value 7",
        "operations": [{"text": "producer-0 send"}, "odd"],
    }
    run = read_run(write_run(tmp_path, None, results("FAIL", anomalies=[finding, 3, None])))
    assert run.anomalies == ("lost orders-0: value 7\nproducer-0 send", "3", "")


def test_what_is_missing_or_odd_is_empty_and_never_guessed(tmp_path: Path) -> None:
    odd: dict[str, Json] = {"verdict": "FAIL", "criteria": ["x", {}], "anomalies": "no list"}
    run = read_run(write_run(tmp_path, None, odd, meta={}))
    assert (run.drill, run.seed, run.words, run.anomalies) == ("", "", "", ())
    assert run.criteria == (Criterion("", None, None, "", False),)


@pytest.mark.parametrize(
    ("value", "found"),
    [(1, 1.0), (0.5, 0.5), (True, None), ("1", None), (None, None), (10**400, None)],
)
def test_a_number_is_one_that_can_be_written_down(value: Json, found: float | None) -> None:
    assert number(value) == found
    assert number(float("nan")) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "verdict '' is none of"),
        ("[]", "no JSON object"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("\ud800", "no JSON"),
    ],
    ids=["empty", "list", "cut", "deep", "no text"],
)
def test_results_that_make_no_sense_are_refused_by_name(
    tmp_path: Path, text: str, words: str
) -> None:
    write_run(tmp_path, None)
    (tmp_path / "results.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ConfigError, match=words):
        read_run(tmp_path)


def test_a_directory_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"it has no results\.json"):
        read_run(tmp_path)


def test_a_history_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path, a_broken_leader())
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write(json.dumps({"t": 0}) + "\n")
    with pytest.raises(HistoryDamaged):
        read_run(tmp_path)
