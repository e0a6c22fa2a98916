"""Columns in Arrow's layout from records, and records from columns, in pure Python."""

from array import array
from typing import Literal, NamedTuple

from kraftlog._codec_types import (
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    ArrowBuffers,
    BinaryColumn,
    HeaderColumn,
    LongColumn,
)
from kraftlog._pure_records import (
    HeaderSpan,
    Span,
    append_record,
    check_offsets,
    checked_timestamp_delta,
    corrupt,
    is_utf8,
    murmur2,
    nullable,
    spans,
    varint_bytes,
)
from kraftlog.errors import InvalidRecord, RecordTooLarge
from kraftlog.types import Buffer

MICROS_PER_MS = 1000


class _Binary:
    """A growing column of nullable bytes."""

    def __init__(self) -> None:
        self.offsets = array("i", [0])
        self.data = bytearray()
        self.valid = bytearray()

    def append(self, data: bytes, start: int, end: int) -> None:
        self.valid.append(end >= 0)
        if end >= 0:
            self.data += data[start:end]
        self.offsets.append(len(self.data))

    def truncate(self, rows: int) -> None:
        del self.valid[rows:]
        del self.offsets[rows + 1 :]
        del self.data[self.offsets[rows] :]

    def nulls(self) -> int:
        return self.valid.count(0)

    def finish(self) -> BinaryColumn:
        validity = _bitmap(self.valid) if self.nulls() else None
        return BinaryColumn(memoryview(self.offsets).cast("B"), memoryview(self.data), validity)


def _bitmap(flags: bytearray) -> memoryview:
    bits = int("0" + bytes(flags[::-1]).translate(_DIGITS).decode(), 2)
    return memoryview(bits.to_bytes((len(flags) + 7) // 8, "little"))


_DIGITS = bytes([ord("0"), ord("1")]) + bytes(254)


class ArrowColumns:
    """Gathers the records of many batches into one set of columns."""

    def __init__(self, limit_bytes: int = INT32_MAX) -> None:
        if not 0 <= limit_bytes <= INT32_MAX:
            raise ValueError(f"limit_bytes is {limit_bytes}, not between 0 and 2^31 - 1")
        self._limit_bytes = limit_bytes
        self._reset()

    def _reset(self) -> None:
        self._offsets = array("q")
        self._timestamps = array("q")
        self._keys = _Binary()
        self._values = _Binary()
        self._header_offsets = array("i", [0])
        self._header_keys = _Binary()
        self._header_values = _Binary()

    @property
    def rows(self) -> int:
        """Records gathered so far."""
        return len(self._offsets)

    @property
    def data_bytes(self) -> int:
        """Bytes of keys, values and headers gathered so far."""
        columns = (self._keys, self._values, self._header_keys, self._header_values)
        return sum(len(column.data) for column in columns)

    def append(
        self,
        data: Buffer,
        count: int,
        *,
        base_offset: int,
        base_timestamp: int,
        last_offset_delta: int,
        append_time: int | None = None,
        from_offset: int = 0,
        to_offset: int = INT64_MAX,
    ) -> int:
        """Add the records of a section with from_offset <= offset < to_offset; returns how many.

        All are checked, also those left out. On an error nothing of the section is added.
        """
        check_offsets(base_offset, last_offset_delta)
        data = bytes(data)
        rows = self.rows
        try:
            for span in spans(
                data, count, base_timestamp=base_timestamp, last_offset_delta=last_offset_delta
            ):
                offset = base_offset + span[3]
                if from_offset <= offset < to_offset:
                    timestamp = base_timestamp + span[2] if append_time is None else append_time
                    self._append_row(data, span, offset, timestamp)
        except BaseException:
            self._truncate(rows)
            raise
        return self.rows - rows

    def _append_row(self, data: bytes, span: Span, offset: int, timestamp: int) -> None:
        start, _, _, _, key, key_end, value, value_end, headers = span
        micros = timestamp * MICROS_PER_MS
        if not INT64_MIN <= micros <= INT64_MAX:
            raise corrupt(start, "timestamp does not fit microseconds")
        self._offsets.append(offset)
        self._timestamps.append(micros)
        self._keys.append(data, key, key_end)
        self._values.append(data, value, value_end)
        for header in headers:
            self._append_header(data, header)
        self._header_offsets.append(len(self._header_keys.valid))
        if self.data_bytes > self._limit_bytes or self._header_offsets[-1] == INT32_MAX:
            raise RecordTooLarge(
                f"columns would hold more than {self._limit_bytes} bytes",
                hint="call finish() and start new ones",
            )

    def _append_header(self, data: bytes, span: HeaderSpan) -> None:
        key, key_end, value, value_end = span
        self._header_keys.append(data, key, key_end)
        self._header_values.append(data, value, value_end)

    def _truncate(self, rows: int) -> None:
        del self._offsets[rows:]
        del self._timestamps[rows:]
        self._keys.truncate(rows)
        self._values.truncate(rows)
        del self._header_offsets[rows + 1 :]
        self._header_keys.truncate(self._header_offsets[rows])
        self._header_values.truncate(self._header_offsets[rows])

    def finish(self) -> ArrowBuffers:
        """Hand out the columns and start again with none."""
        headers = HeaderColumn(
            memoryview(self._header_offsets).cast("B"),
            self._header_keys.finish(),
            self._header_values.finish(),
        )
        buffers = ArrowBuffers(
            rows=self.rows,
            offsets=memoryview(self._offsets).cast("B"),
            timestamps=memoryview(self._timestamps).cast("B"),
            keys=self._keys.finish(),
            values=self._values.finish(),
            headers=headers,
            key_nulls=self._keys.nulls(),
            value_nulls=self._values.nulls(),
            header_rows=self._header_offsets[-1],
            header_value_nulls=self._header_values.nulls(),
        )
        self._reset()
        return buffers


class _Reader(NamedTuple):
    """A BinaryColumn to read from."""

    name: str
    offsets: memoryview
    data: memoryview
    validity: memoryview | None
    first: int

    def field(self, index: int, row: int) -> bytes | None:
        """Value `index`, which belongs to record `row`."""
        index += self.first
        start, end = self.offsets[index], self.offsets[index + 1]
        if not 0 <= start <= end <= len(self.data):
            raise InvalidRecord(f"record {row}: {self.name} offsets out of bounds")
        return bytes(self.data[start:end]) if _is_valid(self.validity, index) else None


def _is_valid(validity: memoryview | None, index: int) -> bool:
    return validity is None or bool(validity[index >> 3] >> (index & 7) & 1)


def _longs(name: str, data: Buffer, kind: Literal["i", "q"], needed: int) -> memoryview:
    view = memoryview(data).cast("B")
    width = 4 if kind == "i" else 8
    if len(view) < needed * width:
        raise ValueError(f"{name} has {len(view)} bytes, {needed * width} are needed")
    return view[: len(view) // width * width].cast(kind)


def _bits(name: str, validity: Buffer | None, needed: int) -> memoryview | None:
    if validity is None:
        return None
    view = memoryview(validity).cast("B")
    if len(view) < (needed + 7) // 8:
        raise ValueError(f"{name} has {len(view)} bytes, {(needed + 7) // 8} are needed")
    return view


def _reader(name: str, column: BinaryColumn, rows: int) -> _Reader:
    offsets, data, validity, first = column
    if first < 0:
        raise ValueError(f"{name} starts at {first}")
    return _Reader(
        name,
        _longs(f"{name} offsets", offsets, "i", first + rows + 1),
        memoryview(data).cast("B"),
        _bits(f"{name} validity", validity, first + rows),
        first,
    )


class _Timestamps:
    """The timestamp of each row in milliseconds: the column's, or one for all and for nulls."""

    def __init__(
        self, column: LongColumn | None, rows: int, ticks_per_ms: int, default: int
    ) -> None:
        if ticks_per_ms < 1:
            raise ValueError(f"ticks_per_ms is {ticks_per_ms}")
        self.default = default
        self.ticks_per_ms = ticks_per_ms
        self.data: memoryview | None = None
        if column is not None:
            data, validity, self.first = column
            if self.first < 0:
                raise ValueError(f"timestamps starts at {self.first}")
            self.data = _longs("timestamps", data, "q", self.first + rows)
            self.validity = _bits("timestamps validity", validity, self.first + rows)

    def at(self, row: int) -> int:
        if self.data is None or not _is_valid(self.validity, self.first + row):
            return self.default
        return int(self.data[self.first + row]) // self.ticks_per_ms


class _HeaderReader:
    def __init__(self, column: HeaderColumn, rows: int) -> None:
        offsets, keys, values, self.first = column
        if self.first < 0:
            raise ValueError(f"headers starts at {self.first}")
        self.offsets = _longs("headers offsets", offsets, "i", self.first + rows + 1)
        self.entries = max(0, self.offsets[self.first + rows])
        self.keys = _reader("header key", keys, self.entries)
        self.values = _reader("header value", values, self.entries)

    def fields(self, row: int) -> bytes:
        start, end = self.offsets[self.first + row], self.offsets[self.first + row + 1]
        if not 0 <= start <= end <= self.entries:
            raise InvalidRecord(f"record {row}: header offsets out of bounds")
        out = bytearray(varint_bytes(end - start))
        for entry in range(start, end):
            key = self.keys.field(entry, row)
            if key is None or not is_utf8(key):
                raise InvalidRecord(f"record {row}: header key is not valid text")
            out += nullable(key)
            out += nullable(self.values.field(entry, row))
        return bytes(out)


def encode_arrow(
    values: BinaryColumn,
    *,
    start: int,
    stop: int,
    timestamp: int,
    keys: BinaryColumn | None = None,
    timestamps: LongColumn | None = None,
    ticks_per_ms: int = 1,
    headers: HeaderColumn | None = None,
    reserve: int = 0,
) -> tuple[bytearray, int, int]:
    """The rows start to stop as a records section, with `reserve` empty bytes before it.

    Rows without a timestamp get `timestamp`. Returns the section, its base timestamp, which is the
    first row's, and its highest one.
    """
    if not 0 <= start <= stop or stop - start > INT32_MAX or reserve < 0:
        raise ValueError(f"rows {start} to {stop}, reserve {reserve}")
    value_reader = _reader("value", values, stop)
    key_reader = None if keys is None else _reader("key", keys, stop)
    times = _Timestamps(timestamps, stop, ticks_per_ms, timestamp)
    header_reader = None if headers is None else _HeaderReader(headers, stop)
    out = bytearray(reserve)
    base = highest = times.at(start) if start < stop else timestamp
    for row in range(start, stop):
        time = times.at(row)
        highest = max(highest, time)
        deltas = checked_timestamp_delta(time, base, row), row - start
        fields = nullable(None if key_reader is None else key_reader.field(row, row))
        fields += nullable(value_reader.field(row, row))
        fields += b"\0" if header_reader is None else header_reader.fields(row)
        append_record(out, row, deltas, fields)
    return out, base, highest


def partition_keys(keys: BinaryColumn, *, rows: int, partitions: int, otherwise: int) -> bytearray:
    """The partition of each key as an int32, as Kafka's producers choose it: toPositive(murmur2) %
    partitions. A null has `otherwise`.
    """
    counts = 0 <= rows <= INT32_MAX and 1 <= partitions <= INT32_MAX
    if not counts or not 0 <= otherwise < partitions:
        raise ValueError(f"{rows} rows, {partitions} partitions, otherwise {otherwise}")
    reader = _reader("key", keys, rows)
    fields = (reader.field(row, row) for row in range(rows))
    found = array(
        "i",
        (otherwise if key is None else (murmur2(key) & INT32_MAX) % partitions for key in fields),
    )
    return bytearray(found.tobytes())
