"""Sets of partitions, as the indexes of an image need them: persistent, small, quick to change.

A set is a persistent map from topic id to a bit mask of partition ids. A mask is a Python integer,
so it is immutable by itself, a change of many partitions is one operation, and the partitions that
are in two sets are found by an `&`.
"""

from __future__ import annotations  # rpds' maps are generic for type checkers only

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Self

from rpds import HashTrieMap

from kraftlog.types import Uuid


class Place(NamedTuple):
    """Where a partition is found in an image."""

    topic_id: Uuid
    partition: int


def bits(mask: int) -> Iterator[int]:
    """The positions of the ones of a mask, ascending."""
    digits = f"{mask:b}"[::-1]
    position = digits.find("1")
    while position >= 0:
        yield position
        position = digits.find("1", position + 1)


class Places:
    """An immutable set of partitions."""

    __slots__ = ("_count", "_masks")

    def __init__(self, masks: HashTrieMap[Uuid, int], count: int) -> None:
        self._masks = masks
        self._count = count

    @staticmethod
    def of(places: Iterable[Place]) -> Places:
        masks: dict[Uuid, int] = {}
        for topic_id, partition in places:
            masks[topic_id] = masks.get(topic_id, 0) | 1 << partition
        return NO_PLACES.toggled(masks)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, place: Place) -> bool:
        return bool(self.mask(place.topic_id) >> place.partition & 1)

    def __iter__(self) -> Iterator[Place]:
        """Sorted, since a persistent map has no order of its own and what we do must have one."""
        for topic_id in self.topic_ids():
            for partition in bits(self._masks[topic_id]):
                yield Place(topic_id, partition)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and self._masks == other._masks

    def __hash__(self) -> int:
        return hash(self._masks)

    def __repr__(self) -> str:
        return f"Places({', '.join(f'{topic_id}-{p}' for topic_id, p in self)})"

    def topic_ids(self) -> list[Uuid]:
        """The topics that have partitions in this set, sorted."""
        return sorted(self._masks, key=_raw)

    def mask(self, topic_id: Uuid) -> int:
        """This topic's partitions in the set, as bits."""
        return self._masks.get(topic_id, 0)

    def common(self, other: Places) -> Places:
        """What is in both."""
        few, many = sorted((self._masks, other._masks), key=len)
        both = {topic_id: mask & many.get(topic_id, 0) for topic_id, mask in few.items()}
        return NO_PLACES.toggled({topic_id: mask for topic_id, mask in both.items() if mask})

    def of_topics(self, topic_ids: Iterable[Uuid]) -> Places:
        """Only the partitions of these topics."""
        masks = {topic_id: self.mask(topic_id) for topic_id in topic_ids}
        return NO_PLACES.toggled({topic_id: mask for topic_id, mask in masks.items() if mask})

    def toggled(self, changes: Mapping[Uuid, int]) -> Places:
        """A copy in which these partitions are in if they were out, and out if they were in."""
        masks, count = self._masks, self._count
        for topic_id, change in changes.items():
            before = masks.get(topic_id, 0)
            after = before ^ change
            count += after.bit_count() - before.bit_count()
            masks = masks.insert(topic_id, after) if after else masks.discard(topic_id)
        return Places(masks, count)


NO_PLACES = Places(HashTrieMap(), 0)


@dataclass(frozen=True, slots=True)
class Agenda:
    """Partitions that are to be dealt with, in order: what is left of work cut into pieces.

    It was made from one image and is taken up again on a later one. Whoever works it off looks at
    each partition anew: the partition may have changed meanwhile, or be gone.
    """

    masks: tuple[tuple[Uuid, int], ...] = ()

    @classmethod
    def of(cls, *parts: Places) -> Self:
        """All of the first part, then what is only in the second, and so on."""
        masks: list[tuple[Uuid, int]] = []
        seen: dict[Uuid, int] = {}
        for places in parts:
            for topic_id in places.topic_ids():
                before = seen.get(topic_id, 0)
                mask = places.mask(topic_id)
                seen[topic_id] = before | mask
                if mask & ~before:
                    masks.append((topic_id, mask & ~before))
        return cls(tuple(masks))

    def __len__(self) -> int:
        return sum(mask.bit_count() for _, mask in self.masks)

    def __bool__(self) -> bool:
        return bool(self.masks)

    def take(self, count: int) -> tuple[list[Place], Self]:
        """The first so many, and an agenda of the rest."""
        taken: list[Place] = []
        for position, (topic_id, mask) in enumerate(self.masks):
            chosen = list(islice(bits(mask), count - len(taken)))
            taken += [Place(topic_id, partition) for partition in chosen]
            rest = mask >> (chosen[-1] + 1) << (chosen[-1] + 1)
            if len(taken) == count:
                left = ((topic_id, rest),) if rest else ()
                return taken, type(self)(left + self.masks[position + 1 :])
        return taken, type(self)()


def _raw(topic_id: Uuid) -> bytes:
    return topic_id.raw
