"""What clients felt: the latency of each operation, and how many ended well in each second."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.history import History, Operation, Outcome

DOTS_MAX = 4_000
"""In one picture: a browser draws them at once, and more would hide each other."""


@dataclass(frozen=True, slots=True)
class Dot:
    """An operation: when it began, how long it took, how it ended."""

    t: float
    seconds: float
    outcome: Outcome
    words: str


@dataclass(frozen=True, slots=True)
class Latencies:
    """One row of the table beside the picture."""

    op: str
    outcome: Outcome
    count: int
    p50: float
    p99: float
    most: float


def measured(history: History) -> list[Operation]:
    """Operations that were waited for. A poll is recorded when it has ended, and waits for records
    that nobody may have sent: its time says nothing.
    """
    return [each for each in history.operations if each.op != "poll"]


def dots(history: History, limit: int = DOTS_MAX) -> list[Dot]:
    """All that did not end well; of the rest every n-th, and the slowest, as many as fit."""
    every = [_dot(each, history.end) for each in measured(history)]
    bad = [dot for dot in every if dot.outcome is not Outcome.OK]
    good = [dot for dot in every if dot.outcome is Outcome.OK]
    return sorted([*thinned(bad, limit), *thinned(good, limit)], key=lambda dot: dot.t)


def thinned(every: list[Dot], limit: int) -> list[Dot]:
    """The slowest of each group of neighbours: an outlier is what one looks for."""
    size = math.ceil(len(every) / limit) or 1
    groups = (every[at : at + size] for at in range(0, len(every), size))
    return [max(group, key=lambda dot: dot.seconds) for group in groups]


def _dot(operation: Operation, end: float) -> Dot:
    ended = end if operation.ended is None else operation.ended
    error = f": {operation.error}" if operation.error else ""
    return Dot(
        operation.invoked, ended - operation.invoked, operation.outcome, f"{operation}{error}"
    )


def latencies(history: History) -> list[Latencies]:
    groups: dict[tuple[str, Outcome], list[float]] = defaultdict(list)
    for each in measured(history):
        ended = history.end if each.ended is None else each.ended
        groups[each.op, each.outcome].append(ended - each.invoked)
    return [
        Latencies(
            op, outcome, len(taken), percentile(taken, 0.5), percentile(taken, 0.99), max(taken)
        )
        for (op, outcome), taken in sorted(groups.items())
    ]


def percentile(values: Iterable[float], share: float) -> float:
    """By nearest rank: a value that was measured."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


@dataclass(frozen=True, slots=True)
class Second:
    """What ended in one second of the run."""

    begin: int
    counts: Counter[Outcome]


def throughput(history: History) -> list[Second]:
    """Every second of the run, the empty ones too: a gap is what one looks for."""
    counts: dict[int, Counter[Outcome]] = defaultdict(Counter)
    for each in measured(history):
        if each.ended is not None:
            counts[int(each.ended)][each.outcome] += 1
    last = int(history.end)
    return [Second(second, counts[second]) for second in range(last + 1)]
