"""Whole runs: some seeds, and those that once failed."""

import pytest

from chaos.sim.options import Options
from chaos.sim.world import World
from kraftlog._check import InvariantViolation
from tests.chaos.sim.seeds import SEEDS


@pytest.mark.parametrize("seed", [7, 14, 17, 19, 27])
def test_a_seed(seed: int) -> None:  # Q1 to Q15, M1 to M4, V1 to V4
    world = World(seed)
    world.run()
    assert world.cluster.checker.ledger.end > 0
    assert world.progress_ms > 0


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_a_seed_that_once_failed(seed: int) -> None:
    World(seed).run()


def test_without_faults_there_is_one_election() -> None:
    world = World(1, Options(voters=3, safety_ms=2_000))
    world.run()
    assert world.cluster.sightings["leader elected"] == 1
    assert world.cluster.checker.ledger.end > 50


def test_a_quorum_that_cannot_heal_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:  # V1
    world = World(1, Options(voters=3, safety_ms=500))
    for node in world.cluster.nodes[:2]:
        monkeypatch.setattr(node, "start", lambda: None)
    with pytest.raises(InvariantViolation, match="V1 no progress after healing"):
        world.run()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(1_000, 2_000, 100))
def test_many_seeds(first: int) -> None:
    for seed in range(first, first + 100):
        World(seed).run()
