"""What clients did and saw while a cluster was being broken: JSON, one object a line.

    {"t":1.25,"kind":"invoke","id":17,"process":"producer-0","op":"send","value":{...}}
    {"t":1.26,"kind":"ok","id":17,"value":{"offset":5}}
    {"t":1.30,"kind":"event","what":"fault","fault":"kill -9","target":"c2"}

An operation ends `ok`, `fail` (surely not done) or `unknown`; one that never ends is unknown too.
`t` is seconds since the run began, by one monotonic clock. A line is written as it happens, in one
piece, so that a harness that is killed leaves all but its last line; `read_history` forgives that
one and nothing else, since a verdict about half a history is none.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import NoReturn, Self, TypeAlias

from kraftlog.errors import InvalidRequest, KraftError

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
Facts: TypeAlias = Mapping[str, Json]

INVOKE = "invoke"
EVENT = "event"


class Outcome(StrEnum):
    OK = "ok"
    FAIL = "fail"
    """Surely not done."""
    UNKNOWN = "unknown"


class HistoryDamaged(KraftError):
    """A file that is no history; the message says which line and why."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What one client asked for, and how that ended."""

    id: int
    process: str
    op: str
    value: Json
    invoked: float
    outcome: Outcome = Outcome.UNKNOWN
    ended: float | None = None
    """None if it never did."""
    result: Json = None
    error: str = ""

    def __str__(self) -> str:
        end = "never" if self.ended is None else f"{self.ended:.3f}"
        value = json.dumps(self.value, ensure_ascii=False, default=str)
        return f"{self.process} {self.op} {value} [{self.invoked:.3f}, {end}] {self.outcome}"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the cluster, or to the run."""

    t: float
    what: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class History:
    """Operations in the order of their beginning, events in that of their happening."""

    operations: tuple[Operation, ...]
    events: tuple[Event, ...] = ()
    end: float = 0.0
    is_torn: bool = False
    """The last line was cut: whoever wrote it was killed."""

    def of(self, *ops: str) -> Iterator[Operation]:
        return (each for each in self.operations if each.op in ops)

    def events_of(self, *what: str) -> Iterator[Event]:
        return (each for each in self.events if each.what in what)


class HistoryWriter:
    """Any thread may write. `clock` gives seconds that only grow; the run begins now."""

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = Path(path)
        self._clock = clock
        self._lock = Lock()
        self._open: set[int] = set()
        self._next_id = 0
        # Not a text file: a line must not wait in a buffer, nor be written in two pieces.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._file: int | None = os.open(self.path, flags, 0o644)
        self._start = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._start

    def invoke(self, process: str, op: str, value: Json = None) -> int:
        """A client begins an operation; give the returned id to `ok`, `fail` or `unknown`."""
        with self._lock:
            if self._file is None:
                raise InvalidRequest(
                    f"{process} begins {op} after the history {self.path} was closed",
                    hint="stop the clients before closing the history",
                )
            operation = self._next_id
            self._next_id += 1
            self._open.add(operation)
            self._write(INVOKE, {"id": operation, "process": process, "op": op, "value": value})
        return operation

    def ok(self, operation: int, value: Json = None) -> None:
        self._end(Outcome.OK, operation, {"value": value})

    def fail(self, operation: int, error: str) -> None:
        """Only if it was surely not done."""
        self._end(Outcome.FAIL, operation, {"error": error})

    def unknown(self, operation: int, error: str) -> None:
        self._end(Outcome.UNKNOWN, operation, {"error": error})

    def event(self, what: str, **facts: Json) -> None:
        with self._lock:
            if self._file is not None:
                self._write(EVENT, {"what": what, **facts})

    def close(self) -> None:
        """Idempotent. What ends later counts as unknown, which is never wrong."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _end(self, outcome: Outcome, operation: int, facts: Facts) -> None:
        with self._lock:
            if operation not in self._open:
                raise InvalidRequest(
                    f"operation {operation} ends {outcome}, but it never began or has ended",
                    hint="end each operation once",
                )
            self._open.remove(operation)
            if self._file is not None:
                self._write(outcome, {"id": operation, **facts})

    def _write(self, kind: str, facts: Facts) -> None:
        """Under the lock, so that times rise from line to line."""
        if self._file is None:
            return
        fields = {"t": round(self.now(), 6), "kind": kind, **facts}
        line = json.dumps(fields, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        while line:
            line = line[os.write(self._file, line) :]


# -- reading


def read_history(path: str | Path) -> History:
    """The whole history, or HistoryDamaged. A cut last line is left out and noted."""
    data = Path(path).read_bytes()
    reader = _Reader(str(path))
    lines = data.split(b"\n")
    torn = lines.pop()
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    is_torn = bool(torn) and not _is_whole(torn)
    if torn and not is_torn:
        reader.read(len(lines) + 1, torn)
    return History(
        tuple(reader.operations.values()), tuple(reader.events), reader.last_t, is_torn=is_torn
    )


def _is_whole(line: bytes) -> bool:
    """No part of an object is itself one, so what can be read was written to its end."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path
        self.number = 0
        self.last_t = 0.0
        self.operations: dict[int, Operation] = {}
        self.events: list[Event] = []
        self._ended: set[int] = set()

    def read(self, number: int, line: bytes) -> None:
        self.number = number
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._damaged(f"no JSON: {error}")
        if not isinstance(fields, dict):
            self._damaged(f"{type(fields).__name__} instead of an object")
        t = self._time(fields)
        kind = self._text(fields, "kind")
        if kind == INVOKE:
            self._begin(t, fields)
        elif kind == EVENT:
            facts = {name: fact for name, fact in fields.items() if name not in _OF_EVENT}
            self.events.append(Event(t, self._text(fields, "what"), facts))
        elif kind in _OUTCOMES:
            self._end(t, Outcome(kind), fields)
        else:
            self._damaged(f"kind {kind!r} is none of invoke, ok, fail, unknown, event")

    def _begin(self, t: float, fields: Facts) -> None:
        number = self._id(fields)
        if number in self.operations:
            self._damaged(f"id {number} begins twice")
        self.operations[number] = Operation(
            id=number,
            process=self._text(fields, "process"),
            op=self._text(fields, "op"),
            value=fields.get("value"),
            invoked=t,
        )

    def _end(self, t: float, outcome: Outcome, fields: Facts) -> None:
        number = self._id(fields)
        if number not in self.operations:
            self._damaged(f"id {number} ends and never began")
        if number in self._ended:
            self._damaged(f"id {number} ends twice")
        self._ended.add(number)
        error = "" if outcome is Outcome.OK else self._text(fields, "error")
        self.operations[number] = replace(
            self.operations[number],
            outcome=outcome,
            ended=t,
            result=fields.get("value"),
            error=error,
        )

    # -- fields

    def _time(self, fields: Facts) -> float:
        t = fields.get("t")
        if isinstance(t, bool) or not isinstance(t, int | float) or not math.isfinite(t):
            self._damaged(f"t is {t!r}, not seconds")
        if t < self.last_t:
            self._damaged(f"t falls from {self.last_t} to {t}")
        self.last_t = float(t)
        return self.last_t

    def _id(self, fields: Facts) -> int:
        number = fields.get("id")
        if isinstance(number, bool) or not isinstance(number, int):
            self._damaged(f"id is {number!r}, not a number")
        return number

    def _text(self, fields: Facts, name: str) -> str:
        text = fields.get(name)
        if not isinstance(text, str):
            self._damaged(f"{name} is {text!r}, not text")
        return text

    def _damaged(self, why: str) -> NoReturn:
        raise HistoryDamaged(
            f"{self.path}, line {self.number}: {why}",
            hint="a history is judged whole or not at all: run the drill again",
        )


_OF_EVENT = frozenset({"t", "kind", "what"})
_OUTCOMES = frozenset(Outcome)
