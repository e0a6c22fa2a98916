"""A stream: micro-batch after micro-batch, each a range of offsets of each partition.

Spark keeps one reader in one process for a stream, and asks it where the log ends; the answer waits
on the brokers until there is something new, instead of asking again and again. `read` runs in the
tasks, on copies of the reader.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kraftlog.errors import UnknownTopicOrPartition
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


class _Begin(NamedTuple):
    instead_of: int | None
    """Where the last batch ended; None: there was none of this partition."""
    offset: int


class StreamReader(Travels, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._planner = Planner(options)
        self._target: Offsets | None = None
        """Where a run that takes what is available now ends."""
        self._latest: Offsets = {}
        self._topic_ids: dict[str, bytes] = {}
        """Of the topics that this run reads."""
        self._begins: dict[TopicPartition, _Begin] = {}
        """Where the next batch begins, if not where the last one ended."""
        self._last_batch: float | None = None
        self._is_held = False
        """Whether there was too little for a batch at the last look."""

    # -- where the stream is, on the driver

    def initialOffset(self) -> Json:  # noqa: N802
        return to_json(self._planner.starts(self._planner.partitions()))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        options = self._options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        return ReadAllAvailable() if options.max_bytes is None else ReadMaxBytes(options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        try:
            places = self._planner.partitions()
        except UnknownTopicOrPartition:
            # If it was read before, the first look tells that it is lost.
            places = self._planner.existing()
        self._target = {p: each.end for p, each in self._planner.bounds(places).items()}

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
        self._is_held = self._target is None and self._is_too_little(starts, ends)
        if self._is_held:
            return start
        taken = self._limited(starts, ends, limit)
        self._last_batch = time.monotonic()
        return to_json({p: _end(starts[p], taken[p], known.get(p)) for p in starts})

    def reportLatestOffset(self) -> Json | None:  # noqa: N802
        """What there was at the last look: the progress of the query shows the lag by it."""
        return to_json(self._latest) if self._latest else None

    def _look(self, known: Offsets) -> dict[TopicPartition, Ends]:
        """Start and end of every partition that there is, waiting for news if there is none."""
        places = self._planner.existing(known)
        gone = sorted(known.keys() - set(places))
        if gone:
            self._lost(f"{gone[0]} does not exist any more; it was read up to {known[gone[0]]}")
        seen = known | self._latest if self._is_held else known
        is_news = bool(set(places) - seen.keys())
        wait_ms = 0 if is_news or self._target is not None else self._wait_ms()
        if not places:
            time.sleep(wait_ms / 1000)
        return self._planner.bounds(places, seen, wait_ms)

    def _wait_ms(self) -> int:
        if not self._is_held:
            return WAIT_MS
        rest_ms = self._options.max_trigger_delay_ms - self._waited_ms()
        return max(0, min(WAIT_MS, int(rest_ms)))

    def _starts(self, known: Offsets, bounds: Mapping[TopicPartition, Ends]) -> Offsets:
        """Where the next batch begins."""
        ids = self._planner.topic_ids(bounds)
        before, self._topic_ids = self._topic_ids, self._topic_ids | ids
        starts: Offsets = {}
        for place, there in bounds.items():
            end, begin = known.get(place), self._begins.get(place)
            was, now = before.get(place.topic), ids.get(place.topic)
            is_same = None if was is None else was == now
            is_settled = begin is not None and begin.instead_of == end and is_same
            if begin is None or not is_settled or begin.offset > there.end:
                begin = _Begin(end, self._begin(place, end, there, is_same))
                self._begins[place] = begin
            starts[place] = begin.offset
        return starts

    def _begin(
        self, place: TopicPartition, end: int | None, there: Ends, is_same: bool | None
    ) -> int:
        """On from the end of the last batch, if the log still has that. `is_same`: whether the
        topic is the one that was read until now, if that is known.
        """
        if end is None:
            if there.start > 0:
                self._lost(f"the new partition {place} starts at {there.start} instead of 0")
            return there.start
        if is_same is False:
            self._lost(f"{place} was read up to {end}, and its topic was made anew since")
            return there.start
        if end > there.end:
            # Brokers do not tell an end that steps back, so a lower one is another log's.
            self._lost(f"{place} was read up to {end}, and now it ends at {there.end}")
            return there.end if is_same else there.start
        return end

    def _lost(self, message: str) -> None:
        data_lost(message, fail=self._options.fail_on_data_loss)

    def _is_too_little(self, starts: Offsets, ends: Offsets) -> bool:
        """Whether a batch shall wait for more records, or for its time."""
        least = self._options.min_offsets
        if least is None:
            return False
        available = sum(ends[place] - starts[place] for place in starts)
        return available < least and self._waited_ms() < self._options.max_trigger_delay_ms

    def _waited_ms(self) -> float:
        """Since the last batch; the first one of a run waits for nothing."""
        return inf if self._last_batch is None else (time.monotonic() - self._last_batch) * 1000

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
        if not self._topic_ids:
            self._topic_ids = self._planner.topic_ids(until)
        ranges = [self._range(place, known.get(place), until[place]) for place in until]
        return [RangePartition(each) for each in self._planner.split(ranges)]

    def _range(self, place: TopicPartition, known: int | None, until: int) -> Range:
        """What a batch has of a partition. Tasks find out what of it is gone by now."""
        begin = self._begins.get(place)
        if begin is not None and begin.instead_of == known:
            start = begin.offset
        else:
            # A batch of an earlier run. One that ends before its start is of a log made anew.
            start = 0 if known is None or known > until else known
        return Range(place, start, until, self._topic_ids.get(place.topic, b""))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if isinstance(partition, RangePartition):
            yield from read_range(self._options, partition.wanted, self._columns)

    def commit(self, end: Json) -> None:
        """Spark's checkpoint has the offsets; brokers have no groups to tell yet."""

    def stop(self) -> None:
        """The connection belongs to the process, and ends with it."""


def _end(start: int, taken: int, known: int | None) -> int:
    """Where a batch ends. Spark runs none that ends where the last one did: of a log made anew it
    takes one record less then.
    """
    end = start + taken
    return end - 1 if end == known and start < end else end
