"""Effects are plain values, and there is a closed set of them."""

import dataclasses
import inspect
from typing import get_args

import pytest

from quorum.core import effects
from quorum.core.effects import Effect, Flush, SaveElection
from quorum.core.state import ElectionState


def defined_here() -> set[type]:
    classes = (each for _, each in inspect.getmembers(effects, inspect.isclass))
    return {each for each in classes if each.__module__ == effects.__name__}


def test_every_effect_belongs_to_the_union_that_drivers_match_on() -> None:
    assert defined_here() == set(get_args(Effect))


@pytest.mark.parametrize("effect", sorted(defined_here(), key=repr))
def test_an_effect_cannot_be_changed_after_it_was_decided(effect: type) -> None:
    assert dataclasses.is_dataclass(effect)
    assert effect.__doc__ or effect is effects.AppendSnapshotChunk
    assert effect.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_effects_are_compared_by_value() -> None:
    assert SaveElection(ElectionState(3)) == SaveElection(ElectionState(3))
    assert Flush(3, 0) != Flush(3, 1), "a flush of what was cut is not one of what followed"
