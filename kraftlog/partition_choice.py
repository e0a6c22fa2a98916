"""How a producer spreads its records, by name or by a function of the user's.

    murmur2       by the key, as Kafka's Java client; without one sticky (the default)
    crc32         by the key, as librdkafka; without one sticky
    sticky        a batch's worth to one partition, then to another at random, whatever the key
    round_robin   one partition after another, whatever the key

A function gets topic, key, value and the number of partitions, and returns one of them.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Protocol, cast
from zlib import crc32

from kraftlog import _codec
from kraftlog.config_key import shorten
from kraftlog.errors import ConfigError, InvalidRequest
from kraftlog.partitioner import Partitioner

PartitionFunction = Callable[[str, bytes | None, bytes | None, int], int]
PartitionerChoice = str | PartitionFunction

Places = dict[int, list[int]]
"""Of each partition the places of its records, in order."""

_POSITIVE = 0x7FFFFFFF


class Chooser(Protocol):
    """Chooses partitions of one topic. Not thread-safe: the accumulator's lock covers it."""

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int: ...

    def spread(
        self, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]
    ) -> "Places | None":
        """Which records go where; None: let `choose` decide for a batch's worth at a time."""
        ...

    def resize(self, partitions: int, available: Sequence[int]) -> None:
        """The topic has so many partitions, of which these have a leader."""
        ...


class _Sticky:
    """The partitioner decides; what went where is told to it in one sum, when that is enough."""

    def __init__(self, topic: str, dice: Random, sticky_bytes: int) -> None:
        self.topic = topic
        self.partitions = 0
        self.available: Sequence[int] = ()
        self._sticky_bytes = sticky_bytes
        self._partitioner = Partitioner(dice, sticky_bytes)
        self._sticky = 0
        self._sent = 0

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002
        return self._stick(size)

    def _stick(self, size: int) -> int:
        chosen = self._sticky
        self._sent += size
        if self._sent >= self._sticky_bytes:
            self._move()
        return chosen

    def _move(self) -> None:
        self._partitioner.sent(self.topic, self._sticky, self._sent)
        self._sent = 0
        self._sticky = self._partitioner.partition(
            self.topic, None, self.partitions, self.available
        )

    def spread(
        self,
        keys: Sequence[bytes | None] | None,  # noqa: ARG002
        values: Sequence[bytes | None],  # noqa: ARG002
    ) -> Places | None:
        return None

    def resize(self, partitions: int, available: Sequence[int]) -> None:
        is_whole = len(available) in (0, partitions)
        self.partitions = partitions
        self.available = range(partitions) if is_whole else available
        if self._sticky not in self.available or not self._sent:
            self._move()


class _ByHash(_Sticky):
    """By the hash of the key. What is available plays no part: the order of a key would be lost."""

    def __init__(
        self,
        topic: str,
        dice: Random,
        sticky_bytes: int,
        hash_of: Callable[[bytes], int],
    ) -> None:
        super().__init__(topic, dice, sticky_bytes)
        self._hash = hash_of

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002
        if key is None:
            return self._stick(size)
        return (self._hash(key) & _POSITIVE) % self.partitions

    def spread(
        self, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]
    ) -> Places | None:
        if keys is None:
            return None
        if type(None) in set(map(type, keys)):
            return _gather(map(self.choose, keys, values, map(_length, values)))
        return self._spread_keys(cast("Sequence[bytes]", keys))

    def _spread_keys(self, keys: Sequence[bytes]) -> Places:
        hash_of, partitions = self._hash, self.partitions
        found: list[list[int]] = [[] for _ in range(partitions)]
        for place, key in enumerate(keys):
            found[(hash_of(key) & _POSITIVE) % partitions].append(place)
        return {partition: places for partition, places in enumerate(found) if places}


class _ByCrc32(_ByHash):
    """As librdkafka: the hash is unsigned and nothing of it is masked."""

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002
        return self._stick(size) if key is None else crc32(key) % self.partitions

    def _spread_keys(self, keys: Sequence[bytes]) -> Places:
        return _gather(crc32(key) % self.partitions for key in keys)


class _RoundRobin(_Sticky):
    def __init__(self, topic: str, dice: Random, sticky_bytes: int) -> None:
        super().__init__(topic, dice, sticky_bytes)
        self._turn = dice.randrange(1 << 16)

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002
        self._turn += 1
        return self.available[self._turn % len(self.available)]

    def spread(
        self,
        keys: Sequence[bytes | None] | None,  # noqa: ARG002
        values: Sequence[bytes | None],
    ) -> Places | None:
        return _gather(self.choose(None, None, 0) for _ in values)


class _ByFunction(_Sticky):
    def __init__(
        self, topic: str, dice: Random, sticky_bytes: int, function: PartitionFunction
    ) -> None:
        super().__init__(topic, dice, sticky_bytes)
        self._function = function

    def choose(self, key: bytes | None, value: bytes | None, size: int) -> int:  # noqa: ARG002
        chosen = self._function(self.topic, key, value, self.partitions)
        check_partition(self.topic, chosen, self.partitions)
        return chosen

    def spread(
        self, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]
    ) -> Places | None:
        keys = keys or [None] * len(values)
        return _gather(self.choose(key, value, 0) for key, value in zip(keys, values, strict=True))


def _length(value: bytes | None) -> int:
    return 0 if value is None else len(value)


def _gather(chosen: Iterable[int]) -> Places:
    places: Places = {}
    for place, partition in enumerate(chosen):
        places.setdefault(partition, []).append(place)
    return places


def check_partition(topic: str, partition: object, partitions: int) -> None:
    """That a partition which a user names is one of the topic's."""
    if type(partition) is not int or not 0 <= partition < partitions:
        raise InvalidRequest(
            f"partition {partition!r} of {topic}, which has {partitions}",
            hint=f"use 0 to {partitions - 1}",
        )


MakeChooser = Callable[[str], Chooser]


def find_chooser(choice: PartitionerChoice, dice: Random, sticky_bytes: int) -> MakeChooser:
    """What makes the chooser of a topic."""
    if callable(choice):
        return lambda topic: _ByFunction(topic, dice, sticky_bytes, choice)
    makers: dict[str, MakeChooser] = {
        "murmur2": lambda topic: _ByHash(topic, dice, sticky_bytes, _codec.codec.murmur2),
        "crc32": lambda topic: _ByCrc32(topic, dice, sticky_bytes, crc32),
        "sticky": lambda topic: _Sticky(topic, dice, sticky_bytes),
        "round_robin": lambda topic: _RoundRobin(topic, dice, sticky_bytes),
    }
    if choice not in makers:
        raise ConfigError(
            f"partitioner = {shorten(choice)} is not known",
            hint=f"use {', '.join(makers)} or a function",
        )
    return makers[choice]
