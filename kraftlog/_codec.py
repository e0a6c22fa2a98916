"""The codec in use: the C extension where it was built, its pure Python twin otherwise.

Both do the same, byte for byte and error for error; the twin is 20 to 100 times slower. The
environment variable KRAFTLOG_CODEC=native or pure forces one.
"""

import logging
import os
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, TypeVar, cast

from kraftlog._codec_types import (
    ArrowBuffers,
    BinaryColumn,
    HeaderColumn,
    LongColumn,
    Record,
    Retained,
)
from kraftlog.errors import ConfigError
from kraftlog.types import Buffer

T = TypeVar("T")

CHOICE_VARIABLE = "KRAFTLOG_CODEC"


class ArrowColumns(Protocol):
    """Gathers the records of many batches into one set of columns."""

    @property
    def rows(self) -> int:
        """Records gathered so far."""
        ...

    @property
    def data_bytes(self) -> int:
        """Bytes of keys, values and headers gathered so far."""
        ...

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
    ) -> int:
        """Add the records of a section with from_offset <= offset < to_offset; returns how many.

        All are checked, also those left out. On an error nothing of the section is added.
        """
        ...

    def finish(self) -> ArrowBuffers:
        """Hand out the columns and start again with none."""
        ...


class ArrowColumnsType(Protocol):
    def __call__(self, limit_bytes: int = ...) -> ArrowColumns: ...


class Codec(Protocol):
    """What each twin offers. See `_pure_records`, `_pure_arrow` and `_pure_compaction` for each."""

    @property
    def NAME(self) -> str: ...  # noqa: N802  a constant of a module

    @property
    def ArrowColumns(self) -> ArrowColumnsType: ...  # noqa: N802  a class of a module

    def encode_records(
        self,
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
        self,
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
        self,
        data: Buffer,
        count: int,
        *,
        base_offset: int,
        base_timestamp: int,
        last_offset_delta: int,
        append_time: int | None = None,
    ) -> list[Record]: ...

    def decode_rows(
        self,
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
    ) -> list[T]: ...

    def walk_records(
        self, data: Buffer, count: int, *, base_timestamp: int
    ) -> tuple[int, int] | None: ...

    def shift_timestamps(self, data: Buffer, count: int, *, shift: int) -> bytes: ...

    def offset_map_put(
        self,
        table: bytearray,
        seed: bytes,
        data: Buffer,
        count: int,
        *,
        base_offset: int,
        from_offset: int,
        limit: int,
    ) -> tuple[int, int]: ...

    def offset_map_get(self, table: bytearray, seed: bytes, key: Buffer) -> int: ...

    def retain_records(
        self,
        table: bytearray,
        seed: bytes,
        data: Buffer,
        count: int,
        *,
        base_offset: int,
        drop_tombstones: bool,
    ) -> Retained: ...

    def murmur2(self, key: Buffer) -> int: ...

    def partition_keys(
        self, keys: BinaryColumn, *, rows: int, partitions: int, otherwise: int
    ) -> bytearray: ...


def load_codec(choice: str) -> Codec:
    """The twin that `choice` names; without a choice the native one if it is there."""
    if choice not in ("", "native", "pure"):
        raise ConfigError(
            f"{CHOICE_VARIABLE}={choice!r} is not a codec", hint="use native or pure, or unset it"
        )
    if choice == "pure":
        return cast(Codec, import_module("kraftlog._codec_pure"))
    try:
        return cast(Codec, import_module("kraftlog._codec_native"))
    except ImportError as error:
        if choice == "native":
            raise ConfigError(
                f"{CHOICE_VARIABLE}=native, but the extension does not load: {error}",
                hint="install with a C compiler and Python's headers, or unset it",
            ) from error
        logging.getLogger("kraftlog").warning(
            "the native codec is not there (%s): pure Python serves, 20 to 100 times slower", error
        )
    return cast(Codec, import_module("kraftlog._codec_pure"))


codec = load_codec(os.environ.get(CHOICE_VARIABLE, ""))
