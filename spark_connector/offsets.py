"""Offsets as Spark's users write them, and the arithmetic of ranges. Pure.

{"orders": {"0": 23, "1": -2}}   Kafka's JSON; -2 is the earliest, -1 the latest offset
earliest, latest                 of every partition
start end 1200 +10 -10 @-1h      our own grammar (kraftlog.offsets), for every partition, or
                                 as a string in the JSON
orders:0=1200,orders:1=@-1h      the same, for each partition
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

from kraftlog.config_key import shorten
from kraftlog.errors import ConfigError
from kraftlog.offsets import Anchor, Offset, PerPartition
from kraftlog.types import TopicPartition

Partitions: TypeAlias = tuple[TopicPartition, ...]
Offsets: TypeAlias = dict[TopicPartition, int]
Json: TypeAlias = dict[str, dict[str, int]]
"""How a stream's offsets stand in its checkpoint: Kafka's form, and always in the same order."""

LATEST = -1
EARLIEST = -2

_WORDS = {"earliest": Offset.START, "latest": Offset.END}


@dataclass(frozen=True, slots=True)
class Places:
    """Where to begin, or to end: the same for all partitions, or one for each."""

    option: str
    everywhere: Offset | None = None
    each: Mapping[TopicPartition, Offset] | None = None

    @property
    def has_latest(self) -> bool:
        return Offset.END in self._all

    @property
    def has_earliest(self) -> bool:
        return Offset.START in self._all

    @property
    def _all(self) -> Iterable[Offset]:
        return [self.everywhere] if self.everywhere is not None else (self.each or {}).values()

    def of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """The place in each of these, which must be just those that were named."""
        wanted = list(partitions)
        if self.everywhere is not None:
            return dict.fromkeys(wanted, self.everywhere)
        named = self.each or {}
        missing = [str(place) for place in wanted if place not in named]
        surplus = [str(place) for place in named if place not in set(wanted)]
        if missing or surplus:
            what = f"leaves out {_some(missing)}" if missing else f"names {_some(surplus)}"
            raise ConfigError(
                f"option {self.option} {what}",
                hint="name all partitions that are read, and no others; -1 is latest, -2 earliest",
            )
        return {place: named[place] for place in wanted}


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


# -- parsing


def parse_places(option: str, text: str) -> Places:
    if text.lstrip().startswith("{"):
        each = {place: _place(option, value) for place, value in _parse_json(option, text).items()}
        return Places(option, each=each)
    if "=" in text:
        return Places(option, each=_parse_named(option, text))
    word = _WORDS.get(text.lower())
    return Places(option, word if word is not None else _parse_offset(option, text))


def _parse_named(option: str, text: str) -> dict[TopicPartition, Offset]:
    named = PerPartition.parse(text, lambda each: _place(option, each)).each
    nowhere = [number for topic, number in named if not topic]
    if nowhere:
        raise ConfigError(
            f"option {option} names partition {nowhere[0]} of no topic", hint="write orders:0=1200"
        )
    return {TopicPartition(*key): offset for key, offset in named.items()}


def _place(option: str, value: object) -> Offset:
    if value == LATEST:
        return Offset.END
    if value == EARLIEST:
        return Offset.START
    if isinstance(value, str):
        return _WORDS.get(value.lower()) or _parse_offset(option, value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(
            f"option {option} has the offset {shorten(value)}",
            hint="use a number from 0, -1 for latest or -2 for earliest",
        )
    return Offset.at(value)


def _parse_offset(option: str, text: str) -> Offset:
    try:
        return Offset.parse(text)
    except ConfigError as error:
        raise ConfigError(
            f"option {option}: {error.message}",
            hint='write earliest, latest, @-1h, +10, -10 or {"topic": {"0": 23, "1": -2}}',
        ) from error


def parse_timestamp(option: str, text: str) -> Places:
    if not text.isascii() or not text.isdigit():
        raise ConfigError(
            f"option {option} = {shorten(text)} is no time", hint="write milliseconds since 1970"
        )
    return Places(option, Offset.at_time(int(text)))


def parse_timestamps(option: str, text: str) -> Places:
    each: dict[TopicPartition, Offset] = {}
    for place, value in _parse_json(option, text).items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigError(
                f"option {option} has the time {shorten(value)} for {place}",
                hint="write milliseconds since 1970",
            )
        each[place] = Offset.at_time(value)
    return Places(option, each=each)


def parse_assignment(text: str) -> Partitions:
    """`{"orders": [0, 1]}`"""
    found = _load(text)
    if not isinstance(found, dict) or not found:
        raise _not_assigned(text)
    places: list[TopicPartition] = []
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not all(map(_is_partition, partitions)):
            raise _not_assigned(text)
        places += [TopicPartition(topic, partition) for partition in partitions]
    return tuple(sorted(set(places)))


def _is_partition(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _not_assigned(text: str) -> ConfigError:
    return ConfigError(
        f"option assign = {shorten(text)} names no partitions", hint='write {"topic": [0, 1]}'
    )


def _load(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except ValueError:
        return None


def _parse_json(option: str, text: str) -> dict[TopicPartition, object]:
    found = _load(text)
    places: dict[TopicPartition, object] = {}
    topics = found.items() if isinstance(found, dict) else ()
    for topic, partitions in topics:
        for number, value in partitions.items() if isinstance(partitions, dict) else ():
            if not number.isascii() or not number.isdigit():
                raise ConfigError(f"option {option} names the partition {shorten(number)}")
            places[TopicPartition(topic, int(number))] = value
    if not places:
        raise ConfigError(
            f"option {option} = {shorten(text)} names no partitions",
            hint='write {"topic": {"0": 23, "1": 42}}',
        )
    return places


def to_json(offsets: Mapping[TopicPartition, int]) -> Json:
    found: Json = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def from_json(offsets: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }


# -- ranges


class Range(NamedTuple):
    """Offsets of one partition, the end exclusive."""

    place: TopicPartition
    start: int
    end: int
    topic_id: bytes = b""
    """Of the topic that the offsets are of; empty: whichever has the name."""

    def __str__(self) -> str:
        return f"offsets {self.start} to {self.end} of {self.place}"

    def is_of(self, topic_id: bytes) -> bool:
        return self.topic_id in (b"", topic_id)

    @property
    def size(self) -> int:
        return self.end - self.start


def share(sizes: Mapping[TopicPartition, int], limit: int) -> dict[TopicPartition, int]:
    """A limit shared out in proportion to the sizes; who has anything gets at least one."""
    total = sum(sizes.values())
    if total <= limit:
        return dict(sizes)
    # In whole numbers: offsets lie beyond what a float can tell apart.
    return {
        place: min(size, max(size * limit // total, 1)) if size else 0
        for place, size in sizes.items()
    }


def share_bytes(
    rows: Mapping[TopicPartition, int], sizes: Mapping[TopicPartition, int], limit: int
) -> dict[TopicPartition, int]:
    """So many rows of each that they have about `limit` bytes together, of what `sizes` says."""
    total = sum(sizes.values())
    if total <= limit:
        return dict(rows)
    return {
        place: min(count, max(count * limit // total, 1)) if count else 0
        for place, count in rows.items()
    }


def split(
    ranges: Sequence[Range], min_partitions: int | None, max_records: int | None
) -> list[Range]:
    """The ranges of the tasks: at least about so many, and none with more records than that."""
    wanted = [each for each in ranges if each.size > 0]
    pieces = dict.fromkeys(wanted, 1)
    if min_partitions is not None and len(wanted) < min_partitions:
        total = sum(each.size for each in wanted)
        for each in wanted:
            pieces[each] = max((2 * each.size * min_partitions + total) // (2 * total), 1)
    if max_records is not None:
        for each in wanted:
            pieces[each] = max(pieces[each], -(-each.size // max_records))
    return [part for each, count in pieces.items() for part in _cut(each, count)]


def _cut(whole: Range, pieces: int) -> Iterable[Range]:
    count = min(pieces, whole.size)
    for number in range(count):
        start = whole.start + whole.size * number // count
        end = whole.start + whole.size * (number + 1) // count
        yield whole._replace(start=start, end=end)


def is_time(offset: Offset) -> bool:
    return offset.anchor in (Anchor.TIME, Anchor.AGO)
