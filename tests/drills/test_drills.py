"""Drills on a real cluster. `make test` runs the three shortest, and judges safety and that the
cluster converges: a machine that runs tests beside has no time to be judged by. `pytest -m drill`
runs all; `make chaos` judges times, too.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from chaos.drills.catalog import Drill, all_drills, find_drill
from chaos.drills.runner import RunOptions, run_drill
from chaos.history import HistoryDamaged, read_history
from chaos.live import leftovers
from chaos.live.run_directory import HISTORY, META, RESULTS, RunDirectory
from chaos.live.stage import Stage
from tests.kraftctl.conftest import invoke
from tests.waiting import wait_until

SHORTEST = ("kill-controller-leader", "stop-controller-leader", "stop-partition-leader")
OTHERS = [each.name for each in all_drills() if each.name not in SHORTEST]


def judge(drill: Drill, out: Path) -> None:
    if reason := drill.needs():
        pytest.skip(reason)
    result = run_drill(drill, RunOptions(out=out, only_safety=True, warm_seconds=0.5))
    assert result.passed, result.words
    assert result.counts["acked"] > 0
    assert not leftovers.find(str(result.directory.path))


def shortest(stage: Stage) -> None:
    """Three drills on one cluster, which is whole again before each."""
    for name in SHORTEST:
        find_drill(name).steps(stage)
        stage.heal()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_nothing_acknowledged_is_lost_and_the_cluster_converges(tmp_path: Path) -> None:  # R48
    judge(Drill(number=0, name="shortest", title="three drills", steps=shortest), tmp_path)


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_same_drill_on_the_peer_and_judged_again(tmp_path: Path) -> None:
    """Whatever the verdict about the peer is, all files of the run say the same."""
    arguments = ["--engine", "pysyncobj", "--only-safety", "--out", str(tmp_path), "-o", "json"]
    ran = invoke("drill", "run", "kill-controller-leader", *arguments)
    (summary,) = json.loads(ran.out)["data"]
    (run,) = summary["runs"]
    directory = RunDirectory(Path(run["directory"]))
    assert directory.read(META)["engine"] == "pysyncobj"
    assert directory.read(RESULTS)["verdict"] == summary["verdict"]
    assert ran.code == (0 if summary["verdict"] == "PASS" else 3)
    assert run["counts"]["acked"] >= 40
    for name in ("junit.xml", "report.html"):
        assert "kill-controller-leader" in (directory.path / name).read_text()
    again = invoke("drill", "verify", directory.run_id, "--out", str(tmp_path))
    assert ("VERDICT PASS" in again.out) == (run["counts"]["contradicted"] == 0)
    assert not leftovers.find(str(directory.path))


@pytest.mark.drill
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_drill_is_safe(name: str, tmp_path: Path) -> None:
    judge(find_drill(name), tmp_path)


def has_fault(out: Path) -> bool:
    for path in out.glob(f"*/{HISTORY}"):
        try:
            return any(read_history(path).events_of("fault"))
        except HistoryDamaged:
            return False
    return False


@contextmanager
def harness_in_mid_drill(out: Path) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """One that has just paused a node, which can end nothing by itself; and the run's directory."""
    command = [sys.executable, "-m", "kraftctl", "drill", "run", "pause-broker"]
    arguments = ["--out", str(out), "--profile", "kafka", "--backend", "embedded"]
    with open(os.devnull, "wb") as nowhere:
        harness = subprocess.Popen(
            [*command, *arguments], stdout=nowhere, stderr=nowhere, start_new_session=True
        )
    try:
        wait_until(lambda: has_fault(out), "a broker is paused", 100)
        (directory,) = (path.parent for path in out.glob(f"*/{HISTORY}"))
        assert len(leftovers.find(str(directory)).processes) >= 7  # six nodes, the proxies
        yield harness, directory
    finally:
        with suppress(ProcessLookupError):
            os.killpg(harness.pid, signal.SIGKILL)
        harness.wait()


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_harness_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with harness_in_mid_drill(tmp_path) as (_, directory):
        pass
    wait_until(lambda: not leftovers.find(str(directory)), "everything of the run is gone")


def guards_of(harness: int) -> list[int]:
    children = Path(f"/proc/{harness}/task/{harness}/children").read_text().split()
    return [int(pid) for pid in children if b"guard" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.drill
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_drill_clean_ends_what_is_left_where_the_guard_was_killed_too(tmp_path: Path) -> None:
    with harness_in_mid_drill(tmp_path) as (harness, directory):
        running = invoke("drill", "clean", "--out", str(tmp_path), "-o", "json")
        assert running.pick(0, "state") == "running"
        assert len(leftovers.find(str(directory)).processes) >= 7
        (guard,) = guards_of(harness.pid)
        os.kill(guard, signal.SIGKILL)
    assert leftovers.find(str(directory))  # the paused broker at least
    cleaned = invoke("drill", "clean", "--out", str(tmp_path), "-o", "json")
    assert (cleaned.code, cleaned.pick(0, "state")) == (0, "clean")
    assert not leftovers.find(str(directory))
