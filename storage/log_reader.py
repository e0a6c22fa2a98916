"""Reading a log by offset and by time. Takes no lock: it works on one tuple of segments, which is
never changed.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from kraftlog.errors import LogDamaged, StorageError
from storage.files import File
from storage.segment import Extent, Segment

READ_HINTS_MAX = 64
NO_DESCRIPTOR = -1

_base_offset = attrgetter("base_offset")


class LogSlice(NamedTuple):
    """Whole batches as a region of a file. `next_offset` follows the last of them."""

    file: File | None
    position: int
    length: int
    next_offset: int

    def read(self) -> bytes:
        try:
            return self.file.pread(self.length, self.position) if self.file else b""
        except OSError as error:
            raise _unreadable(error) from error

    def pinned_fd(self) -> AbstractContextManager[int]:
        """The descriptor behind (position, length), kept open meanwhile: for a copy inside the
        kernel.
        """
        return self.file.pinned_fd() if self.file else nullcontext(NO_DESCRIPTOR)


def _unreadable(error: OSError) -> StorageError:
    return StorageError(f"cannot read: {error}", hint="see that the disk is mounted and sound")


@dataclass(frozen=True, slots=True)
class TimestampedOffset:
    offset: int
    timestamp: int
    leader_epoch: int


class _Hint(NamedTuple):
    """Where a batch begins, and the batch itself if it was there and looked at."""

    segment: Segment
    position: int
    batch: Extent | None


_Hints = OrderedDict[int, _Hint]


class LogReader:
    """Finds regions of whole batches. Remembers where recent reads ended: the next read of that
    reader starts there.
    """

    def __init__(self) -> None:
        self._hints: _Hints = OrderedDict()

    def forget(self) -> None:
        """Positions have changed: the log was cut, or segments were replaced."""
        self._hints = OrderedDict()

    def slice(
        self, segments: Sequence[Segment], offset: int, max_bytes: int, limit: int
    ) -> LogSlice:
        """Batches from the one that holds `offset`, about `max_bytes` of them but at least one,
        none at or past `limit`.
        """
        # Taken before the log is looked at: what a cut makes wrong meanwhile goes to a dead table.
        hints = self._hints
        try:
            segment, first = _locate(hints, segments, offset)
            cap = segment.size
            if limit < segment.next_offset:
                beyond = segment.locate(limit)
                cap = beyond.position if beyond else cap
            if first.position >= cap:
                return LogSlice(None, 0, 0, first.base_offset)
            end, next_offset, following = segment.boundary(
                first, min(cap, first.position + max_bytes)
            )
        except OSError as error:
            raise _unreadable(error) from error
        hints[next_offset] = _Hint(segment, end, following)
        if len(hints) > READ_HINTS_MAX:
            hints.popitem(last=False)
        return LogSlice(segment.log, first.position, end - first.position, next_offset)


def _locate(hints: _Hints, segments: Sequence[Segment], offset: int) -> tuple[Segment, Extent]:
    """The segment and the batch that hold `offset`."""
    hint = hints.pop(offset, None)
    # A hint at the end of its segment leads to the next one, or to what was appended since.
    if hint is not None and hint.position < hint.segment.size:
        return hint.segment, hint.batch or next(hint.segment.extents(hint.position))
    segment = segments[floor_index(segments, offset)]
    found = segment.locate(offset)
    if found is None:
        raise LogDamaged(
            f"{segment.log.path} ends before offset {offset}, the next segment begins after it",
            hint="a segment is missing: restore it, or let this replica copy the log anew",
        )
    return segment, found


def floor_index(segments: Sequence[Segment], offset: int) -> int:
    """Index of the segment that would hold `offset`; -1 if all begin after it."""
    return bisect_right(segments, offset, key=_base_offset) - 1


def first_at_time(
    segments: Sequence[Segment], timestamp: int, from_offset: int
) -> TimestampedOffset | None:
    """The first record at or after `from_offset` whose timestamp is `timestamp` or later."""
    for segment in segments[max(0, floor_index(segments, from_offset)) :]:
        try:
            is_older = segment.max_timestamp.timestamp < timestamp
            found = None if is_older else segment.first_at_time(timestamp, from_offset)
        except OSError as error:
            raise _unreadable(error) from error
        if found:
            record, leader_epoch = found
            return TimestampedOffset(record.offset, record.timestamp, leader_epoch)
    return None


def at_max_timestamp(segments: Sequence[Segment], from_offset: int) -> TimestampedOffset | None:
    """The first record with the largest timestamp of all."""
    try:
        largest = max((segment.max_timestamp.timestamp for segment in segments), default=-1)
    except OSError as error:
        raise _unreadable(error) from error
    return first_at_time(segments, largest, from_offset) if largest >= 0 else None
