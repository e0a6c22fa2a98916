"""Can these calls be put in an order that a model allows? The search of Wing and Gong, with Lowe's
memory of what was tried, as in Porcupine: a second opinion that knows nothing of offsets.

A call takes effect at one moment between its beginning and its end. One without an end may take
effect at any later moment, or never.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
C = TypeVar("C")

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Call(Generic[C]):
    begin: float
    end: float
    """NEVER: nobody knows whether it happened."""
    what: C


@dataclass(frozen=True, slots=True)
class Verdict(Generic[C]):
    is_linearizable: bool
    stuck_at: Call[C] | None = None
    """Of all orders that were tried, the longest ended before this call."""


class _Entry(Generic[C]):
    """The beginning or the end of a call, in a list from which entries are lifted and put back."""

    __slots__ = ("after", "before", "call", "is_end", "number", "partner")

    def __init__(self, call: Call[C] | None, number: int, *, is_end: bool) -> None:
        self.call = call
        self.number = number
        self.is_end = is_end
        self.partner: _Entry[C] | None = None
        self.before: _Entry[C] | None = None
        self.after: _Entry[C] | None = None

    def lift(self) -> None:
        for entry in (self, self.partner):
            if entry is not None:
                _link(entry.before, entry.after)

    def put_back(self) -> None:
        for entry in (self.partner, self):
            if entry is not None:
                _link(entry.before, entry)
                _link(entry, entry.after)


def _link(before: _Entry[C] | None, after: _Entry[C] | None) -> None:
    if before is not None:
        before.after = after
    if after is not None:
        after.before = before


def _entries(calls: Sequence[Call[C]]) -> _Entry[C]:
    """The head of the list; what begins when another ends is concurrent with it."""
    moments: list[tuple[float, bool, int, _Entry[C]]] = []
    for number, call in enumerate(calls):
        begin = _Entry(call, number, is_end=False)
        moments.append((call.begin, False, number, begin))
        if call.end != NEVER:
            begin.partner = _Entry(call, number, is_end=True)
            moments.append((call.end, True, number, begin.partner))
    head: _Entry[C] = _Entry(None, -1, is_end=False)
    last = head
    for *_, entry in sorted(moments, key=lambda moment: moment[:3]):
        _link(last, entry)
        last = entry
    return head


def check(calls: Sequence[Call[C]], initial: S, step: Callable[[S, C], S | None]) -> Verdict[C]:
    """`step` gives the state after a call took effect, or None if it cannot have, in this state."""
    return _Search(calls, initial, step).run()


class _Search(Generic[S, C]):
    def __init__(
        self, calls: Sequence[Call[C]], initial: S, step: Callable[[S, C], S | None]
    ) -> None:
        self.head = _entries(calls)
        self.step = step
        self.state = initial
        self.done = 0
        self.tried: set[tuple[int, S]] = set()
        self.path: list[tuple[_Entry[C], S]] = []
        self.unfinished = sum(call.end != NEVER for call in calls)
        self.deepest = -1
        self.stuck_at: Call[C] | None = None

    def run(self) -> Verdict[C]:
        entry = self.head.after
        while self.unfinished:
            if entry is None or entry.is_end:
                # All that could come before this end was tried, and none of it led on.
                self._note(entry)
                if not self.path:
                    return Verdict(False, self.stuck_at)
                entry = self._retreat()
            elif self._advance(entry):
                entry = self.head.after
            else:
                entry = entry.after
        return Verdict(True)

    def _advance(self, entry: _Entry[C]) -> bool:
        if entry.call is None:
            return False
        after = self.step(self.state, entry.call.what)
        done = self.done | 1 << entry.number
        if after is None or (done, after) in self.tried:
            return False
        self.tried.add((done, after))
        self.path.append((entry, self.state))
        self.state, self.done = after, done
        self.unfinished -= entry.partner is not None
        entry.lift()
        return True

    def _retreat(self) -> _Entry[C] | None:
        entry, self.state = self.path.pop()
        self.done &= ~(1 << entry.number)
        self.unfinished += entry.partner is not None
        entry.put_back()
        return entry.after

    def _note(self, entry: _Entry[C] | None) -> None:
        if entry is not None and len(self.path) > self.deepest:
            self.deepest, self.stuck_at = len(self.path), entry.call
