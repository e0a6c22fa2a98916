"""From a range of offsets to Arrow batches; runs in Spark's tasks."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kraftlog.arrow import arrow_columns, to_arrow
from kraftlog.errors import KraftError, OffsetOutOfRange, RecordTooLarge
from kraftlog.record_batch import RecordBatch, read_batches
from kraftlog.types import TimestampType
from spark_connector.client import cluster
from spark_connector.fetch import RangeFetch
from spark_connector.loss import TopicGone, data_lost
from spark_connector.offsets import Range
from spark_connector.options import SourceOptions
from spark_connector.schema import project

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGE_BYTES = 1 << 20
ROWS_WANTED = 20_000
BYTES_WANTED = 4 << 20
"""A batch for Spark has at least so many rows or bytes, if there are so many."""
AHEAD = 3
"""Messages that are fetched while earlier ones are decoded."""


def read_range(
    options: SourceOptions, wanted: Range, columns: tuple[str, ...]
) -> "Iterator[pa.RecordBatch]":
    """All records of the range. What is gone is an error, or left out if the user allows it."""
    gatherer = _Gatherer(options, wanted, columns)
    while wanted.size > 0:
        try:
            yield from gatherer.read(wanted)
            break
        except OffsetOutOfRange as error:
            wanted = _skip_lost(options, gatherer.rest(wanted), error)
        except TopicGone as error:
            data_lost(error.message, fail=options.fail_on_data_loss)
            break
    yield from gatherer.last()


def _skip_lost(options: SourceOptions, wanted: Range, error: KraftError) -> Range:
    """What there still is of a range whose beginning or end has gone."""
    there = cluster(options.client.common).ends([wanted.place])[wanted.place]
    start, end = max(wanted.start, there.start), min(wanted.end, there.end)
    if (start, end) == (wanted.start, wanted.end):
        raise error
    message = f"{wanted} were to be read, and there are {there.start} to {there.end}"
    data_lost(message, fail=options.fail_on_data_loss)
    return wanted._replace(start=start, end=max(start, end))


class _Gatherer:
    def __init__(self, options: SourceOptions, wanted: Range, columns: tuple[str, ...]) -> None:
        self._options = options
        self._place = wanted.place
        self._columns = columns
        self._gathered = arrow_columns()
        self._kind = TimestampType.CREATE
        self._position = wanted.start

    def rest(self, wanted: Range) -> Range:
        return wanted._replace(start=max(self._position, wanted.start))

    def read(self, wanted: Range) -> "Iterator[pa.RecordBatch]":
        """What makes full batches; the rest is kept until there is more of it."""
        # The first batch may reach back to before what is wanted.
        self._position = max(self._position, wanted.start)
        fetch = _fetch(self._options, wanted)
        messages = Prefetch(fetch, AHEAD, fetch.cancel)
        try:
            for message in messages:
                for batch in read_batches(message):
                    yield from self._add(batch, wanted)
        finally:
            messages.close()

    def last(self) -> "Iterator[pa.RecordBatch]":
        if self._gathered.rows:
            yield self._take()

    def _add(self, batch: RecordBatch, wanted: Range) -> "Iterator[pa.RecordBatch]":
        if self._options.client.check_crcs:
            batch.check_crc()
        if batch.timestamp_type is not self._kind:
            yield from self.last()
        self._kind = batch.timestamp_type
        try:
            batch.to_arrow_columns(self._gathered, self._position, wanted.end)
        except RecordTooLarge:
            # Columns have an end; one batch alone must fit.
            if not self._gathered.rows:
                raise
            yield self._take()
            batch.to_arrow_columns(self._gathered, self._position, wanted.end)
        self._position = max(self._position, min(batch.next_offset, wanted.end))
        if self._is_enough:
            yield self._take()

    @property
    def _is_enough(self) -> bool:
        return self._gathered.rows >= ROWS_WANTED or self._gathered.data_bytes >= BYTES_WANTED

    def _take(self) -> "pa.RecordBatch":
        return project(to_arrow(self._gathered.finish()), self._columns, self._place, self._kind)


def _fetch(options: SourceOptions, wanted: Range) -> RangeFetch:
    limit = options.client.limits.partition_max_bytes
    return RangeFetch(
        cluster(options.client.common),
        wanted,
        message_bytes=min(limit, MESSAGE_BYTES),
        patience_ms=options.patience_ms,
    )


class Prefetch:
    """Takes from an iterator in a thread of its own, a few elements ahead of the reader."""

    def __init__(
        self, source: Iterable[bytes], ahead: int, call_off: Callable[[], None] = lambda: None
    ) -> None:
        self._source = source
        self._call_off = call_off
        self._queue: queue.Queue[bytes | BaseException | None] = queue.Queue(ahead)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for element in self._source:
                if not self._put(element):
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001  the reader gets it, whatever it is
            self._put(error)

    def _put(self, element: bytes | BaseException | None) -> bool:
        while not self._closed.is_set():
            try:
                self._queue.put(element, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[bytes]:
        while (element := self._queue.get()) is not None:
            if isinstance(element, BaseException):
                raise element
            yield element

    def close(self) -> None:
        """Nothing more is wanted. What is being fetched now is called off."""
        self._closed.set()
        self._call_off()

    def join(self) -> None:
        self._thread.join()
