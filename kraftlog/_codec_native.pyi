# The types of the C extension. tests/kraftlog/test_codec.py holds both twins against one protocol.
from collections.abc import Sequence
from typing import TypeVar

from kraftlog._codec_types import (
    ArrowBuffers,
    BinaryColumn,
    HeaderColumn,
    LongColumn,
    Record,
    Retained,
)
from kraftlog.types import Buffer

NAME: str

_T = TypeVar("_T")

class ArrowColumns:
    def __init__(self, limit_bytes: int = ...) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def data_bytes(self) -> int: ...
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
        to_offset: int = ...,
    ) -> int: ...
    def finish(self) -> ArrowBuffers: ...

def encode_records(
    values: Sequence[Buffer | None],
    *,
    base_offset: int = 0,
    offsets: Sequence[int] | None = None,
    base_timestamp: int,
    timestamps: int | Sequence[int],
    keys: Sequence[Buffer | None] | None = None,
    headers: Sequence[Sequence[tuple[str, Buffer | None]]] | None = None,
) -> bytes: ...
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
) -> tuple[bytearray, int, int]: ...
def decode_records(
    data: Buffer,
    count: int,
    *,
    base_offset: int,
    base_timestamp: int,
    last_offset_delta: int,
    append_time: int | None = None,
) -> list[Record]: ...
def decode_rows(
    data: Buffer,
    count: int,
    *,
    row_type: type[_T],
    prefix: tuple[object, ...],
    base_offset: int,
    base_timestamp: int,
    last_offset_delta: int,
    append_time: int | None = None,
    from_offset: int = 0,
) -> list[_T]: ...
def walk_records(data: Buffer, count: int, *, base_timestamp: int) -> None: ...
def shift_timestamps(data: Buffer, count: int, *, shift: int) -> bytes: ...
def offset_map_put(
    table: bytearray,
    seed: bytes,
    data: Buffer,
    count: int,
    *,
    base_offset: int,
    from_offset: int,
    limit: int,
) -> tuple[int, int]: ...
def offset_map_get(table: bytearray, seed: bytes, key: Buffer) -> int: ...
def retain_records(
    table: bytearray,
    seed: bytes,
    data: Buffer,
    count: int,
    *,
    base_offset: int,
    drop_tombstones: bool,
) -> Retained: ...
def murmur2(key: Buffer) -> int: ...
def partition_keys(
    keys: BinaryColumn, *, rows: int, partitions: int, otherwise: int
) -> bytearray: ...
