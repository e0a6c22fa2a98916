"""What clients felt: how long each operation took, how it ended, and what was not yet read."""

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.checkers.operations import Poll, polls, sends
from chaos.history import History, Operation, Outcome

DOTS_MAX = 2_000
"""Of those that ended well, and of the others: more would hide each other."""
SLICES_MAX = 300
"""Columns that can still be told apart."""


@dataclass(frozen=True, slots=True)
class Dot:
    """An operation: when it began, how long it took, how it ended."""

    operation: Operation
    seconds: float

    @property
    def t(self) -> float:
        return self.operation.invoked

    @property
    def outcome(self) -> Outcome:
        return self.operation.outcome

    @property
    def words(self) -> str:
        error = self.operation.error
        return f"{self.operation}: {error}" if error else str(self.operation)


@dataclass(frozen=True, slots=True)
class Latencies:
    """One row of the table beside the picture."""

    op: str
    outcome: Outcome
    count: int
    p50: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class Failure:
    """Operations that did not end well, all for the same reason."""

    op: str
    outcome: Outcome
    error: str
    count: int
    first: float


def measured(history: History) -> list[Operation]:
    """Operations that were waited for. A poll is recorded when it has ended, and waits for records
    that nobody may have sent: its time says nothing.
    """
    return [each for each in history.operations if each.op != "poll"]


def dots(history: History, limit: int = DOTS_MAX) -> list[Dot]:
    """What did not end well and what did, each thinned to what fits into a picture."""
    every = [Dot(each, taken(each, history)) for each in measured(history)]
    bad = [dot for dot in every if dot.outcome is not Outcome.OK]
    good = [dot for dot in every if dot.outcome is Outcome.OK]
    return sorted([*thinned(bad, limit), *thinned(good, limit)], key=lambda dot: dot.t)


def thinned(every: list[Dot], limit: int) -> list[Dot]:
    """The slowest of each group of neighbours: an outlier is what one looks for."""
    size = math.ceil(len(every) / limit) or 1
    groups = (every[at : at + size] for at in range(0, len(every), size))
    return [max(group, key=lambda dot: dot.seconds) for group in groups]


def taken(operation: Operation, history: History) -> float:
    """Seconds; what never ended lasted until the run did."""
    return (history.end if operation.ended is None else operation.ended) - operation.invoked


def latencies(history: History) -> list[Latencies]:
    groups: dict[tuple[str, Outcome], list[float]] = defaultdict(list)
    for each in measured(history):
        groups[each.op, each.outcome].append(taken(each, history))
    return [
        Latencies(op, outcome, len(all_), percentile(all_, 0.5), percentile(all_, 0.99), max(all_))
        for (op, outcome), all_ in sorted(groups.items())
    ]


def percentile(values: Iterable[float], share: float) -> float:
    """By nearest rank: a value that was measured."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


def failures(history: History) -> list[Failure]:
    """Why operations did not end well, the commonest reason first."""
    groups: dict[tuple[str, Outcome, str], list[float]] = defaultdict(list)
    for each in measured(history):
        if each.outcome is not Outcome.OK:
            error = "it never ended" if each.ended is None else each.error
            groups[each.op, each.outcome, error].append(each.invoked)
    found = [Failure(*reason, len(times), min(times)) for reason, times in groups.items()]
    return sorted(found, key=lambda each: (-each.count, each.first))


# -- over time


@dataclass(frozen=True, slots=True)
class Slice:
    """What happened in one second of the run, or in a few of a long one."""

    begin: float
    end: float
    counts: Counter[Outcome]
    unseen: int
    """Acknowledged and not yet read at its end."""

    @property
    def per_second(self) -> float:
        return self.counts.total() / (self.end - self.begin)


def slices(history: History, limit: int = SLICES_MAX) -> list[Slice]:
    """The whole run, where nothing ended too: a gap is what one looks for."""
    width = slice_seconds(history.end, limit)
    counts: dict[int, Counter[Outcome]] = defaultdict(Counter)
    for each in measured(history):
        if each.ended is not None:
            counts[int(each.ended / width)][each.outcome] += 1
    acked, seen = _acked_and_seen(history)
    found = []
    for number in range(int(history.end / width) + 1):
        begin, end = number * width, (number + 1) * width
        unseen = bisect_right(acked, end) - bisect_right(seen, end)
        found.append(Slice(begin, end, counts[number], unseen))
    return found


def slice_seconds(end: float, limit: int) -> float:
    """A whole second, or the next of 2, 5, 10, 20 ... with which no more slices are needed."""
    width, factors = 1.0, (2.0, 2.5, 2.0)
    number = 0
    while end / width >= limit:
        width *= factors[number % 3]
        number += 1
    return width


def _acked_and_seen(history: History) -> tuple[list[float], list[float]]:
    """Moments at which a record was acknowledged; of the same records, at which it was read. What
    was read before its acknowledgement was never unseen.
    """
    first_read: dict[object, float] = {}
    for poll in polls(history):
        if isinstance(poll, Poll) and poll.operation.ended is not None:
            for _, value in poll.records:
                first_read.setdefault((poll.key, value), poll.operation.ended)
    acked, seen = [], []
    for send in sends(history):
        if send.is_acked and send.operation.ended is not None:
            acked.append(send.operation.ended)
            read = first_read.get((send.key, send.value))
            if read is not None:
                seen.append(max(read, send.operation.ended))
    return sorted(acked), sorted(seen)
