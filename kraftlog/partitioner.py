"""Which partition a record goes to, as Kafka's producers choose it.

A key always goes to the same partition of a topic: other producers of the same topic, Kafka's Java
client among them, must agree, so the hash is fixed. Records without a key stay on one partition
until it got a batch's worth of bytes, then move to another at random: full batches instead of many
small ones (KIP-480, KIP-794).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from kraftlog import _codec
from kraftlog.types import Buffer

STICKY_BYTES = 16 * 1024
"""Kafka's default batch.size."""

_POSITIVE = 0x7FFFFFFF


def partition_of_key(key: Buffer, partitions: int) -> int:
    """The partition of a key in a topic with so many of them: toPositive(murmur2(key)) % n."""
    _check_partitions(partitions)
    return (_codec.codec.murmur2(key) & _POSITIVE) % partitions


def _check_partitions(partitions: int) -> None:
    if partitions < 1:
        raise ValueError(f"a topic with {partitions} partitions")


@dataclass(slots=True)
class _Sticky:
    partition: int
    bytes_sent: int = 0


class Partitioner:
    """Chooses partitions for one producer. The dice are the caller's, so that a test can load them.

    Not thread-safe: a producer calls it under its own lock.
    """

    def __init__(self, dice: Random, sticky_bytes: int = STICKY_BYTES) -> None:
        if sticky_bytes < 1:
            raise ValueError(f"sticky_bytes is {sticky_bytes}")
        self._dice = dice
        self._sticky_bytes = sticky_bytes
        self._stickies: dict[str, _Sticky] = {}

    def partition(
        self,
        topic: str,
        key: Buffer | None,
        partitions: int,
        available: Sequence[int] | None = None,
    ) -> int:
        """The partition of a record. `available` are those with a leader; None means all.

        A key's partition does not depend on what is available: its order would be lost.
        """
        if key is not None:
            return partition_of_key(key, partitions)
        _check_partitions(partitions)
        choices = available or range(partitions)
        sticky = self._stickies.get(topic)
        if sticky is None or sticky.partition not in choices:
            sticky = self._stickies[topic] = _Sticky(self._dice.choice(choices))
        return sticky.partition

    def sent(self, topic: str, partition: int, record_bytes: int) -> None:
        """Count what went to a partition; once it had its share, the next record moves on."""
        sticky = self._stickies.get(topic)
        if sticky is None or sticky.partition != partition:
            return
        sticky.bytes_sent += record_bytes
        if sticky.bytes_sent >= self._sticky_bytes:
            del self._stickies[topic]
