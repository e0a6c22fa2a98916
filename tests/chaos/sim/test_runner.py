"""Seeds to outcomes: the same ones, whoever runs them."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from chaos.sim.mutants import MUTANTS
from chaos.sim.options import Options
from chaos.sim.patching import planted
from chaos.sim.runner import run_seed, run_seeds, shrink
from tests.tidy.source import ROOT

SHORT = Options(voters=3, safety_ms=1_500, faults={"loss": 0.1, "crashes": 0.5, "pauses": 0.5})


def test_an_outcome_tells_what_happened() -> None:
    outcome = run_seed(1, SHORT)
    assert outcome.failure == ""
    assert outcome.story == ()
    assert outcome.events > 100
    assert outcome.committed > 0
    assert outcome.cpu_seconds > 0
    assert outcome.reached["leader elected"] > 0


def test_the_same_seed_gives_the_same_trace() -> None:
    first, again, other = run_seed(1, SHORT), run_seed(1, SHORT), run_seed(2, SHORT)
    assert replace(first, cpu_seconds=0) == replace(again, cpu_seconds=0)
    assert first.trace_hash != other.trace_hash


def test_the_order_of_sets_does_not_matter() -> None:
    code = "from chaos.sim.runner import run_seed; print(run_seed(17).trace_hash)"
    hashes = set()
    for hash_seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        hashes.add(answer.stdout.strip())
    assert len(hashes) == 1


def test_a_failure_is_told_and_shrunk() -> None:
    mutant = next(each for each in MUTANTS if each.name == "leadership announced too early")
    with planted(mutant):
        outcome = run_seed(1, SHORT)
        shrunk = shrink(outcome)
    assert outcome.failure.startswith("InvariantViolation: Q10")
    assert len(outcome.story) > 10
    assert shrunk.options.faults == {}
    assert shrunk.failure.startswith("InvariantViolation: Q10")


def test_what_a_failure_needs_is_not_shrunk_away() -> None:
    mutant = next(each for each in MUTANTS if each.name == "log flushed without fsync")
    with planted(mutant):
        options = replace(SHORT, faults={"blackouts": 3.0})
        outcome = run_seed(1, options)
        assert outcome.failure.startswith("InvariantViolation: Q6")
        assert shrink(outcome).options == options


@pytest.mark.slow
def test_processes_share_the_seeds() -> None:
    here = [outcome.trace_hash for outcome in run_seeds([17, 19], workers=1)]
    there = [outcome.trace_hash for outcome in run_seeds([17, 19], workers=2)]
    assert here == there
