"""Mistakes of brokers."""

import pytest

from chaos.sim.hunting import hunt
from chaos.sim.partitions_mutants import PARTITIONS


@pytest.mark.slow
def test_a_quick_one_is_caught() -> None:
    mutant = next(each for each in PARTITIONS if each.name == "acknowledged by the leader alone")
    assert hunt(mutant).rule.startswith("P1")


def test_all_are_hunted_in_their_own_worlds() -> None:
    assert {mutant.kind for mutant in PARTITIONS} == {"partitions"}
    assert len(PARTITIONS) >= 10
