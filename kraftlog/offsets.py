"""Where to read from, as users say it: one grammar for `seek`, the command line and Spark.

    start end      the first offset there is; the next one to be written
    1200           that offset
    +10 -10        so many behind the start; so many before the end
    @-1h @now      the first record that is not older than that
    @2026-01-31 @2026-01-31T09:30:00+01:00 @1769817600000
                   the first record at or after that time (UTC unless it says otherwise; or ms)

A range is two of them, A:B, without B itself; either may be missing (`:end`, `@-1h:`).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import ClassVar

from kraftlog.config_key import shorten
from kraftlog.config_types import INT64_MAX
from kraftlog.durations import Duration, to_ms
from kraftlog.errors import ConfigError, InvalidRequest, NotYetSupported

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
        text = text.strip()
        if text == "start":
            return cls.START
        if text == "end":
            return cls.END
        if text == "committed":
            raise NotYetSupported("offset committed", hint="there are no consumer groups yet")
        if text.startswith("@"):
            return _parse_time(text)
        sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
            raise _not_an_offset(text)
        make = {"+": cls.after_start, "-": cls.before_end, "": cls.at}[sign]
        return make(int(digits))

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

    @classmethod
    def parse(cls, text: str) -> "OffsetRange":
        """A:B, or A alone. A time may contain colons itself: the first split that makes sense."""
        for position in (at for at, letter in enumerate(text) if letter == ":"):
            try:
                first = Offset.parse(text[:position]) if position else Offset.START
                rest = text[position + 1 :]
                return cls(first, Offset.parse(rest) if rest else None)
            except ConfigError:
                continue
        return cls(Offset.parse(text))

    def __str__(self) -> str:
        return f"{self.first}:{'' if self.end is None else self.end}"


def _parse_time(text: str) -> Offset:
    moment = text[1:]
    if moment == "now":
        return Offset(Anchor.AGO, 0)
    if moment.startswith("-"):
        return Offset.ago(moment[1:])
    if moment.isascii() and moment.isdigit() and len(moment) <= 19 and "-" not in moment:
        return Offset.at_time(int(moment))
    try:
        return Offset.at_time(datetime.fromisoformat(moment))
    except ValueError:
        raise _not_an_offset(text) from None


def _not_an_offset(text: str) -> ConfigError:
    return ConfigError(f"{shorten(text)} is no offset", hint=_HINT)
