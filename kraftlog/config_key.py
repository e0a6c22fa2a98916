"""What a configuration key is: its names, type, range, default and meaning."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from kraftlog.config_types import Refused, ValueType
from kraftlog.errors import ConfigError

T = TypeVar("T")

ENVIRONMENT_PREFIX = "KRAFTLOG_"
SHOWN_CHARS_MAX = 80


class Scope(Enum):
    """Who reads a key."""

    BROKER = "broker"
    CONTROLLER = "controller"
    TOPIC = "topic"
    CLIENT = "client"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Key(Generic[T]):
    """One key. Identity is equality: there is one declaration of each."""

    names: Mapping[Scope, str]
    value_type: ValueType[T]
    default: T
    doc: str

    @property
    def name(self) -> str:
        """The name to speak of it by: the topic's, where topics have it."""
        return self.names.get(Scope.TOPIC) or next(iter(self.names.values()))

    def parse(self, raw: object, *, name: str = "", source: str = "given") -> T:
        """The value that text or a TOML value stands for, or ConfigError."""
        try:
            return self.value_type.parse(raw)
        except Refused as refused:
            raise ConfigError(
                f"{name or self.name} = {shorten(raw)} ({source}) {refused}",
                hint=f"leave it out for the default, {self.default_text}",
            ) from None

    def check(self, value: T, *, name: str) -> None:
        """ConfigError unless this value, given by a program, is one that parse could return."""
        try:
            fits = self.value_type.parse(self.value_type.show(value)) == value
        except (Refused, StopIteration):
            fits = False
        if not fits:
            raise ConfigError(
                f"{name} = {shorten(value)} must be {self.value_type.describe()}",
                hint=f"leave it out for the default, {self.default_text}",
            )

    @property
    def default_text(self) -> str:
        return self.value_type.show(self.default) or "none"


def shorten(value: object) -> str:
    """A value as an error message shows it, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out a number of thousands of digits
        return f"a {type(value).__name__} too long to show"
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 1] + "…"


def environment_name(name: str) -> str:
    """`log.segment.bytes` -> `KRAFTLOG_LOG_SEGMENT_BYTES`."""
    return ENVIRONMENT_PREFIX + name.upper().replace(".", "_")
