"""Where each field of a record batch lies; `kraftlog.record_batch` has the picture."""

import struct

HEADER_BYTES = 61
LENGTH_PREFIX_BYTES = 12
BATCH_BYTES_MAX = 64 * 1024 * 1024
"""No batch is larger, whatever its length field says. What a broker takes is configured lower."""

MAGIC = 2

HEADER = struct.Struct(">qiibIhiqqqhii")
LENGTH = struct.Struct(">i")
CRC = struct.Struct(">I")
ATTRIBUTES = struct.Struct(">h")
LENGTH_POSITION = 8
LEADER_EPOCH_POSITION = 12
MAGIC_POSITION = 16
CRC_POSITION = 17
CRC_START = 21
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
KNOWN_ATTRIBUTES = 0x7F
