"""Counters of rare states."""

import pytest

from chaos.sim.sightings import RARE_STATES, Sightings
from kraftlog._check import InvariantViolation


def test_declared_states_are_counted() -> None:
    sightings = Sightings()
    sightings.note(RARE_STATES[0])
    sightings.note(RARE_STATES[0])
    assert dict(sightings) == {RARE_STATES[0]: 2}
    assert len(set(RARE_STATES)) == len(RARE_STATES)


def test_a_misspelt_state_is_noticed() -> None:
    with pytest.raises(InvariantViolation, match="nobody declared"):
        Sightings().note("leader elekted")
