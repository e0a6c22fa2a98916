"""The files of a log, read without opening it: what is there, and what cannot be (P7, P8, P10).

Nothing is locked, repaired or cut, so the evidence stays as it is. A last batch that is cut in the
active segment was still being written, and is no damage as long as it was not known to be durable.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from chaos.checkers.findings import Anomaly, Finding
from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import RecordBatch
from storage.checkpoint import RecoveryPoint
from storage.dump_batches import BatchReader, Unreadable
from storage.files import OsFiles
from storage.producer_state import SEQUENCE_MAX
from storage.recovery import RECOVERY_POINT_FILE
from storage.segment import LOG_SUFFIX

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch: where it stands, and what is in it."""

    offset: int
    next_offset: int
    epoch: int
    digest: bytes
    values: tuple[bytes, ...] | None = None
    """Of a data batch, where they were asked for."""

    def __str__(self) -> str:
        return f"offset {self.offset} epoch {self.epoch} {self.digest.hex()[:8]}"


@dataclass(slots=True)
class LogFiles:
    """What the segments of one directory hold."""

    name: str
    """The node that they belong to."""
    path: Path
    entries: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_compacted: bool = False
    base: int = 0
    """Where the first segment begins."""
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By producer id: its epoch, and the sequence that comes next."""
    is_interrupted: bool = False
    """Something before this point cannot be read, so that nobody knows what comes next."""

    @property
    def start(self) -> int:
        return self.entries[0].offset if self.entries else self.base

    @property
    def end(self) -> int:
        return self.entries[-1].next_offset if self.entries else self.base

    def between(self, begin: int, end: int) -> list[Entry]:
        return [each for each in self.entries if begin <= each.offset and each.next_offset <= end]

    def _note(self, anomaly: Anomaly, offset: int, words: str) -> None:
        key = f"{self.name} {self.path.name}"
        self.findings.append(Finding(anomaly, key, words, (offset,)))

    def add(self, batch: RecordBatch, *, with_values: bool) -> None:
        try:
            batch.check_crc()
        except CorruptRecord as error:
            self._note(Anomaly.P10, batch.base_offset, str(error))
            self._interrupt()
            return
        entry = _entry(batch, with_values=with_values)
        self._check_offset(entry)
        if self.entries and entry.epoch < self.entries[-1].epoch:
            before = self.entries[-1].epoch
            words = f"leader epoch {entry.epoch} at offset {entry.offset}, after {before}"
            self._note(Anomaly.P7, entry.offset, words)
        if batch.has_producer and not batch.is_control and not self.is_compacted:
            self._check_sequence(batch)
        self.is_interrupted = False
        self.entries.append(entry)

    def _check_offset(self, entry: Entry) -> None:
        if entry.offset < self.end:
            words = f"offset {entry.offset}, where {self.end} comes next"
            self._note(Anomaly.P7, entry.offset, words)
        elif entry.offset > self.end and not (self.is_compacted or self.is_interrupted):
            words = f"offsets {self.end} to {entry.offset - 1} are missing"
            self._note(Anomaly.P7, self.end, words)

    def _check_sequence(self, batch: RecordBatch) -> None:
        """A producer may begin anywhere, since older batches may be gone; then it counts on."""
        producer, sequence = batch.producer_id, batch.base_sequence
        epoch, expected = self.producers.get(producer, (batch.producer_epoch, sequence))
        if batch.producer_epoch < epoch:
            words = f"producer {producer} falls from epoch {epoch} to {batch.producer_epoch}"
            self._note(Anomaly.P8, batch.base_offset, words)
        elif batch.producer_epoch == epoch and sequence != expected:
            words = f"producer {producer} has sequence {sequence}, where {expected} comes next"
            self._note(Anomaly.P8, batch.base_offset, words)
        following = (batch.last_sequence + 1) & SEQUENCE_MAX
        self.producers[producer] = (batch.producer_epoch, following)

    def _interrupt(self) -> None:
        self.is_interrupted = True
        self.producers.clear()

    def add_unreadable(self, path: Path, bad: Unreadable) -> None:
        words = f"{path.name}, byte {bad.position}: {bad.what}"
        self._note(Anomaly.P10, self.end, words)
        self._interrupt()

    def check_end(self, flushed: int) -> None:
        """What was known to be durable is there. Cut between two batches, it leaves no trace."""
        if self.end < flushed and not self.is_interrupted:
            words = f"the log ends at {self.end}, and all below {flushed} was flushed"
            self._note(Anomaly.P7, self.end, words)


def _entry(batch: RecordBatch, *, with_values: bool) -> Entry:
    values = None
    if with_values and not batch.is_control:
        values = tuple(record.value or b"" for record in batch.records())
    digest = blake2b(batch.data, digest_size=DIGEST_BYTES).digest()
    return Entry(batch.base_offset, batch.next_offset, batch.leader_epoch, digest, values)


def read_log(
    name: str, directory: str | Path, *, with_values: bool = False, is_compacted: bool = False
) -> LogFiles:
    """All batches of a partition's directory; none if there is no such directory."""
    log = LogFiles(name, Path(directory), is_compacted=is_compacted)
    flushed = _flushed(log.path)
    segments = sorted(log.path.glob(f"{'[0-9]' * 20}{LOG_SUFFIX}"))
    log.base = int(segments[0].stem) if segments else 0
    for segment in segments:
        is_active = segment == segments[-1]
        try:
            for batch in _batches(segment):
                log.add(batch, with_values=with_values)
        except Unreadable as bad:
            if not (bad.is_cut and is_active and log.end >= flushed):
                log.add_unreadable(segment, bad)
    log.check_end(flushed)
    return log


def _batches(path: Path) -> Iterator[RecordBatch]:
    with closing(OsFiles().open(os.fspath(path))) as file:
        for _, batch in BatchReader(file).batches():
            yield batch


def _flushed(directory: Path) -> int:
    point = RecoveryPoint(OsFiles(), os.fspath(directory / RECOVERY_POINT_FILE))
    with closing(point):
        return point.read().offset or 0
