"""From what a caller sends to what the accumulator takes: bytes, headers, timestamps."""

import time
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Generic, TypeVar, cast

from kraftlog.accumulator import Accumulator, Columns
from kraftlog.config_key import shorten
from kraftlog.delivery import DeliveryFuture, OnDelivery
from kraftlog.errors import InvalidRequest
from kraftlog.records import (
    HeadersLike,
    Record,
    Timestamp,
    to_headers,
    to_timestamp_ms,
)
from kraftlog.serializers import Serializer, SerializerChoice, find_serializer, serialize

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_PLAIN = {bytes, type(None)}
_NONE = {type(None)}


class Intake(Generic[K, V]):
    def __init__(
        self,
        accumulator: Accumulator,
        key_serializer: SerializerChoice[K],
        value_serializer: SerializerChoice[V],
    ) -> None:
        self._accumulator = accumulator
        self._key_serializer = find_serializer(key_serializer, "key_serializer")
        self._value_serializer = find_serializer(value_serializer, "value_serializer")

    def offer(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        *,
        headers: HeadersLike = (),
        partition: int | None = None,
        timestamp: Timestamp | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        """Append a record, or raise TopicWanted or BufferFull, and then nothing has happened."""
        serializer = self._value_serializer
        if value is None or (serializer is None and value.__class__ is bytes):
            value_bytes = cast("bytes | None", value)
        else:
            value_bytes = serialize(serializer, value, f"value for {topic}")
        serializer_of_key = self._key_serializer
        if key is None or (serializer_of_key is None and key.__class__ is bytes):
            key_bytes = cast("bytes | None", key)
        else:
            key_bytes = serialize(serializer_of_key, key, f"key for {topic}")
        future = self._accumulator.append(
            topic,
            value_bytes,
            key_bytes,
            timestamp=_now_ms() if timestamp is None else to_timestamp_ms(timestamp),
            headers=to_headers(headers) if headers else (),
            partition=partition,
        )
        if on_delivery is not None:
            future.report_to(on_delivery)
        return future

    def columns(self, topic: str, records: Iterable[Record[K, V] | V]) -> Columns:
        """Many records as columns. What is no Record is a value."""
        rows = records if isinstance(records, list | tuple) else list(records)
        kinds = set(map(type, rows))
        if not rows:
            return Columns((), ())
        if Record not in kinds:
            values = self._values(topic, cast("Sequence[V | None]", rows))
            return Columns(values, _now_ms())
        if kinds != {Record}:
            rows = [row if isinstance(row, Record) else Record(row) for row in rows]
        return self._from_records(topic, cast("Sequence[Record[K, V]]", rows))

    def _from_records(self, topic: str, rows: "Sequence[Record[K, V]]") -> Columns:
        # Column by column: zip(*rows) would jump about in memory, and take three times as long. And
        # the columns that are mostly empty are looked at before they are made.
        now_ms = _now_ms()
        columns = Columns(self._values(topic, [row[0] for row in rows]), now_ms)
        if not _all_none(rows, 1):
            keys = [row[1] for row in rows]
            columns.keys = _serialize_all(self._key_serializer, keys, f"key for {topic}")
        if any(map(itemgetter(2), rows)):
            columns.headers = [to_headers(row[2]) if row[2] else () for row in rows]
        if not _all_none(rows, 3):
            columns.partitions = [row[3] for row in rows]
        if not _all_none(rows, 4):
            columns.timestamps = [
                now_ms if row[4] is None else to_timestamp_ms(row[4]) for row in rows
            ]
        return columns

    def _values(self, topic: str, values: "Sequence[V | None]") -> Sequence[bytes | None]:
        return _serialize_all(self._value_serializer, values, f"value for {topic}")


def check_topic(topic: object) -> None:
    if not isinstance(topic, str) or not topic:
        raise InvalidRequest(f"{shorten(topic)} is no topic", hint="give its name, a str")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _all_none(rows: Sequence[tuple[object, ...]], field: int) -> bool:
    # Mostly all are None or none is, and then the first tells.
    return rows[0][field] is None and set(map(type, map(itemgetter(field), rows))) == _NONE


def _serialize_all(
    serializer: Serializer[T] | None, column: Sequence[T | None], what: str
) -> Sequence[bytes | None]:
    if serializer is None and set(map(type, column)) <= _PLAIN:
        return cast("Sequence[bytes | None]", column)
    return [None if each is None else serialize(serializer, each, what) for each in column]
