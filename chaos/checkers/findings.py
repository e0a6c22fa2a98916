"""What a judge can find, by name, and a judgement made of findings."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from chaos.history import Json, Operation

Value: TypeAlias = str | int

SHOWN = 8
"""Offsets and values of one finding; the first ones say enough."""


class Anomaly(StrEnum):
    """What clients saw and never may; then the rules of docs/INVARIANTS.md, under their names."""

    LOST = "lost"
    UNSEEN = "unseen"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    INCONSISTENT_OFFSETS = "inconsistent offsets"
    NON_MONOTONIC_POLL = "non-monotonic poll"
    SKIPPED = "skipped"
    ABORTED_READ = "aborted read"
    PHANTOM_READ = "phantom read"
    NOT_LINEARIZABLE = "not linearizable"
    Q1 = "Q1"
    Q2 = "Q2"
    Q4 = "Q4"
    Q6 = "Q6"
    Q11 = "Q11"
    M1 = "M1"
    M2 = "M2"
    M3 = "M3"
    M4 = "M4"
    M5 = "M5"
    M6 = "M6"
    M7 = "M7"
    M9 = "M9"
    P3 = "P3"
    P4 = "P4"
    P7 = "P7"
    P8 = "P8"
    P10 = "P10"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, with what proves it."""

    anomaly: Anomaly
    key: str
    """The partition, topic or node that it is about."""
    words: str
    offsets: tuple[int, ...] = ()
    values: tuple[Value, ...] = ()
    operations: tuple[Operation, ...] = ()
    """Those that contradict each other, if clients saw it."""

    def __str__(self) -> str:
        lines = [f"{self.anomaly} {self.key}: {self.words}"]
        return "\n    ".join([*lines, *map(str, self.operations)])

    def as_json(self) -> dict[str, Json]:
        return {
            "anomaly": str(self.anomaly),
            "key": self.key,
            "words": self.words,
            "offsets": self.offsets[:SHOWN],
            "values": self.values[:SHOWN],
            "operations": [_operation_json(each) for each in self.operations],
        }


def _operation_json(operation: Operation) -> dict[str, Json]:
    return {
        "id": operation.id,
        "process": operation.process,
        "op": operation.op,
        "outcome": str(operation.outcome),
        "invoked": operation.invoked,
        "ended": operation.ended,
        "text": str(operation),
    }


_COUNTED: Mapping[str, Anomaly] = {
    "lost": Anomaly.LOST,
    "unseen": Anomaly.UNSEEN,
    "duplicated": Anomaly.DUPLICATE,
    "reordered": Anomaly.REORDERED,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    """acked, read, unknown, failed; lost, unseen, duplicated, reordered."""

    @property
    def is_good(self) -> bool:
        return not self.findings

    @property
    def words(self) -> str:
        """One sentence."""
        numbers = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        if self.is_good:
            return f"Nothing is wrong: {numbers}."
        found = Counter(str(each.anomaly) for each in self.findings)
        wrong = ", ".join(f"{name} ({count})" for name, count in sorted(found.items()))
        return f"{len(self.findings)} findings: {wrong}; {numbers}."

    def with_findings(self, more: Iterable[Finding]) -> "Judgement":
        """The same with what another judge found."""
        return Judgement((*self.findings, *more), self.counts)


def counted(findings: Iterable[Finding]) -> dict[str, int]:
    found = Counter(each.anomaly for each in findings)
    return {name: found[anomaly] for name, anomaly in _COUNTED.items()}
