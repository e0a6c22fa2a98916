"""Whole runs with real brokers."""

import pytest

from brokers import turns
from chaos.sim.options import Options
from chaos.sim.runner import run_seed

SHORT = Options(
    kind="partitions",
    voters=1,
    brokers=3,
    safety_ms=3_000,
    faults={"loss": 0.05, "broker_crashes": 0.5, "lags": 0.3},
)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_short_run_is_clean(seed: int) -> None:
    before = turns.TURN_NS
    outcome = run_seed(seed, SHORT)
    assert outcome.failure == ""
    assert outcome.reached["record acknowledged by all"] > 0
    assert before == turns.TURN_NS


def test_the_same_seed_gives_the_same_trace() -> None:
    assert run_seed(5, SHORT).trace_hash == run_seed(5, SHORT).trace_hash
