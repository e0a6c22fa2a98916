"""One segment: a `.log` file of record batches with its two sparse indexes.

The `.log` file is the truth. The indexes are derived from it: they may be missing, short or wrong,
and whoever finds that out rebuilds them. A segment knows how far it goes (`size`, `next_offset`)
and never looks past that: bytes behind it are the remains of an append that failed.

As in Kafka, an index entry names the *last* offset of a batch and the position where that batch
begins.
"""

import contextlib
import logging
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from kraftlog.errors import CorruptRecord, LogDamaged
from kraftlog.record_batch import HEADER_BYTES, LENGTH_PREFIX_BYTES, Record, RecordBatch
from kraftlog.types import NO_TIMESTAMP
from storage.damage import StateDamaged
from storage.files import File, Files
from storage.index import OffsetIndex, TimeIndex
from storage.index_entries import MaxTimestamp, index_entries
from storage.log_config import LogConfig

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

SCAN_CHUNK_BYTES = 1 << 20
LOCATE_CHUNK_BYTES = 8 << 10

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
SNAPSHOT_SUFFIX = ".snapshot"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

# Of a batch header: base offset, batch length, magic, last offset delta; epoch, crc and attributes
# skipped.
_EXTENT = struct.Struct(">qi4xb6xi")
_MAGIC = 2


def file_name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


class Extent(NamedTuple):
    """Where one batch lies in its file, and which offsets it covers."""

    position: int
    end_position: int
    base_offset: int
    next_offset: int


class Boundary(NamedTuple):
    """A place between two batches: its position, the offset that follows, and the batch behind it,
    if that was looked at.
    """

    position: int
    next_offset: int
    following: Extent | None


class Segment:
    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        suffix: str = "",
    ) -> None:
        """A segment over files that exist. It is empty until `find_end` or `note` move its end."""
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        self.size = 0
        self.next_offset = base_offset
        self._max_timestamp: MaxTimestamp | None = None
        self._first_timestamp: int | None = None
        self._unindexed_bytes = 0
        self._sealed = False  # and not synced since
        self._rebuilding = threading.RLock()
        self.log: File = files.open(self._path(LOG_SUFFIX + suffix))
        self.offsets = OffsetIndex(files, self._path(OFFSET_INDEX_SUFFIX + suffix), base_offset)
        self.times = TimeIndex(files, self._path(TIME_INDEX_SUFFIX + suffix), base_offset)

    @classmethod
    def create(
        cls,
        files: Files,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        suffix: str = "",
    ) -> "Segment":
        """A new, empty segment. Its names are durable only after a sync of the directory."""
        path = f"{directory}/{file_name(base_offset, LOG_SUFFIX + suffix)}"
        with contextlib.closing(files.open(path, create=True)) as created:
            if created.size():
                created.truncate(0)
        segment = cls(
            files, directory, base_offset, index_interval_bytes=index_interval_bytes, suffix=suffix
        )
        segment._forget_contents()
        return segment

    def _path(self, suffix: str) -> str:
        return f"{self.directory}/{file_name(self.base_offset, suffix)}"

    def __repr__(self) -> str:
        return f"Segment({self.log.path} [{self.base_offset}, {self.next_offset}) {self.size} B)"

    # -- writing

    def append(self, batches: Sequence[RecordBatch]) -> None:
        """Write whole batches at the end, in one call. On OSError nothing has changed but bytes
        behind the end.
        """
        _ = self.max_timestamp  # known from here on, so that nothing fails once it is written
        self.log.pwrite([batch.data for batch in batches], self.size)
        for batch in batches:
            self.note(batch)

    def note(self, batch: RecordBatch) -> None:
        """Take in the batch that lies at the end of the file: move the end, feed the indexes."""
        if self._first_timestamp is None:
            self._first_timestamp = batch.max_timestamp
        if batch.max_timestamp > self.max_timestamp.timestamp:
            self._max_timestamp = MaxTimestamp(batch.max_timestamp, batch.last_offset)
        if self._unindexed_bytes > self.index_interval_bytes:
            self._index(batch.last_offset)
        self._unindexed_bytes += batch.size
        self.size += batch.size
        self.next_offset = batch.next_offset

    def _index(self, last_offset: int) -> None:
        """Feed the indexes. The batch is written, so trouble with an index must not stop it: an
        entry may be left out, and the next search finds a damaged file.
        """
        try:
            self.offsets.append(last_offset, self.size)
            self._index_time()
            self._unindexed_bytes = 0
        except (StateDamaged, OSError) as trouble:
            logger.warning("no index entry for offset %d: %s", last_offset, trouble)

    def _index_time(self) -> None:
        largest = self.max_timestamp
        if largest.timestamp >= 0:
            self.times.append(largest.timestamp, largest.offset)

    def seal(self) -> None:
        """Complete the indexes. The next `sync` covers them too: below the recovery point nobody
        scans again, and a time index that lost its last entry would let records expire too early.
        """
        self._with_indexes(self._complete_indexes)
        self._sealed = True

    def _complete_indexes(self) -> None:
        self._index_time()
        self.offsets.flush()
        self.times.flush()

    def sync(self) -> None:
        """Make the batches durable; of a sealed segment the indexes as well."""
        self.log.sync()
        if self._sealed:
            self._with_indexes(self._sync_indexes)
            self._sealed = False

    def _sync_indexes(self) -> None:
        self.offsets.sync()
        self.times.sync()

    def truncate(self, extent: Extent) -> None:
        """Cut the segment where `extent` begins. The caller orders the syncs around it."""
        with self._rebuilding:  # or indexes of before could come back
            self.next_offset = self.end_before(extent)
            self.log.truncate(extent.position)
            self.size = extent.position
            self.offsets.truncate_to(extent.base_offset)
            self.times.truncate_to(extent.base_offset)
            self._refresh_tail_state()

    def restore_end(self) -> None:
        """Drop the bytes that a failed append left behind the end."""
        self.log.truncate(self.size)

    def must_roll(self, batches: Sequence[RecordBatch], config: LogConfig) -> bool:
        """Whether these batches belong into the next segment."""
        added = sum(batch.size for batch in batches)
        first = self.first_timestamp
        newest = max(batch.max_timestamp for batch in batches)
        return self.size > 0 and (
            self.size + added > config.segment_bytes
            or (first is not None and first >= 0 and newest - first > config.roll_ms)
            or not self.offsets.fits(batches[-1].last_offset)
            or self.offsets.size_bytes >= config.index_bytes_max
        )

    # -- the end, and state derived from the contents

    def find_end(self, file_bytes: int) -> None:
        """Learn the end of a cleanly closed segment from its last index entry and the batches
        behind it.

        Raises CorruptRecord or StateDamaged where the files disagree; then only a full scan can
        tell.
        """
        self.size = file_bytes
        self.offsets.check(file_bytes)
        position = self._last_indexed_position()
        self.next_offset = self.base_offset
        for extent in self.extents(position):
            self.next_offset = extent.next_offset
        self._unindexed_bytes = file_bytes - position

    def _last_indexed_position(self) -> int:
        last = self.offsets.last()
        return last[1] if last else 0

    def _refresh_tail_state(self) -> None:
        """After a cut: the indexes know about the batches up to their last entry, the rest is
        looked at.
        """
        position = self._last_indexed_position()
        last = self.times.last()
        largest = MaxTimestamp(*last) if last else MaxTimestamp(NO_TIMESTAMP, self.base_offset)
        for _, batch in self.batches(position):
            if batch.max_timestamp > largest.timestamp:
                largest = MaxTimestamp(batch.max_timestamp, batch.last_offset)
        self._max_timestamp = largest
        self._unindexed_bytes = self.size - position
        if self.size == 0:
            self._first_timestamp = None

    def _forget_contents(self) -> None:
        self.size = 0
        self.next_offset = self.base_offset
        self._max_timestamp = MaxTimestamp(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None
        self._unindexed_bytes = 0
        self.offsets.reset()
        self.times.reset()

    def begin_scan(self) -> None:
        """Forget all but the file, so that a scan can `note` batch after batch and rebuild the
        indexes. Only while the log is being opened: to others the segment would look empty.
        """
        self._forget_contents()

    def scan(self) -> None:
        """Learn everything from the batches, `size` bytes of them: for opening, as above."""
        batches = self.batches(0, self.size)
        self.begin_scan()
        for _, batch in batches:
            self.note(batch)
        self.seal()

    def rebuild_indexes(self) -> None:
        """Make both indexes anew from the batches, while others read and append. Raises
        CorruptRecord where the log itself is damaged.
        """
        with self._rebuilding:
            batches = self.batches(0)
            offsets, times, largest = index_entries(
                batches, self.base_offset, self.index_interval_bytes
            )
            try:
                self.offsets.reset(offsets)
                self.times.reset(times)
                self._sync_indexes()
            except OSError as error:
                logger.warning("the indexes of %s stay in memory: %s", self.log.path, error)
            if self._max_timestamp is None or self._max_timestamp.timestamp < largest.timestamp:
                self._max_timestamp = largest

    @property
    def max_timestamp(self) -> MaxTimestamp:
        if self._max_timestamp is None:
            self._max_timestamp = self._with_indexes(self._indexed_max_timestamp)
        return self._max_timestamp

    def _indexed_max_timestamp(self) -> MaxTimestamp:
        if self._max_timestamp is not None:
            return self._max_timestamp  # a rebuild has just found it
        if self.size == 0:
            return MaxTimestamp(NO_TIMESTAMP, self.base_offset)
        last = self.times.last()
        if last is None:
            raise StateDamaged(self.times.path, "is empty")
        self._check_time_entry(last)
        return MaxTimestamp(*last)

    def _check_time_entry(self, entry: tuple[int, int]) -> None:
        """Entries have no checksum, but each must name the last offset of a batch and that batch's
        timestamp.
        """
        timestamp, offset = entry
        extent = self._locate(offset)
        _, batch = next(self.batches(extent.position)) if extent else (0, None)
        if batch is None or (batch.max_timestamp, batch.last_offset) != (timestamp, offset):
            raise StateDamaged(self.times.path, f"has {entry}, but no such batch is there")

    @property
    def first_timestamp(self) -> int | None:
        """The largest timestamp of the first batch, from which the segment's age counts; None while
        empty.
        """
        if self._first_timestamp is None and self.size:
            _, batch = next(self.batches(0))
            self._first_timestamp = batch.max_timestamp
        return self._first_timestamp

    # -- reading

    def extents(self, position: int) -> Iterator[Extent]:
        """The batches from a batch boundary to the end, by header alone. CorruptRecord where that
        makes no sense.
        """
        chunk, chunk_start = b"", position
        offset = self.base_offset
        while position < self.size:
            at = position - chunk_start
            if len(chunk) - at < HEADER_BYTES:
                wanted = min(LOCATE_CHUNK_BYTES, self.size - position)
                chunk, chunk_start, at = self.log.pread(wanted, position), position, 0
            extent = self._extent_at(chunk, at, position, offset)
            yield extent
            position, offset = extent.end_position, extent.next_offset

    def _extent_at(self, chunk: bytes, at: int, position: int, least_offset: int) -> Extent:
        if len(chunk) - at < HEADER_BYTES:
            raise CorruptRecord(f"{self.log.path} ends inside a batch header at byte {position}")
        base_offset, length, magic, last_delta = _EXTENT.unpack_from(chunk, at)
        end = position + LENGTH_PREFIX_BYTES + length
        sane = length >= HEADER_BYTES - LENGTH_PREFIX_BYTES and end <= self.size
        if not sane or magic != _MAGIC or base_offset < least_offset or last_delta < 0:
            raise CorruptRecord(
                f"{self.log.path} has no batch at byte {position}: base offset {base_offset},"
                f" length {length}, magic {magic}; offset {least_offset} or later was expected"
            )
        return Extent(position, end, base_offset, base_offset + last_delta + 1)

    def batches(self, position: int, end: int | None = None) -> Iterator[tuple[int, RecordBatch]]:
        """(position, batch) from a batch boundary to `end`; CorruptRecord where a batch cannot be.

        CRCs are the caller's to check. A batch is valid until the next one is asked for.
        """
        end = self.size if end is None else end
        chunk, chunk_start = b"", position
        while position < end:
            at = position - chunk_start
            whole = _whole_size(chunk, at)
            if whole is None or len(chunk) - at < whole:
                wanted = min(max(SCAN_CHUNK_BYTES, whole or 0), end - position)
                chunk, chunk_start, at = self.log.pread(wanted, position), position, 0
            whole = _whole_size(chunk, at)
            if whole is not None and len(chunk) < whole <= end - position:
                chunk = self.log.pread(whole, position)
            batch = RecordBatch(chunk, at)
            yield position, batch
            position += batch.size

    def locate(self, offset: int) -> Extent | None:
        """The first batch that reaches beyond `offset`: the one that holds it, or the next one
        after a gap.
        """
        return self._with_indexes(lambda: self._locate(offset))

    def _locate(self, offset: int) -> Extent | None:
        position = self.offsets.lookup(offset)[1]
        if position >= self.size > 0:
            raise StateDamaged(self.offsets.path, f"leads to byte {position} of {self.size}")
        for extent in self.extents(position):
            if extent.next_offset > offset:
                if extent.position == position > 0 and extent.base_offset > offset:
                    raise StateDamaged(self.offsets.path, f"leads past offset {offset}")
                return extent
        return None

    def end_before(self, extent: Extent) -> int:
        """Where the batch before this one ends: below its base offset, if compaction left a gap."""
        return self._with_indexes(lambda: self._end_before(extent.position))

    def _end_before(self, position: int) -> int:
        end = self.base_offset
        for extent in self.extents(self.offsets.floor_position(position - 1)):
            if extent.position >= position:
                break
            end = extent.next_offset
        return end

    def boundary(self, first: Extent, limit_position: int) -> Boundary:
        """Where to stop reading that begins at `first` and wants whole batches up to
        `limit_position`: at least the end of `first`.
        """
        if first.end_position >= limit_position:
            return Boundary(first.end_position, first.next_offset, None)
        if limit_position >= self.size:
            return Boundary(self.size, self.next_offset, None)
        try:
            return self._boundary(first, limit_position)  # as it goes in nearly every read
        except (StateDamaged, CorruptRecord):
            return self._with_indexes(lambda: self._boundary(first, limit_position))

    def _boundary(self, first: Extent, limit_position: int) -> Boundary:
        end, next_offset = first.end_position, first.next_offset
        for extent in self.extents(max(end, self.offsets.floor_position(limit_position))):
            if extent.end_position > limit_position:
                return Boundary(extent.position, max(next_offset, extent.base_offset), extent)
            end, next_offset = extent.end_position, extent.next_offset
        return Boundary(end, next_offset, None)

    def first_at_time(self, timestamp: int, from_offset: int) -> tuple[Record, int] | None:
        """The first record at or after `from_offset` that has `timestamp` or a later one, and its
        leader epoch.
        """
        return self._with_indexes(lambda: self._first_at_time(timestamp, from_offset))

    def _first_at_time(self, timestamp: int, from_offset: int) -> tuple[Record, int] | None:
        entry = self.times.lookup(timestamp)
        if entry[0] != NO_TIMESTAMP:
            self._check_time_entry(entry)
        begin = self._locate(max(entry[1], from_offset))
        for _, batch in self.batches(begin.position) if begin else ():
            if batch.max_timestamp < timestamp:
                continue
            # Compaction may have taken the very record that made the batch so new.
            for record in batch.records():
                if record.timestamp >= timestamp and record.offset >= from_offset:
                    return record, batch.leader_epoch
        return None

    def _with_indexes(self, search: Callable[[], Found]) -> Found:
        """Run a search that leans on an index; where the index turns out wrong, rebuild it and
        search again.
        """
        try:
            return search()
        except (StateDamaged, CorruptRecord) as damage:
            logger.warning("rebuilding the indexes of %s: %s", self.log.path, damage)
        try:
            self.rebuild_indexes()
            return search()
        except (StateDamaged, CorruptRecord) as damage:
            raise LogDamaged(
                f"{self.log.path} is damaged: {damage}",
                hint="restore this replica from another one, or drop the partition's directory",
            ) from damage

    # -- the files

    def change_suffix(self, suffix: str) -> None:
        """Rename all files of the segment, the log last: without its log an index is litter."""
        self.offsets.rename(self._path(OFFSET_INDEX_SUFFIX + suffix))
        self.times.rename(self._path(TIME_INDEX_SUFFIX + suffix))
        self.log.rename(self._path(LOG_SUFFIX + suffix))

    def remove(self) -> None:
        """Unlink all files of the segment, the log last."""
        for path in (self.offsets.path, self.times.path, self.log.path):
            if self._files.exists(path):
                self._files.remove(path)
        self.close()

    def close(self) -> None:
        self.log.close()
        self.offsets.close()
        self.times.close()


def _whole_size(chunk: bytes, at: int) -> int | None:
    """Bytes of the batch that begins at `at`, by its length field; None if that field is not in the
    chunk.
    """
    if len(chunk) - at < LENGTH_PREFIX_BYTES:
        return None
    return LENGTH_PREFIX_BYTES + int.from_bytes(chunk[at + 8 : at + 12], "big", signed=True)
