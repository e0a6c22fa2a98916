"""The log of one partition, or of the metadata: segments in a directory, read by offset.

    start_offset     first offset that may be read; what is below is gone or about to go
    flushed_offset   what is below survives a power cut; recorded in the file `recovery-point`
    high_watermark   what is below is committed; whoever replicates moves it, the log keeps it
    end_offset       the next offset to be written (LEO)

Two locks. `_lock` guards what an append changes, and is never held across a sync of a log file.
`_flush_lock` is held by whoever changes what is durable: a flush runs in a thread of its own while
appends go on, and a truncation waits for it. Order: `_flush_lock` first. Reads take neither: the
tuple of segments is replaced, never changed.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraftlog._check import invariant
from kraftlog.clock import Clock
from kraftlog.errors import (
    CorruptRecord,
    InvalidRecord,
    OffsetOutOfRange,
    RecordTooLarge,
    StorageError,
)
from kraftlog.record_batch import RecordBatch, patch_append_time, patch_offsets, whole_batches
from kraftlog.types import Buffer, EpochEnd, TimestampType, Uuid
from storage.checkpoint import RecoveryPoint, write_partition_metadata
from storage.epoch_cache import EpochCache
from storage.files import Files, way_out
from storage.log_config import LogConfig
from storage.log_reader import (
    LogReader,
    LogSlice,
    TimestampedOffset,
    at_max_timestamp,
    first_at_time,
    floor_index,
)
from storage.producer_snapshots import (
    drop_snapshots_after,
    drop_snapshots_before,
    restore_producers,
    snapshot_path,
)
from storage.producer_state import ProducerStates
from storage.retired import RetiredSegments
from storage.segment import LOG_SUFFIX, SWAP_SUFFIX, Segment, file_name
from storage.unsynced import Unsynced

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Appended:
    """Where an append went. `duplicate`: it was there already, and nothing was written."""

    base_offset: int
    last_offset: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class LogState:
    """What was found in a directory, and what a Log goes on from."""

    segments: tuple[Segment, ...]
    epochs: EpochCache
    producers: ProducerStates
    recovery_point: RecoveryPoint
    start_offset: int
    end_offset: int
    flushed_offset: int


class Log:
    """Use `storage.recovery.open_log` to get one."""

    def __init__(
        self,
        files: Files,
        directory: str,
        state: LogState,
        *,
        config: LogConfig,
        clock: Clock,
        topic_id: Uuid | None = None,
    ) -> None:
        self.directory = directory
        self.config = config
        self.topic_id = topic_id
        self.epochs = state.epochs
        self.producers = state.producers
        self.start_offset = state.start_offset
        self.high_watermark = state.start_offset
        self.end_offset = state.end_offset
        self.flushed_offset = state.flushed_offset
        self.cuts = 0
        """How often the end went back. Work on segments that began before a cut is void."""
        self.files = files
        self._clock = clock
        self._segments = state.segments
        self._recovery_point = state.recovery_point
        self._reader = LogReader()
        self._lock = threading.RLock()
        self._flush_lock = threading.RLock()
        self._unsynced = Unsynced()
        self._changed = False
        self._failure = ""
        self._retired = RetiredSegments(clock)

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._segments

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def latest_epoch(self) -> int | None:
        return self.epochs.latest()

    # -- append

    def append(self, data: bytearray, *, leader_epoch: int) -> Appended:
        """As leader, append batches of our own making. Gives them their offsets, in place."""
        with self._lock:
            return self._write(self._stamp(data, leader_epoch))

    def append_from_client(self, data: bytearray, *, leader_epoch: int) -> Appended:
        """As leader, append a client's one batch, after all checks that need no decompression."""
        batch = RecordBatch(data)
        if batch.size != len(data):
            raise InvalidRecord(f"{len(data) - batch.size} bytes follow the batch; send one batch")
        if batch.size > self.config.max_message_bytes:
            raise RecordTooLarge(
                f"a batch of {batch.size} bytes is over"
                f" max.message.bytes={self.config.max_message_bytes}",
                hint="send smaller batches or raise max.message.bytes of the topic",
            )
        timestamps = batch.check_for_produce()
        with self._lock:
            duplicate = self.producers.check(batch) if batch.has_producer else None
            if duplicate:
                return Appended(duplicate.base_offset, duplicate.last_offset, duplicate=True)
            if self.config.timestamp_type is TimestampType.CREATE:
                self.config.check_timestamps(timestamps, self._clock.wall_ms())
            return self._write(self._stamp(data, leader_epoch))

    def append_fetched(self, data: Buffer) -> Appended:
        """As follower, append batches as the leader has them, offsets and epochs included."""
        batches = whole_batches(data)
        with self._lock:
            expected = self.end_offset
            for batch in batches:
                batch.check_crc()
                if batch.base_offset < expected:
                    raise CorruptRecord(
                        f"fetched offset {batch.base_offset} where {expected} comes next"
                    )
                expected = batch.next_offset
            falling = self.epochs.first_falling(batches)
            if falling:
                raise CorruptRecord(f"fetched an epoch that goes down: {falling}")
            return self._write(batches)

    def _stamp(self, data: bytearray, leader_epoch: int) -> list[RecordBatch]:
        offset = self.end_offset
        batches = whole_batches(data)
        for batch in batches:
            if self.config.timestamp_type is TimestampType.APPEND:
                patch_append_time(batch.data, self._clock.wall_ms())
            patch_offsets(batch.data, base_offset=offset, leader_epoch=leader_epoch)
            offset += batch.last_offset_delta + 1
        return whole_batches(data)

    def _write(self, batches: list[RecordBatch]) -> Appended:
        self._check_usable()
        self._changed = True
        falling = self.epochs.first_falling(batches)
        invariant(falling is None, "the epoch of a log goes down", log=self.directory, at=falling)
        base_offset, end_offset = batches[0].base_offset, batches[-1].next_offset
        try:
            segment = self._segment_for(batches)
            segment.append(batches)
        except OSError as error:
            raise self._append_undone(self._segments[-1], error) from error
        for batch in batches:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
            if batch.has_producer:
                self.producers.update(batch)
        self._unsynced.add(segment)
        self.end_offset = end_offset
        return Appended(base_offset, end_offset - 1)

    def _check_usable(self) -> None:
        if self._failure:
            raise StorageError(self._failure, hint="restart the process to open it anew")

    def _append_undone(self, segment: Segment, error: OSError) -> StorageError:
        """A write failed: cut what it left. If even that fails, only recovery can help."""
        try:
            segment.restore_end()
        except OSError as second:
            self._failure = f"{segment.log.path}: {error}, and cutting it back failed: {second}"
        return StorageError(f"cannot append to {segment.log.path}: {error}", hint=way_out(error))

    # -- segments

    def _segment_for(self, batches: Sequence[RecordBatch]) -> Segment:
        active = self._segments[-1] if self._segments else None
        if active is None or active.must_roll(batches, self.config):
            return self.roll()
        return active

    def roll(self) -> Segment:
        """Seal the active segment and start the next one at the end of the log."""
        with self._lock:
            self._check_usable()  # or the directory of a deleted log would come back
            active = self._segments[-1] if self._segments else None
            if active and not active.size:
                return active
            try:
                if active:
                    self._seal(active)
                return self._add_segment()
            except OSError as error:
                raise StorageError(
                    f"cannot add a segment in {self.directory}: {error}", hint=way_out(error)
                ) from error

    def _seal(self, active: Segment) -> None:
        active.seal()
        self._unsynced.add(active)
        path = snapshot_path(self.directory, self.end_offset)
        self.producers.snapshot(self.files, path, durable=False)

    def _add_segment(self) -> Segment:
        if not self.files.is_dir(self.directory):
            self._make_directory()
        self._unsynced.names = True
        interval = self.config.index_interval_bytes
        try:
            segment = Segment.create(
                self.files, self.directory, self.end_offset, index_interval_bytes=interval
            )
        except OSError as error:
            self._remove_remains(
                f"{self.directory}/{file_name(self.end_offset, LOG_SUFFIX)}", error
            )
            raise
        self._segments = (*self._segments, segment)
        return segment

    def _remove_remains(self, path: str, error: OSError) -> None:
        """Of a segment that could not be made. The next open would take it for the end."""
        try:
            if self.files.exists(path):
                self.files.remove(path)
        except OSError as second:
            self._failure = f"{path}: {error}, and removing it failed: {second}"

    def _make_directory(self) -> None:
        """A log has no directory before its first append."""
        self.files.make_dir(self.directory)
        self._unsynced.directory = True
        if self.topic_id is not None:
            write_partition_metadata(self.files, self.directory, self.topic_id)

    def expire_producers(self) -> int:
        """Forget the producers that were silent for producer.id.expiration.ms; returns how many."""
        with self._lock:
            expiration_ms = self.config.producer_id_expiration_ms
            return len(self.producers.expire(self._clock.wall_ms(), expiration_ms))

    # -- durability

    def flush(self) -> int:
        """Make all that was appended before this call durable; returns the flushed offset.

        Appends go on meanwhile. A failed sync ends the process (storage.files).
        """
        with self._flush_lock:
            self._check_usable()
            with self._lock:
                target, taken = self.end_offset, self._unsynced
                self._unsynced = Unsynced()
            try:
                self._sync(taken, target)
            except OSError as error:
                with self._lock:
                    self._unsynced = taken.with_later(self._unsynced)
                raise StorageError(
                    f"cannot flush {self.directory}: {error}", hint=way_out(error)
                ) from error
            return target

    def _sync(self, unsynced: Unsynced, target: int) -> None:
        with self._lock:
            if self.epochs.dirty and self._segments:
                self.epochs.flush(durable=True)
        unsynced.sync(self.files, self.directory)
        if target > self.flushed_offset:
            self._recovery_point.write(target)
            self.flushed_offset = target

    def save_recovery_point(self) -> None:
        """Make it durable, so that no later scan begins below what is flushed by now."""
        with self._flush_lock:
            self._check_usable()
            self._recovery_point.lower(self.flushed_offset)

    def close(self) -> bool:
        """Flush, and write what makes the next start quick; False if the log had failed before."""
        with self._flush_lock, self._lock:
            sound = not self._failure
            if sound and self._changed and self._segments:
                self._seal(self._segments[-1])
                self.flush()
            self._recovery_point.close()
            for segment in self._segments:
                segment.close()
            self._retired.close()
            self._failure = self._failure or f"{self.directory} is closed"
            return sound

    def discard(self) -> None:
        """Close without a flush: for a log that is to be deleted."""
        with self._flush_lock, self._lock:
            self._failure = f"{self.directory} is deleted"
            self.close()

    # -- truncation, from the end

    def truncate_to(self, offset: int) -> int:
        """Cut the log so that nothing at or after `offset` is left; a batch that spans it goes as a
        whole.

        Returns the new end. The order is that of a log that may lose power at any step: first the
        recovery point goes down, then names go, then bytes, and only then may the offsets be used
        again.
        """
        with self._flush_lock, self._lock, self._cutting():
            if offset >= self.end_offset:
                self.epochs.truncate_from_end(offset)
                return self.end_offset
            if not self._segments or offset <= self._segments[0].base_offset:
                self.restart_at(max(offset, self.start_offset))
                return self.end_offset
            kept = self._segments[: floor_index(self._segments, offset) + 1]
            cut = kept[-1].locate(offset)
            self._shorten(kept, kept[-1].end_before(cut) if cut else offset)
            if cut:
                kept[-1].truncate(cut)
            kept[-1].sync()
            self._after_shortening()
            return self.end_offset

    def restart_at(self, offset: int) -> None:
        """Drop everything; the log goes on, empty, at `offset`."""
        with self._flush_lock, self._lock, self._cutting():
            if self._segments:
                self._shorten((), min(offset, self._segments[0].base_offset))
                # Before the new segment can be found: an empty log that starts elsewhere and
                # remembers an epoch of before would contradict whatever took its place.
                self.epochs.clear()
                self.epochs.flush(durable=True)
            self.start_offset = self.end_offset = self.high_watermark = offset
            self._add_segment()
            self.files.sync_dir(self.directory)
            self._unsynced.names = False
            self._recovery_point.lower(offset)
            self._after_shortening()

    @contextlib.contextmanager
    def _cutting(self) -> Iterator[None]:
        """A cut that fails half way leaves a log that only recovery can put together again."""
        self._check_usable()
        try:
            yield
        except OSError as error:
            self._failure = f"{self.directory} could not be cut: {error}"
            self._check_usable()

    def _shorten(self, kept: tuple[Segment, ...], end_offset: int) -> None:
        self._changed = True
        self.cuts += 1
        dropped = self._segments[len(kept) :]
        self.flushed_offset = min(self.flushed_offset, end_offset)
        # A log without segments is sound only where nothing counts as flushed.
        self._recovery_point.lower(self.flushed_offset if kept else 0)
        drop_snapshots_after(self.files, self.directory, end_offset)
        self._segments = kept
        self._retire(dropped[::-1])
        self.files.sync_dir(self.directory)
        self.end_offset = end_offset

    def _retire(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._retired.add(segment)
        self._unsynced.keep_only(self._segments)

    def _after_shortening(self) -> None:
        self._reader.forget()
        self.epochs.truncate_from_end(self.end_offset)
        self.epochs.flush(durable=True)
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self.producers = restore_producers(
            self.files, self.directory, self._segments, self.end_offset
        )

    # -- dropping from the start

    def advance_start(self, offset: int) -> None:
        """Everything below `offset` may go. Whole segments do, at the next `drop_oldest`."""
        with self._lock:
            if offset > self.end_offset:
                raise OffsetOutOfRange(
                    f"start {offset} is beyond the end {self.end_offset} of {self.directory}"
                )
            self.start_offset = max(self.start_offset, offset)
            self.high_watermark = max(self.high_watermark, self.start_offset)
            self.epochs.truncate_from_start(self.start_offset)

    def drop_oldest(self, count: int) -> None:
        """Retire the first `count` segments, never the active one. `purge` unlinks them."""
        with self._flush_lock, self._lock:
            invariant(count < len(self._segments), "the active segment stays", count=count)
            retired, self._segments = self._segments[:count], self._segments[count:]
            first = self._segments[0].base_offset
            self.advance_start(max(first, self.start_offset))
            try:
                self._retire(retired)
                drop_snapshots_before(self.files, self.directory, first)
            except OSError as error:
                # They are out of use, and go at the next start if not at once.
                raise StorageError(f"cannot drop segments of {self.directory}: {error}") from error

    def replace(self, old: Sequence[Segment], new: Segment, *, cuts: int) -> bool:
        """Put a rewritten, synced segment in the place of `old`; False if those have changed.

        From the first directory sync on the new segment counts: storage.recovery finishes the rest.
        Appends and reads go on meanwhile; a flush, a cut and retention wait. After an OSError
        nothing has changed.
        """
        with self._flush_lock:
            at = floor_index(self._segments, new.base_offset)
            if cuts != self.cuts or self._segments[at : at + len(old)] != tuple(old):
                return False
            new.change_suffix(SWAP_SUFFIX)
            self.files.sync_dir(self.directory)
            try:
                self._swap(at, old, new)
            except OSError as error:
                self._failure = f"compaction of {self.directory} stopped half way: {error}"
                self._check_usable()
            return True

    def _swap(self, at: int, old: Sequence[Segment], new: Segment) -> None:
        with self._lock:
            self._segments = (*self._segments[:at], new, *self._segments[at + len(old) :])
            self._reader.forget()
            self._retire(old)
        self.files.sync_dir(self.directory)
        new.change_suffix("")
        self.files.sync_dir(self.directory)

    def purge(self) -> int:
        """Unlink segments that were retired file.delete.delay.ms ago; returns how many remain."""
        return self._retired.purge(self.config.file_delete_delay_ms)

    # -- read

    def read(self, offset: int, max_bytes: int, *, limit: int | None = None) -> LogSlice:
        """Whole batches from `offset`: about `max_bytes`, at least one, none at or past `limit`."""
        segments, end = self._segments, self.end_offset
        if not self.start_offset <= offset <= end:
            raise OffsetOutOfRange(
                f"offset {offset} is outside [{self.start_offset}, {end}] of {self.directory}"
            )
        limit = end if limit is None else min(limit, end)
        if offset >= limit:
            return LogSlice(None, 0, 0, offset)
        return self._reader.slice(segments, offset, max_bytes, limit)

    def offset_for_time(self, timestamp: int) -> TimestampedOffset | None:
        """The first record whose timestamp is `timestamp` (ms) or later."""
        return first_at_time(self._segments, timestamp, self.start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        return at_max_timestamp(self._segments, self.start_offset)

    def end_for_epoch(self, epoch: int) -> EpochEnd | None:
        return self.epochs.end_offset_for(epoch, self.end_offset)
