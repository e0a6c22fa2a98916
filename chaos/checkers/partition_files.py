"""The partition logs of all brokers, replica by replica (P3, P7, P8, P10)."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from chaos.checkers.findings import Anomaly, Finding
from chaos.checkers.logs import LogFiles, read_log
from kraftlog.errors import LogDamaged
from kraftlog.types import TopicPartition
from quorum.store import LOG_DIRECTORY
from storage.checkpoint import read_offsets
from storage.files import OsFiles
from storage.log_dir import HIGH_WATERMARKS_FILE
from storage.partition_names import parse_partition_name

Replica = tuple[LogFiles, int]
"""A log, and its high watermark."""


def judge_replicas(
    directories: Mapping[str, Path], *, compacted: Collection[str] = ()
) -> list[Finding]:
    """`compacted`: topics whose logs have gaps, each replica its own."""
    found: list[Finding] = []
    replicas: dict[TopicPartition, list[Replica]] = defaultdict(list)
    for name, directory in sorted(directories.items()):
        try:
            ends = read_offsets(OsFiles(), os.fspath(directory / HIGH_WATERMARKS_FILE))
        except LogDamaged as error:
            found.append(Finding(Anomaly.P3, name, error.message))
            ends = {}
        # A log that is gone as a whole is still known by its high watermark.
        for key in sorted({*_partitions(directory), *(key for key in ends if ends[key])}):
            log = read_log(name, directory / str(key), is_compacted=key.topic in compacted)
            found += log.findings
            replicas[key].append((log, ends.get(key, 0)))
    for key, held in sorted(replicas.items()):
        if key.topic not in compacted:
            found += _agreement(key, held)
    return found


def _partitions(directory: Path) -> Iterator[TopicPartition]:
    for path in directory.iterdir() if directory.is_dir() else ():
        key = parse_partition_name(path.name)
        if key is not None and path.is_dir() and path.name != LOG_DIRECTORY:
            yield key


def _agreement(key: TopicPartition, replicas: Sequence[Replica]) -> Iterator[Finding]:
    """P3: below the lower high watermark of two replicas, both have the same."""
    for (one, one_end), (two, two_end) in combinations(replicas, 2):
        end = min(one_end, two_end)
        for log in (one, two):
            if log.end < end:
                words = f"{log.name} ends at {log.end}, below the high watermark {end} of both"
                yield Finding(Anomaly.P3, str(key), words, (log.end, end))
        begin = max(one.start, two.start)
        pairs = zip(one.between(begin, end), two.between(begin, end), strict=False)
        for a, b in pairs:
            if a != b:
                words = f"{one.name} has {a}, {two.name} has {b}, below the high watermark {end}"
                yield Finding(Anomaly.P3, str(key), words, (a.offset, b.offset))
                break
