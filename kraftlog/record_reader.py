"""From fetched batches to what a caller gets: records as objects, or whole batches as columns."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, cast

from kraftlog.config_key import shorten
from kraftlog.errors import ConfigError, KraftError, NotYetSupported, SerializationError
from kraftlog.fetch_buffer import FetchBuffer, Taken
from kraftlog.logs import client_logger
from kraftlog.record_batch import Record, RecordBatch
from kraftlog.records import ConsumerRecord
from kraftlog.serializers import Deserializer, DeserializerChoice, find_deserializer
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

logger = client_logger(__name__)

OnError = Literal["raise", "skip"]
"""What becomes of a record that does not deserialize."""


def check_on_error(choice: object) -> None:
    if choice == "dlq":
        raise NotYetSupported(
            "on_error = 'dlq' of a consumer needs dead letter topics", hint='use "raise" or "skip"'
        )
    if choice not in ("raise", "skip"):
        raise ConfigError(
            f"on_error = {shorten(choice)} is not known", hint='use "raise" or "skip"'
        )


class RecordBatchView:
    """One fetched batch of a partition, as bytes until somebody asks for more."""

    __slots__ = ("_batch", "_from_offset", "partition", "topic")

    def __init__(self, place: TopicPartition, batch: RecordBatch, from_offset: int) -> None:
        self.topic = place.topic
        self.partition = place.partition
        self._batch = batch
        self._from_offset = from_offset

    @property
    def first_offset(self) -> int:
        """What lies before was read already, or lies before where reading began."""
        return max(self._batch.base_offset, self._from_offset)

    @property
    def next_offset(self) -> int:
        return self._batch.next_offset

    @property
    def count_max(self) -> int:
        """The records of the whole batch; fewer may lie at or behind first_offset."""
        return self._batch.count

    @property
    def size_bytes(self) -> int:
        return self._batch.size

    def records(self) -> list[ConsumerRecord[bytes, bytes]]:
        prefix = (self.topic, self.partition)
        rows = self._batch.rows(ConsumerRecord, prefix, self._from_offset)
        return cast("list[ConsumerRecord[bytes, bytes]]", rows)

    def to_arrow(self) -> "pa.RecordBatch":
        """offset, timestamp, key, value, headers; without an object per record."""
        from kraftlog.arrow import arrow_columns, to_arrow  # noqa: PLC0415  pyarrow is optional

        columns = arrow_columns()
        self._batch.to_arrow_columns(columns, from_offset=self._from_offset)
        return to_arrow(columns.finish())

    def __repr__(self) -> str:
        offsets = f"{self.first_offset}..{self.next_offset - 1}"
        return f"<RecordBatchView {self.topic}-{self.partition} {offsets}>"


class _Open(Generic[K, V]):
    """A batch that is being read: its records, and how many the caller has."""

    __slots__ = ("error", "read", "rows", "taken")

    def __init__(
        self, taken: Taken, rows: "list[ConsumerRecord[K, V]]", error: KraftError | None
    ) -> None:
        self.taken = taken
        self.rows = rows
        self.error = error
        """What is wrong with the record behind the rows."""
        self.read = 0

    @property
    def position(self) -> int:
        if self.read < len(self.rows):
            return self.rows[self.read].offset
        if self.error is None:
            return self.taken.batch.next_offset
        return self.rows[-1].offset + 1 if self.rows else self.taken.position


class RecordReader(Generic[K, V]):
    """Not thread-safe: a consumer has one caller."""

    def __init__(
        self,
        buffer: FetchBuffer,
        *,
        key_deserializer: DeserializerChoice[K],
        value_deserializer: DeserializerChoice[V],
        on_error: OnError,
        check_crcs: bool,
    ) -> None:
        check_on_error(on_error)
        self._buffer = buffer
        self._on_error = on_error
        self._check_crcs = check_crcs
        self._of_keys = find_deserializer(key_deserializer, "key_deserializer")
        self._of_values = find_deserializer(value_deserializer, "value_deserializer")
        self._open: _Open[K, V] | None = None
        self._error: KraftError | None = None
        """Found behind the records that were returned last."""

    def forget_error(self) -> None:
        """The caller went elsewhere: what was wrong there no longer matters."""
        self._error = None

    def read(self, max_records: int) -> "list[ConsumerRecord[K, V]]":
        """What is there already, of as many batches as it takes."""
        found: list[ConsumerRecord[K, V]] = []
        error, self._error = self._error, None
        if error is not None:
            raise error
        while len(found) < max_records:
            try:
                opened = self._opened()
            except KraftError as failure:
                if not found:
                    raise
                self._error = failure  # first what was read before it
                break
            if opened is None:
                break
            found += self._read_from(opened, max_records - len(found))
        return found

    def _read_from(self, opened: "_Open[K, V]", wanted: int) -> "list[ConsumerRecord[K, V]]":
        part = opened.rows[opened.read : opened.read + wanted]
        opened.read += len(part)
        self.note_position()
        return part

    def current(self) -> "_Open[K, V] | None":
        """The batch to walk through next, if there is one with a record in it."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        while (opened := self._opened()) is not None and opened.read == len(opened.rows):
            if opened.error is None:
                self.note_position()
        return opened

    def walk(self, opened: "_Open[K, V]") -> "Iterator[ConsumerRecord[K, V]]":
        """The records of a batch that were not read yet; it ends early if the caller goes elsewhere
        in between. Each counts as read when it is handed out.
        """
        for record in opened.rows[opened.read :]:
            opened.read += 1
            yield record
            if self._open is not opened:
                return
        self.note_position()

    def note_position(self) -> None:
        """Tell the buffer how far the open batch has been read, and close it at its end."""
        opened = self._open
        if opened is None:
            return
        self._buffer.has_read(opened.taken, opened.position)
        if opened.read == len(opened.rows) and opened.error is None:
            self._open = None

    def _opened(self) -> "_Open[K, V] | None":
        """The batch to read from, if there is one."""
        opened = self._open
        if opened is not None and not self._buffer.is_current(opened.taken):
            self.put_back()
            opened = None
        if opened is None:
            opened = self._open = self._open_next()
        elif opened.error is not None and opened.read == len(opened.rows):
            raise opened.error
        return opened

    def _open_next(self) -> "_Open[K, V] | None":
        taken = self._buffer.take()
        if taken is None:
            return None
        try:
            if self._check_crcs:
                taken.batch.check_crc()
            return self._decode(taken)
        except KraftError:
            self._buffer.give_back(taken, taken.position)
            raise

    def _decode(self, taken: Taken) -> "_Open[K, V]":
        place, batch = taken.state.place, taken.batch
        prefix = (place.topic, place.partition)
        if self._of_keys is None and self._of_values is None:
            rows = batch.rows(ConsumerRecord, prefix, taken.position)
            return _Open(taken, cast("list[ConsumerRecord[K, V]]", rows), None)
        records = batch.rows(Record, (), taken.position)
        decoded, error = self._deserialize(place, records)
        return _Open(taken, decoded, error)

    def _deserialize(
        self, place: TopicPartition, records: list[Record]
    ) -> "tuple[list[ConsumerRecord[K, V]], KraftError | None]":
        if not records:
            return [], None
        try:
            return list(self._rows(place, records)), None
        except Exception as error:  # noqa: BLE001  it is the user's own function
            logger.debug("a record of %s does not deserialize: %s", place, error)
        rows: list[ConsumerRecord[K, V]] = []
        for record in records:
            try:
                rows.extend(self._rows(place, [record]))
            except Exception as error:  # noqa: BLE001  as above
                failure = _not_deserialized(place, record, error)
                if self._on_error == "raise":
                    return rows, failure
                logger.warning("left out: %s", failure)
        return rows, None

    def _rows(
        self, place: TopicPartition, records: list[Record]
    ) -> "Iterator[ConsumerRecord[K, V]]":
        offsets, timestamps, keys, values, headers = zip(*records, strict=True)
        columns = zip(
            repeat(place.topic),
            repeat(place.partition),
            offsets,
            timestamps,
            _apply(self._of_keys, keys),
            _apply(self._of_values, values),
            headers,
            strict=False,
        )
        make = cast(
            "Callable[[object], ConsumerRecord[K, V]]", partial(tuple.__new__, ConsumerRecord)
        )
        return map(make, columns)

    def read_batch(self) -> RecordBatchView | None:
        """The next batch as it is; what of it was read as records is left out."""
        self.put_back()
        while (taken := self._buffer.take()) is not None:
            try:
                if self._check_crcs:
                    taken.batch.check_crc()
            except KraftError:
                self._buffer.give_back(taken, taken.position)
                raise
            self._buffer.has_read(taken, taken.batch.next_offset)
            if not taken.batch.is_control:
                return RecordBatchView(taken.state.place, taken.batch, taken.position)
        return None

    def put_back(self) -> None:
        """Leave the batch that is being read, to come back to it."""
        opened, self._open = self._open, None
        if opened is not None:
            self._buffer.give_back(opened.taken, opened.position)


def _apply(
    deserializer: Deserializer[T] | None, column: tuple[bytes | None, ...]
) -> "Iterator[T | None]":
    if deserializer is None:
        return cast("Iterator[T | None]", iter(column))
    return (None if data is None else deserializer(data) for data in column)


def _not_deserialized(
    place: TopicPartition, record: Record, error: Exception
) -> SerializationError:
    failure = SerializationError(
        f"record {record.offset} of {place}: {type(error).__name__}: {error}",
        hint=f'seek to {record.offset + 1} to go on behind it, or use on_error="skip"',
    )
    failure.__cause__ = error
    return failure
