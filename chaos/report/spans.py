"""What lasted, and how long: phases, faults, reigns of controllers, leaders of partitions."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from chaos.history import Event, History, Json
from chaos.report.run import number

ALL = "all"
EDGES = "edges"
PHASE = "phase"
BY_HAND = frozenset({"target", "fault"})
STOPPED = frozenset({"kill -9", "SIGTERM", "SIGSTOP"})
"""Faults of a process: it stays down when the network heals."""
SPANS_MAX = 500
"""In one picture and its table."""


@dataclass(frozen=True, slots=True)
class Span:
    """A bar in a lane."""

    lane: str
    begin: float
    end: float
    label: str
    detail: str = ""
    is_open: bool = False
    """It lasted until the run ended."""
    is_short: bool = False
    """The partition has had more replicas in sync."""

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def longest(spans: Sequence[Span], limit: int = SPANS_MAX) -> list[Span]:
    """Those that can be seen, in their order."""
    if len(spans) <= limit:
        return list(spans)
    kept = heapq.nlargest(limit, range(len(spans)), key=lambda at: spans[at].seconds)
    return [spans[at] for at in sorted(kept)]


def covered(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """When at least one of them lasted."""
    found: list[tuple[float, float]] = []
    for span in sorted(spans, key=lambda each: each.begin):
        if found and span.begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], span.end))
        else:
            found.append((span.begin, span.end))
    return found


def phase_spans(history: History) -> list[Span]:
    """The acts of a drill, one after the other."""
    return [
        Span(PHASE, event.t, end, _word(event.facts.get("phase")), is_open=is_last)
        for event, end, is_last in _until_next(history, "phase")
    ]


def fault_spans(history: History) -> list[Span]:
    """From each fault to what healed it."""
    ended: list[Span] = []
    running: list[Event] = []
    for event in history.events_of("fault", "heal"):
        if event.what == "fault":
            running.append(event)
            continue
        ended += [_fault(each, event.t, is_open=False) for each in running if heals(event, each)]
        running = [each for each in running if not heals(event, each)]
    ended += [_fault(each, history.end, is_open=True) for each in running]
    return sorted(ended, key=lambda span: (span.begin, span.lane))


def heals(event: Event, fault: Event) -> bool:
    """Whether it ends the fault: it names its target, or everything."""
    target = _word(event.facts.get("target"))
    if target != ALL:
        # A fault may name a file of the node.
        hit = _word(fault.facts.get("target"))
        return target == hit or hit.startswith(f"{target} ")
    return event.facts.get("fault") != EDGES or fault.facts.get("fault") not in STOPPED


def _fault(event: Event, end: float, *, is_open: bool) -> Span:
    until = number(event.facts.get("until"))
    if until is not None:
        end, is_open = min(max(until, event.t), end), False
    more = [f"{name} {_word(fact)}" for name, fact in event.facts.items() if name not in BY_HAND]
    lane, label = _word(event.facts.get("target")), _word(event.facts.get("fault"))
    return Span(lane, event.t, end, label, ", ".join(more), is_open=is_open)


def reign_spans(history: History) -> list[Span]:
    """Each epoch of the quorum, until the next one is seen."""
    return [
        Span(
            _word(event.facts.get("leader")),
            event.t,
            end,
            f"epoch {_word(event.facts.get('epoch'))}",
            is_open=is_last,
        )
        for event, end, is_last in _until_next(history, "controller")
    ]


def _until_next(history: History, what: str) -> Iterator[tuple[Event, float, bool]]:
    """Each event of a kind, when the next came, and whether none did."""
    seen = list(history.events_of(what))
    for place, event in enumerate(seen, 1):
        is_last = place == len(seen)
        yield event, history.end if is_last else seen[place].t, is_last


def partition_spans(history: History) -> list[Span]:
    """Each state of each partition: leader, epoch and ISR, until the next one is seen."""
    seen: dict[str, list[Event]] = {}
    for event in history.events_of("leader", "isr"):
        seen.setdefault(partition_name(event), []).append(event)
    return [span for lane in sorted(seen) for span in _states(lane, seen[lane], history.end)]


def partition_name(event: Event) -> str:
    return f"{_word(event.facts.get('topic'))}-{_word(event.facts.get('partition'))}"


def _states(lane: str, events: Sequence[Event], end: float) -> Iterator[Span]:
    most = 0
    for place, event in enumerate(events, 1):
        is_last = place == len(events)
        isr = words_of(event.facts.get("isr"))
        most = max(most, len(isr))
        yield Span(
            lane,
            event.t,
            end if is_last else events[place].t,
            leader_name(event),
            f"epoch {_word(event.facts.get('epoch'))}, ISR {' '.join(isr) or 'empty'}",
            is_open=is_last,
            is_short=len(isr) < most,
        )


def leader_name(event: Event) -> str:
    leader = event.facts.get("leader")
    return "no leader" if leader in (None, -1) else _word(leader)


def words_of(value: Json) -> list[str]:
    return [_word(each) for each in value] if isinstance(value, list | tuple) else []


def _word(value: Json) -> str:
    return "" if value is None else str(value)
