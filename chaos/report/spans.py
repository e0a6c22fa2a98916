"""What lasted, and how long: faults, reigns of controllers, leaders of partitions."""

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.history import Event, History, Json

ALL = "all"
BY_HAND = frozenset({"target", "fault"})


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

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def fault_spans(history: History) -> list[Span]:
    """From each fault to what healed its target, or everything."""
    ended: list[Span] = []
    running: list[Event] = []
    for event in history.events_of("fault", "heal"):
        if event.what == "fault":
            running.append(event)
            continue
        target = _word(event.facts.get("target"))
        healed = [each for each in running if target in (ALL, _word(each.facts.get("target")))]
        running = [each for each in running if each not in healed]
        ended += [_fault(each, event.t, is_open=False) for each in healed]
    ended += [_fault(each, history.end, is_open=True) for each in running]
    return sorted(ended, key=lambda span: (span.begin, span.lane))


def _fault(event: Event, end: float, *, is_open: bool) -> Span:
    until = event.facts.get("until")
    if isinstance(until, int | float) and not isinstance(until, bool):
        end, is_open = min(max(float(until), event.t), end), False
    more = [f"{name} {_word(fact)}" for name, fact in event.facts.items() if name not in BY_HAND]
    lane, label = _word(event.facts.get("target")), _word(event.facts.get("fault"))
    return Span(lane, event.t, end, label, ", ".join(more), is_open=is_open)


def reign_spans(history: History) -> list[Span]:
    """Each epoch of the quorum, until the next one is seen."""
    seen = list(history.events_of("controller"))
    ends = [*(event.t for event in seen[1:]), history.end]
    return [
        Span(
            _word(event.facts.get("leader")),
            event.t,
            end,
            f"epoch {_word(event.facts.get('epoch'))}",
            is_open=event is seen[-1],
        )
        for event, end in zip(seen, ends, strict=True)
    ]


def partition_spans(history: History) -> list[Span]:
    """Each state of each partition: leader, epoch and ISR, until the next one is seen."""
    latest: dict[str, Event] = {}
    spans: list[Span] = []
    for event in history.events_of("leader", "isr"):
        lane = f"{_word(event.facts.get('topic'))}-{_word(event.facts.get('partition'))}"
        before = latest.get(lane)
        if before is not None:
            spans.append(_partition(lane, before, event.t, is_open=False))
        latest[lane] = event
    spans += [_partition(lane, event, history.end, is_open=True) for lane, event in latest.items()]
    return sorted(spans, key=lambda span: (span.lane, span.begin))


def _partition(lane: str, event: Event, end: float, *, is_open: bool) -> Span:
    leader = event.facts.get("leader")
    isr = event.facts.get("isr")
    names = ", ".join(_words(isr))
    epoch = _word(event.facts.get("epoch"))
    label = "no leader" if leader in (None, -1) else _word(leader)
    return Span(lane, event.t, end, label, f"epoch {epoch}, ISR {names}", is_open=is_open)


def _words(value: Json) -> Iterator[str]:
    if isinstance(value, list | tuple):
        yield from map(_word, value)


def _word(value: Json) -> str:
    return "" if value is None else str(value)
