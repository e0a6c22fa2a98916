"""Mistakes of the controller."""

import pytest

from chaos.sim.hunting import hunt
from chaos.sim.metadata_mutants import METADATA

QUICK = ("a fenced broker stays in its ISRs", "an ISR member of an earlier registration")


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_one_is_caught(name: str) -> None:
    mutant = next(each for each in METADATA if each.name == name)
    assert hunt(mutant).rule[:2] in ("M6", "M7")


def test_all_are_hunted_in_their_own_worlds() -> None:
    assert {mutant.kind for mutant in METADATA} == {"metadata"}
    assert len(METADATA) >= 10
