"""Log directories with many partitions. `python -m benchmarks.log_dirs`"""

import os
import sys

from benchmarks.harness import Benchmark, Cost, Row, main, measure, median_cost
from kraftlog.record_batch import encode_values
from kraftlog.types import TopicPartition, Uuid
from storage.files import OsFiles
from storage.log_config import LogConfig
from storage.log_dirs import LogDirs

PARTITIONS = 10_000
TIME_MS = 1_700_000_000_000


def _open(directory: str) -> LogDirs:
    config = LogConfig()
    return LogDirs.open(OsFiles(), [directory], config_of=lambda _: config, cluster_id="bench")


def _fill(directory: str, count: int) -> None:
    """Partitions of ten topics, each with one small segment, stopped cleanly."""
    dirs = _open(directory)
    batch = encode_values([b"x" * 100] * 10, timestamp=TIME_MS, base_offset=0)
    topic_id = Uuid.random()
    for number in range(count):
        partition = TopicPartition(f"topic-{number % 10}", number // 10)
        dirs.create(partition, topic_id).append(bytearray(batch), leader_epoch=0)
    dirs.close()


def open_partitions(directory: str, count: int = PARTITIONS) -> list[Row]:
    """From nothing to every log usable after a clean stop, against a bare open and read of the same
    segments.
    """
    _fill(directory, count)

    def bare() -> None:
        for name in os.listdir(directory):
            path = f"{directory}/{name}/{0:020d}.log"
            if os.path.exists(path):
                fd = os.open(path, os.O_RDWR)
                os.pread(fd, 8192, 0)
                os.close(fd)

    limit = median_cost(bare, repeat=3)
    runs = sorted((_restart(directory, count) for _ in range(3)), key=lambda run: run[0].seconds)
    opened, closed = runs[1]
    note = f"{count:,} partitions; closed in {closed.seconds:.2f} s;"
    note += f" bare open and read {limit.seconds:.2f} s"
    cpu = opened.cpu_seconds / count * 1e6
    return [Row("clean open", opened.seconds, "s", 4, False, cpu, "partition", note)]


def _restart(directory: str, count: int) -> tuple[Cost, Cost]:
    """What it takes to open a directory that was stopped cleanly, and to stop it again."""
    found: list[LogDirs] = []
    opened = measure(lambda: found.append(_open(directory)))
    dirs = found[0]
    if len(dirs.partitions()) != count or dirs.dirs[0].clean_broker_epoch is None:
        raise RuntimeError(f"{directory} was not opened as it was closed")
    return opened, measure(dirs.close)


BENCHMARKS: dict[str, Benchmark] = {"open-partitions": open_partitions}

if __name__ == "__main__":
    sys.exit(main("Log directories, measured.", BENCHMARKS, sys.argv[1:]))
