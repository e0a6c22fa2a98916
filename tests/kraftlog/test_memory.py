import subprocess
import sys

import pytest

# Page faults of threads that free and take a few MiB a hundred times.
PROGRAM = """
import resource, sys, threading
from kraftlog.memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def work():
    return [bytes(256 << 10) for _ in range(16)]
def count():
    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        work()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
count()
thread = threading.Thread(target=count)
thread.start()
thread.join()
"""


def faults(how: str) -> list[int]:
    command = [sys.executable, "-P", "-c", PROGRAM, how]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(line) for line in result.stdout.split()]


def test_memory_that_was_freed_is_at_hand_again_on_every_thread() -> None:
    if max(faults("no")) < 50_000:  # 400 MiB have 100 000 pages
        pytest.skip("this C library keeps what is freed by itself")
    assert max(faults("keep")) < 2_000
