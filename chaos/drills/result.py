"""The result of a run, as files and in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from chaos.drills.verdict import FAIL, PASS, Criterion
from chaos.live.run_directory import RESULTS, RunDirectory
from chaos.report import REPORT, write_report

JUNIT = "junit.xml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    drill: str
    seed: int
    directory: RunDirectory
    criteria: tuple[Criterion, ...]
    anomalies: tuple[str, ...]
    counts: Mapping[str, int]

    @property
    def passed(self) -> bool:
        return not self.anomalies and all(each.ok for each in self.criteria)

    @property
    def verdict(self) -> str:
        return PASS if self.passed else FAIL

    @property
    def report(self) -> Path:
        """The page about it, once `write_result` has written it."""
        return self.directory.path / REPORT

    @property
    def words(self) -> str:
        """Why it passed or failed, in a sentence or two."""
        missed = [each for each in self.criteria if not each.ok]
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        if self.passed:
            targets = "its target" if len(self.criteria) == 1 else f"{len(self.criteria)} targets"
            return f"Passed: {counts}; {targets} met."
        reasons = [*self.anomalies[:3], *map(in_words, missed)]
        return f"Failed: {'; '.join(reasons)}. {counts}."


def in_words(criterion: Criterion) -> str:
    """measured against target."""
    unit = f" {criterion.unit}" if criterion.unit else ""
    if math.isnan(criterion.measured):
        return f"{criterion.words}: not measured, target {criterion.target:g}{unit}"
    ratio = "" if criterion.ratio is None else f" = {criterion.ratio:.2f} x {criterion.per}"
    return (
        f"{criterion.words}: {criterion.measured:.3g}{unit}{ratio}, "
        f"target {criterion.target:g}{unit}"
    )


def write_result(result: Result) -> None:
    """results.json, junit.xml and report.html."""
    result.directory.write(
        RESULTS,
        {
            "drill": result.drill,
            "seed": result.seed,
            "verdict": result.verdict,
            "criteria": [each.document() for each in result.criteria],
            "anomalies": list(result.anomalies),
            "counts": dict(result.counts),
            "words": result.words,
        },
    )
    junit = result.directory.path / JUNIT
    junit.write_text(junit_text(result), encoding="utf-8")
    write_report(result.directory.path)


def junit_text(result: Result) -> str:
    """One case for safety, one for each target."""
    cases = [_case("safety", "; ".join(result.anomalies))]
    cases += [_case(each.name, "" if each.ok else in_words(each)) for each in result.criteria]
    failures = sum("<failure" in case for case in cases)
    head = f"<testsuite name={quoteattr(result.drill)} tests='{len(cases)}' failures='{failures}'>"
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, *cases, "</testsuite>\n"])


def _case(name: str, failure: str) -> str:
    inside = f"<failure>{escape(failure)}</failure>" if failure else ""
    return f"  <testcase name={quoteattr(name)}>{inside}</testcase>"
