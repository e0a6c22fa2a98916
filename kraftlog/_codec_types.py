"""What the two twins of the codec take and return: plain tuples, so that C can build them cheaply.

The columns are laid out as Arrow lays them out, but nothing here needs Arrow: `kraftlog.arrow`
turns them into its arrays.
"""

from typing import NamedTuple

from kraftlog.types import Buffer

Headers = tuple[tuple[str, bytes | None], ...]

RECORD_BYTES_MIN = 7
"""The shortest record: length, attributes, two deltas, two lengths, a header count: a byte each."""

INT32_MAX = 2**31 - 1
INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

SLOT_BYTES = 24
"""An entry of an offset map: 16 bytes of key hash, offset + 1 in 8 bytes; 0 is an empty slot."""


class Record(NamedTuple):
    """One record of a batch. Timestamps are milliseconds since 1970."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class BinaryColumn(NamedTuple):
    """Variable-length values: value i is data[offsets[i]:offsets[i + 1]] of int32 offsets.

    `validity` has one bit per value, 0 for null, and is None when there is no null. `first` is
    where row 0 lies, as in a slice of an Arrow array.
    """

    offsets: Buffer
    data: Buffer
    validity: Buffer | None = None
    first: int = 0


class LongColumn(NamedTuple):
    """Int64 values with an optional validity bitmap; `first` as in BinaryColumn."""

    data: Buffer
    validity: Buffer | None = None
    first: int = 0


class HeaderColumn(NamedTuple):
    """A list of (key, value) per row: row i has the entries offsets[i] to offsets[i + 1]."""

    offsets: Buffer
    keys: BinaryColumn
    values: BinaryColumn
    first: int = 0


class ArrowBuffers(NamedTuple):
    """What was decoded: one entry per record in each column. Timestamps are microseconds."""

    rows: int
    offsets: Buffer
    timestamps: Buffer
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumn
    key_nulls: int
    value_nulls: int
    header_rows: int
    header_value_nulls: int


class Retained(NamedTuple):
    """What compaction keeps of one records section."""

    data: bytes
    rows: int
    max_timestamp_delta: int
    last_offset_delta: int
    tombstones: int
