"""Which batches of a segment get an entry in its indexes, for when both are made anew."""

from collections.abc import Iterable
from typing import NamedTuple

from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import RecordBatch
from kraftlog.types import NO_TIMESTAMP
from storage.index import INT32_MAX, Entry


class MaxTimestamp(NamedTuple):
    """The largest timestamp of a segment and the last offset of the batch that brought it."""

    timestamp: int
    offset: int


class IndexEntries(NamedTuple):
    offsets: list[Entry]
    times: list[Entry]
    largest: MaxTimestamp


def index_entries(
    batches: Iterable[tuple[int, RecordBatch]], base_offset: int, interval_bytes: int
) -> IndexEntries:
    """The entries for the batches (position, batch) of a whole segment: one each `interval_bytes`,
    and one for the largest timestamp at the end. CorruptRecord if these cannot be its batches.
    """
    found = IndexEntries([], [], MaxTimestamp(NO_TIMESTAMP, base_offset))
    unindexed_bytes, expected = 0, base_offset
    for position, batch in batches:
        if batch.base_offset < expected or batch.last_offset - base_offset > INT32_MAX:
            raise CorruptRecord(
                f"offset {batch.base_offset} at byte {position}, where {expected} comes next"
            )
        if batch.max_timestamp > found.largest.timestamp:
            found = found._replace(largest=MaxTimestamp(batch.max_timestamp, batch.last_offset))
        if unindexed_bytes > interval_bytes:
            found.offsets.append((batch.last_offset, position))
            _add_time(found)
            unindexed_bytes = 0
        unindexed_bytes += batch.size
        expected = batch.next_offset
    _add_time(found)
    return found


def _add_time(found: IndexEntries) -> None:
    times, largest = found.times, found.largest
    if largest.timestamp > (times[-1][0] if times else NO_TIMESTAMP):
        times.append((largest.timestamp, largest.offset))
