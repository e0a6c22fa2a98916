"""Opening a log: what is on disk becomes a Log, whatever stopped its last writer.

After a clean stop the files are trusted. After any other stop the tail is scanned, from the segment
that holds the recovery point on:

- a bad batch below the recovery point is damage. What was flushed must be there, so the log refuses
  to open;
- the first bad batch at or above it is the end of the log, and all behind it is cut, whatever it
  looks like.

Bad is: a wrong CRC or length, not the next offset, an epoch that goes down. Segments meet exactly:
each begins where the one before ends, in compacted logs too (storage/compaction.py), so that a
missing one is always noticed.
"""

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from kraftlog.clock import Clock
from kraftlog.errors import CorruptRecord, LogDamaged, StorageError
from kraftlog.record_batch import RecordBatch
from kraftlog.types import Uuid
from storage.checkpoint import RecoveryPoint, RecoveryPointState
from storage.damage import StateDamaged
from storage.epoch_cache import EpochCache
from storage.files import TMP_SUFFIX, Files
from storage.log import Log, LogState
from storage.log_config import LogConfig
from storage.log_reader import floor_index
from storage.producer_snapshots import drop_snapshots_after, restore_producers
from storage.retired import DELETED_SUFFIX
from storage.segment import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    file_name,
)

logger = logging.getLogger(__name__)

RECOVERY_POINT_FILE = "recovery-point"
EPOCHS_FILE = "leader-epoch-checkpoint"
OFFSET_MAX = 2**63 - 1
# A swap whose log is not there was not decided: only its indexes have the name.
_LITTER = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TMP_SUFFIX)
RESTORE_HINT = (
    "move the directory away and let this replica copy the log anew, or restore the file"
    " from a backup; `python -m storage.dump --verify` shows what is left"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenOptions:
    clean: bool = False
    """The last writer stopped cleanly: trust the files."""
    verify_all: bool = False
    """Scan the log from its first byte, not from the recovery point."""
    start_offset: int = 0
    """What the log-start checkpoint says."""
    topic_id: Uuid | None = None


def open_log(
    files: Files, directory: str, config: LogConfig, clock: Clock, options: OpenOptions
) -> Log:
    """The log in `directory`, recovered if need be; if there is no directory, an empty log."""
    try:
        state = _Opening(files, directory, config, options).load()
    except CorruptRecord as damage:
        raise LogDamaged(f"{directory} is damaged: {damage}", hint=RESTORE_HINT) from damage
    except OSError as error:
        raise StorageError(
            f"cannot open the log in {directory}: {error}",
            hint="nothing was changed for good; mend the disk and start again",
        ) from error
    log = Log(files, directory, state, config=config, clock=clock, topic_id=options.topic_id)
    if options.start_offset > log.end_offset:
        log.restart_at(options.start_offset)
    return log


class _Opening:
    def __init__(
        self, files: Files, directory: str, config: LogConfig, options: OpenOptions
    ) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.options = options
        self.recovery_point = RecoveryPoint(files, f"{directory}/{RECOVERY_POINT_FILE}")
        self.epochs = EpochCache(files, f"{directory}/{EPOCHS_FILE}")

    def load(self) -> LogState:
        if not self.files.is_dir(self.directory):
            return self._state(())
        segments = self._open_segments()
        trusted = self.options.clean and not self.options.verify_all and segments
        if trusted and self._load_clean(segments):
            return self._state(segments)
        return self._state(self._recover(segments))

    def _state(self, segments: tuple[Segment, ...]) -> LogState:
        start = self.options.start_offset
        end = segments[-1].next_offset if segments else start
        return LogState(
            segments=segments,
            epochs=self.epochs,
            producers=restore_producers(self.files, self.directory, segments, end),
            recovery_point=self.recovery_point,
            start_offset=max(start, segments[0].base_offset) if segments else start,
            end_offset=end,
            flushed_offset=end,
        )

    # -- the files

    def _open_segments(self) -> tuple[Segment, ...]:
        """Every segment, with `size` as long as its file; leftovers of earlier work are cleared
        away first.
        """
        sizes = self.files.list_sizes(self.directory)
        if self._finish_swaps(sizes):
            sizes = self.files.list_sizes(self.directory)
        if self._clear_litter(sizes):
            sizes = self.files.list_sizes(self.directory)
        segments = []
        for name, size in sizes.items():
            if name.endswith(LOG_SUFFIX):
                segments.append(self._open_segment(int(name.removesuffix(LOG_SUFFIX)), size))
        for segment, following in pairwise(segments):
            segment.next_offset = following.base_offset
        return tuple(segments)

    def _open_segment(self, base_offset: int, size: int, suffix: str = "") -> Segment:
        segment = Segment(
            self.files,
            self.directory,
            base_offset,
            index_interval_bytes=self.config.index_interval_bytes,
            suffix=suffix,
        )
        segment.size = size
        return segment

    def _finish_swaps(self, sizes: Mapping[str, int]) -> bool:
        """Finish what a compaction had decided but not completed."""
        swaps = [name for name in sizes if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
        if swaps:
            # They may have been renamed by a process that did not live to see it durable.
            self.files.sync_dir(self.directory)
        for name in swaps:
            base_offset = int(name.removesuffix(LOG_SUFFIX + SWAP_SUFFIX))
            self._finish_swap(self._open_segment(base_offset, sizes[name], SWAP_SUFFIX), sizes)
        return bool(swaps)

    def _finish_swap(self, swap: Segment, sizes: Mapping[str, int]) -> None:
        """A `.swap` segment is complete and durable: it takes the place of all that it covers."""
        with _damage_of(swap):
            swap.scan()
        swap.sync()
        for name in sizes:
            stem, _, suffix = name.partition(".")
            if f".{suffix}" not in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                continue
            if swap.base_offset <= int(stem) < swap.next_offset:
                self.files.remove(f"{self.directory}/{name}")
        self.files.sync_dir(self.directory)
        swap.change_suffix("")
        swap.close()
        self.files.sync_dir(self.directory)

    def _clear_litter(self, sizes: Mapping[str, int]) -> bool:
        """Drop what was to be deleted or never finished, and indexes without a log."""
        litter = [name for name in sizes if name.endswith(_LITTER)]
        litter += _orphaned_indexes(sizes)
        for name in litter:
            self.files.remove(f"{self.directory}/{name}")
        return bool(litter)

    # -- after a clean stop

    def _load_clean(self, segments: tuple[Segment, ...]) -> bool:
        """Trust the files, unless they contradict each other."""
        try:
            self.epochs.load()
            segments[-1].find_end(segments[-1].size)
            self._check_flushed(segments[-1])
        except (StateDamaged, CorruptRecord) as damage:
            logger.warning(
                "%s was closed cleanly, and yet: %s; scanning it", self.directory, damage
            )
            return False
        return True

    def _check_flushed(self, last: Segment) -> None:
        """A segment that went away as a whole leaves no other trace."""
        flushed = self.recovery_point.read().offset
        if flushed is not None and flushed > last.next_offset:
            raise StateDamaged(last.log.path, f"ends at {last.next_offset}, flushed was {flushed}")

    # -- after any other stop

    def _recover(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        point = self.recovery_point.read()
        if not segments:
            self._check_nothing_flushed(point)
            self.epochs.clear()
            self._sync_names()
            return ()
        if not point.readable:
            logger.warning("%s is unreadable; scanning the whole log", self.recovery_point.path)
        flushed = max(point.offset or 0, segments[0].base_offset)
        whole = self.options.verify_all or not point.readable
        first = 0 if whole else max(0, floor_index(segments, flushed))
        unscanned, tail = segments[:first], segments[first:]
        self._load_epochs(unscanned, tail[0].base_offset)
        for segment, following in zip(unscanned, segments[1:], strict=False):
            self._check_reach(segment, following.base_offset)
        scan = _Scan(
            self.directory,
            self.epochs,
            flushed=flushed,
            gaps_below=self._gaps_below(flushed),
            may_cut=point.readable,
        )
        kept = scan.run(tail)
        self._settle(kept, tail[len(kept) :])
        return unscanned + kept

    def _check_nothing_flushed(self, point: RecoveryPointState) -> None:
        if point.offset or not point.readable:
            known = f"all below offset {point.offset} was flushed"
            raise LogDamaged(
                f"{self.directory} has no segment, but"
                f" {known if point.readable else 'its recovery point is unreadable'}",
                hint=RESTORE_HINT,
            )

    def _gaps_below(self, flushed: int) -> int:
        """A log that is not compacted now may have been; what is verified as a whole must have no
        gap at all.
        """
        if self.config.compact:
            return OFFSET_MAX
        return 0 if self.options.verify_all else flushed

    def _load_epochs(self, below: tuple[Segment, ...], scan_offset: int) -> None:
        """Epochs of what is not scanned, from their file, or from the batches if the file is no
        use.
        """
        try:
            self.epochs.load()
        except StateDamaged as damage:
            logger.warning("rebuilding epochs: %s", damage)
            self.epochs.clear()
            for segment in below:
                self._note_epochs(segment)
        self.epochs.truncate_from_end(scan_offset)

    def _note_epochs(self, segment: Segment) -> None:
        with _damage_of(segment):
            for _, batch in segment.batches(0):
                note_epoch(self.epochs, batch)

    def _check_reach(self, segment: Segment, next_base: int) -> None:
        """A segment that is not scanned must still reach the next one."""
        end = segment.base_offset
        with _damage_of(segment):
            for extent in segment.extents(self._trusted_position(segment)):
                end = extent.next_offset
        if end != next_base:
            raise LogDamaged(
                f"{segment.log.path} ends at offset {end}, the next segment begins at {next_base}",
                hint=RESTORE_HINT,
            )

    def _trusted_position(self, segment: Segment) -> int:
        try:
            segment.offsets.check(segment.size)
            last = segment.offsets.last()
        except StateDamaged:
            segment.rebuild_indexes()
            last = segment.offsets.last()
        return last[1] if last else 0

    def _settle(self, kept: tuple[Segment, ...], dropped: tuple[Segment, ...]) -> None:
        """Make what was found the durable truth, in the order of a truncation."""
        end = kept[-1].next_offset
        for segment in reversed(dropped):
            segment.remove()
        drop_snapshots_after(self.files, self.directory, end)
        kept[-1].restore_end()
        for segment in kept:
            segment.seal()
            segment.sync()
        self._sync_names()
        self.epochs.truncate_from_end(end)
        self.epochs.flush(durable=True)
        self.recovery_point.write(end)

    def _sync_names(self) -> None:
        """The directory too may be so new that its name is not durable."""
        self.files.sync_dir(self.directory)
        self.files.sync_dir(os.path.dirname(self.directory) or ".")


class _Scan:
    """Reads the tail of a log batch by batch, rebuilds what is derived from it, and finds where it
    ends.
    """

    def __init__(
        self, directory: str, epochs: EpochCache, *, flushed: int, gaps_below: int, may_cut: bool
    ) -> None:
        self.directory = directory
        self.epochs = epochs
        self.flushed = flushed
        self.gaps_below = gaps_below  # below it compaction may have left gaps between batches
        self.may_cut = (
            may_cut  # not if the recovery point is unreadable: is it a torn tail or damage?
        )

    def run(self, tail: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """The segments that stay; the last one may end before its file does."""
        end = tail[0].base_offset
        for index, segment in enumerate(tail):
            if segment.base_offset != end:
                self._end_at(end, f"{segment.log.path} begins at offset {segment.base_offset}")
                return tail[:index]
            bad = self._scan_segment(segment)
            end = segment.next_offset
            if bad:
                self._end_at(end, bad)
                return tail[: index + 1]
        if end < self.flushed:
            self._end_at(end, f"{tail[-1].log.path} ends there")
        return tail

    def _end_at(self, offset: int, bad: str) -> None:
        """The log ends at `offset` because what follows is `bad`: a torn tail to cut, or damage to
        refuse.
        """
        if offset < self.flushed or not self.may_cut:
            known = f"all below {self.flushed} was flushed"
            raise LogDamaged(
                f"offset {offset} of {self.directory} cannot be read, but"
                f" {known if self.may_cut else 'its recovery point is unreadable'}: {bad}",
                hint=RESTORE_HINT,
            )
        logger.warning("cutting %s at offset %d: %s", self.directory, offset, bad)

    def _scan_segment(self, segment: Segment) -> str:
        """What is wrong with the first bad batch of a segment; empty if all are good."""
        batches = segment.batches(0, segment.size)
        segment.begin_scan()
        try:
            for _, batch in batches:
                self._check_next(batch, segment.next_offset)
                segment.note(batch)
                note_epoch(self.epochs, batch)
        except CorruptRecord as damage:
            return f"byte {segment.size} of {segment.log.path}: {damage}"
        return ""

    def _check_next(self, batch: RecordBatch, expected: int) -> None:
        batch.check_crc()
        offset = batch.base_offset
        if offset < expected or (offset > expected and offset >= self.gaps_below):
            raise CorruptRecord(f"offset {offset} where {expected} comes next")
        latest = self.epochs.latest()
        if latest is not None and batch.leader_epoch < latest:
            raise CorruptRecord(f"epoch {batch.leader_epoch} at offset {offset} after {latest}")


@contextlib.contextmanager
def _damage_of(segment: Segment) -> Iterator[None]:
    """What cannot be read in a segment that is durable is damage to it."""
    try:
        yield
    except CorruptRecord as damage:
        raise LogDamaged(f"{segment.log.path} is damaged: {damage}", hint=RESTORE_HINT) from damage


def note_epoch(epochs: EpochCache, batch: RecordBatch) -> None:
    """A batch with a new epoch starts that epoch."""
    latest = epochs.latest()
    if latest is None or batch.leader_epoch > latest:
        epochs.assign(batch.leader_epoch, batch.base_offset)


def _orphaned_indexes(sizes: Mapping[str, int]) -> list[str]:
    suffixes = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
    return [
        name
        for name in sizes
        if name.endswith(suffixes)
        and file_name(int(name.partition(".")[0]), LOG_SUFFIX) not in sizes
    ]
