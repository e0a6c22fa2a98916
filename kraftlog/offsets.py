"""Where to read from, as users say it: one grammar for `seek`, the command line and Spark.

    start end      the first offset there is; the next one to be written
    1200           that offset
    +10 -10        so many behind the start; so many before the end
    @-1h @now      the first record that is not older than that
    @2026-01-31 @2026-01-31T09:30:00+01:00 @1769817600000
                   the first record at or after that time (UTC unless it says otherwise; or ms)

A range is two of them, A:B, without B itself; either may be missing (`:end`, `@-1h:`).

Where partitions may differ, each that is meant is named: `0=1200,1=@-1h`, `orders:0=start:end`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import ClassVar, Generic, TypeVar

from kraftlog.config_key import shorten
from kraftlog.config_types import INT64_MAX
from kraftlog.durations import Duration, to_ms
from kraftlog.errors import ConfigError, InvalidRequest, NotYetSupported
from kraftlog.types import TopicPartition

T = TypeVar("T")

_HINT = "write start, end, 1200, +10, -10, @-1h, @now or @2026-01-31"


class Anchor(Enum):
    """What the number of an Offset counts from."""

    ABSOLUTE = "an offset"
    START = "records behind the start"
    END = "records before the end"
    TIME = "milliseconds since 1970"
    AGO = "milliseconds before now"


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in a partition; which offset that is, only its leader knows."""

    anchor: Anchor
    number: int

    START: ClassVar["Offset"]
    END: ClassVar["Offset"]

    def __post_init__(self) -> None:
        if not 0 <= self.number <= INT64_MAX:
            raise InvalidRequest(f"{self.number} cannot be {self.anchor.value}", hint=_HINT)

    @classmethod
    def at(cls, offset: int) -> "Offset":
        return cls(Anchor.ABSOLUTE, offset)

    @classmethod
    def after_start(cls, records: int) -> "Offset":
        return cls(Anchor.START, records)

    @classmethod
    def before_end(cls, records: int) -> "Offset":
        return cls(Anchor.END, records)

    @classmethod
    def at_time(cls, time: datetime | int) -> "Offset":
        """The first record at or after a time; without a zone it is UTC."""
        if isinstance(time, int):
            return cls(Anchor.TIME, time)
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return cls(Anchor.TIME, round(aware.timestamp() * 1000))

    @classmethod
    def ago(cls, duration: Duration) -> "Offset":
        return cls(Anchor.AGO, to_ms(duration, "offset"))

    @classmethod
    def parse(cls, text: str) -> "Offset":
        """What a text of the grammar means, or ConfigError."""
        found = _parse(text)
        if found is not None:
            return found
        if _split(text) is not None:
            raise ConfigError(f"{shorten(text)} is a range, and one offset is meant", hint=_HINT)
        raise ConfigError(f"{shorten(text)} is no offset", hint=_HINT)

    def time_ms(self, now_ms: int) -> int | None:
        """The time that it stands for; None where it is no time."""
        if self.anchor is Anchor.TIME:
            return self.number
        return max(now_ms - self.number, 0) if self.anchor is Anchor.AGO else None

    def __str__(self) -> str:
        match self.anchor:
            case Anchor.ABSOLUTE:
                return str(self.number)
            case Anchor.START:
                return f"+{self.number}" if self.number else "start"
            case Anchor.END:
                return f"-{self.number}" if self.number else "end"
            case Anchor.TIME:
                return f"@{self.number}"
            case Anchor.AGO:
                return f"@-{self.number}ms" if self.number else "@now"


Offset.START = Offset(Anchor.START, 0)
Offset.END = Offset(Anchor.END, 0)


def to_offset(place: "int | str | Offset") -> Offset:
    """An Offset from any of the forms that a user may give."""
    if isinstance(place, Offset):
        return place
    return Offset.at(place) if isinstance(place, int) else Offset.parse(place)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """From one place up to another, exclusively; without an end it goes on for ever."""

    first: Offset
    end: Offset | None = None

    def __post_init__(self) -> None:
        first, end = self.first, self.end
        if end is None or first.anchor is not end.anchor or first.number == end.number:
            return
        is_counted_back = first.anchor in (Anchor.END, Anchor.AGO)
        if (first.number < end.number) is is_counted_back:
            raise ConfigError(f"the range {self} ends before it begins", hint="swap the two")

    @classmethod
    def parse(cls, text: str) -> "OffsetRange":
        """A:B, or A alone."""
        first = _parse(text)
        if first is not None:
            return cls(first)
        found = _split(text)
        if found is None:
            hint = f"{_HINT}; or a range of two of them, as 100:200, :end or @-1h:@now"
            raise ConfigError(f"{shorten(text)} is neither an offset nor a range", hint=hint)
        return cls(*found)

    def __str__(self) -> str:
        return f"{self.first}:{'' if self.end is None else self.end}"


@dataclass(frozen=True, slots=True)
class PerPartition(Generic[T]):
    """One for all partitions, or one for each that is named."""

    everywhere: T | None = None
    each: Mapping[tuple[str, int], T] = field(default_factory=dict)
    """By topic and partition; the topic is empty where none was named: any that is read."""

    @classmethod
    def parse(cls, text: str, parse: Callable[[str], T]) -> "PerPartition[T]":
        """What `parse` makes of the text, or of the text behind each partition's name."""
        if "=" not in text:
            return cls(everywhere=parse(text))
        each: dict[tuple[str, int], T] = {}
        for piece in text.split(","):
            name, _, value = piece.partition("=")
            topic, _, number = name.strip().rpartition(":")
            if not (number.isascii() and number.isdigit()) or len(number) > 10:
                hint = "write PARTITION=OFFSET or TOPIC:PARTITION=OFFSET, with commas in between"
                raise ConfigError(f"{shorten(piece)} names no partition", hint=hint)
            if (topic, int(number)) in each:
                raise ConfigError(f"{name.strip()} is named twice", hint="give each partition once")
            each[topic, int(number)] = parse(value)
        return cls(each=each)

    @property
    def values(self) -> list[T]:
        """All that there are, whatever they are for."""
        return [self.everywhere] if self.everywhere is not None else list(self.each.values())

    def of(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, T]:
        """Those that are meant of these partitions, and what for each."""
        wanted = list(places)
        if self.everywhere is not None:
            return dict.fromkeys(wanted, self.everywhere)
        found: dict[TopicPartition, T] = {}
        for (topic, number), value in self.each.items():
            meant = [each for each in wanted if each.partition == number]
            meant = [each for each in meant if topic in ("", each.topic)]
            if not meant:
                name = f"{topic}:{number}" if topic else f"partition {number}"
                raise ConfigError(
                    f"there is no {name} here", hint="name partitions of what is read"
                )
            # Whoever names the topic as well means it more than who does not.
            found |= {each: value for each in meant if topic or each not in found}
        return found


# -- reading the grammar


def _parse(text: str) -> Offset | None:
    """One place, or None where the text is no such."""
    text = text.strip()
    if text == "start":
        return Offset.START
    if text == "end":
        return Offset.END
    if text == "committed":
        raise NotYetSupported("offset committed", hint="there are no consumer groups yet")
    try:
        return _parse_time(text[1:]) if text.startswith("@") else _parse_number(text)
    except (ConfigError, InvalidRequest):
        return None


def _parse_number(text: str) -> Offset | None:
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        return None
    make = {"+": Offset.after_start, "-": Offset.before_end, "": Offset.at}[sign]
    return make(int(digits))


def _parse_time(moment: str) -> Offset | None:
    if moment == "now":
        return Offset(Anchor.AGO, 0)
    if moment.startswith("-"):
        return Offset.ago(moment[1:])
    if moment.isascii() and moment.isdigit():
        return Offset.at_time(int(moment)) if len(moment) <= 19 else None
    try:
        return Offset.at_time(datetime.fromisoformat(moment))
    except ValueError:
        return None


def _split(text: str) -> tuple[Offset, Offset | None] | None:
    """The two of a range. A time may contain colons itself: the first split that makes sense."""
    for position in (at for at, letter in enumerate(text) if letter == ":"):
        before, behind = text[:position].strip(), text[position + 1 :].strip()
        first = _parse(before) if before else Offset.START
        end = _parse(behind) if behind else None
        if first is not None and (end is not None or not behind):
            return first, end
    return None
