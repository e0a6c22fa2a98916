"""The batches of a file: where each lies, what its header says, and what is wrong with it.

Nothing is locked and nothing is written, so a writer may be appending meanwhile. Whatever looks bad
is read a second time before it is reported: what was read first may be older than the file.

Behind a bad batch reading goes on only where there is no guess in it: at the batch that the length
field leads to, or at one that the offset index names, position and offset. Bytes that merely look
like a batch may be part of somebody's value.

A file that ends inside its last batch is *incomplete*, not damaged, as long as that batch may still
be on its way: in the active segment, at or above the recovery point.
"""

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from kraftlog.errors import CorruptRecord, KraftError
from kraftlog.record_batch import RecordBatch
from kraftlog.types import NO_EPOCH, NO_TIMESTAMP
from storage.damage import StateDamaged
from storage.dump_batches import BatchReader, Unreadable
from storage.dump_events import (
    Event,
    Fields,
    FileEnd,
    Finding,
    Kind,
    LogFile,
    Options,
    Row,
    Severity,
)
from storage.dump_fields import batch_fields, record_fields
from storage.epoch_cache import EpochStart
from storage.files import File, Files
from storage.index import OffsetIndex
from storage.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX

RESTORE_HINT = (
    "restore the file from a backup, or move the directory away and let this replica copy the log"
)
CUT_HINT = "nothing from here on was known to be durable: the next start cuts the log here"
TAIL_HINT = "it is being written, or its writer stopped in the middle: the next start cuts it off"


@dataclass(slots=True)
class Chain:
    """What the segments of a directory say so far, one after the other."""

    next_offset: int | None = None
    """Where the next segment has to begin; None if that is not known."""
    epoch: int = NO_EPOCH
    epoch_starts: list[EpochStart] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a file stands among the others."""

    chain: Chain = field(default_factory=Chain)
    is_active: bool = False
    """A writer may be adding to it."""
    flushed_offset: int | None = None
    """The recovery point of the log: all below it was durable."""


def dump_log(files: Files, log: LogFile, place: Place, options: Options) -> Iterator[Event]:
    """The batches of a segment or of a metadata snapshot."""
    file = files.open(log.path)
    try:
        yield from _LogDump(files, file, log, place, options).events()
    finally:
        file.close()


class _LogDump:
    def __init__(
        self, files: Files, file: File, log: LogFile, place: Place, options: Options
    ) -> None:
        self.files = files
        self.file = file
        self.log = log
        self.place = place
        self.options = options
        self.reader = BatchReader(file)
        # The batches of a metadata snapshot count from 0, whatever offset it stands for.
        self.next_offset = log.base_offset or 0 if log.kind is Kind.LOG else 0
        self.position = 0
        self.batches = 0
        self.records = 0
        self.gaps = 0
        self.max_timestamp = NO_TIMESTAMP

    def events(self) -> Iterator[Event]:
        chain = self.place.chain
        yield from self._check_joint(chain.next_offset)
        chain.next_offset = None
        is_whole = yield from self._batches()
        if is_whole:
            chain.next_offset = self.next_offset
            yield from self._check_reach()
        yield FileEnd(
            {
                "batches": self.batches,
                "records": self.records,
                "nextOffset": self.next_offset,
                "maxTimestamp": self.max_timestamp,
                "gaps": self.gaps,
                "bytes": self.position,
            }
        )

    def _batches(self) -> Generator[Event, None, bool]:
        """All batches that can be read; returns whether the end of the file was reached."""
        end = self.file.size()
        while self.position < end:
            try:
                yield from self._step()
            except Unreadable as bad:
                if self.file.size() <= self.position:
                    break  # truncated meanwhile, and this is the end now
                resumption = self._resume(bad)
                yield self._bad_finding(bad, resumption)
                if resumption is None:
                    return False
                self.position, self.next_offset = resumption
        return True

    def _step(self) -> Iterator[Event]:
        """Show and take the batch at the position, or raise Unreadable."""
        batch = self.reader.batch_at(self.position)
        if self._problem(batch):
            batch = self.reader.read_again(self.position)
        problem = self._problem(batch)
        if problem:
            yield from self._show(batch, is_valid=not _crc_problem(batch), with_records=False)
            next_position = self.position + batch.size
            raise Unreadable(self.position, problem, next_position=next_position)
        yield from self._show(batch, is_valid=True, with_records=self.options.deep)
        self._take(batch)

    # -- behind a bad batch

    def _resume(self, bad: Unreadable) -> tuple[int, int] | None:
        """Position and offset of the next batch that is beyond doubt; None if there is none."""
        position = bad.next_position
        while position is not None:
            try:
                batch = self.reader.batch_at(position)
            except Unreadable as further:
                position = further.next_position
                continue
            if not self._problem(batch):
                return position, batch.base_offset
            position += batch.size
        return self._resume_by_index(bad.position)

    def _resume_by_index(self, bad_position: int) -> tuple[int, int] | None:
        if self.log.kind is not Kind.LOG:
            return None
        stem = self.log.path.removesuffix(self.log.suffix).removesuffix(LOG_SUFFIX)
        path = stem + OFFSET_INDEX_SUFFIX + self.log.suffix
        index = OffsetIndex(self.files, path, self.log.base_offset or 0)
        # An index that is missing or damaged itself is of no help, and reported where it is read.
        with contextlib.suppress(StateDamaged), contextlib.closing(index):
            later = ((last, at) for last, at in index.entries() if at > bad_position)
            for last_offset, position in later:
                base_offset = self._confirmed(last_offset, position)
                if base_offset is not None:
                    return position, base_offset
        return None

    def _confirmed(self, last_offset: int, position: int) -> int | None:
        """The base offset of the batch that an index entry is about; None if it is not there."""
        try:
            batch = self.reader.batch_at(position)
        except Unreadable:
            return None
        is_it = batch.last_offset == last_offset and not self._problem(batch)
        return batch.base_offset if is_it else None

    # -- judging

    def _problem(self, batch: RecordBatch) -> str:
        problem = _crc_problem(batch)
        if problem:
            return problem
        if batch.base_offset < self.next_offset:
            return (
                f"a batch with offset {batch.base_offset}, where {self.next_offset} or later"
                " comes next"
            )
        latest = self.place.chain.epoch
        if batch.leader_epoch < latest:
            return f"leader epoch {batch.leader_epoch} after {latest}"
        return ""

    def _check_joint(self, expected: int | None) -> Iterator[Finding]:
        """Segments meet exactly: each begins where the one before ends."""
        begin = self.next_offset
        if expected is None or expected == begin:
            return
        if begin > expected:
            what = f"the segment before ends at {expected}: {begin - expected} offsets are missing"
        else:
            what = f"the segment before reaches {expected}: they overlap"
        yield Finding(
            path=self.log.path,
            severity=Severity.DAMAGE,
            offset=min(begin, expected),
            what=f"begins at offset {begin}, but {what}",
            hint=RESTORE_HINT,
        )

    def _check_reach(self) -> Iterator[Finding]:
        """The active segment has to reach the recovery point."""
        flushed = self.place.flushed_offset
        if self.place.is_active and flushed is not None and self.next_offset < flushed:
            yield Finding(
                path=self.log.path,
                severity=Severity.DAMAGE,
                position=self.position,
                offset=self.next_offset,
                what=f"the log ends here, but all below offset {flushed} was flushed",
                hint=RESTORE_HINT,
            )

    def _bad_finding(self, bad: Unreadable, resumption: tuple[int, int] | None) -> Finding:
        flushed = self.place.flushed_offset
        what, severity, hint = bad.what, Severity.DAMAGE, RESTORE_HINT
        if flushed is not None and self.next_offset < flushed:
            what += f"; all below offset {flushed} was flushed"
        elif self.place.is_active and flushed is not None:
            hint = TAIL_HINT if bad.is_cut else CUT_HINT
            severity = Severity.INCOMPLETE if bad.is_cut else Severity.DAMAGE
        if resumption is not None:
            what += self._lost(resumption[1])
        resumed_at = resumption[0] if resumption else None
        end = max(self.position, self.file.size()) if resumed_at is None else resumed_at
        return Finding(
            path=self.log.path,
            severity=severity,
            position=self.position,
            offset=self.next_offset,
            what=what,
            bytes_skipped=end - self.position,
            resumed_at=resumed_at,
            hint=hint,
        )

    def _lost(self, resumed_offset: int) -> str:
        last = resumed_offset - 1
        if last < self.next_offset:
            return ""
        if last == self.next_offset:
            return f"; offset {last} cannot be read"
        return f"; offsets {self.next_offset} to {last} cannot be read"

    # -- going on

    def _take(self, batch: RecordBatch) -> None:
        self.gaps += batch.base_offset > self.next_offset
        self.batches += 1
        self.records += batch.count
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)
        self.position += batch.size
        self.next_offset = batch.next_offset
        chain = self.place.chain
        if batch.leader_epoch > chain.epoch:
            chain.epoch = batch.leader_epoch
            chain.epoch_starts.append(EpochStart(batch.leader_epoch, batch.base_offset))

    def _show(self, batch: RecordBatch, *, is_valid: bool, with_records: bool) -> Iterator[Event]:
        records: list[Fields] | None = None
        problem = ""
        if with_records:
            try:
                records = self._records(batch)
            except KraftError as error:
                problem = str(error)
        if self.options.shows(batch.base_offset, batch.last_offset):
            fields = batch_fields(batch, self.position, is_valid=is_valid)
            yield Row(self.log.kind, fields, records)
        if problem:
            yield Finding(
                path=self.log.path,
                severity=Severity.DAMAGE,
                position=self.position,
                offset=batch.base_offset,
                what=f"the records cannot be decoded: {problem}",
                hint="the CRC is right, so this is what the producer sent",
            )

    def _records(self, batch: RecordBatch) -> list[Fields]:
        """Decode every record; return those to be shown."""
        return [
            record_fields(batch, record)
            for record in batch.records()
            if self.options.shows(record.offset, record.offset)
        ]


def _crc_problem(batch: RecordBatch) -> str:
    try:
        batch.check_crc()
    except CorruptRecord as error:
        return str(error)
    return ""
