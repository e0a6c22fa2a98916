"""Which segments have outlived retention.ms or retention.bytes. Whole segments, oldest first, never
the active one.
"""

from collections.abc import Iterable
from itertools import takewhile

from kraftlog.clock import Clock
from storage.log import Log
from storage.log_config import UNLIMITED, LogConfig
from storage.segment import Segment


def apply_retention(log: Log, clock: Clock) -> int:
    """Retire what has expired; returns the number of segments. Logs that are only compacted keep
    what is not below their start.
    """
    segments = log.segments
    count = _below(log, segments)
    if log.config.delete:
        count = max(
            count,
            _expired(log.config, segments, clock.wall_ms()),
            _oversized(log.config, segments, log.size),
        )
    count = min(count, _committed(log, segments), len(segments) - 1)
    if count > 0:
        log.drop_oldest(count)
    return max(count, 0)


def _below(log: Log, segments: tuple[Segment, ...]) -> int:
    """How many segments lie wholly below the start of the log."""
    return _leading(segment.next_offset <= log.start_offset for segment in segments)


def _expired(config: LogConfig, segments: tuple[Segment, ...], now_ms: int) -> int:
    if config.retention_ms == UNLIMITED:
        return 0
    return _leading(
        0 <= segment.max_timestamp.timestamp < now_ms - config.retention_ms for segment in segments
    )


def _oversized(config: LogConfig, segments: tuple[Segment, ...], log_bytes: int) -> int:
    """As many as can go while the rest still holds retention.bytes."""
    if config.retention_bytes == UNLIMITED:
        return 0
    excess = log_bytes - config.retention_bytes
    count = 0
    for segment in segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


def _committed(log: Log, segments: tuple[Segment, ...]) -> int:
    """What is not yet committed stays, however old its timestamps are."""
    return _leading(segment.next_offset <= log.high_watermark for segment in segments)


def _leading(verdicts: Iterable[bool]) -> int:
    return sum(1 for _ in takewhile(bool, verdicts))
