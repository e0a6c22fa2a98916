"""Durations as users write them: "250ms", "5s", seconds as a number, or a timedelta."""

import math
import re
from datetime import timedelta

from kraftlog.config_key import shorten
from kraftlog.config_types import SECOND_MS, UNIT_MS
from kraftlog.errors import ConfigError

Duration = str | float | timedelta

_TEXT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)\s*(ms|s|m|h|d)", re.ASCII)


def to_seconds(duration: Duration, name: str) -> float:
    """The seconds of a duration; `name` is the argument that an error speaks of."""
    seconds = _seconds(duration)
    if seconds is None or not 0 <= seconds < math.inf:
        raise ConfigError(
            f"{name} = {shorten(duration)} is no duration",
            hint='write "250ms", "5s", "1.5h", seconds as a number, or a timedelta',
        )
    return seconds


def to_ms(duration: Duration, name: str) -> int:
    """Whole milliseconds; what is less than one but not nothing is one."""
    ms = to_seconds(duration, name) * SECOND_MS
    return math.ceil(ms) if ms < 1 else round(ms)


def limit_seconds(duration: Duration | None, name: str) -> float | None:
    """As to_seconds; None is no limit."""
    return None if duration is None else to_seconds(duration, name)


def _seconds(duration: object) -> float | None:
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, str):
        match = _TEXT.fullmatch(duration.strip())
        return float(match[1]) * UNIT_MS[match[2]] / SECOND_MS if match else None
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        return None
    try:
        return float(duration)
    except OverflowError:
        return None
