"""The types a configuration value can have: how each is read, and how its range is described.

A value comes as text (environment, flags, topic configs in the metadata log) or as what TOML made
of it; both are read alike. A value that does not fit raises `Refused` with the reason, which is
written so that "NAME = VALUE: " can stand before it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
FLOAT64_MAX = math.ldexp(1 - 2**-53, 1024)

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

UNIT_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}

# Twenty digits: more than an int64 has. Longer numbers are refused unread, since reading is slow.
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_REPLICA = re.compile(r"[0-9]{1,10}:[0-9]{1,10}", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,20})\s*(ms|s|m|h|d)", re.ASCII)
_ADDRESS = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", re.ASCII)
PORT_MAX = 65_535


class Refused(ValueError):
    """A value that does not fit its type; the text says why and what would fit."""


class ValueType(Protocol[T]):
    """What a value may be, and how it is read and written."""

    def parse(self, raw: object) -> T:
        """The value of raw text or of a TOML value, or Refused."""
        ...

    def show(self, value: T) -> str:
        """The text that parse reads as this value."""
        ...

    def describe(self) -> str:
        """What fits, as the end of the sentence "must be …"."""
        ...


@dataclass(frozen=True, slots=True)
class Integer:
    low: int
    high: int = INT64_MAX

    def parse(self, raw: object) -> int:
        value = _whole(raw)
        if value is None or not self.low <= value <= self.high:
            raise Refused(f"must be {self.describe()}")
        return value

    def show(self, value: int) -> str:
        return str(value)

    def describe(self) -> str:
        return f"a whole number {_between(self.low, self.high)}"


@dataclass(frozen=True, slots=True)
class DurationMs:
    """Milliseconds: a whole number of them, or a number with a unit ("90s", "7d")."""

    low: int
    high: int = INT64_MAX

    def parse(self, raw: object) -> int:
        value = _duration(raw)
        if value is None or not self.low <= value <= self.high:
            raise Refused(f"must be {self.describe()}")
        return value

    def show(self, value: int) -> str:
        return str(value)

    def describe(self) -> str:
        units = ", ".join(UNIT_MS)
        return f"whole milliseconds {_between(self.low, self.high)}, or a number with {units}"


@dataclass(frozen=True, slots=True)
class Real:
    low: float
    high: float

    def parse(self, raw: object) -> float:
        value = _real(raw)
        # Written so that NaN, which is neither below nor above anything, does not pass.
        if value is None or not self.low <= value <= self.high:
            raise Refused(f"must be {self.describe()}")
        return value

    def show(self, value: float) -> str:
        return repr(value)

    def describe(self) -> str:
        if self.high == FLOAT64_MAX:
            return f"a number of at least {self.low:g}"
        return f"a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Boolean:
    def parse(self, raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        text = raw.strip().lower() if isinstance(raw, str) else ""
        if text not in {"true", "false"}:
            raise Refused(f"must be {self.describe()}")
        return text == "true"

    def show(self, value: bool) -> str:
        return "true" if value else "false"

    def describe(self) -> str:
        return "true or false"


class Choice(ValueType[T]):
    """One of a few names, each standing for a value."""

    def __init__(self, meanings: Mapping[str, T]) -> None:
        self.meanings = dict(meanings)

    def parse(self, raw: object) -> T:
        name = raw.strip() if isinstance(raw, str) else None
        if name not in self.meanings:
            raise Refused(f"must be {self.describe()}")
        return self.meanings[name]

    def show(self, value: T) -> str:
        return next(name for name, meaning in self.meanings.items() if meaning == value)

    def describe(self) -> str:
        return " or ".join(self.meanings)


@dataclass(frozen=True, slots=True)
class NameSet:
    """Some of a few names, at least one; as text separated by commas."""

    allowed: tuple[str, ...]

    def parse(self, raw: object) -> frozenset[str]:
        names = _list(raw)
        if not names or not set(names) <= set(self.allowed):
            raise Refused(f"must be {self.describe()}")
        return frozenset(names)

    def show(self, value: frozenset[str]) -> str:
        return ",".join(sorted(value))

    def describe(self) -> str:
        return f"one or more of {', '.join(self.allowed)}"


@dataclass(frozen=True, slots=True)
class Paths:
    """Directories, as a list or as text separated by commas; none of them twice."""

    def parse(self, raw: object) -> tuple[str, ...]:
        paths = _list(raw)
        if not paths or not all(_is_path(path) for path in paths):
            raise Refused(f"must be {self.describe()}")
        # Compared without the trailing slash, which names the same directory.
        if len({path.rstrip("/") for path in paths}) < len(paths):
            raise Refused("must not name a directory twice")
        return tuple(paths)

    def show(self, value: tuple[str, ...]) -> str:
        return ",".join(value)

    def describe(self) -> str:
        return "one or more directories"


@dataclass(frozen=True, slots=True)
class Address:
    """One `host:port`; an IPv6 address stands in brackets."""

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str) or not _is_address(raw.strip()):
            raise Refused(f"must be {self.describe()}")
        return raw.strip()

    def show(self, value: str) -> str:
        return value

    def describe(self) -> str:
        return "host:port"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Any number of `host:port`, as a list or as text separated by commas; none of them twice. The
    text "none" means that there is none.
    """

    count_max: int = INT32_MAX

    def parse(self, raw: object) -> tuple[str, ...]:
        found = [] if raw in ("", "none") else _list(raw)
        fits = found is not None and len(found) <= self.count_max
        if found is None or not fits or not all(map(_is_address, found)):
            raise Refused(f"must be {self.describe()}")
        if len(set(found)) < len(found):
            raise Refused("must not name an address twice")
        return tuple(found)

    def show(self, value: tuple[str, ...]) -> str:
        return ",".join(value) or "none"

    def describe(self) -> str:
        return "host:port, or none" if self.count_max == 1 else "a list of host:port"


@dataclass(frozen=True, slots=True)
class OptionalText:
    """A line of text. The text "none" means that there is none."""

    def parse(self, raw: object) -> str | None:
        if raw in ("", "none"):
            return None
        if not isinstance(raw, str) or raw != raw.strip() or not raw.isprintable():
            raise Refused(f"must be {self.describe()}")
        return raw

    def show(self, value: str | None) -> str:
        return "none" if value is None else value

    def describe(self) -> str:
        return "one line of text, or none"


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found[1]) <= PORT_MAX


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """Replicas of a topic as `partition:broker`, separated by commas; or `*` for all; or none."""

    def parse(self, raw: object) -> tuple[str, ...]:
        replicas = [] if raw in ("", "none") else _list(raw)
        if replicas is None or (replicas != ["*"] and not all(map(_is_replica, replicas))):
            raise Refused(f"must be {self.describe()}")
        return tuple(dict.fromkeys(replicas))

    def show(self, value: tuple[str, ...]) -> str:
        return ",".join(value) or "none"

    def describe(self) -> str:
        return "a list like 0:1,0:2 (partition:broker), or *"


def _is_replica(text: str) -> bool:
    return _REPLICA.fullmatch(text) is not None


def _is_path(path: str) -> bool:
    # A comma could not be told from the one between two directories.
    return bool(path) and path == path.strip() and not {",", "\0"} & set(path)


def _between(low: int, high: int) -> str:
    if high == INT64_MAX:
        return f"of at least {low}"
    return f"from {low} to {high}"


def _whole(raw: object) -> int | None:
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return raw
    if isinstance(raw, str) and _WHOLE.fullmatch(raw.strip()):
        return int(raw)
    return None


def _duration(raw: object) -> int | None:
    match = _DURATION.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match:
        return int(match[1]) * UNIT_MS[match[2]]
    return _whole(raw)


def _real(raw: object) -> float | None:
    if isinstance(raw, str):
        return float(raw) if _REAL.fullmatch(raw.strip()) else None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    return float(raw) if abs(raw) <= FLOAT64_MAX else None


def _list(raw: object) -> list[str] | None:
    if isinstance(raw, str):
        return [part.strip() for part in raw.split(",")]
    if not isinstance(raw, list | tuple | frozenset):
        return None
    names = [part for part in raw if isinstance(part, str)]
    return names if len(names) == len(raw) else None
