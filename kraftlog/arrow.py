"""Between record batches and Arrow arrays. Only here is pyarrow imported, and only when called.

Reading: gather batches with `RecordBatch.to_arrow_columns(columns)`, then `to_arrow` what
`columns.finish()` hands out. Writing: `encode_arrow_batch`. Neither makes an object per record.
"""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, Unpack

from kraftlog import _codec
from kraftlog._batch_encode import BatchFields, BatchOptions, covered_offsets, encode_section
from kraftlog._batch_format import HEADER_BYTES
from kraftlog._codec import ArrowColumns
from kraftlog._codec_types import INT32_MAX, ArrowBuffers, BinaryColumn, HeaderColumn, LongColumn
from kraftlog.errors import InvalidRecord
from kraftlog.types import Buffer, Compression

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ArrowBuffers",
    "ArrowColumns",
    "arrow_columns",
    "encode_arrow_batch",
    "partition_keys",
    "to_arrow",
]


class ArrowArray(Protocol):
    """What is used of a pyarrow.Array."""

    @property
    def offset(self) -> int: ...
    def __len__(self) -> int: ...
    def buffers(self) -> list[Buffer | None]: ...


def arrow_columns(limit_bytes: int = INT32_MAX) -> ArrowColumns:
    """Columns to gather batches in, up to `limit_bytes` of keys, values and headers."""
    return _codec.codec.ArrowColumns(limit_bytes)


def to_arrow(columns: ArrowBuffers) -> "pa.RecordBatch":
    """offset, timestamp (microseconds, UTC), key, value, headers (a list of key and value)."""
    import pyarrow as pa  # noqa: PLC0415

    def binary(column: BinaryColumn, rows: int, nulls: int, kind: object) -> "pa.Array":
        parts = (column.validity, column.offsets, column.data)
        buffers = [None if part is None else pa.py_buffer(part) for part in parts]
        return pa.Array.from_buffers(kind, rows, buffers, null_count=nulls)

    def fixed(data: Buffer, kind: object) -> "pa.Array":
        return pa.Array.from_buffers(kind, columns.rows, [None, pa.py_buffer(data)], null_count=0)

    rows, entries, header = columns.rows, columns.header_rows, columns.headers
    header_keys = binary(header.keys, entries, 0, pa.string())
    header_values = binary(header.values, entries, columns.header_value_nulls, pa.binary())
    headers = pa.StructArray.from_arrays([header_keys, header_values], names=["key", "value"])
    lists = pa.Array.from_buffers(
        pa.list_(headers.type),
        rows,
        [None, pa.py_buffer(header.offsets)],
        null_count=0,
        children=[headers],
    )
    return pa.RecordBatch.from_arrays(
        [
            fixed(columns.offsets, pa.int64()),
            fixed(columns.timestamps, pa.timestamp("us", tz="UTC")),
            binary(columns.keys, rows, columns.key_nulls, pa.binary()),
            binary(columns.values, rows, columns.value_nulls, pa.binary()),
            lists,
        ],
        names=["offset", "timestamp", "key", "value", "headers"],
    )


def _binary_column(array: ArrowArray) -> BinaryColumn:
    """The buffers of a binary or string array (with 32-bit offsets)."""
    validity, offsets, data = array.buffers()
    return BinaryColumn(offsets or b"", data or b"", validity, array.offset)


def _long_column(array: ArrowArray) -> LongColumn:
    validity, data = array.buffers()
    return LongColumn(data or b"", validity, array.offset)


def _header_column(array: "pa.ListArray") -> HeaderColumn:
    if array.null_count:
        array = _without_null_lists(array)
    # flatten() and not field(): the null of a struct must reach its key, which is then refused.
    keys, values = array.values.flatten()
    offsets = array.buffers()[1]
    return HeaderColumn(offsets, _binary_column(keys), _binary_column(values), array.offset)


def _without_null_lists(array: "pa.ListArray") -> "pa.ListArray":
    """Empty lists for null ones: behind a null Arrow allows entries that count for nothing."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import compute  # noqa: PLC0415

    lengths = compute.fill_null(array.value_lengths(), 0)
    ends = compute.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(offsets, array.flatten())


def encode_arrow_batch(
    values: "pa.Array",
    *,
    timestamp: int,
    keys: "pa.Array | None" = None,
    timestamps: "pa.Array | None" = None,
    headers: "pa.ListArray | None" = None,
    start: int = 0,
    stop: int | None = None,
    base_offset: int = 0,
    **options: Unpack[BatchOptions],
) -> bytes | bytearray:
    """Rows start to stop of these arrays as one batch.

    Keys and values are binary or string arrays, timestamps milli- or microseconds (rows without one
    get `timestamp`, in milliseconds), headers lists of a struct of key and value.
    """
    if options.get("delete_horizon_ms") is not None:
        raise InvalidRecord("a delete horizon is set by compaction, not by a writer of columns")
    stop = len(values) if stop is None else stop
    _check_arrays(start, stop, {"values": values, "keys": keys}, timestamps, headers)
    batch, base_timestamp, max_timestamp = _codec.codec.encode_arrow(
        _binary_column(values),
        start=start,
        stop=stop,
        timestamp=timestamp,
        keys=None if keys is None else _binary_column(keys),
        timestamps=None if timestamps is None else _long_column(timestamps),
        ticks_per_ms=1 if timestamps is None else _ticks_per_ms(timestamps.type),
        headers=None if headers is None else _header_column(headers),
        reserve=HEADER_BYTES,
    )
    count = stop - start
    offsets = covered_offsets(count, base_offset)
    if options.get("compression", Compression.NONE) is Compression.NONE:
        BatchFields(**options).seal(batch, count, offsets, (base_timestamp, max_timestamp))
        return batch
    return encode_section(
        memoryview(batch)[HEADER_BYTES:],
        count,
        offsets,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        **options,
    )


def partition_keys(keys: "pa.Array", partitions: int, otherwise: int) -> "pa.Array":
    """Where Kafka's producers send each key, as int32; nulls go to the partition `otherwise`."""
    import pyarrow as pa  # noqa: PLC0415

    _check_binary("keys", keys.type)
    rows = len(keys)
    found = _codec.codec.partition_keys(
        _binary_column(keys), rows=rows, partitions=partitions, otherwise=otherwise
    )
    return pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(found)], null_count=0)


@cache
def _types() -> ModuleType:
    """Kept, since an import statement costs as much as encoding twenty records."""
    return import_module("pyarrow.types")


def _check_arrays(
    start: int,
    stop: int,
    binary: "dict[str, pa.Array | None]",
    timestamps: "pa.Array | None",
    headers: "pa.Array | None",
) -> None:
    for name, array in (*binary.items(), ("timestamps", timestamps), ("headers", headers)):
        if array is not None and not 0 <= start < stop <= len(array):
            raise InvalidRecord(f"rows {start} to {stop} of {len(array)} {name}")
    for name, array in binary.items():
        if array is not None:
            _check_binary(name, array.type)
    if headers is not None:
        _check_header_type(headers.type)


def _check_binary(name: str, kind: "pa.DataType") -> None:
    types = _types()
    if not types.is_binary(kind) and not types.is_string(kind):
        raise InvalidRecord(f"{name} have type {kind}", hint="cast to binary or string")


def _check_header_type(kind: "pa.DataType") -> None:
    types = _types()
    is_pairs = types.is_list(kind) and types.is_struct(kind.value_type)
    if not is_pairs or kind.value_type.num_fields != 2:
        raise InvalidRecord(
            f"headers have type {kind}", hint="cast to a list of a struct of key and value"
        )
    for field in kind.value_type:
        _check_binary("header keys and values", field.type)


_TICKS_PER_MS = {"ms": 1, "us": 1000}


def _ticks_per_ms(kind: "pa.DataType") -> int:
    types = _types()
    ticks = _TICKS_PER_MS.get(kind.unit) if types.is_timestamp(kind) else None
    if ticks is None and not types.is_int64(kind):
        raise InvalidRecord(
            f"timestamps have type {kind}", hint="cast to timestamp[ms], timestamp[us] or int64"
        )
    return ticks or 1
