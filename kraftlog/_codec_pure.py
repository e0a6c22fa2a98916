"""The pure Python twin of `_codec_native`, and its oracle: the same names, bytes and errors."""

from kraftlog._pure_arrow import ArrowColumns, encode_arrow, partition_keys
from kraftlog._pure_compaction import offset_map_get, offset_map_put, retain_records
from kraftlog._pure_records import (
    decode_records,
    decode_rows,
    encode_records,
    murmur2,
    shift_timestamps,
    walk_records,
)

__all__ = [
    "NAME",
    "ArrowColumns",
    "decode_records",
    "decode_rows",
    "encode_arrow",
    "encode_records",
    "murmur2",
    "offset_map_get",
    "offset_map_put",
    "partition_keys",
    "retain_records",
    "shift_timestamps",
    "walk_records",
]

NAME = "pure"
