"""Arrow rows to record batches: which partition each row goes to, and where a batch ends.

No object is made of a record but its key, for a moment, to be hashed.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
from pyarrow import compute

from kraftlog import _codec
from kraftlog.arrow import encode_arrow_batch
from kraftlog.partition_choice import check_partition
from kraftlog.types import Compression

RECORD_OVERHEAD_BYTES = 32

_POSITIVE = 0x7FFFFFFF


class Rows(NamedTuple):
    """Records of one topic, as columns of one length."""

    values: "pa.Array"
    keys: "pa.Array | None" = None
    headers: "pa.Array | None" = None
    partitions: "pa.Array | None" = None

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self if column is not None)

    def take(self, places: "pa.Array") -> "Rows":
        return Rows(*(None if column is None else column.take(places) for column in self))

    def slice(self, start: int, count: int) -> "Rows":
        return Rows(*(None if column is None else column.slice(start, count) for column in self))


def join(parts: Sequence[Rows]) -> Rows:
    """Parts with the same columns as one."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*parts, strict=True)
    return Rows(*(None if each[0] is None else pa.concat_arrays(each) for each in columns))


def spread(
    topic: str, rows: Rows, partitions: int, sticky: int
) -> Iterator[tuple[int | None, Rows]]:
    """The rows of each partition, in their order. None: wherever the sender likes.

    A row goes where its partition column says, else by its key as Kafka's producers do it; without
    either to the `sticky` partition.
    """
    chosen = _chosen(topic, rows, partitions, sticky)
    if chosen is None:
        yield None, rows
        return
    counts = {entry["values"]: entry["counts"] for entry in chosen.value_counts().to_pylist()}
    if len(counts) == 1:
        yield next(iter(counts)), rows
        return
    ordered = rows.take(compute.array_sort_indices(chosen))  # a stable sort
    start = 0
    for partition in sorted(counts):
        yield partition, ordered.slice(start, counts[partition])
        start += counts[partition]


def _chosen(topic: str, rows: Rows, partitions: int, sticky: int) -> "pa.Array | None":
    given = rows.partitions
    if given is not None and given.null_count < len(given):
        for partition in compute.unique(given).to_pylist():
            if partition is not None:
                check_partition(topic, partition, partitions)
        if not given.null_count:
            return given
        return compute.coalesce(given, _by_key(rows, partitions, sticky))
    if rows.keys is None or rows.keys.null_count == len(rows.keys) or partitions == 1:
        return None
    return _by_key(rows, partitions, sticky)


def _by_key(rows: Rows, partitions: int, sticky: int) -> "pa.Array":
    keys = rows.keys
    if keys is None:
        return pa.repeat(pa.scalar(sticky, pa.int32()), len(rows.values))
    murmur2, data, bounds = _codec.codec.murmur2, *_bytes_of(keys)
    hashed = [
        (murmur2(data[start:end]) & _POSITIVE) % partitions for start, end in pairwise(bounds)
    ]
    found = pa.array(hashed, pa.int32())
    if not keys.null_count:
        return found
    return compute.if_else(keys.is_null(), pa.scalar(sticky, pa.int32()), found)


def _bytes_of(column: "pa.Array") -> tuple[bytes, list[int]]:
    """The data of a binary or string column, and where in it each element begins and ends."""
    _, offsets, data = column.buffers()
    bounds = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1].tolist()
    first = bounds[0]
    kept = b"" if data is None else bytes(memoryview(data)[first : bounds[-1]])
    return kept, [bound - first for bound in bounds] if first else bounds


# -- batches


class Encoded(NamedTuple):
    data: bytes | bytearray
    rows: int


def encode(
    rows: Rows, *, timestamp: int, batch_bytes: int, compression: Compression
) -> Iterator[Encoded]:
    """Rows as batches of about `batch_bytes`."""
    start, count = 0, len(rows.values)
    bounds = [_bounds(column) for column in (rows.values, rows.keys) if column is not None]
    headers = 0 if rows.headers is None else rows.headers.nbytes // max(count, 1)
    per_row = RECORD_OVERHEAD_BYTES + headers

    def size_up_to(row: int) -> int:
        return sum(each[row] - each[start] for each in bounds) + per_row * (row - start)

    while start < count:
        end = bisect_right(range(start + 1, count), batch_bytes, key=size_up_to) + start
        end = min(max(end, start + 1), count)
        if size_up_to(count) <= batch_bytes:
            end = count
        data = encode_arrow_batch(
            rows.values,
            keys=rows.keys,
            headers=rows.headers,
            start=start,
            stop=end,
            timestamp=timestamp,
            compression=compression,
        )
        yield Encoded(data, end - start)
        start = end


def _bounds(column: "pa.Array") -> memoryview:
    """Where the elements begin and end."""
    offsets = column.buffers()[1]
    return memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1]
