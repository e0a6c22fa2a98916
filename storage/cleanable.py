"""What of a log may be compacted, how dirty that is, and whether it is time.

    clean       below the first dirty offset: seen by an earlier compaction, one record a key
    dirty       from there on: sealed, flushed, committed, outside of open transactions, and as old
                as min.compaction.lag.ms asks
    the rest    not yet to be touched; the active segment always belongs to it

Compaction works on whole segments, so all limits but the first dirty offset fall on the ends of
segments.
"""

import logging
from dataclasses import dataclass

from storage.log import Log
from storage.log_config import FOREVER_MS, LogConfig
from storage.segment import Segment

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cleanable:
    """The dirty part of a log is [first_dirty_offset, end_offset)."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """Something has been dirty for max.compaction.lag.ms."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        if not self.dirty_bytes:
            return False
        return self.overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio


def find_cleanable(log: Log, first_dirty_offset: int, now_ms: int) -> Cleanable:
    """Judge a log that was compacted up to `first_dirty_offset`, as its checkpoint says."""
    first_dirty = _valid_first_dirty(log, first_dirty_offset)
    segments = log.segments
    clean_bytes = dirty_bytes = 0
    end_offset = first_dirty
    dirty: list[Segment] = []
    for segment in segments[: _settled(log, segments)]:
        if segment.next_offset <= first_dirty:
            clean_bytes += segment.size
            continue
        if _is_young(segment, log.config, now_ms):
            break
        clean = _bytes_below(segment, first_dirty)
        clean_bytes += clean
        dirty_bytes += segment.size - clean
        end_offset = segment.next_offset
        dirty.append(segment)
    overdue = _is_overdue(dirty, log.config, now_ms)
    return Cleanable(first_dirty, end_offset, clean_bytes, dirty_bytes, overdue)


def _valid_first_dirty(log: Log, offset: int) -> int:
    """A checkpoint from before a truncation, or none at all, makes the whole log dirty.

    Also what lies below the start of the log: until it is deleted, a restart may bring it back.
    """
    first = log.segments[0].base_offset if log.segments else log.start_offset
    if offset > log.end_offset:
        logger.warning(
            "%s ends at offset %d, below its cleaner checkpoint %d: all of it is dirty",
            log.directory,
            log.end_offset,
            offset,
        )
        return first
    return max(offset, first)


def _settled(log: Log, segments: tuple[Segment, ...]) -> int:
    """How many of the segments can no longer change nor be taken back. The active one is not among
    them.
    """
    unstable = log.producers.first_unstable_offset()
    limit = min(log.flushed_offset, log.high_watermark)
    limit = limit if unstable is None else min(limit, unstable)
    sealed = segments[:-1]
    return sum(segment.next_offset <= limit for segment in sealed)


def _is_young(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    lag_ms = config.min_compaction_lag_ms
    return lag_ms > 0 and segment.max_timestamp.timestamp > now_ms - lag_ms


def _bytes_below(segment: Segment, offset: int) -> int:
    if offset <= segment.base_offset:
        return 0
    extent = segment.locate(offset)
    return extent.position if extent else segment.size


def _is_overdue(dirty: list[Segment], config: LogConfig, now_ms: int) -> bool:
    if config.max_compaction_lag_ms == FOREVER_MS:
        return False
    limit = now_ms - config.max_compaction_lag_ms
    times = (segment.first_timestamp for segment in dirty)
    return any(time is not None and 0 <= time < limit for time in times)
