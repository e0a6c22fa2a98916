"""What is typed all the time answers at once. The only tests here that look at a clock."""

import os
import subprocess
import sys
import time

import pytest

from kraftlog.local import LocalCluster

HELP_MS = 300
STATUS_MS = 600
RUNS = 5


def best_ms(*arguments: str) -> float:
    """Of several runs, each a process of its own: what else the machine does counts less so."""
    return min(_run_ms(arguments) for _ in range(RUNS))


def _run_ms(arguments: tuple[str, ...]) -> float:
    begun = time.perf_counter()
    program = os.path.join(os.path.dirname(sys.executable), "kraftctl")
    subprocess.run([program, *arguments], check=True, capture_output=True)
    return (time.perf_counter() - begun) * 1000


@pytest.mark.slow
def test_help_is_there_at_once() -> None:
    assert best_ms("--help") < HELP_MS


@pytest.mark.slow
def test_status_is_there_at_once(cluster: LocalCluster) -> None:
    assert best_ms("status", "-b", cluster.bootstrap) < STATUS_MS
