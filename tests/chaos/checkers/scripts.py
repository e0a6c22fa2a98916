"""Histories written by hand: one operation after another, unless a test says when."""

from collections.abc import Iterable, Mapping, Sequence

from chaos.checkers.findings import Finding, Value
from chaos.history import Event, History, Json, Operation, Outcome

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN

TOPIC = "orders"
KEY = "orders-0"

Span = tuple[float, float | None]
"""When an operation began and ended; None: it never did."""


class Script:
    """Each operation takes half a second, and the next begins a second after it did."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.events: list[Event] = []

    @property
    def history(self) -> History:
        ordered = sorted(self.operations, key=lambda each: each.invoked)
        return History(tuple(ordered), tuple(self.events))

    def operate(
        self,
        process: str,
        op: str,
        value: Json = None,
        result: Json = None,
        *,
        outcome: Outcome = OK,
        at: Span | None = None,
    ) -> Operation:
        number = len(self.operations)
        begin, end = at or (float(number), number + 0.5)
        done = result if outcome is OK else None
        error = "" if outcome is OK else "TIMED_OUT"
        made = Operation(number, process, op, value, begin, outcome, end, done, error)
        self.operations.append(made)
        return made

    def event(self, what: str, **facts: Json) -> None:
        self.events.append(Event(float(len(self.events)), what, facts))

    # -- records

    def send(
        self,
        value: Value,
        offset: int | None = None,
        *,
        by: str = "producer",
        outcome: Outcome = OK,
        at: Span | None = None,
        partition: int = 0,
    ) -> Operation:
        asked: Mapping[str, Json] = {"topic": TOPIC, "partition": partition, "value": value}
        result = {} if offset is None else {"offset": offset}
        return self.operate(by, "send", asked, result, outcome=outcome, at=at)

    def poll(
        self, *records: tuple[int, Value], by: str = "consumer", partition: int = 0
    ) -> Operation:
        place: dict[str, Json] = {"topic": TOPIC, "partition": partition}
        found: Sequence[Json] = [list(each) for each in records]
        return self.operate(by, "poll", place, {**place, "records": found})

    # -- metadata

    def create(
        self,
        topic: str,
        offset: int | None = None,
        *,
        outcome: Outcome = OK,
        at: Span | None = None,
    ) -> Operation:
        return self._change("create_topic", topic, offset, outcome, at)

    def delete(
        self,
        topic: str,
        offset: int | None = None,
        *,
        outcome: Outcome = OK,
        at: Span | None = None,
    ) -> Operation:
        return self._change("delete_topic", topic, offset, outcome, at)

    def _change(
        self, op: str, topic: str, offset: int | None, outcome: Outcome, at: Span | None
    ) -> Operation:
        result = {} if offset is None else {"offset": offset}
        return self.operate("admin", op, {"topic": topic}, result, outcome=outcome, at=at)

    def read(
        self,
        topics: Iterable[str],
        offset: int | None = None,
        *,
        asked: Iterable[str] | None = None,
        at: Span | None = None,
    ) -> Operation:
        """All topics, or those asked for."""
        value: Mapping[str, Json] = {} if asked is None else {"topics": list(asked)}
        result: dict[str, Json] = {"topics": list(topics)}
        if offset is not None:
            result["offset"] = offset
        return self.operate("reader", "list_topics", value, result, at=at)


def named(findings: Iterable[Finding]) -> list[str]:
    """The rules and anomalies that were found, each as often as it was."""
    return [str(finding.anomaly) for finding in findings]
