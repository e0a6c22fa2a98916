"""The entries of an offset or time index, up to the first that is wrong.

With `--verify` the log beside it is read too: an entry of the offset index has to name the last
offset of a batch that begins at its position; an entry of the time index the largest timestamp so
far and a batch that has it.
"""

import struct
from collections.abc import Generator, Iterator
from typing import NamedTuple

from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import RecordBatch
from kraftlog.types import NO_TIMESTAMP
from storage.dump_batches import BatchReader, Unreadable
from storage.dump_events import Event, FileEnd, Finding, Json, Kind, LogFile, Options, Row, Severity
from storage.dump_log import Place
from storage.files import File, Files
from storage.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX

READ_ENTRIES = 4_096
REBUILT_HINT = "an index is made from its log: remove it while nobody has the log open"

_FORMATS = {Kind.OFFSET_INDEX: struct.Struct(">ii"), Kind.TIME_INDEX: struct.Struct(">qi")}
_SUFFIXES = {Kind.OFFSET_INDEX: OFFSET_INDEX_SUFFIX, Kind.TIME_INDEX: TIME_INDEX_SUFFIX}


class _Entry(NamedTuple):
    """`value` is a position in the log, or a timestamp."""

    value: int
    offset: int


def dump_index(files: Files, index: LogFile, place: Place, options: Options) -> Iterator[Event]:
    """The entries of an index, compared with its log if `options.verify`."""
    file = files.open(index.path)
    log = _open_log(files, index) if options.verify else None
    try:
        yield from _IndexDump(file, index, place, options).events(log)
    finally:
        file.close()
        if log is not None:
            log.close()


def _open_log(files: Files, index: LogFile) -> File | None:
    name = index.path.removesuffix(index.suffix).removesuffix(_SUFFIXES[index.kind])
    try:
        return files.open(name + LOG_SUFFIX + index.suffix)
    except FileNotFoundError:
        return None


class _IndexDump:
    def __init__(self, file: File, index: LogFile, place: Place, options: Options) -> None:
        self.file = file
        self.index = index
        self.place = place
        self.options = options
        self.format = _FORMATS[index.kind]
        # Before the log is looked at: a writer flushes a log's batches first, then their entries.
        self.size = file.size()
        self.position = 0
        self.last: _Entry | None = None

    def events(self, log: File | None) -> Iterator[Event]:
        judge = None if log is None else _JUDGES[self.index.kind](log)
        if self.options.verify and log is None:
            yield self._finding("has no log beside it to compare with", Severity.NOTE)
        is_whole = yield from self._entries(judge)
        if is_whole and judge is not None and not self.place.is_active:
            problem = judge.missing(self.last)
            if problem:
                yield self._finding(problem, Severity.DAMAGE)
        if judge is not None and judge.stopped:
            yield self._finding(f"compared only in part: {judge.stopped}", Severity.NOTE)
        yield FileEnd({"entries": self.position // self.format.size, "bytes": self.position})

    def _entries(self, judge: "_Judge | None") -> Generator[Event, None, bool]:
        """All entries up to a wrong one; returns whether there was none."""
        for entry in self._stored():
            problem = self._order_problem(entry)
            if not problem and judge is not None:
                problem = judge.problem(entry)
            if problem:
                yield self._finding(f"{self._name(entry)}: {problem}", Severity.DAMAGE, stop=True)
                return False
            if self.options.shows(entry.offset, entry.offset):
                yield Row(self.index.kind, self._fields(entry))
            self.last = entry
            self.position += self.format.size
        if self.position < self.size:
            severity = Severity.INCOMPLETE if self.place.is_active else Severity.DAMAGE
            yield self._finding("the file ends inside an entry", severity, stop=True)
            return False
        return True

    def _stored(self) -> Iterator[_Entry]:
        whole = self.size - self.size % self.format.size
        base_offset = self.index.base_offset or 0
        for begin in range(0, whole, READ_ENTRIES * self.format.size):
            length = min(READ_ENTRIES * self.format.size, whole - begin)
            data = self.file.pread(length, begin)
            usable = len(data) - len(data) % self.format.size  # less if it was cut meanwhile
            for first, second in self.format.iter_unpack(memoryview(data)[:usable]):
                if self.index.kind is Kind.OFFSET_INDEX:
                    yield _Entry(second, base_offset + first)
                else:
                    yield _Entry(first, base_offset + second)

    def _order_problem(self, entry: _Entry) -> str:
        last, base_offset = self.last, self.index.base_offset or 0
        if entry.value < 0 or entry.offset < base_offset:
            return "negative"
        if last is None:
            return ""
        # Two entries of a time index may share an offset, never a timestamp.
        may_stay = self.index.kind is Kind.TIME_INDEX
        grows = entry.offset > last.offset or (may_stay and entry.offset == last.offset)
        return "" if grows and entry.value > last.value else f"it follows {self._name(last)}"

    def _fields(self, entry: _Entry) -> dict[str, Json]:
        if self.index.kind is Kind.OFFSET_INDEX:
            return {"offset": entry.offset, "position": entry.value}
        return {"timestamp": entry.value, "offset": entry.offset}

    def _name(self, entry: _Entry) -> str:
        return " ".join(f"{name} {value}" for name, value in self._fields(entry).items())

    def _finding(self, what: str, severity: Severity, *, stop: bool = False) -> Finding:
        return Finding(
            path=self.index.path,
            severity=severity,
            position=self.position if stop else None,
            what=what,
            bytes_skipped=self.size - self.position if stop else None,
            hint=REBUILT_HINT if severity is Severity.DAMAGE else "",
        )


class _Judge:
    """Holds the entries of an index against its log."""

    def __init__(self, log: File) -> None:
        self.reader = BatchReader(log)
        self.stopped = ""
        """Why nothing is compared any more."""

    def problem(self, entry: _Entry) -> str:
        raise NotImplementedError

    def missing(self, last: _Entry | None) -> str:  # noqa: ARG002 - an offset index lacks nothing
        """What an index that ends with `last` does not say about a finished log."""
        return ""


class _OffsetJudge(_Judge):
    def problem(self, entry: _Entry) -> str:
        # Straight to the batch, so that damage before it does not matter.
        try:
            batch = self.reader.batch_at(entry.value)
        except Unreadable as bad:
            return f"no batch begins at that position of the log: {bad.what}"
        if batch.last_offset != entry.offset:
            return f"the batch there has last offset {batch.last_offset}"
        return ""


class _TimeJudge(_Judge):
    """Walks the log beside the index. Both only go forward."""

    def __init__(self, log: File) -> None:
        super().__init__(log)
        self._batches = self.reader.batches()
        self.batch: RecordBatch | None = None
        self.newest = NO_TIMESTAMP

    def problem(self, entry: _Entry) -> str:
        while self.batch is None or self.batch.last_offset < entry.offset:
            if not self._advance():
                return "" if self.stopped else "the log ends before"
        if self.batch.base_offset > entry.offset:
            return "no batch holds that offset"
        if self.newest > entry.value:
            return f"there is a batch up to there with timestamp {self.newest}"
        if self.batch.max_timestamp != entry.value:
            return f"the batch there has timestamp {self.batch.max_timestamp}"
        return ""

    def missing(self, last: _Entry | None) -> str:
        while self._advance():
            pass
        latest = NO_TIMESTAMP if last is None else last.value
        if self.newest > latest:
            return f"lacks the newest timestamp of its log, {self.newest}"
        return ""

    def _advance(self) -> bool:
        try:
            _, batch = next(self._batches)
            batch.check_crc()
        except StopIteration:
            return False
        except (Unreadable, CorruptRecord) as bad:
            # What is newest cannot be told any more. Where the log is read this is damage.
            self._batches = iter(())
            self.stopped = f"the log cannot be read: {bad}"
            return False
        self.batch = batch
        self.newest = max(self.newest, batch.max_timestamp)
        return True


_JUDGES: dict[Kind, type[_Judge]] = {
    Kind.OFFSET_INDEX: _OffsetJudge,
    Kind.TIME_INDEX: _TimeJudge,
}
