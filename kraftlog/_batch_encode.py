"""Making record batches, and setting the few fields that a broker sets in one."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from crc32c import crc32c

from kraftlog import _codec
from kraftlog._batch_format import (
    APPEND_TIME_BIT,
    ATTRIBUTES,
    ATTRIBUTES_POSITION,
    BATCH_BYTES_MAX,
    CONTROL_BIT,
    CRC,
    CRC_POSITION,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LEADER_EPOCH_POSITION,
    LENGTH,
    LENGTH_POSITION,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    MAX_TIMESTAMP_POSITION,
    TRANSACTIONAL_BIT,
)
from kraftlog._codec_types import INT64_MAX, Record
from kraftlog.compression import compress
from kraftlog.errors import InvalidRecord, RecordTooLarge
from kraftlog.types import (
    NO_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Buffer,
    Compression,
    TimestampType,
)


class BatchOptions(TypedDict, total=False):
    """What can be said of a batch beside its records; `BatchFields` has the defaults."""

    leader_epoch: int
    compression: Compression
    level: int | None
    timestamp_type: TimestampType
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None


# Not frozen: one is made for each batch, and a frozen one takes three times as long to make.
@dataclass(slots=True, kw_only=True)
class BatchFields:
    """The header of a batch, but for what its records say."""

    leader_epoch: int = NO_EPOCH
    compression: Compression = Compression.NONE
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon_ms: int | None = None

    def attributes(self, compression: Compression) -> int:
        return (
            compression
            | APPEND_TIME_BIT * (self.timestamp_type is TimestampType.APPEND)
            | TRANSACTIONAL_BIT * self.is_transactional
            | CONTROL_BIT * self.is_control
            | DELETE_HORIZON_BIT * (self.delete_horizon_ms is not None)
        )

    def write_header(
        self,
        out: bytearray,
        size: int,
        count: int,
        *,
        offsets: range,
        timestamps: tuple[int, int],
    ) -> None:
        """Write the header of a batch of `size` bytes, its crc still 0."""
        if size > BATCH_BYTES_MAX:
            raise RecordTooLarge(
                f"a batch of {size} bytes is above {BATCH_BYTES_MAX}",
                hint="put fewer records in one",
            )
        try:
            HEADER.pack_into(
                out,
                0,
                offsets.start,
                size - LENGTH_PREFIX_BYTES,
                self.leader_epoch,
                MAGIC,
                0,
                self.attributes(self.compression if count else Compression.NONE),
                offsets.stop - 1 - offsets.start,
                *timestamps,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                count,
            )
        except struct.error as error:
            raise InvalidRecord(f"batch at offset {offsets.start}: {error}") from None

    def seal(
        self, batch: bytearray, count: int, offsets: range, timestamps: tuple[int, int]
    ) -> None:
        """Write the header before a records section for which its bytes were left free."""
        self.write_header(batch, len(batch), count, offsets=offsets, timestamps=timestamps)
        CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[CRC_START:]))


def encode_section(
    section: Buffer,
    count: int,
    offsets: range,
    *,
    base_timestamp: int,
    max_timestamp: int,
    **options: Unpack[BatchOptions],
) -> bytes:
    """A batch around a records section whose deltas count from offsets.start and base_timestamp.

    `offsets` is what the batch covers, up to offsets.stop exclusively; the section may have gaps.
    """
    fields = BatchFields(**options)
    if count and fields.compression is not Compression.NONE:
        section = compress(fields.compression, section, fields.level)
    size = HEADER_BYTES + len(section)
    header = bytearray(HEADER_BYTES)
    timestamps = (base_timestamp, max_timestamp)
    fields.write_header(header, size, count, offsets=offsets, timestamps=timestamps)
    crc = crc32c(section, crc32c(memoryview(header)[CRC_START:]))
    CRC.pack_into(header, CRC_POSITION, crc)
    return b"".join((header, section))


def encode_columns(
    values: Sequence[Buffer | None],
    *,
    timestamps: int | Sequence[int],
    keys: Sequence[Buffer | None] | None = None,
    headers: Sequence[Sequence[tuple[str, Buffer | None]]] | None = None,
    base_offset: int = 0,
    offsets: Sequence[int] | None = None,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
    **options: Unpack[BatchOptions],
) -> bytes:
    """A batch from columns. Without `offsets` they are base_offset, base_offset + 1, ..."""
    covered = covered_offsets(len(values), base_offset, offsets, last_offset)
    times = (timestamps,) if isinstance(timestamps, int) else timestamps or (NO_TIMESTAMP,)
    horizon = options.get("delete_horizon_ms")
    base_timestamp = times[0] if horizon is None else horizon
    section = _codec.codec.encode_records(
        values,
        base_offset=base_offset,
        offsets=offsets,
        base_timestamp=base_timestamp,
        timestamps=timestamps,
        keys=keys,
        headers=headers,
    )
    return encode_section(
        section,
        len(values),
        covered,
        base_timestamp=base_timestamp,
        max_timestamp=max(times) if max_timestamp is None else max_timestamp,
        **options,
    )


def covered_offsets(
    rows: int,
    base_offset: int,
    offsets: Sequence[int] | None = None,
    last_offset: int | None = None,
) -> range:
    """The offsets of a batch: from the base to the last one, by default the last record's."""
    last_record = offsets[-1] if offsets else base_offset + rows - 1
    last = last_record if last_offset is None else last_offset
    if base_offset < 0 or last < max(base_offset, last_record) or last >= INT64_MAX:
        raise InvalidRecord(
            f"{rows} records up to offset {last_record} in a batch of {base_offset} to {last}",
            hint="offsets grow from the base to the last; an empty batch needs both",
        )
    return range(base_offset, last + 1)


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
    **options: Unpack[BatchOptions],
) -> bytes:
    """A batch of these records, with their own offsets, which may have gaps.

    It covers base_offset to last_offset, by default those of the first and the last record. Without
    records both must be given: such a batch is what compaction leaves of an emptied one.
    """
    if base_offset is None:
        base_offset = records[0].offset if records else -1
    offsets, timestamps, keys, values, headers = (
        zip(*records, strict=True) if records else ((),) * 5
    )
    return encode_columns(
        values,
        timestamps=timestamps,
        keys=keys,
        headers=headers,
        base_offset=base_offset,
        offsets=offsets,
        last_offset=last_offset,
        max_timestamp=max_timestamp,
        **options,
    )


def encode_values(
    values: Sequence[Buffer | None],
    *,
    timestamp: int,
    base_offset: int = 0,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
    **options: Unpack[BatchOptions],
) -> bytes:
    """A batch of values alone, at offsets base_offset, base_offset + 1, ..."""
    return encode_columns(
        values,
        timestamps=timestamp,
        base_offset=base_offset,
        last_offset=last_offset,
        max_timestamp=max_timestamp,
        **options,
    )


def patch_offsets(batch: bytearray | memoryview, *, base_offset: int, leader_epoch: int) -> None:
    """Place a batch in a log, in its own buffer: both fields lie outside the CRC."""
    struct.pack_into(">q", batch, 0, base_offset)
    struct.pack_into(">i", batch, LEADER_EPOCH_POSITION, leader_epoch)


def patch_append_time(batch: bytearray | memoryview, timestamp_ms: int) -> None:
    """Stamp a batch with the broker's time, in its own buffer, and renew its CRC."""
    view = memoryview(batch)
    (length,) = LENGTH.unpack_from(view, LENGTH_POSITION)
    (attributes,) = ATTRIBUTES.unpack_from(view, ATTRIBUTES_POSITION)
    ATTRIBUTES.pack_into(view, ATTRIBUTES_POSITION, attributes | APPEND_TIME_BIT)
    struct.pack_into(">q", view, MAX_TIMESTAMP_POSITION, timestamp_ms)
    crc = crc32c(view[CRC_START : LENGTH_PREFIX_BYTES + length])
    CRC.pack_into(view, CRC_POSITION, crc)
