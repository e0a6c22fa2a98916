"""What happened, one sentence a line, for readers who have never seen such a page."""

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.history import Event, History, Json
from chaos.report.spans import ALL, leader_name, partition_name, words_of

LINES_MAX = 100
PHASES = {
    "start": "The cluster starts.",
    "warm": "All nodes are up; clients send and read, and nothing is broken yet.",
    "faults": "The drill begins to break things.",
    "heal": "The drill heals what is still broken.",
    "final": "The clients stop; every partition is read once more from its start.",
}


@dataclass(frozen=True, slots=True)
class Line:
    t: float
    words: str


def story(history: History) -> list[Line]:
    teller = _Teller()
    return [Line(event.t, words) for event in history.events for words in teller.tell(event)]


class _Teller:
    """Tells changes: how everything was at first is in the pictures."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[str, list[str]]] = {}
        self._brokers: list[str] | None = None

    def tell(self, event: Event) -> Iterator[str]:
        facts = event.facts
        match event.what:
            case "phase":
                name = _word(facts.get("phase"))
                yield PHASES.get(name, f"Phase: {name}.")
            case "fault":
                yield f"Fault: {_word(facts.get('fault'))} on {_word(facts.get('target'))}."
            case "heal":
                yield _healed(facts.get("target"), facts.get("fault"))
            case "controller":
                leader, epoch = _word(facts.get("leader")), _word(facts.get("epoch"))
                yield f"Controller {leader} leads the quorum in epoch {epoch}."
            case "brokers":
                yield from self._up(words_of(facts.get("up")))
            case "leader" | "isr":
                yield from self._partition(event)
            case _:
                pass  # for the judges

    def _up(self, up: list[str]) -> Iterator[str]:
        before, self._brokers = self._brokers, up
        if before is None:
            return
        gone, come = changes(before, up)
        if gone:
            yield f"The controller counts {', '.join(gone)} as down."
        if come:
            yield f"The controller counts {', '.join(come)} as up."

    def _partition(self, event: Event) -> Iterator[str]:
        name, leader = partition_name(event), leader_name(event)
        isr = words_of(event.facts.get("isr"))
        before = self._states.get(name)
        self._states[name] = (leader, isr)
        if before is None:
            return
        if before[0] != leader:
            yield f"{name}: {before[0]} → {leader}; in sync: {' '.join(isr) or 'none'}."
            return
        in_sync = f"in sync: {' '.join(isr) or 'none'}"
        gone, come = changes(before[1], isr)
        if gone:
            yield f"{name}: {', '.join(gone)} out of sync; {in_sync}."
        if come:
            yield f"{name}: {', '.join(come)} in sync again; {in_sync}."


def changes(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    """Who has gone, and who has come."""
    gone = [each for each in before if each not in after]
    return gone, [each for each in after if each not in before]


def _healed(target: Json, fault: Json) -> str:
    if target == ALL:
        return f"Healed: all {_word(fault) or 'faults'}."
    return f"Healed: {_word(target)}."


def _word(value: Json) -> str:
    return "" if value is None else str(value)
