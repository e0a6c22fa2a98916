"""Segments that a log has dropped but whose files stay for a while, because readers may still hold
them.

A dropped segment is renamed at once: whatever happens next, no restart takes it for a part of the
log. Its files are unlinked later, or at the next start (storage/recovery.py).
"""

import threading

from kraftlog.clock import Clock
from storage.segment import Segment

DELETED_SUFFIX = ".deleted"


class RetiredSegments:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, Segment]] = []
        self._count = 0

    def add(self, segment: Segment) -> None:
        """Rename the files of a segment. The number keeps two of one base offset apart: a compacted
        segment may be compacted again before its predecessor is unlinked.
        """
        with self._lock:
            self._count += 1
            segment.change_suffix(f".{self._count}{DELETED_SUFFIX}")
            self._waiting.append((self._clock.monotonic_ms(), segment))

    def purge(self, delay_ms: int) -> int:
        """Unlink what was added `delay_ms` ago or earlier; returns how many segments remain."""
        due = self._clock.monotonic_ms() - delay_ms
        with self._lock:
            ripe = [segment for since, segment in self._waiting if since <= due]
            self._waiting = [(since, segment) for since, segment in self._waiting if since > due]
            remaining = len(self._waiting)
        for segment in ripe:
            segment.remove()
        return remaining

    def close(self) -> None:
        for _, segment in self._waiting:
            segment.close()
