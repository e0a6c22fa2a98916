"""A stream: micro-batch after micro-batch, each a range of offsets of each partition.

Spark keeps one reader in one process for a stream, and asks it where the log ends; the answer waits
on the brokers until there is something new, instead of asking again and again. `read` runs in the
tasks, on copies of the reader.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kraftlog.types import TopicPartition
from spark_connector.batch import RangePartition
from spark_connector.client import Ends
from spark_connector.loss import data_lost
from spark_connector.offsets import Json, Offsets, Range, from_json, share, share_bytes, to_json
from spark_connector.options import SourceOptions
from spark_connector.plan import Planner
from spark_connector.rows import read_range
from spark_connector.travel import Travels

if TYPE_CHECKING:
    import pyarrow as pa

WAIT_MS = 500
"""How long one look for news may take; Spark does not notice a stop in between."""


class StreamReader(Travels, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._planner = Planner(options)
        self._target: Offsets | None = None
        """Where a run that takes what is available now ends."""
        self._latest: Offsets = {}
        self._last_batch = time.monotonic()

    # -- where the stream is, on the driver

    def initialOffset(self) -> Json:  # noqa: N802
        return to_json(self._planner.starts(self._planner.partitions()))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        options = self._options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        return ReadAllAvailable() if options.max_bytes is None else ReadMaxBytes(options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        bounds = self._planner.bounds(self._planner.partitions())
        self._target = {place: each.end for place, each in bounds.items()}

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # noqa: N802
        known = from_json(start)
        bounds = self._look(known)
        starts = self._starts(known, bounds)
        ends = {place: max(bounds[place].end, starts[place]) for place in starts}
        self._latest = dict(ends)
        if self._target is not None:
            target = self._target
            ends = {
                place: max(min(end, target.get(place, 0)), starts[place])
                for place, end in ends.items()
            }
        elif self._is_too_little(starts, ends):
            return start
        taken = self._limited(starts, ends, limit)
        self._last_batch = time.monotonic()
        return to_json({place: starts[place] + taken[place] for place in starts})

    def reportLatestOffset(self) -> Json | None:  # noqa: N802
        """What there was at the last look: the progress of the query shows the lag by it."""
        return to_json(self._latest) if self._latest else None

    def _look(self, known: Offsets) -> dict[TopicPartition, Ends]:
        """Start and end of every partition that there is, waiting for news if there is none."""
        places = self._planner.existing(known)
        gone = sorted(known.keys() - set(places))
        if gone:
            self._lost(f"{gone[0]} does not exist any more; it was read up to {known[gone[0]]}")
        wait_ms = WAIT_MS if self._target is None and not set(places) - known.keys() else 0
        return self._planner.bounds(places, known, wait_ms)

    def _starts(self, known: Offsets, bounds: Mapping[TopicPartition, Ends]) -> Offsets:
        """Where the next batch begins; a new partition begins with its first record."""
        starts: Offsets = {}
        for place, there in bounds.items():
            start = starts[place] = known.get(place, there.start)
            # Brokers do not tell an end that steps back, so a lower one is another log's.
            if start > there.end:
                self._lost(f"{place} was read up to {start}, and now it ends at {there.end}")
                starts[place] = there.end
        return starts

    def _lost(self, message: str) -> None:
        data_lost(message, fail=self._options.fail_on_data_loss)

    def _is_too_little(self, starts: Offsets, ends: Offsets) -> bool:
        """Whether a batch shall wait for more records, or for its time."""
        least = self._options.min_offsets
        if least is None:
            return False
        waited_ms = (time.monotonic() - self._last_batch) * 1000
        available = sum(ends[place] - starts[place] for place in starts)
        return available < least and waited_ms < self._options.max_trigger_delay_ms

    def _limited(self, starts: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
        """How many records of each partition the next batch takes."""
        rows = {place: ends[place] - starts[place] for place in starts}
        if isinstance(limit, ReadAllAvailable):
            return rows
        max_bytes = self._options.max_bytes
        if max_bytes is not None:
            ranges = [Range(place, starts[place], ends[place]) for place in starts]
            rows = share_bytes(rows, self._planner.sizes(ranges), max_bytes)
        return share(rows, limit.max_rows) if isinstance(limit, ReadMaxRows) else rows

    # -- one micro-batch

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        known, until = from_json(start), from_json(end)
        new = [place for place in until if place not in known]
        known |= {place: bounds.start for place, bounds in self._planner.bounds(new).items()}
        ranges = [Range(place, known[place], until[place]) for place in until]
        return [RangePartition(each) for each in self._planner.split(ranges)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if isinstance(partition, RangePartition):
            yield from read_range(self._options, partition.wanted, self._columns)

    def commit(self, end: Json) -> None:
        """Spark's checkpoint has the offsets; brokers have no groups to tell yet."""

    def stop(self) -> None:
        """The connection belongs to the process, and ends with it."""
