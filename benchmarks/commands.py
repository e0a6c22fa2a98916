"""What is typed all the time, each run a process of its own. `python -m benchmarks.commands`

The limit is a Python that starts and imports nothing.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.harness import Benchmark, Row, main
from kraftlog.local import LocalCluster

RUNS = 11
KRAFTCTL = os.path.join(os.path.dirname(sys.executable), "kraftctl")


def _median_ms(command: Sequence[str]) -> float:
    taken = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append((time.perf_counter() - began) * 1_000)
    return statistics.median(taken)


def _row(target_ms: float, *arguments: str, shown: str) -> Row:
    bare = _median_ms([sys.executable, "-c", ""])
    reached = _median_ms([KRAFTCTL, *arguments])
    note = f"median of {RUNS}; a bare Python {bare:.0f} ms"
    return Row(f"kraftctl {shown}", reached, "ms", target_ms, False, 0.0, "-", note)


def help_(_directory: str) -> list[Row]:
    return [_row(300, "--help", shown="--help")]


def status(_directory: str) -> list[Row]:
    with LocalCluster(3, 3) as cluster:
        return [_row(600, "status", "-b", cluster.bootstrap, shown="status, 3+3")]


BENCHMARKS: dict[str, Benchmark] = {"help": help_, "status": status}

if __name__ == "__main__":
    sys.exit(main("kraftctl, measured.", BENCHMARKS, sys.argv[1:]))
