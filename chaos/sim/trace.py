"""What happened: a hash of all of it, and the last events in words."""

import hashlib
import struct
import sys
from collections import deque
from dataclasses import fields, is_dataclass

from chaos.sim.schedule import Schedule

EVENTS_KEPT = 200
_TIME = struct.Struct(">d")


class Trace:
    """Words are made only when somebody reads them; the hash takes every event, byte by byte."""

    def __init__(self, schedule: Schedule, *, live: bool = False) -> None:
        self._schedule = schedule
        self._live = live
        self._digest = hashlib.sha256()
        self._recent: deque[tuple[float, str, object]] = deque(maxlen=EVENTS_KEPT)

    def add(self, what: str, about: object = "", raw: bytes = b"") -> None:
        """`raw` stands for `about` in the hash."""
        now = self._schedule.now
        self._digest.update(_TIME.pack(now) + what.encode() + raw)
        self._recent.append((now, what, about))
        if self._live:
            sys.stdout.write(_line(now, what, about) + "\n")

    @property
    def hash(self) -> str:
        return self._digest.hexdigest()[:16]

    def recent(self) -> tuple[str, ...]:
        return tuple(_line(*event) for event in self._recent)


def _line(now: float, what: str, about: object) -> str:
    return f"{now:10.2f} {what} {describe(about)}".rstrip()


_SKIPPED = ("cluster_id", "sender", "recipient", "batches", "data")
_WORD_CHARS_MAX = 60


def describe(what: object) -> str:
    """A message in a few words; anything else as it prints itself, if that is short."""
    if isinstance(what, list | tuple):
        return f"[{', '.join(map(describe, what))}]"
    if not is_dataclass(what) or type(what).__str__ is not object.__str__:
        return str(what)[:_WORD_CHARS_MAX]
    shown = ((each.name, getattr(what, each.name)) for each in fields(what))
    words = [f"{name}={describe(value)}" for name, value in shown if name not in _SKIPPED]
    return " ".join([type(what).__name__, *words])
