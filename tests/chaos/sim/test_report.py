"""What people read."""

import json

import pytest

from chaos.sim import report
from chaos.sim.hunting import Catch
from chaos.sim.options import Options
from chaos.sim.runner import Outcome
from chaos.sim.sightings import RARE_STATES


def outcome(seed: int, **reached: int) -> Outcome:
    options = Options.swarm(seed)
    words = {name.replace("_", " "): count for name, count in reached.items()}
    return Outcome(
        seed,
        options,
        events=1_000,
        committed=10,
        progress_ms=500.0 * seed,
        cpu_seconds=0.5,
        trace_hash="abc",
        reached=words,
    )


def test_a_summary_adds_up_and_names_what_was_never_reached() -> None:
    summary = report.Summary()
    summary.add(outcome(3, leader_elected=2))
    summary.add(outcome(4, leader_elected=5, voter_added=1))
    text = summary.as_text()
    assert "seeds 3 to 4: all 2 clean" in text
    assert "2,000 events, 20 committed offsets" in text
    assert "0.50 CPU seconds a seed" in text
    assert "progress at most 2.0 s after healing" in text
    assert len(summary.never) == len(RARE_STATES) - 2
    assert text.count("NEVER REACHED") == len(summary.never)
    fields = json.loads(summary.as_json())
    assert fields["reached"]["leader elected"] == 7
    assert fields["never"] == summary.never
    assert (fields["first"], fields["last"], fields["seeds"]) == (3, 4, 2)


def test_a_failure_can_be_replayed() -> None:
    swarm = Options.swarm(5)
    off = next(iter(swarm.faults))
    failed = Outcome(
        5, swarm.without(off), 1, 1, 0.0, 0.0, "abc", {}, failure="Q1: oh", story=("one", "two")
    )
    text = report.failure_text(failed)
    assert text.startswith("one\ntwo\n")
    assert "seed 5 failed: Q1: oh" in text
    assert f"options: {swarm.without(off)}" in text
    assert text.endswith(f"replay: make sim SEED=5 SEEDS=1 TRACE=1 WITHOUT={off}")


def test_mutants_make_a_table() -> None:
    catches = [
        Catch("one", "Q1 two leaders", 3, 1.25),
        Catch("two", "", 50, 40.0),
        Catch("three", "", 1, 0.1, broken="NameError: x"),
    ]
    lines = report.mutants_text(catches).splitlines()
    assert [line.split("|")[2].strip() for line in lines[2:]] == [
        "Q1 two leaders",
        "SURVIVED",
        "BROKEN: NameError: x",
    ]
    assert json.loads(report.mutants_json(catches))[0]["seeds"] == 3


def test_progress_is_not_too_talkative(capsys: pytest.CaptureFixture[str]) -> None:
    progress = report.Progress(100)
    for done in range(1, 101):
        progress.show(done)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("100/100 seeds")
