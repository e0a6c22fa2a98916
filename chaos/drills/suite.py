"""Several runs: of one drill, with one seed after the other, and of several drills."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.drills.catalog import Drill
from chaos.drills.result import Result, in_words
from chaos.drills.runner import RunOptions, run_drill
from chaos.drills.verdict import FAIL, PASS, Criterion
from chaos.live.measure import percentile

SKIP = "SKIP"

Run = Callable[[Drill, RunOptions], Result]


@dataclass(frozen=True, slots=True)
class Summary:
    """All runs of one drill."""

    drill: Drill
    results: tuple[Result, ...] = ()
    skipped: str = ""
    """Why it cannot run here."""

    @property
    def verdict(self) -> str:
        if self.skipped:
            return SKIP
        is_safe = not any(each.anomalies for each in self.results)
        return PASS if is_safe and all(each.ok for each in self.criteria()) else FAIL

    def criteria(self) -> list[Criterion]:
        """Each with the 95th percentile of what the runs measured; of few runs that is the most."""
        if not self.results:
            return []
        return [self._at(place, 0.95) for place in range(len(self.results[0].criteria))]

    def median(self, name: str) -> float:
        return percentile(self._values(name), 0.5)

    def _values(self, name: str) -> list[float]:
        return [
            each.measured
            for result in self.results
            for each in result.criteria
            if each.name == name
        ]

    def _at(self, place: int, share: float) -> Criterion:
        same = sorted((each.criteria[place] for each in self.results), key=_badness)
        rank = percentile(range(len(same)), share)
        return same[int(rank)]

    def words(self) -> list[str]:
        """Every reason for a failure, with the run it comes from."""
        return [
            f"{result.directory.run_id}: {reason}"
            for result in self.results
            for reason in (
                *result.anomalies,
                *(in_words(each) for each in result.criteria if not each.ok),
            )
        ]

    def reports(self) -> list[Path]:
        """The pages to read: of every run that failed, or else of the last one."""
        failed = [each for each in self.results if not each.passed]
        return [each.report for each in failed or self.results[-1:]]


def _badness(criterion: Criterion) -> tuple[bool, float]:
    """What was never measured is worse than all."""
    is_missing = criterion.measured != criterion.measured
    return is_missing, 0.0 if is_missing else criterion.measured


def run_suite(
    drills: Iterable[Drill], options: RunOptions, *, repeat: int = 1, run: Run = run_drill
) -> list[Summary]:
    """One drill after the other, each `repeat` times with the next seeds."""
    found: list[Summary] = []
    drills = list(drills)
    for place, drill in enumerate(drills, 1):
        reason = drill.needs()
        if reason:
            options.say(f"{drill.name} SKIPPED: {reason}", "bad")
            found.append(Summary(drill, skipped=reason))
            continue
        results: list[Result] = []
        for number in range(repeat):
            seeded = replace(options, seed=options.seed + number)
            which = f"{place} of {len(drills)}: {drill.name}, seed {seeded.seed}"
            options.say(f"{which}: {drill.title}", "plain")
            results.append(run(drill, seeded))
            options.say(results[-1].words, "good" if results[-1].passed else "bad")
        found.append(Summary(drill, tuple(results)))
    return found
