"""Arrow rows to record batches: which partition each row goes to, and where a batch ends.

No object is made of a record.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyarrow import compute

from kraftlog._batch_format import HEADER_BYTES
from kraftlog.arrow import encode_arrow_batch, partition_keys
from kraftlog.partition_choice import check_partition
from kraftlog.types import Compression

FIXED_BYTES = 2
"""Of a record: its attributes, and its timestamp, which is that of the batch."""
PREFIX_BYTES_MAX = 36
"""Of a record: all that is neither key, value nor header."""


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
    if rows.keys is None:
        return pa.repeat(pa.scalar(sticky, pa.int32()), len(rows.values))
    return partition_keys(rows.keys, partitions, sticky)


# -- batches


class Encoded(NamedTuple):
    data: bytes | bytearray
    rows: int


def encode(
    rows: Rows, *, timestamp: int, batch_bytes: int, compression: Compression
) -> Iterator[Encoded]:
    """Rows as batches of at most `batch_bytes`, before they are compressed; but one row at least is
    in each, whatever its size.
    """
    start, count = 0, len(rows.values)
    size = _Sizes(rows)
    while start < count:
        end = start + bisect_right(
            range(start + 1, count + 1), batch_bytes, key=partial(size.of, start)
        )
        end = max(end, start + 1)
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


class _Sizes:
    """What rows take as a batch, at most: the bytes of their fields, and for each length what the
    longest one needs.
    """

    def __init__(self, rows: Rows) -> None:
        fields = [column for column in (rows.values, rows.keys) if column is not None]
        self._bounds = [_bounds(column) for column in fields]
        self._lists: memoryview | None = None
        self._header_bounds: list[memoryview] = []
        self._per_header = 0
        longest, headers = [_longest(column) for column in fields], 0
        if rows.headers is not None:
            parts = rows.headers.values.flatten()
            self._lists = _bounds(rows.headers)
            self._header_bounds = [_bounds(part) for part in parts]
            self._per_header = sum(_varint_bytes(_longest(part)) for part in parts)
            headers = compute.max(rows.headers.value_lengths()).as_py() or 0
        lengths = [*longest, headers, len(rows.values)]
        body = sum(longest) + self._header_bytes(0, len(rows.values)) + PREFIX_BYTES_MAX
        # Without keys there is a length of one byte all the same.
        self._per_row = FIXED_BYTES + 2 - len(fields) + sum(map(_varint_bytes, [*lengths, body]))

    def of(self, start: int, end: int) -> int:
        fields = sum(each[end] - each[start] for each in self._bounds)
        rows = self._per_row * (end - start)
        return HEADER_BYTES + fields + rows + self._header_bytes(start, end)

    def _header_bytes(self, start: int, end: int) -> int:
        if self._lists is None:
            return 0
        first, last = self._lists[start], self._lists[end]
        size = sum(each[last] - each[first] for each in self._header_bounds)
        return size + self._per_header * (last - first)


def _longest(column: "pa.Array") -> int:
    return compute.max(compute.binary_length(column)).as_py() or 0


def _varint_bytes(value: int) -> int:
    return (value.bit_length() + 7) // 7


def _bounds(column: "pa.Array") -> memoryview:
    """Where the elements begin and end."""
    offsets = column.buffers()[1]
    if not len(column):
        return memoryview(bytes(4)).cast("i")
    return memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1]
