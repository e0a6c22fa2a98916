"""What compaction leaves of one batch.

Of each key the last record stays. A tombstone, a record without a value, says that its key is gone;
it stays too, long enough for every reader to see it: when it is first cleaned its batch gets a
*delete horizon*, delete.retention.ms from then (in the place of the base timestamp, attribute bit
6), and after that time it goes. By then no older record of its key is left, because the pass that
set the horizon had the tombstone in its map.

Offsets never change. A batch keeps its first and last offset whatever goes from inside it, and one
that has nothing left is dropped, unless it is the last of its producer: its sequence numbers are
needed to tell a retry. Then the header stays, without records.

Transactions: control batches stay as they are. What a transaction wrote may have been aborted, so
it replaces nothing and is only dropped when something that is certain replaces it; its tombstones
stay.
"""

from collections.abc import Callable

from kraftlog._codec_types import Retained
from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import RecordBatch
from kraftlog.types import TimestampType
from storage.offset_map import OffsetMap

HORIZON_MS_MAX = 2**62

LastOffset = Callable[[int], int | None]


class BatchFilter:
    def __init__(
        self,
        offset_map: OffsetMap,
        covered: range,
        *,
        now_ms: int,
        delete_retention_ms: int,
        last_offset: LastOffset,
    ) -> None:
        """The map has the keys of the offsets in `covered`; `last_offset` tells where a producer's
        last batch ends.
        """
        self._map = offset_map
        self._covered = covered
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, HORIZON_MS_MAX)
        self._last_offset = last_offset

    def apply(self, batch: RecordBatch) -> RecordBatch | None:
        """The batch itself if all of it stays, another in its place, or None if nothing has to."""
        # What comes after the map is not touched: the next pass begins with it.
        if batch.next_offset > self._covered.stop or batch.is_control:
            return batch
        if not batch.count:
            return self._without_records(batch)
        kept = self._map.retain(batch, drop_tombstones=self._drops_tombstones(batch))
        if not kept.rows:
            return self._without_records(batch)
        sets_horizon = self._sets_horizon(batch, kept)
        if kept.rows == batch.count and not sets_horizon:
            return batch
        return _rebuilt(batch, kept, self._horizon_ms if sets_horizon else batch.delete_horizon_ms)

    def _without_records(self, batch: RecordBatch) -> RecordBatch | None:
        if not batch.has_producer or self._last_offset(batch.producer_id) != batch.last_offset:
            return None
        return emptied(batch)

    def _drops_tombstones(self, batch: RecordBatch) -> bool:
        horizon = batch.delete_horizon_ms
        return horizon is not None and horizon <= self._now_ms and not batch.is_transactional

    def _sets_horizon(self, batch: RecordBatch, kept: Retained) -> bool:
        is_new = batch.delete_horizon_ms is None and not batch.is_transactional
        # A tombstone before the map has a horizon already. Should it have none, because the caller
        # took for clean what is not, older records of its key may be left: it must stay.
        return is_new and kept.tombstones > 0 and batch.base_offset >= self._covered.start


def emptied(batch: RecordBatch) -> RecordBatch:
    """The header of a batch: its offsets, its producer and its newest time, but no records."""
    if not batch.count:
        return batch
    return RecordBatch(batch.rebuild(b"", 0, max_timestamp=batch.max_timestamp))


def _rebuilt(batch: RecordBatch, kept: Retained, horizon_ms: int | None) -> RecordBatch:
    newest = batch.max_timestamp
    if batch.timestamp_type is TimestampType.CREATE:
        newest = batch.base_timestamp + kept.max_timestamp_delta
    try:
        data = batch.rebuild(
            kept.data, kept.rows, max_timestamp=newest, delete_horizon_ms=horizon_ms
        )
    except (CorruptRecord, OverflowError):
        # A timestamp so far off that it has no delta to the horizon: do without, and keep the
        # tombstones.
        data = batch.rebuild(kept.data, kept.rows, max_timestamp=newest)
    return RecordBatch(data)
