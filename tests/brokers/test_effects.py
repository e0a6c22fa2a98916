"""Every effect is a value, is in the union, and is carried out."""

import inspect
from dataclasses import is_dataclass
from typing import get_args

from brokers import effects, partition


def declared() -> set[type]:
    return {
        each
        for each in vars(effects).values()
        if inspect.isclass(each) and each.__module__ == effects.__name__
    }


def test_the_union_has_them_all() -> None:
    assert set(get_args(effects.Effect)) == declared()
    assert all(is_dataclass(each) for each in declared())


def test_a_partition_carries_out_each_of_them() -> None:
    """mypy checks the match, too; this names the one that was forgotten."""
    text = inspect.getsource(partition.Partition._carry_out)
    missing = [each.__name__ for each in declared() if f"case {each.__name__}(" not in text]
    assert not missing


def test_equal_effects_are_equal() -> None:
    assert effects.MoveHighWatermark(3) == effects.MoveHighWatermark(3)
    assert effects.StartFollowing(2, 5) != effects.StartFollowing(2, 6)
