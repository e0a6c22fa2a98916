"""The work, the same for every system: one caller after the other, or many at once."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence

Put = Callable[[], Awaitable[object]]

WARM_UP = 100
VALUE = b"x" * 100
_TICKS = os.sysconf("SC_CLK_TCK")


async def serial(put: Put, count: int) -> list[float]:
    """Seconds that each of `count` commits took, one at a time."""
    for _ in range(WARM_UP):
        await put()
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        await put()
        taken.append(time.perf_counter() - begun)
    return taken


async def concurrent(puts: Sequence[Put], seconds: float) -> float:
    """Commits per second of callers that each wait for one commit before the next."""
    done = 0
    begun = time.perf_counter()

    async def call(put: Put) -> None:
        nonlocal done
        while time.perf_counter() < begun + seconds:
            await put()
            done += 1

    await asyncio.gather(*map(call, puts))
    return done / (time.perf_counter() - begun)


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def milliseconds(values: Sequence[float]) -> str:
    p50, p99 = percentile(values, 50) * 1e3, percentile(values, 99) * 1e3
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def cpu_seconds(pid: int) -> float:
    """What a process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def fdatasyncs_per_second(directory: str, count: int = 500) -> float:
    """The raw limit: append a batch of one record, sync, again."""
    fd = os.open(f"{directory}/bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    begun = time.perf_counter()
    for _ in range(count):
        os.write(fd, bytes(180))
        os.fdatasync(fd)
    taken = time.perf_counter() - begun
    os.close(fd)
    return count / taken
