"""Compaction: of each key in a log only the last record stays.

One pass has two halves. First it reads the dirty part and notes the last offset of every key in a
map of bounded size; where the map is full the pass ends early, after a whole batch, and another
pass goes on from there. Then it rewrites every segment that begins below that end, the clean ones
too, without what the map says is replaced (storage/batch_filter.py).

Neighbouring segments that have become small are written into one. Each such group is written to
`.cleaned` files, made durable, and put in the place of the old segments by one durable rename
(`Log.replace`), from the start of the log on. So after a crash between two groups the log is a mix,
but a harmless one: what is missing in the front is still followed by what replaces it.

It runs in a thread of its own beside appends and reads, and gives way: when the log was cut, or its
oldest segments were dropped, the pass ends and leaves the log as it is. Damage found on the way is
LogDamaged; nothing is replaced then.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from kraftlog.clock import Clock, SystemClock
from kraftlog.errors import ConfigError, CorruptRecord, LogDamaged, StorageError
from kraftlog.record_batch import RecordBatch
from storage.batch_filter import BatchFilter, emptied
from storage.cleanable import find_cleanable
from storage.files import way_out
from storage.index import INT32_MAX
from storage.log import Log
from storage.log_config import LogConfig
from storage.offset_map import LOAD_FACTOR, OffsetMap
from storage.segment import CLEANED_SUFFIX, Segment
from storage.throttle import Throttle

logger = logging.getLogger(__name__)

SLICE_BYTES = 1 << 20
"""How much is read or written between two looks at whether to stop."""
INDEX_ENTRY_BYTES_MAX = 12
DAMAGE_HINT = (
    "let this replica copy the log anew, or cut the damage away;"
    " `python -m storage.dump --verify` shows it"
)


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOptions:
    dedupe_buffer_bytes: int = 128 << 20
    """log.cleaner.dedupe.buffer.size: memory for the offset map, 24 bytes a key."""
    load_factor: float = LOAD_FACTOR
    clock: Clock = field(default_factory=SystemClock)
    throttle: Throttle = field(default_factory=Throttle)
    should_stop: Callable[[], bool] = _never
    """Asked after every slice of work. What was replaced until then stays."""


class Outcome(Enum):
    DONE = "done"
    STOPPED = "stopped"
    LOG_CHANGED = "log changed"


@dataclass(slots=True)
class CleanStats:
    passes: int = 0
    keys: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    """By the second half of each pass: a record counts once per pass."""
    records_kept: int = 0
    segments_read: int = 0
    segments_written: int = 0


@dataclass(frozen=True, slots=True)
class CleanResult:
    next_dirty_offset: int
    """Where the next compaction begins, for the cleaner checkpoint."""
    outcome: Outcome
    cuts: int
    """`log.cuts` as it was at the beginning. Where the log has more by now, the offset is not to be
    stored.
    """
    stats: CleanStats


class _Stopped(Exception):
    """The caller wants an end."""


class _LogChanged(Exception):
    """The segments of this pass are no longer those of the log."""


def clean(log: Log, first_dirty_offset: int, options: CleanOptions | None = None) -> CleanResult:
    """Compact all of a log that may be, however little it is, in as many passes as the map needs.

    Raises LogDamaged where a segment cannot be read, StorageError where one cannot be written, and
    ConfigError where the map is too small for a single batch.
    """
    try:
        return _clean(log, first_dirty_offset, options or CleanOptions())
    except OSError as error:
        raise _io_error("compact", log.directory, error) from error


def _clean(log: Log, first_dirty_offset: int, options: CleanOptions) -> CleanResult:
    stats = CleanStats()
    cuts = log.cuts
    part = find_cleanable(log, first_dirty_offset, options.clock.wall_ms())
    offset = part.first_dirty_offset
    try:
        if offset < part.end_offset:
            log.save_recovery_point()
        while offset < part.end_offset:
            offset = _Pass(log, options, stats, cuts).run(offset, part.end_offset)
    except _Stopped:
        return CleanResult(offset, Outcome.STOPPED, cuts, stats)
    except _LogChanged:
        logger.info("%s was changed while it was compacted: begun anew later", log.directory)
        return CleanResult(min(offset, log.end_offset), Outcome.LOG_CHANGED, cuts, stats)
    return CleanResult(offset, Outcome.DONE, cuts, stats)


class _Pass:
    def __init__(self, log: Log, options: CleanOptions, stats: CleanStats, cuts: int) -> None:
        self.log = log
        self.options = options
        self.stats = stats
        self.cuts = cuts
        """How often the log had been cut before this compaction looked at it."""

    def run(self, first_dirty: int, end_offset: int) -> int:
        """Compact with the keys of [first_dirty, end_offset), or of as much of it as fits; returns
        where that ended.
        """
        segments = [segment for segment in self.log.segments if segment.next_offset <= end_offset]
        self.stats.passes += 1
        options, now_ms = self.options, self.options.clock.wall_ms()
        offset_map = OffsetMap(
            options.dedupe_buffer_bytes,
            keys_expected=end_offset - first_dirty,
            load_factor=options.load_factor,
        )
        end_offset = self._fill(offset_map, segments, first_dirty, end_offset)
        self.stats.keys += len(offset_map)
        batch_filter = BatchFilter(
            offset_map,
            range(first_dirty, end_offset),
            now_ms=now_ms,
            delete_retention_ms=self.log.config.delete_retention_ms,
            last_offset=self._last_offset,
        )
        below = [segment for segment in segments if segment.base_offset < end_offset]
        for group in group_segments(below, self.log.config):
            self._rewrite(group, batch_filter)
        if self.log.cuts != self.cuts:
            raise _LogChanged
        return end_offset

    # -- the first half

    def _fill(
        self, offset_map: OffsetMap, segments: Sequence[Segment], first_dirty: int, end_offset: int
    ) -> int:
        """Note the keys from `first_dirty` on, batch by batch; returns the offset before which all
        are noted.
        """
        for segment in segments:
            if segment.next_offset <= first_dirty:
                continue
            with self._reading(segment):
                left_out = self._note_keys(offset_map, segment, first_dirty)
            if left_out is not None:
                return self._full(offset_map, left_out, first_dirty)
        return end_offset

    def _note_keys(self, offset_map: OffsetMap, segment: Segment, first_dirty: int) -> int | None:
        """The offset of the first batch for whose keys there was no room; None if all are noted."""
        extent = segment.locate(first_dirty)
        for batch in self._batches(segment, extent.position if extent else segment.size):
            is_certain = not (batch.is_control or batch.is_transactional)
            if is_certain and not offset_map.put(batch, first_dirty):
                return batch.base_offset
        return None

    def _full(self, offset_map: OffsetMap, base_offset: int, first_dirty: int) -> int:
        if base_offset > first_dirty:
            return base_offset
        raise ConfigError(
            f"log.cleaner.dedupe.buffer.size={self.options.dedupe_buffer_bytes} holds"
            f" {offset_map.capacity} keys, the batch at offset {base_offset} of"
            f" {self.log.directory} has more",
            hint="raise log.cleaner.dedupe.buffer.size",
        )

    # -- the second half

    def _rewrite(self, group: Sequence[Segment], batch_filter: BatchFilter) -> None:
        """Write a group of segments anew, as one, and put it in their place."""
        log = self.log
        with self._writing():
            cleaned = Segment.create(
                log.files,
                log.directory,
                group[0].base_offset,
                index_interval_bytes=log.config.index_interval_bytes,
                suffix=CLEANED_SUFFIX,
            )
        try:
            changed = self._copy(group, cleaned, batch_filter)
            if changed:
                with self._writing():
                    cleaned.seal()
                    cleaned.sync()
        except Exception:
            cleaned.remove()
            raise
        if changed:
            self._replace(group, cleaned)
        else:
            cleaned.remove()

    def _copy(self, group: Sequence[Segment], cleaned: Segment, batch_filter: BatchFilter) -> bool:
        """Whether the copy differs from what was there."""
        output = _Output(cleaned)
        changed = len(group) > 1
        end_offset = group[-1].next_offset
        for segment in group:
            self.stats.segments_read += 1
            with self._reading(segment):
                for batch in self._batches(segment):
                    changed |= self._copy_batch(batch, output, batch_filter, end_offset)
        self._write(output)
        return changed

    def _copy_batch(
        self, batch: RecordBatch, output: "_Output", batch_filter: BatchFilter, end_offset: int
    ) -> bool:
        kept = batch_filter.apply(batch)
        if kept is None and batch.next_offset == end_offset:
            kept = emptied(batch)  # Segments meet: the end of this one must be there.
        self.stats.records_read += batch.count
        if kept is not None:
            self.stats.records_kept += kept.count
            output.add(kept)
        if output.is_full:
            self._write(output)
        return kept is not batch

    def _write(self, output: "_Output") -> None:
        with self._writing():
            written = output.write()
        self.stats.bytes_written += written
        self._pace(written)

    def _replace(self, group: Sequence[Segment], cleaned: Segment) -> None:
        with self._writing():
            try:
                replaced = self.log.replace(group, cleaned, cuts=self.cuts)
            except OSError:
                cleaned.remove()
                raise
        if not replaced:
            cleaned.remove()
            raise _LogChanged
        self.stats.segments_written += 1

    # -- reading and pacing

    def _batches(self, segment: Segment, position: int = 0) -> Iterator[RecordBatch]:
        """The batches of a segment, each checked, with a look at the stop sign now and then."""
        offset, unpaid = segment.base_offset, 0
        for at, batch in segment.batches(position):
            batch.check_crc()
            if not offset <= batch.base_offset < batch.next_offset <= segment.next_offset:
                raise CorruptRecord(f"offset {batch.base_offset} where {offset} comes next")
            offset = batch.next_offset
            yield batch
            unpaid += batch.size
            if unpaid >= SLICE_BYTES or at + batch.size >= segment.size:
                self.stats.bytes_read += unpaid
                self._pace(unpaid)
                unpaid = 0
        if offset != segment.next_offset:
            raise CorruptRecord(f"it ends at offset {offset}, not at {segment.next_offset}")

    def _pace(self, count: int) -> None:
        self.options.throttle.spend(count)
        if self.options.should_stop():
            raise _Stopped

    @contextmanager
    def _reading(self, segment: Segment) -> Iterator[None]:
        """A segment that cannot be read was cut or dropped meanwhile, or else it is damaged."""
        try:
            yield
        except (CorruptRecord, LogDamaged, OSError) as error:
            if self._has_changed(segment):
                raise _LogChanged from error
            if isinstance(error, OSError):
                raise _io_error("read", segment.log.path, error) from error
            raise LogDamaged(
                f"{segment.log.path} cannot be compacted: {error}", hint=DAMAGE_HINT
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise _io_error("write a compacted segment in", self.log.directory, error) from error

    def _last_offset(self, producer_id: int) -> int | None:
        # Asked of the log each time: a cut gives it new producer states.
        return self.log.producers.last_data_offset(producer_id)

    def _has_changed(self, segment: Segment) -> bool:
        return self.log.cuts != self.cuts or segment not in self.log.segments


class _Output:
    """Gathers batches for a segment and writes them in large pieces."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._pending = bytearray()
        self._written = 0

    @property
    def is_full(self) -> bool:
        return len(self._pending) >= SLICE_BYTES

    def add(self, batch: RecordBatch) -> None:
        if self._segment.size + batch.size > INT32_MAX:
            raise StorageError(
                f"{self._segment.log.path} would be larger than {INT32_MAX} bytes",
                hint="lower segment.bytes: delete horizons make tombstones a little larger",
            )
        self._pending += batch.data
        self._segment.note(batch)

    def write(self) -> int:
        count = len(self._pending)
        if count:
            self._segment.log.pwrite([self._pending], self._written)
        self._written += count
        self._pending = bytearray()
        return count


def group_segments(segments: Sequence[Segment], config: LogConfig) -> list[list[Segment]]:
    """Neighbours that fit into one segment together, judged by what they are before compaction."""
    groups: list[list[Segment]] = []
    size = 0
    for segment in segments:
        size += segment.size
        if groups and _fits(size, segment.next_offset - groups[-1][0].base_offset, config):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size
    return groups


def _fits(size: int, offsets: int, config: LogConfig) -> bool:
    """Whether one segment may have so many bytes and span so many offsets."""
    index_bytes = INDEX_ENTRY_BYTES_MAX * (size // config.index_interval_bytes + 1)
    return (
        size <= config.segment_bytes
        and index_bytes <= config.index_bytes_max
        and offsets - 1 <= INT32_MAX
    )


def _io_error(doing: str, path: str, error: OSError) -> StorageError:
    return StorageError(f"cannot {doing} {path}: {error}", hint=way_out(error))
