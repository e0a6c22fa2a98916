from dataclasses import replace
from pathlib import Path

from chaos.drills.catalog import Drill, find_drill
from chaos.drills.result import Result
from chaos.drills.runner import RunOptions
from chaos.drills.suite import run_suite
from tests.chaos.drills.results import result

BASELINE = find_drill("baseline")


def test_each_repeat_has_the_next_seed_and_the_worst_of_few_counts(tmp_path: Path) -> None:
    seeds: list[int] = []
    measured = [1.0, 2.6, 1.2]

    def run(_: Drill, options: RunOptions) -> Result:
        seeds.append(options.seed)
        return result(tmp_path, measured[len(seeds) - 1], seed=options.seed)

    options = RunOptions(out=tmp_path, seed=5)
    (summary,) = run_suite([BASELINE], options, repeat=3, run=run)
    assert seeds == [5, 6, 7]
    assert summary.verdict == "FAIL"
    assert [each.measured for each in summary.criteria()] == [2.6]
    assert summary.median("u_write") == 1.2
    (reason,) = summary.words()
    assert reason.startswith("baseline-6-")


def test_one_anomaly_fails_all(tmp_path: Path) -> None:
    found = [result(tmp_path), result(tmp_path, anomalies=("lost",))]
    (summary,) = run_suite(
        [BASELINE], RunOptions(out=tmp_path), repeat=2, run=lambda *_: found.pop()
    )
    assert summary.verdict == "FAIL"


def test_one_of_twenty_may_be_worse(tmp_path: Path) -> None:
    found = [result(tmp_path, 9.0 if number == 3 else 1.0) for number in range(20)]
    (summary,) = run_suite(
        [BASELINE], RunOptions(out=tmp_path), repeat=20, run=lambda *_: found.pop()
    )
    assert summary.verdict == "PASS"


def test_what_cannot_run_here_is_skipped_loudly(tmp_path: Path) -> None:
    said: list[str] = []
    drill = replace(BASELINE, needs=lambda: "there is no strace")
    options = RunOptions(out=tmp_path, say=lambda text, _: said.append(text))
    (summary,) = run_suite([drill], options)
    assert summary.verdict == "SKIP"
    assert summary.criteria() == []
    assert said == ["baseline SKIPPED: there is no strace"]
