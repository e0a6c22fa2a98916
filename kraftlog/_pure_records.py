"""The records section of a batch in pure Python.

    record  = length varint, attributes i8 (0), timestamp delta varlong, offset delta varint,
              key length varint (-1 = null), key, value length varint (-1 = null), value,
              header count varint, headers
    header  = key length varint, key (UTF-8), value length varint (-1 = null), value

Both twins are stricter than Kafka's reader: a varint must be in its shortest form and a null is -1,
never another negative number. So what is accepted here has exactly one spelling, and re-encoding
gives the same bytes. Both raise the same errors with the same text for the same bytes.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from kraftlog._codec_types import (
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    RECORD_BYTES_MIN,
    Headers,
    Record,
)
from kraftlog.errors import CorruptRecord, InvalidRecord, RecordTooLarge
from kraftlog.types import Buffer

T = TypeVar("T")

HeaderSpan = tuple[int, int, int, int]
"""Key start and end, value start and end; a null value ends at -1."""

Span = tuple[int, int, int, int, int, int, int, int, list[HeaderSpan]]
"""Where a record and its parts lie: start and end of the record with its length, timestamp delta,
offset delta, key start and end, value start and end (-1 = null), headers. A plain tuple: there is
one per record, and a NamedTuple costs six times as much to make."""


def corrupt(position: int, what: str) -> CorruptRecord:
    return CorruptRecord(f"records section, byte {position}: {what}")


def _long_varint(data: bytes, start: int, end: int, bits: int) -> tuple[int, int]:
    raw = shift = 0
    position = start
    while True:
        if position >= end:
            raise corrupt(start, "varint runs past the end")
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
        if shift >= bits:
            raise corrupt(start, "varint is too long")
    if raw >> bits:
        raise corrupt(start, "varint is too long")
    if byte == 0:
        raise corrupt(start, "varint is not in its shortest form")
    return (raw >> 1) ^ -(raw & 1), position


def _varint(data: bytes, position: int, end: int, bits: int = 32) -> tuple[int, int]:
    """A zigzag varint and the position after it. Most have one byte."""
    if position < end and (byte := data[position]) < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _long_varint(data, position, end, bits)


def _nullable_bytes(data: bytes, start: int, end: int, name: str) -> tuple[int, int, int]:
    """Start, end (-1 when null) and the position after a length-prefixed field."""
    length, position = _varint(data, start, end)
    if length == -1:
        return position, -1, position
    if length < 0 or length > end - position:
        raise corrupt(start, f"{name} length out of bounds")
    return position, position + length, position + length


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _header_spans(data: bytes, start: int, end: int) -> tuple[list[HeaderSpan], int]:
    count, position = _varint(data, start, end)
    if count < 0 or count > (end - position) // 2:
        raise corrupt(start, "header count out of bounds")
    spans: list[HeaderSpan] = []
    for _ in range(count):
        field = position
        length, key_start = _varint(data, field, end)
        if length < 0 or length > end - key_start:
            raise corrupt(field, "header key length out of bounds")
        key_end = key_start + length
        if not is_utf8(data[key_start:key_end]):
            raise corrupt(key_start, "header key is not UTF-8")
        value_start, value_end, position = _nullable_bytes(data, key_end, end, "header value")
        spans.append((key_start, key_end, value_start, value_end))
    return spans, position


def _read_span(data: bytes, start: int, base_timestamp: int, low: int, high: int) -> Span:
    """One record at `start`, whose offset delta must be in low..high."""
    length, position = _varint(data, start, len(data))
    if length < RECORD_BYTES_MIN - 1 or length > len(data) - position:
        raise corrupt(start, "record length out of bounds")
    end = position + length
    if data[position] != 0:
        raise corrupt(position, "unknown record attributes")
    field = position + 1
    timestamp_delta, position = _varint(data, field, end, 64)
    if not INT64_MIN <= base_timestamp + timestamp_delta <= INT64_MAX:
        raise corrupt(field, "timestamp out of range")
    field = position
    offset_delta, position = _varint(data, field, end)
    if not low <= offset_delta <= high:
        raise corrupt(field, "offset delta out of order")
    key_start, key_end, position = _nullable_bytes(data, position, end, "key")
    value_start, value_end, position = _nullable_bytes(data, position, end, "value")
    headers, position = _header_spans(data, position, end)
    if position != end:
        raise corrupt(position, "record is longer than its fields")
    return (
        start,
        end,
        timestamp_delta,
        offset_delta,
        key_start,
        key_end,
        value_start,
        value_end,
        headers,
    )


def spans(
    data: bytes,
    count: int,
    *,
    base_timestamp: int = 0,
    last_offset_delta: int = INT32_MAX,
    dense: bool = False,
) -> Iterator[Span]:
    """Every record of a section, checked. `dense` demands the offset deltas 0, 1, 2, ..."""
    if count < 0 or count > len(data) // RECORD_BYTES_MIN:
        raise corrupt(0, "record count does not fit the data")
    position = low = 0
    for _ in range(count):
        span = _read_span(data, position, base_timestamp, low, low if dense else last_offset_delta)
        position, low = span[1], span[3] + 1
        yield span
    if position != len(data):
        raise corrupt(position, "bytes left over after the last record")


def check_offsets(base_offset: int, last_offset_delta: int) -> None:
    """The offsets of a batch must be offsets; a batch's header was checked for it."""
    in_range = base_offset >= 0 and 0 <= last_offset_delta <= INT32_MAX
    if not in_range or base_offset > INT64_MAX - last_offset_delta:
        raise ValueError(f"base offset {base_offset}, last offset delta {last_offset_delta}")


def _headers(data: bytes, header_spans: list[HeaderSpan]) -> Headers:
    return tuple(
        (data[key:key_end].decode(), None if value_end < 0 else data[value:value_end])
        for key, key_end, value, value_end in header_spans
    )


def decode_records(
    data: Buffer,
    count: int,
    *,
    base_offset: int,
    base_timestamp: int,
    last_offset_delta: int,
    append_time: int | None = None,
) -> list[Record]:
    """Every record of a section; with `append_time` that is the timestamp of all."""
    check_offsets(base_offset, last_offset_delta)
    data = bytes(data)
    records: list[Record] = []
    for _, _, timestamp_delta, offset_delta, key, key_end, value, value_end, headers in spans(
        data, count, base_timestamp=base_timestamp, last_offset_delta=last_offset_delta
    ):
        records.append(
            Record(
                base_offset + offset_delta,
                base_timestamp + timestamp_delta if append_time is None else append_time,
                None if key_end < 0 else data[key:key_end],
                None if value_end < 0 else data[value:value_end],
                _headers(data, headers) if headers else (),
            )
        )
    return records


def decode_rows(
    data: Buffer,
    count: int,
    *,
    row_type: type[T],
    prefix: tuple[object, ...],
    base_offset: int,
    base_timestamp: int,
    last_offset_delta: int,
    append_time: int | None = None,
    from_offset: int = 0,
) -> list[T]:
    """As decode_records, but each is a `row_type`, a tuple of the prefix and the five fields, and
    what lies below `from_offset` is checked and left out.
    """
    is_plain = not row_type.__dictoffset__ and row_type.__basicsize__ == tuple.__basicsize__
    if not issubclass(row_type, tuple) or not is_plain:
        raise TypeError(f"{row_type.__name__} is more than a tuple")
    records = decode_records(
        data,
        count,
        base_offset=base_offset,
        base_timestamp=base_timestamp,
        last_offset_delta=last_offset_delta,
        append_time=append_time,
    )
    make = tuple.__new__
    return [make(row_type, (*prefix, *each)) for each in records if each.offset >= from_offset]


def walk_records(data: Buffer, count: int, *, base_timestamp: int) -> tuple[int, int] | None:
    """Check a section as a producer must send it: every length, and offset deltas 0, 1, 2, ...
    Gives the oldest and the newest timestamp, if there are records.
    """
    walked = spans(bytes(data), count, base_timestamp=base_timestamp, dense=True)
    times = [base_timestamp + span[2] for span in walked]
    return (min(times), max(times)) if times else None


def shift_timestamps(data: Buffer, count: int, *, shift: int) -> bytes:
    """The same records with `shift` added to every timestamp delta, for another base timestamp."""
    data = bytes(data)
    out = bytearray()
    for start, end, timestamp_delta, *_ in spans(data, count, base_timestamp=shift):
        length, body = _varint(data, start, end)
        old, new = varint_bytes(timestamp_delta), varint_bytes(timestamp_delta + shift)
        out += varint_bytes(length - len(old) + len(new)) + b"\0" + new
        out += data[body + 1 + len(old) : end]
    return bytes(out)


_ONE_BYTE = [bytes([raw]) for raw in range(0x80)]
_NULL = b"\x01"


def varint_bytes(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return _ONE_BYTE[raw]
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def nullable(value: Buffer | None) -> bytes:
    """A length-prefixed field; None is length -1."""
    if value is None:
        return _NULL
    if not isinstance(value, bytes):
        value = bytes(memoryview(value))
    return varint_bytes(len(value)) + value


def header_fields(headers: Sequence[tuple[str, Buffer | None]], row: int) -> bytes:
    """The header count and the headers of one record."""
    out = bytearray(varint_bytes(len(headers)))
    for key, value in headers:
        try:
            out += nullable(key.encode())
        except UnicodeEncodeError:
            raise InvalidRecord(f"record {row}: header key is not valid text") from None
        out += nullable(value)
    return bytes(out)


def append_record(out: bytearray, row: int, deltas: tuple[int, int], fields: bytes) -> None:
    """Write one record: `deltas` are timestamp and offset, `fields` everything that follows."""
    timestamp_delta, offset_delta = deltas
    body = b"\0" + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + fields
    if len(body) > INT32_MAX:
        raise RecordTooLarge(f"record {row}: longer than 2^31 - 1 bytes")
    out += varint_bytes(len(body))
    out += body


def checked_timestamp_delta(timestamp: int, base_timestamp: int, row: int) -> int:
    delta = timestamp - base_timestamp
    if not all(INT64_MIN <= number <= INT64_MAX for number in (timestamp, base_timestamp, delta)):
        raise InvalidRecord(f"record {row}: timestamp out of range")
    return delta


def _check_rows(name: str, column: Sequence[object] | None, rows: int) -> None:
    if column is not None and len(column) != rows:
        raise ValueError(f"{name} has {len(column)} entries for {rows} values")


def encode_records(
    values: Sequence[Buffer | None],
    *,
    base_offset: int = 0,
    offsets: Sequence[int] | None = None,
    base_timestamp: int,
    timestamps: int | Sequence[int],
    keys: Sequence[Buffer | None] | None = None,
    headers: Sequence[Sequence[tuple[str, Buffer | None]]] | None = None,
) -> bytes:
    """A records section from columns; without `offsets` the deltas are 0, 1, 2, ..."""
    rows = len(values)
    times = [timestamps] * rows if isinstance(timestamps, int) else timestamps
    _check_rows("offsets", offsets, rows)
    _check_rows("timestamps", times, rows)
    _check_rows("keys", keys, rows)
    _check_rows("headers", headers, rows)
    out = bytearray()
    low = 0
    for row, value in enumerate(values):
        offset_delta = row if offsets is None else offsets[row] - base_offset
        if not low <= offset_delta <= INT32_MAX:
            raise InvalidRecord(f"record {row}: offset not above the one before or out of range")
        low = offset_delta + 1
        deltas = checked_timestamp_delta(times[row], base_timestamp, row), offset_delta
        fields = _NULL if keys is None else nullable(keys[row])
        fields += nullable(value)
        fields += header_fields(headers[row], row) if headers is not None else b"\0"
        append_record(out, row, deltas, fields)
    return bytes(out)


def murmur2(key: Buffer) -> int:
    """Kafka's hash of a key, as Java's signed 32-bit int."""
    data = bytes(key)
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        hashed = hashed * multiplier & mask ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    hashed = (hashed ^ hashed >> 13) * multiplier & mask
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed
