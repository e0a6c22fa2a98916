import subprocess
import sys

from kraftlog.memory import keep_freed_memory

# Page faults of a process that frees and takes a few MiB a hundred times.
PROGRAM = """
import resource, sys
from kraftlog.memory import keep_freed_memory
if sys.argv[1] == "keep" and not keep_freed_memory():
    raise SystemExit("no glibc")
def work():
    return [bytes(1 << 20) for _ in range(4)]
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int | None:
    result = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, how], capture_output=True, text=True, check=False
    )
    return int(result.stdout) if result.returncode == 0 else None


def test_memory_that_was_freed_is_at_hand_again() -> None:
    kept = faults("keep")
    if kept is not None:  # another C library has other habits
        assert kept < 2_000  # 400 MiB have 100 000 pages


def test_it_says_whether_it_could() -> None:
    assert keep_freed_memory() in (True, False)
