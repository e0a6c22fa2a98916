"""Writing rows to topics, from a batch or a stream; `write` runs in Spark's tasks.

Every record is delivered at least once: a task that is run again, or a micro-batch that is repeated
after a failure, writes its rows again. Within a task nothing is repeated: the producer is
idempotent.
"""

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import compute
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kraftlog.delivery import Delivery
from kraftlog.errors import InvalidRecord
from kraftlog.producer import Producer
from spark_connector.options import SinkOptions
from spark_connector.schema import HEADERS, arrow_schema
from spark_connector.spread import Rows, encode, join, spread
from spark_connector.travel import Travels

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PARTITIONS_AT_ONCE = 8
"""Rows are gathered until there is a batch's worth for so many partitions."""
DELIVERIES_CHECKED = 64


@dataclass
class Written(WriterCommitMessage):
    """What a task has written."""

    rows: int


class BatchWriter(Travels, DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, schema: "StructType") -> None:
        self._options = options
        self._names = tuple(schema.fieldNames())

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return write_rows(self._options, self._names, iterator)


class StreamWriter(Travels, DataSourceStreamArrowWriter):
    """What a task has written is in the log: there is nothing to commit and nothing to abort."""

    def __init__(self, options: SinkOptions, schema: "StructType") -> None:
        self._options = options
        self._names = tuple(schema.fieldNames())

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return write_rows(self._options, self._names, iterator)


def write_rows(
    options: SinkOptions, names: tuple[str, ...], batches: "Iterator[pa.RecordBatch]"
) -> Written:
    writer = _Writer(options, names)
    for batch in batches:
        writer.add(batch)
    return Written(writer.finish())


class _Writer:
    """The rows of one task, until they are in the log."""

    def __init__(self, options: SinkOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._names = names
        self._waiting: dict[str, list[Rows]] = {}
        self._waiting_bytes = 0
        self._deliveries: list[Delivery] = []
        self._rows = 0
        self._turns: dict[int, Iterator[int]] = {}

    def add(self, batch: "pa.RecordBatch") -> None:
        for topic, rows in _by_topic(batch, self._names, self._options):
            self._waiting.setdefault(topic, []).append(rows)
            self._waiting_bytes += rows.nbytes
            self._rows += len(rows.values)
        if self._waiting_bytes >= PARTITIONS_AT_ONCE * self._options.client.batch_bytes:
            self._send_waiting()

    def finish(self) -> int:
        """Wait until everything is in the log; how many rows that were."""
        self._send_waiting()
        if self._deliveries:
            producer(self._options).flush()
        for delivery in self._deliveries:
            delivery.wait(None)  # the delivery timeout bounds it
        self._check(len(self._deliveries))
        return self._rows

    def _check(self, count: int) -> None:
        """Forget what is in the log; raise why something is not."""
        kept = []
        for delivery in self._deliveries[:count]:
            if not delivery.is_done:
                kept.append(delivery)
            elif delivery.error is not None:
                raise delivery.error
        self._deliveries[:count] = kept

    def _send_waiting(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        for topic, parts in waiting.items():
            self._send(topic, join(parts))
        if len(self._deliveries) >= DELIVERIES_CHECKED:
            self._check(DELIVERIES_CHECKED // 2)

    def _send(self, topic: str, rows: Rows) -> None:
        sender, client = producer(self._options), self._options.client
        partitions = len(sender.partitions_for(topic))
        for partition, part in spread(topic, rows, partitions, self._next(partitions)):
            now_ms = time.time_ns() // 1_000_000
            encoded = encode(
                part,
                timestamp=now_ms,
                batch_bytes=client.batch_bytes,
                compression=client.compression,
            )
            for batch in encoded:
                place = self._next(partitions) if partition is None else partition
                times = [now_ms] * batch.rows
                self._deliveries.append(sender.send_batch(topic, place, batch.data, times))

    def _next(self, partitions: int) -> int:
        """Rows that may go anywhere go to one partition after another, a batch at a time."""
        turns = self._turns.get(partitions)
        if turns is None:
            order = list(range(partitions))
            Random().shuffle(order)  # noqa: S311  spreads load, guards nothing
            turns = self._turns[partitions] = cycle(order)
        return next(turns)


# -- columns


def _by_topic(
    batch: "pa.RecordBatch", names: tuple[str, ...], options: SinkOptions
) -> "Iterator[tuple[str, Rows]]":
    columns = dict(zip(names, batch.columns, strict=True))
    rows = Rows(
        _plain(columns["value"]),
        _plain(columns["key"]) if "key" in columns else None,
        _plain_headers(columns[HEADERS])
        if HEADERS in columns and options.include_headers
        else None,
        columns.get("partition"),
    )
    if not batch.num_rows:
        return
    if options.topic is not None:
        yield options.topic, rows
        return
    topics = columns["topic"]
    if topics.null_count:
        raise InvalidRecord(
            "a row has no topic: its column topic is null",
            hint="fill the column, or name the topic with the option topic",
        )
    names_used = compute.unique(topics).to_pylist()
    for topic in names_used:
        if len(names_used) == 1:
            yield topic, rows
        else:
            yield topic, rows.take(compute.indices_nonzero(compute.equal(topics, topic)))


def _plain(column: "pa.Array") -> "pa.Array":
    """With 32-bit offsets; Spark can be told to use longer ones."""
    kind = column.type
    if pa.types.is_large_string(kind):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_large_binary(kind) else column


def _plain_headers(column: "pa.ListArray") -> "pa.ListArray":
    plain = arrow_schema((HEADERS,)).field(HEADERS).type
    return column if column.type.equals(plain) else column.cast(plain)


# -- the producer of this process

_lock = threading.Lock()
_producers: dict[tuple[int, SinkOptions], Producer[bytes, bytes]] = {}


def producer(options: SinkOptions) -> Producer[bytes, bytes]:
    """One for all tasks with these options; a forked process makes its own."""
    key = (os.getpid(), options)
    with _lock:
        found = _producers.get(key)
        if found is None or not found.is_usable:
            config = dict(options.config)
            found = _producers[key] = Producer(options.bootstrap, config=config)
        return found
