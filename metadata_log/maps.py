"""Persistent maps, from rpds-py; docs/adr/0005-persistent-maps.md says why that one.

Two things to know about them. They have no order, not even the same one in two processes, so
whoever goes through one and does something sorts first. And in some versions `!=` of two empty maps
is true: ask `differ`.
"""

from collections.abc import Mapping
from typing import TypeVar

from rpds import HashTrieMap

_K = TypeVar("_K")
_V = TypeVar("_V")


def differ(one: "HashTrieMap[_K, _V]", other: "HashTrieMap[_K, _V]") -> bool:
    equal = one is other or one == other
    return not equal


def with_changes(
    base: "HashTrieMap[_K, _V]", changes: Mapping[_K, _V | None]
) -> "HashTrieMap[_K, _V]":
    """A copy with these values; None removes."""
    for key, value in changes.items():
        base = base.discard(key) if value is None else base.insert(key, value)
    return base
