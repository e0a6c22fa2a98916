"""What the benchmarks share: timing with CPU beside it, rows with a target, a table or JSON at the
end.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of something took."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report. `reached` and `target` are in `unit`; `cpu` is microseconds per
    `per`.
    """

    name: str
    reached: float
    unit: str
    target: float
    more_is_better: bool
    cpu: float
    per: str
    note: str

    @property
    def met(self) -> bool:
        return self.reached >= self.target if self.more_is_better else self.reached <= self.target


def measure(work: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def median_cost(work: Callable[[], object], repeat: int = 5) -> Cost:
    """The median run by wall time, after one run that warms caches."""
    work()
    costs = sorted((measure(work) for _ in range(repeat)), key=lambda cost: cost.seconds)
    return costs[len(costs) // 2]


def paired_ratio(
    ours: Callable[[], object], limit: Callable[[], object], repeat: int = 7
) -> tuple[float, Cost, Cost]:
    """Speed of `ours` as a part of `limit`: both run in turn, and the median of the pairs' ratios
    counts.

    On a shared machine two runs next to each other see the same neighbours; two medians do not.
    """
    ours(), limit()
    pairs = [(measure(ours), measure(limit)) for _ in range(repeat)]
    ratios = [theirs.seconds / mine.seconds for mine, theirs in pairs]
    middle = sorted(pairs, key=lambda pair: pair[1].seconds / pair[0].seconds)[len(pairs) // 2]
    return statistics.median(ratios), *middle


Benchmark = Callable[[str], list[Row]]


def main(description: str, benchmarks: dict[str, Benchmark], argv: Sequence[str]) -> int:
    """Run the chosen benchmarks, each in a directory of its own, and print what was reached."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(benchmarks)}")
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in benchmarks]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(benchmarks)}")
    rows: list[Row] = []
    for name in options.names or benchmarks:
        print(f"{name} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="kraftlog-bench-") as directory:
            rows += benchmarks[name](directory)
    if options.output == "json":
        print(json.dumps([{**asdict(row), "met": row.met} for row in rows], indent=2))
    else:
        _print_table(rows)
    return 0


def _print_table(rows: Sequence[Row]) -> None:
    width = max(len(row.name) for row in rows)
    for row in rows:
        sign = ">=" if row.more_is_better else "<="
        verdict = "met   " if row.met else "MISSED"
        print(
            f"{row.name:<{width}}  {row.reached:>10,.2f} {row.unit:<12} target {sign} "
            f"{row.target:,.2f}  {verdict}  cpu {row.cpu:,.2f} us/{row.per}  {row.note}"
        )
