"""Kafka's record batch, version 2: one format for the wire and the disk.

    offset  field                     offset  field
    0       base offset        i64    27      base timestamp      i64
    8       batch length       i32    35      max timestamp       i64
    12      leader epoch       i32    43      producer id         i64
    16      magic (2)          i8     51      producer epoch      i16
    17      crc                u32    53      base sequence       i32
    21      attributes         i16    57      record count        i32
    23      last offset delta  i32    61      records, maybe compressed

The batch length counts what follows it. The CRC-32C covers everything from the attributes on, so
that a broker can set base offset and leader epoch without touching the rest. Attributes: bits 0-2
compression, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon (which then stands in
the base timestamp); the others must be 0.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from crc32c import crc32c

from kraftlog import _codec
from kraftlog._batch_encode import (
    BatchOptions,
    encode_batch,
    encode_columns,
    encode_section,
    encode_values,
    patch_append_time,
    patch_offsets,
)
from kraftlog._batch_format import (
    APPEND_TIME_BIT,
    BATCH_BYTES_MAX,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    KNOWN_ATTRIBUTES,
    LENGTH,
    LENGTH_POSITION,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_BIT,
)
from kraftlog._codec_types import INT32_MAX, INT64_MAX, RECORD_BYTES_MIN, Headers, Record
from kraftlog.compression import DECOMPRESSED_BYTES_MAX, decompress
from kraftlog.errors import CorruptRecord, InvalidRecord, InvalidTimestamp
from kraftlog.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Buffer,
    Compression,
    TimestampType,
)

T = TypeVar("T")

__all__ = [
    "BATCH_BYTES_MAX",
    "HEADER_BYTES",
    "LENGTH_PREFIX_BYTES",
    "MAGIC",
    "BatchOptions",
    "Headers",
    "Record",
    "RecordBatch",
    "Timestamps",
    "encode_batch",
    "encode_columns",
    "encode_section",
    "encode_values",
    "patch_append_time",
    "patch_offsets",
    "read_batches",
    "whole_batches",
]


class Timestamps(NamedTuple):
    """Of the oldest and the newest record of a batch; -1 is none."""

    oldest: int
    newest: int


class RecordBatch:
    """A view of one whole batch in a buffer, without a copy.

    Making one checks that the batch is all there and that its header makes sense; the CRC only
    `check_crc` looks at, the records only `records`. All three raise CorruptRecord.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "data",
        "last_offset_delta",
        "leader_epoch",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "size",
    )

    attributes: int
    base_offset: int
    base_sequence: int
    base_timestamp: int
    count: int
    crc: int
    data: memoryview
    last_offset_delta: int
    leader_epoch: int
    max_timestamp: int
    producer_epoch: int
    producer_id: int
    size: int

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        available = len(buffer) - position
        if position < 0 or available < HEADER_BYTES:
            raise CorruptRecord(
                f"batch at byte {position} is cut: {available} bytes, a header has {HEADER_BYTES}"
            )
        (
            self.base_offset,
            length,
            self.leader_epoch,
            magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(buffer, position)
        _check_frame(position, length, magic)
        self.size = LENGTH_PREFIX_BYTES + length
        if self.size > available:
            raise CorruptRecord(
                f"batch at byte {position} is cut: {available} bytes of {self.size}"
            )
        self.data = memoryview(buffer)[position : position + self.size]
        self._check_header()

    def _check_header(self) -> None:
        if self.attributes & ~KNOWN_ATTRIBUTES or self.attributes & CODEC_MASK > Compression.ZSTD:
            raise self._corrupt(f"unknown attributes {self.attributes:#x}")
        if self.base_offset < 0 or self.last_offset_delta < 0:
            raise self._corrupt(f"negative last offset delta {self.last_offset_delta} or offset")
        if self.base_offset >= INT64_MAX - self.last_offset_delta:
            raise self._corrupt(f"offsets pass 2^63 with delta {self.last_offset_delta}")
        if not 0 <= self.count <= self.last_offset_delta + 1:
            raise self._corrupt(
                f"{self.count} records with last offset delta {self.last_offset_delta}"
            )
        records_bytes = self.size - HEADER_BYTES
        is_plain = not self.attributes & CODEC_MASK
        if is_plain and self.count > records_bytes // RECORD_BYTES_MIN:
            raise self._corrupt(f"{self.count} records in {records_bytes} bytes")

    def _corrupt(self, what: str) -> CorruptRecord:
        producer = f" of producer {self.producer_id}" if self.has_producer else ""
        return CorruptRecord(f"batch at offset {self.base_offset}{producer}: {what}")

    def __repr__(self) -> str:
        return (
            f"RecordBatch(base_offset={self.base_offset}, last_offset={self.last_offset}, "
            f"count={self.count}, size={self.size}, leader_epoch={self.leader_epoch})"
        )

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        return Compression(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.APPEND if self._append_time is not None else TimestampType.CREATE

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop this batch's tombstones; None before it has seen the batch."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequences count records and wrap from 2^31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX

    @property
    def _append_time(self) -> int | None:
        return self.max_timestamp if self.attributes & APPEND_TIME_BIT else None

    def check_crc(self) -> None:
        computed = crc32c(self.data[CRC_START:])
        if computed != self.crc:
            raise self._corrupt(f"stored crc {self.crc:#010x}, computed {computed:#010x}")

    def records_data(self, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
        """The records section, decompressed; without compression a view."""
        section = self.data[HEADER_BYTES:]
        if not self.attributes & CODEC_MASK:
            return section
        try:
            return decompress(self.attributes & CODEC_MASK, section, max_bytes)
        except CorruptRecord as error:
            raise self._corrupt(str(error)) from None

    def records(self) -> list[Record]:
        """Every record. The whole section is checked: lengths, count, order, nothing left over."""
        try:
            return _codec.codec.decode_records(
                self.records_data(),
                self.count,
                base_offset=self.base_offset,
                base_timestamp=self.base_timestamp,
                last_offset_delta=self.last_offset_delta,
                append_time=self._append_time,
            )
        except CorruptRecord as error:
            raise self._corrupt(str(error)) from None

    def rows(
        self, row_type: type[T], prefix: tuple[object, ...] = (), from_offset: int = 0
    ) -> list[T]:
        """The records from an offset on, as tuples of another type: the prefix, then the fields of
        a Record. Control batches hold no data: they are checked and give none.
        """
        try:
            return _codec.codec.decode_rows(
                self.records_data(),
                self.count,
                row_type=row_type,
                prefix=prefix,
                base_offset=self.base_offset,
                base_timestamp=self.base_timestamp,
                last_offset_delta=self.last_offset_delta,
                append_time=self._append_time,
                from_offset=INT64_MAX if self.is_control else from_offset,
            )
        except CorruptRecord as error:
            raise self._corrupt(str(error)) from None

    def to_arrow_columns(
        self, columns: _codec.ArrowColumns, from_offset: int = 0, to_offset: int = INT64_MAX
    ) -> int:
        """Add the records with from_offset <= offset < to_offset to `columns`; returns how many.

        Control batches hold no data: they are checked and add nothing.
        """
        try:
            return columns.append(
                self.records_data(),
                self.count,
                base_offset=self.base_offset,
                base_timestamp=self.base_timestamp,
                last_offset_delta=self.last_offset_delta,
                append_time=self._append_time,
                from_offset=from_offset,
                to_offset=from_offset if self.is_control else to_offset,
            )
        except CorruptRecord as error:
            raise self._corrupt(str(error)) from None

    def rebuild(
        self,
        section: Buffer,
        count: int,
        *,
        max_timestamp: int,
        delete_horizon_ms: int | None = None,
        level: int | None = None,
    ) -> bytes:
        """This batch with only these of its records, for compaction: everything else stays.

        The section is what `retain_records` copied from `records_data`. A delete horizon takes the
        base timestamp's place, so setting one rewrites the timestamp deltas.
        """
        horizon = delete_horizon_ms if count else None
        base_timestamp = self.base_timestamp if horizon is None else horizon
        if base_timestamp != self.base_timestamp:
            shift = self.base_timestamp - base_timestamp
            section = _codec.codec.shift_timestamps(section, count, shift=shift)
        return encode_section(
            section,
            count,
            range(self.base_offset, self.next_offset),
            base_timestamp=base_timestamp if count else NO_TIMESTAMP,
            max_timestamp=max_timestamp,
            leader_epoch=self.leader_epoch,
            compression=self.compression,
            level=level,
            timestamp_type=self.timestamp_type,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.is_transactional,
            is_control=self.is_control,
            delete_horizon_ms=horizon,
        )

    def check_for_produce(self) -> Timestamps:
        """What a broker checks before it appends a client's batch, without decompressing it. Gives
        the oldest and the newest timestamp, as far as the header of a compressed batch tells them.
        """
        self.check_crc()
        if self.base_offset:
            raise InvalidRecord(
                f"base offset {self.base_offset} from a producer",
                hint="a producer's batch begins at 0: the broker gives it its offset",
            )
        if self.is_control or self.attributes & (DELETE_HORIZON_BIT | APPEND_TIME_BIT):
            raise InvalidRecord(
                f"attributes {self.attributes:#x} from a producer",
                hint="control, delete horizon and append time bits are the broker's to set",
            )
        if self.count < 1 or self.count != self.last_offset_delta + 1:
            raise InvalidRecord(
                f"{self.count} records with last offset delta {self.last_offset_delta}",
                hint="a producer's batch has at least one record and no gap",
            )
        self._check_producer()
        if self.attributes & CODEC_MASK:
            if self.size == HEADER_BYTES:
                raise InvalidRecord(f"no bytes for {self.count} records")
            return self._timestamps_of_header()
        section = self.data[HEADER_BYTES:]
        try:
            walked = _codec.codec.walk_records(
                section, self.count, base_timestamp=self.base_timestamp
            )
        except CorruptRecord as error:
            # Nothing has changed on its way, as the CRC says: it was made like this.
            raise InvalidRecord(str(error)) from None
        found = self._timestamps_of_header() if walked is None else Timestamps(*walked)
        if found.newest != self.max_timestamp:
            raise InvalidTimestamp(
                f"max timestamp {self.max_timestamp}, and the newest record has {found.newest}",
                hint="what finds records by time, and deletes them by age, goes by the header",
            )
        return found

    def _timestamps_of_header(self) -> Timestamps:
        """The base timestamp is that of the first record, so none can be the newest below it."""
        if self.max_timestamp < self.base_timestamp:
            raise InvalidTimestamp(
                f"max timestamp {self.max_timestamp} below base timestamp {self.base_timestamp}"
            )
        return Timestamps(self.base_timestamp, self.max_timestamp)

    def _check_producer(self) -> None:
        fields = (self.producer_id, self.producer_epoch, self.base_sequence)
        is_none = fields == (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
        if not is_none and min(fields) < 0:
            raise InvalidRecord(
                f"producer id {fields[0]}, epoch {fields[1]}, sequence {fields[2]}",
                hint="all three are set, or all three are -1",
            )
        if is_none and self.is_transactional:
            raise InvalidRecord("a transactional batch without a producer id")


def _check_frame(position: int, length: int, magic: int) -> None:
    if magic != MAGIC:
        raise CorruptRecord(
            f"batch at byte {position} has magic {magic}", hint=f"only magic {MAGIC} is readable"
        )
    if not HEADER_BYTES <= LENGTH_PREFIX_BYTES + length <= BATCH_BYTES_MAX:
        raise CorruptRecord(f"batch at byte {position} has length field {length}")


def read_batches(buffer: Buffer, position: int = 0) -> Iterator[RecordBatch]:
    """The batches of a buffer up to a cut one: a fetch may end inside a batch.

    What is there of the cut one must make sense too, otherwise CorruptRecord.
    """
    while len(buffer) - position > MAGIC_POSITION:
        (length,) = LENGTH.unpack_from(buffer, position + LENGTH_POSITION)
        _check_frame(position, length, buffer[position + MAGIC_POSITION])
        if LENGTH_PREFIX_BYTES + length > len(buffer) - position:
            return
        batch = RecordBatch(buffer, position)
        yield batch
        position += batch.size


def whole_batches(buffer: Buffer) -> list[RecordBatch]:
    """The batches that a buffer consists of; CorruptRecord if it is empty or ends inside one."""
    batches = list(read_batches(buffer))
    used = sum(batch.size for batch in batches)
    if not batches or used != len(buffer):
        raise CorruptRecord(f"{len(buffer) - used} bytes are not a whole batch")
    return batches
