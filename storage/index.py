"""The two sparse indexes of a segment, in Kafka's formats: big endian, no header, equal entries.

    .index      relative offset int32, position int32     where in the .log to look for an offset
    .timeindex  timestamp int64, relative offset int32    the largest timestamp so far, and whose

Offsets are relative to the segment's base offset, which is why a segment must roll before one no
longer `fits`.

New entries gather in a memory tail until `flush` writes them behind those in the file. Entries in
the file are found by a few small reads, so a sealed segment costs no memory, and its files are not
even opened before the first search. Nothing here has a checksum, and an index is safe to lose.
Whatever looks wrong is StateDamaged, and the segment makes the index anew. A missing file is damage
too; only `reset` creates one.

One thread changes an index at a time (a lock sees to it), others may search meanwhile: a search
works on one view, which a change replaces. The tail of a view only ever grows.
"""

import contextlib
import errno
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, NamedTuple, TypeVar

from kraftlog._check import invariant
from kraftlog.types import NO_TIMESTAMP
from storage.damage import StateDamaged
from storage.files import File, Files

INT32_MAX = 2**31 - 1
BLOCK_ENTRIES = 2_048
"""Read at once at the end of a search. An index of 2 MB is searched with 8 reads."""
CHECKED_ENTRIES = 64
"""How many entries at either end of the file a cheap check looks at."""

Entry = tuple[int, int]
_Found = TypeVar("_Found")


class _View(NamedTuple):
    """What an index holds at one moment: so many bytes of the file, then the tail."""

    file_bytes: int
    tail: bytearray


class _SparseIndex:
    """What both indexes share. An entry is a pair of numbers, both growing from entry to entry."""

    _format: ClassVar[struct.Struct]
    _offset_column: ClassVar[int]
    _block_entries: ClassVar[int] = BLOCK_ENTRIES

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._files = files
        self._file: File | None = None
        self._current: _View | None = None
        self._ragged = False  # the file may be longer than the view says, after a write that failed
        self._lock = threading.RLock()

    # -- the parts that differ

    def _absolute(self, entry: Entry) -> Entry:
        """An entry as callers know it, with a whole offset."""
        raise NotImplementedError

    def _relative(self, entry: Entry) -> Entry:
        """An entry as it is stored."""
        raise NotImplementedError

    def _follows(self, before: Entry, entry: Entry) -> bool:
        """Whether `entry` may come right after `before`."""
        raise NotImplementedError

    # -- for callers

    def fits(self, offset: int) -> bool:
        """Whether an entry could name this offset. If not, the segment has to roll first."""
        return 0 <= offset - self.base_offset <= INT32_MAX

    @property
    def entry_count(self) -> int:
        return self.size_bytes // self._format.size

    @property
    def size_bytes(self) -> int:
        """Bytes of all entries, flushed or not."""
        view = self._view()
        return view.file_bytes + len(view.tail)

    def last(self) -> Entry | None:
        """The last entry, or None if there is none."""
        last = self._steadily(self._last)
        return None if last is None else self._absolute(last)

    def entries(self) -> Iterator[Entry]:
        """All entries in order."""
        return map(self._absolute, self._all())

    def truncate_to(self, offset: int) -> None:
        """Drop the entries for `offset` and beyond, in the file at once."""
        with self._lock:
            kept, _ = self._search(self._offset_column, offset - self.base_offset - 1)
            file_bytes, tail = self._view()
            kept_bytes = kept * self._format.size
            if kept_bytes >= file_bytes:
                self._current = _View(file_bytes, tail[: kept_bytes - file_bytes])
            else:
                self._current = _View(kept_bytes, bytearray())
                self._ragged = True
                self.flush()

    def flush(self) -> None:
        """Write the tail to the file. After an OSError the entries are still in memory."""
        with self._lock:
            if not self._ragged and not (self._current and self._current.tail):
                return
            file_bytes, tail = self._view()
            end = file_bytes + len(tail)
            self._ragged = True
            try:
                self._write(tail, file_bytes, end)
            except FileNotFoundError:
                raise StateDamaged(self.path, "is missing") from None
            self._current = _View(end, bytearray())
            self._ragged = False

    def _write(self, tail: bytearray, position: int, end: int) -> None:
        file = self._open()
        if tail:
            file.pwrite([tail], position)
        if file.size() > end:
            file.truncate(end)

    def sync(self) -> None:
        """Flush, and make it durable: for a sealed segment, which no recovery will scan again."""
        self.flush()
        with contextlib.suppress(FileNotFoundError):  # the next search finds out
            self._open().sync()

    def reset(self, entries: Iterable[Entry] = ()) -> None:
        """Begin anew with these entries, as callers know them, and a file, created if it is
        missing. After an OSError the entries are in memory.
        """
        tail = bytearray().join(self._format.pack(*self._relative(entry)) for entry in entries)
        with self._lock:
            # First the view, then the file: a search that runs meanwhile must not take this for
            # damage.
            self._current = _View(0, tail)
            self._ragged = True
            self._drop_handle()
            self._file = self._files.open(self.path, create=True)
            self.flush()

    def rename(self, path: str) -> None:
        """Give the file a new name. One that is missing is left for the next search to find out."""
        with self._lock:
            with contextlib.suppress(FileNotFoundError):
                self._files.rename(self.path, path)
            self.path = path

    def close(self) -> None:
        """Give up the file. What was not flushed is gone; a later search opens the file again."""
        with self._lock:
            self._drop_handle()
            self._current = None
            self._ragged = False

    def check_deep(self) -> None:
        """StateDamaged unless every entry follows from the one before."""
        self._check_run(0, self._all())

    # -- checks

    def _check_ends(self) -> Entry | None:
        """Check the first and the last few entries and return the last one."""
        count = self.entry_count
        ends = {0, max(0, count - CHECKED_ENTRIES)}
        last: Entry | None = None
        for begin in sorted(ends):
            run = list(self._all(begin, min(count, begin + CHECKED_ENTRIES)))
            self._check_run(begin, run)
            last = run[-1] if run else None
        return last

    def _check_run(self, begin: int, run: Iterable[Entry]) -> None:
        before: Entry | None = None
        for n, entry in enumerate(run, begin):
            fine = min(entry) >= 0 if before is None else self._follows(before, entry)
            if not fine:
                raise StateDamaged(self.path, f"has {entry} after {before} near entry {n}")
            before = entry

    def _check_last_offset(self, last: Entry, end_offset: int | None) -> None:
        offset = self.base_offset + last[self._offset_column]
        if end_offset is not None and offset >= end_offset:
            raise StateDamaged(self.path, f"leads to offset {offset}, the end is {end_offset}")

    # -- the file

    def _view(self) -> _View:
        view = self._current
        if view is None:
            with self._lock:
                view = self._current = self._current or _View(self._file_size(), bytearray())
        return view

    def _file_size(self) -> int:
        try:
            size = self._files.size(self.path)
        except FileNotFoundError:
            raise StateDamaged(self.path, "is missing") from None
        if size % self._format.size:
            raise StateDamaged(
                self.path, f"has {size} bytes, no multiple of an entry's {self._format.size}"
            )
        return size

    def _open(self) -> File:
        file = self._file
        if file is None:
            with self._lock:
                file = self._file = self._file or self._files.open(self.path)
        return file

    def _drop_handle(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, position: int, length: int) -> bytes:
        try:
            data = self._open().pread(length, position)
        except FileNotFoundError:
            raise StateDamaged(self.path, "is missing") from None
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            raise StateDamaged(self.path, "was closed") from None
        if len(data) < length:
            raise StateDamaged(
                self.path, f"ends at byte {position + len(data)}, not at {position + length}"
            )
        return data

    # -- entries as they are stored

    def _append(self, entry: Entry) -> None:
        self._view().tail.extend(self._format.pack(*entry))

    def _last(self, view: _View) -> Entry | None:
        size = self._format.size
        file_bytes, tail = view
        if tail:
            return self._unpack(tail, len(tail) - size)
        if file_bytes:
            return self._unpack(self._read(file_bytes - size, size), 0)
        return None

    def _unpack(self, data: bytes | bytearray, at: int) -> Entry:
        entry: Entry = self._format.unpack_from(data, at)
        return entry

    def _all(self, begin: int = 0, end: int | None = None) -> Iterator[Entry]:
        """The entries [begin, end) of one view, read in blocks."""
        size = self._format.size
        file_bytes, tail = self._view()
        stop = file_bytes + len(tail) if end is None else end * size
        position = begin * size
        while position < min(stop, file_bytes):
            length = min(self._block_entries * size, min(stop, file_bytes) - position)
            yield from self._format.iter_unpack(self._read(position, length))
            position += length
        if position < stop:
            yield from self._format.iter_unpack(tail[position - file_bytes : stop - file_bytes])

    def _search(self, column: int, target: int) -> tuple[int, Entry | None]:
        """How many entries have at most `target` in `column`, and the last of these."""
        return self._steadily(lambda view: self._search_view(view, column, target))

    def _steadily(self, search: Callable[[_View], _Found]) -> _Found:
        """Search one view. If the file was cut meanwhile, search again what is there now."""
        while True:
            view = self._view()
            try:
                return search(view)
            except StateDamaged:
                if self._current is view:
                    raise

    def _search_view(self, view: _View, column: int, target: int) -> tuple[int, Entry | None]:
        size = self._format.size
        file_bytes, tail = view
        if tail and self._unpack(tail, 0)[column] <= target:
            found, entry = self._search_block(tail, column, target)
            return file_bytes // size + found, entry
        if not file_bytes:
            return 0, None
        block_bytes = self._block_entries * size
        low, high = 0, -(-file_bytes // block_bytes)
        while high - low > 1:
            middle = (low + high) // 2
            first = self._unpack(self._read(middle * block_bytes, size), 0)
            if first[column] <= target:
                low = middle
            else:
                high = middle
        begin = low * block_bytes
        block = self._read(begin, min(block_bytes, file_bytes - begin))
        found, entry = self._search_block(block, column, target)
        # What the search did not compare may be wrong too. The neighbours tell at little cost.
        around = block[max(0, found - 2) * size : (found + 1) * size]
        self._check_run(low * self._block_entries + found, self._format.iter_unpack(around))
        return low * self._block_entries + found, entry

    def _search_block(
        self, block: bytes | bytearray, column: int, target: int
    ) -> tuple[int, Entry | None]:
        size = self._format.size
        unpack = self._format.unpack_from
        low, high = 0, len(block) // size
        # Entries grow evenly where batches are alike: guess first, halve what is left after.
        least, most = unpack(block, 0)[column], unpack(block, (high - 1) * size)[column]
        if least <= target < most:
            middle = (target - least) * (high - 1) // (most - least)
        else:
            middle = 0 if target < least else high - 1
        while low < high:
            if unpack(block, middle * size)[column] > target:
                high = middle
            else:
                low = middle + 1
                if low < high and unpack(block, low * size)[column] > target:
                    break
            middle = (low + high) // 2
        return low, unpack(block, (low - 1) * size) if low else None


class OffsetIndex(_SparseIndex):
    """From an offset to the position of a batch at or before it."""

    _format = struct.Struct(">ii")
    _offset_column = 0

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Both numbers must be larger than those of the last one."""
        entry = (offset - self.base_offset, position)
        with self._lock:
            last = self._last(self._view())
            invariant(
                self.fits(offset) and 0 <= position <= INT32_MAX,
                "index entry does not fit",
                path=self.path,
                offset=offset,
                position=position,
            )
            invariant(
                last is None or self._follows(last, entry),
                "offset index goes back",
                path=self.path,
                entry=entry,
                last=last,
            )
            self._append(entry)

    def lookup(self, offset: int) -> Entry:
        """(offset, position) of the last entry up to `offset`; (base offset, 0) if none."""
        _, entry = self._search(0, offset - self.base_offset)
        return (self.base_offset, 0) if entry is None else self._absolute(entry)

    def floor_position(self, position: int) -> int:
        """The largest indexed position at or before `position`; 0 if there is none."""
        _, entry = self._search(1, position)
        return 0 if entry is None else entry[1]

    def check(self, log_size: int, end_offset: int | None = None) -> None:
        """StateDamaged if a cheap look (two reads) shows that this is no index of such a log."""
        last = self._check_ends()
        if last is None:
            return
        if last[1] >= log_size:
            raise StateDamaged(
                self.path, f"leads to byte {last[1]} of a log that has {log_size} bytes"
            )
        self._check_last_offset(last, end_offset)

    def _absolute(self, entry: Entry) -> Entry:
        return self.base_offset + entry[0], entry[1]

    def _relative(self, entry: Entry) -> Entry:
        return entry[0] - self.base_offset, entry[1]

    def _follows(self, before: Entry, entry: Entry) -> bool:
        return entry[0] > before[0] and entry[1] > before[1]


class TimeIndex(_SparseIndex):
    """From a timestamp to an offset before which nothing is newer.

    An entry (timestamp, offset) says: up to and including `offset` no record is newer than
    `timestamp`, and the one at `offset` is as new. When a segment is sealed, an entry for its
    largest timestamp comes last.
    """

    _format = struct.Struct(">qi")
    _offset_column = 1

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry, unless its timestamp is no larger than that of the last one."""
        with self._lock:
            last = self._last(self._view())
            if timestamp <= (NO_TIMESTAMP if last is None else last[0]):
                return
            entry = (timestamp, offset - self.base_offset)
            invariant(self.fits(offset), "index entry does not fit", path=self.path, offset=offset)
            invariant(
                last is None or self._follows(last, entry),
                "time index goes back",
                path=self.path,
                entry=entry,
                last=last,
            )
            self._append(entry)

    def lookup(self, timestamp: int) -> Entry:
        """(timestamp, offset) of the last entry up to `timestamp`; (-1, base offset) if none."""
        _, entry = self._search(0, timestamp)
        return (NO_TIMESTAMP, self.base_offset) if entry is None else self._absolute(entry)

    def check(self, end_offset: int | None = None) -> None:
        """StateDamaged if a cheap look (two reads) shows that this is no index of such a log."""
        last = self._check_ends()
        if last is not None:
            self._check_last_offset(last, end_offset)

    def _absolute(self, entry: Entry) -> Entry:
        return entry[0], self.base_offset + entry[1]

    def _relative(self, entry: Entry) -> Entry:
        return entry[0], entry[1] - self.base_offset

    def _follows(self, before: Entry, entry: Entry) -> bool:
        # Kafka lets two entries share an offset, never a timestamp.
        return entry[0] > before[0] and entry[1] >= before[1]
