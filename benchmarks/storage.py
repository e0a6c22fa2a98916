"""The log engine against the raw limit of the same machine in the same minute. `python -m
benchmarks.storage`
"""

import os
import random
import statistics
import sys
import time

from crc32c import crc32c

from benchmarks.harness import Benchmark, Row, main, measure, paired_ratio
from kraftlog.clock import SystemClock
from kraftlog.record_batch import Record, encode_batch, encode_values
from storage.compaction import clean
from storage.files import OsFiles
from storage.log import Log
from storage.log_config import LogConfig
from storage.recovery import OpenOptions, open_log

MB = 1 << 20
TIME_MS = 1_700_000_000_000
BATCH_RECORDS = 64
RECORD_BYTES = 1_000


def _open(directory: str, *, clean: bool = False, config: LogConfig | None = None) -> Log:
    return open_log(
        OsFiles(), directory, config or LogConfig(), SystemClock(), OpenOptions(clean=clean)
    )


def _batch_64k() -> bytes:
    values = [random.Random(n).randbytes(RECORD_BYTES) for n in range(BATCH_RECORDS)]
    return encode_values(values, timestamp=TIME_MS, base_offset=0)


def _write_log(directory: str, log_bytes: int) -> Log:
    log = _open(directory)
    batch = _batch_64k()
    while log.size < log_bytes:
        log.append(bytearray(batch), leader_epoch=0)
    log.flush()
    return log


def append(directory: str) -> list[Row]:
    """64 KiB batches as a client sends them, checked and stamped, against a bare loop of CRC and
    write.
    """
    batch = _batch_64k()
    count = 128 * MB // len(batch)
    numbers = iter(range(1_000))

    def ours() -> None:
        log = _open(f"{directory}/{next(numbers)}-0")
        for _ in range(count):
            log.append_from_client(bytearray(batch), leader_epoch=0)

    def limit() -> None:
        fd = os.open(f"{directory}/{next(numbers)}", os.O_CREAT | os.O_WRONLY, 0o644)
        for _ in range(count):
            crc32c(memoryview(batch)[21:])
            os.write(fd, batch)
        os.close(fd)

    ratio, mine, bare = paired_ratio(ours, limit)
    cpu = mine.cpu_seconds / (count * BATCH_RECORDS) * 1e6
    speed = f"{count * len(batch) / MB / mine.seconds:,.0f} MB/s"
    speed += f"; bare {bare.seconds / count * 1e6:.1f} us a batch"
    return [
        Row("append 64 KiB batches / bare write", ratio, "of bare", 0.5, True, cpu, "record", speed)
    ]


def sequential_read(directory: str) -> list[Row]:
    """Megabytes in a row, as a consumer reads, against bare pread of the same file."""
    log = _write_log(f"{directory}/t-0", 256 * MB)
    path, size = log.segments[0].log.path, log.segments[0].size

    def ours() -> None:
        offset = 0
        while offset < log.end_offset:
            part = log.read(offset, MB)
            part.read()
            offset = part.next_offset

    def limit() -> None:
        fd = os.open(path, os.O_RDONLY)
        for position in range(0, size, MB):
            os.pread(fd, MB, position)
        os.close(fd)

    ratio, mine, bare = paired_ratio(ours, limit)
    note = f"{size / MB / mine.seconds:,.0f} MB/s; bare {size / MB / bare.seconds:,.0f} MB/s"
    cpu = mine.cpu_seconds / log.end_offset * 1e6
    return [Row("sequential read / bare pread", ratio, "of bare", 0.8, True, cpu, "record", note)]


def lookup(directory: str) -> list[Row]:
    """Where is this offset, in a cold reader of a log of 1 GB."""
    _write_log(f"{directory}/t-0", 1024 * MB).close()
    log = _open(f"{directory}/t-0", clean=True)
    dice = random.Random(1)
    times: list[float] = []
    cpu = time.process_time()
    for _ in range(5_000):
        offset = dice.randrange(log.end_offset)
        begin = time.perf_counter()
        log.read(offset, 1)
        times.append((time.perf_counter() - begin) * 1e6)
    cpu_us = (time.process_time() - cpu) / len(times) * 1e6
    p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
    note = f"p99 {p99:,.0f} us, 5 000 lookups in 1 GB"
    return [Row("random offset lookup p50", p50, "us", 150, False, cpu_us, "lookup", note)]


def recovery(directory: str) -> list[Row]:
    """Opening a log of 1 GB whose writer vanished before it ever flushed: every byte is read and
    checked.
    """
    log = _write_log(f"{directory}/t-0", 1024 * MB)
    os.unlink(f"{directory}/t-0/recovery-point")
    costs = []
    for _ in range(3):
        costs.append(measure(lambda: _open(f"{directory}/t-0")))
        os.unlink(f"{directory}/t-0/recovery-point")
    cost = sorted(costs, key=lambda c: c.seconds)[1]
    speed = log.size / MB / cost.seconds
    cpu = cost.cpu_seconds / log.end_offset * 1e6
    note = f"{cost.seconds:.2f} s, in the page cache"
    return [Row("unclean recovery", speed, "MB/s", 500, True, cpu, "record", note)]


def compaction(directory: str) -> list[Row]:
    """A log of 100-byte records, a million of them over 100 000 keys, cleaned in one go."""
    config = LogConfig(compact=True, delete=False, segment_bytes=16 * MB)
    log = _open(f"{directory}/t-0", config=config)
    dice = random.Random(1)
    total = 1_000_000
    for first in range(0, total, 500):
        records = [
            Record(first + n, TIME_MS, b"key-%06d" % dice.randrange(100_000), b"v" * 80, ())
            for n in range(500)
        ]
        log.append(bytearray(encode_batch(records, base_offset=first)), leader_epoch=0)
    log.roll()
    log.flush()
    log.high_watermark = log.end_offset
    before = log.size
    cost = measure(lambda: clean(log, 0))
    speed = total / cost.seconds
    note = f"{before / MB:.0f} MB to {log.size / MB:.0f} MB"
    cpu = cost.cpu_seconds / total * 1e6
    return [Row("compaction", speed / 1e3, "k records/s", 200, True, cpu, "record", note)]


BENCHMARKS: dict[str, Benchmark] = {
    "append": append,
    "sequential-read": sequential_read,
    "lookup": lookup,
    "recovery": recovery,
    "compaction": compaction,
}

if __name__ == "__main__":
    sys.exit(main("The log engine, measured.", BENCHMARKS, sys.argv[1:]))
