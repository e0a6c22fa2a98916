"""From numbers and targets to a verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chaos.drills.targets import Target
from chaos.history import Json
from chaos.live.timing import Timing

PASS, FAIL = "PASS", "FAIL"
SAFETY_CONVERGE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Criterion:
    name: str
    measured: float
    target: float
    unit: str
    words: str
    per: str = ""
    ratio: float | None = None
    """The measured time as a multiple of the timeout that it depends on."""

    @property
    def ok(self) -> bool:
        return self.measured <= self.target  # what was never measured is NaN, and not ok

    def document(self) -> dict[str, Json]:
        measured = None if math.isnan(self.measured) else round(self.measured, 4)
        return {
            "name": self.name,
            "measured": measured,
            "target": self.target,
            "unit": self.unit,
            "ok": self.ok,
            "words": self.words,
            "per": self.per,
            "ratio": None if self.ratio is None else round(self.ratio, 2),
        }


def judge_targets(
    measured: Mapping[str, float], targets: Sequence[Target], timing: Timing
) -> list[Criterion]:
    found: list[Criterion] = []
    for target in targets:
        value = measured.get(target.name, math.nan)
        ratio = value / timing.of(target.per) if target.per and not math.isnan(value) else None
        found.append(
            Criterion(
                target.name, value, target.limit, target.unit, target.words, target.per, ratio
            )
        )
    return found


def safety_only(measured: Mapping[str, float]) -> list[Criterion]:
    """Where others use the machine, too: it converges, however long a step takes."""
    value = measured.get("converge", math.nan)
    words = "all replicas in sync again after the heal"
    return [Criterion("converge", value, SAFETY_CONVERGE_SECONDS, "s", words)]
