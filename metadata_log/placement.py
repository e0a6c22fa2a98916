"""Which brokers a new topic's partitions go to (R25).

All usable brokers stand in a ring in which racks alternate, each rack and the ring itself turned to
a random start. Leaders go round the ring, one after the other, over brokers that are not fenced.
The other replicas of a partition stand on other brokers, on racks that the partition does not have
yet as long as there are any, on fenced brokers only if nothing else is left.

Without racks the followers of a leader stand at a distance from it, further away in each round, so
that the leaderships of a broker that dies fall to many others. In the last, incomplete round the
distances are such that every broker ends up with as many replicas as any other, or one more. With
racks each follower is the least loaded of those that may be taken; a small rack gets more.
"""

from collections.abc import Sequence
from itertools import zip_longest
from math import gcd
from typing import NamedTuple, Protocol, TypeVar

from kraftlog.errors import InvalidReplicationFactor

_T = TypeVar("_T")


class UsableBroker(NamedTuple):
    """A broker that may get replicas: registered, and not about to leave."""

    id: int
    rack: str | None
    is_fenced: bool


class Dice(Protocol):
    def below(self, limit: int) -> int:
        """A whole number from 0 up to, not including, the limit."""
        ...


def place(
    brokers: Sequence[UsableBroker], partitions: int, replication_factor: int, dice: Dice
) -> list[tuple[int, ...]]:
    """The replicas of each partition, the preferred leader first."""
    unfenced = [broker for broker in brokers if not broker.is_fenced]
    if replication_factor < 1:
        raise InvalidReplicationFactor(f"a partition cannot have {replication_factor} replicas")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"{replication_factor} replicas need as many brokers, and {len(brokers)} are there"
        )
    if not unfenced:
        raise InvalidReplicationFactor("all brokers are fenced", hint="wait until one is not")
    ring = _ring(unfenced, dice)
    if len({broker.rack for broker in brokers}) == 1 and replication_factor <= len(ring):
        return _striped([broker.id for broker in ring], partitions, replication_factor)
    fenced = _ring([broker for broker in brokers if broker.is_fenced], dice)
    return _least_loaded(ring, fenced, partitions, replication_factor)


def _ring(brokers: Sequence[UsableBroker], dice: Dice) -> list[UsableBroker]:
    racks: dict[str | None, list[UsableBroker]] = {}
    for broker in sorted(brokers):
        racks.setdefault(broker.rack, []).append(broker)
    names = sorted(racks, key=lambda rack: (rack is not None, rack or ""))
    turned = _turned([_turned(racks[name], dice) for name in names], dice)
    return [broker for row in zip_longest(*turned) for broker in row if broker is not None]


def _turned(items: list[_T], dice: Dice) -> list[_T]:
    start = dice.below(len(items)) if items else 0
    return items[start:] + items[:start]


def _striped(ring: Sequence[int], partitions: int, replicas: int) -> list[tuple[int, ...]]:
    """One rack. Replica number j of all partitions of a round goes once round the ring, so a whole
    round is even whatever the distances are. In a last round of m partitions, replica number j + 1
    goes on where number j stopped; after `group` of them all brokers have the same, and the next
    begin one further, so that no two are at the same distance.
    """
    size = len(ring)
    rest = partitions % size
    group = size // gcd(size, rest)
    last = [(j * rest + j // group) % size for j in range(replicas)]
    placed: list[tuple[int, ...]] = []
    for partition in range(partitions):
        turn = partition // size
        distances = last
        if partition < partitions - rest:
            distances = [0, *(1 + (turn + j) % (size - 1) for j in range(replicas - 1))]
        placed.append(tuple(ring[(partition + distance) % size] for distance in distances))
    return placed


def _least_loaded(
    unfenced: Sequence[UsableBroker],
    fenced: Sequence[UsableBroker],
    partitions: int,
    replicas: int,
) -> list[tuple[int, ...]]:
    """Several racks, or not enough brokers without fenced ones."""
    brokers = [*unfenced, *fenced]
    load = [0] * len(brokers)
    for partition in range(partitions):  # leaderships that are still to come count already
        load[partition % len(unfenced)] += 1
    placed: list[tuple[int, ...]] = []
    for partition in range(partitions):
        turn, leader = divmod(partition, len(unfenced))
        chosen = [leader]
        while len(chosen) < replicas:
            chosen.append(_next(brokers, load, chosen, turn))
            load[chosen[-1]] += 1
        placed.append(tuple(brokers[place].id for place in chosen))
    return placed


def _next(
    brokers: Sequence[UsableBroker], load: Sequence[int], chosen: Sequence[int], turn: int
) -> int:
    """The place of the broker that the next replica goes to."""
    racks = [brokers[place].rack for place in chosen]
    leader = chosen[0]

    def rank(place: int) -> tuple[int, bool, int, int]:
        broker = brokers[place]
        distance = (place - leader - 1 - turn) % len(brokers)
        return racks.count(broker.rack), broker.is_fenced, load[place], distance

    return min((place for place in range(len(brokers)) if place not in chosen), key=rank)
