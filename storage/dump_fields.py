"""Batches and records as named fields, under the names that Kafka's DumpLogSegments prints."""

import base64
import struct

from kraftlog.record_batch import MAGIC, Record, RecordBatch
from kraftlog.types import TimestampType
from storage.dump_events import Fields, Json

TIMESTAMP_NAMES = {TimestampType.CREATE: "CreateTime", TimestampType.APPEND: "LogAppendTime"}

_LAYOUT_CHARACTERS = str.maketrans("", "", "\n\r\t")
_CONTROL_KEY = struct.Struct(">hh")  # version, type
_CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}


def batch_fields(batch: RecordBatch, position: int, *, is_valid: bool) -> dict[str, Json]:
    """A batch's header; `is_valid` tells of its CRC."""
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "position": position,
        "timestamp": batch.max_timestamp,
        "timestampType": TIMESTAMP_NAMES[batch.timestamp_type],
        "size": batch.size,
        "magic": MAGIC,
        "compresscodec": batch.compression.name.lower(),
        "crc": batch.crc,
        "isvalid": is_valid,
    }


def record_fields(batch: RecordBatch, record: Record) -> Fields:
    """A record; its key and value are text where that loses nothing, else base64."""
    fields: dict[str, Json] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_bytes_fields("key", record.key),
        **_bytes_fields("value", record.value),
        "headers": [
            {"key": name, **_bytes_fields("value", value)} for name, value in record.headers
        ],
    }
    if batch.is_control:
        fields["controlType"] = _control_type(record.key)
    return fields


def _bytes_fields(name: str, data: bytes | None) -> dict[str, Json]:
    if data is None:
        return {name: None, f"{name}Encoding": None}
    text = printable(data)
    if text is not None:
        return {name: text, f"{name}Encoding": "utf-8"}
    return {name: base64.b64encode(data).decode(), f"{name}Encoding": "base64"}


def printable(data: bytes) -> str | None:
    """The text that these bytes are in UTF-8, or None if no one could read it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if text.translate(_LAYOUT_CHARACTERS).isprintable() else None


def _control_type(key: bytes | None) -> str:
    if key is None or len(key) < _CONTROL_KEY.size:
        return "UNKNOWN"
    _, number = _CONTROL_KEY.unpack_from(key)
    return _CONTROL_TYPES.get(number, "UNKNOWN")
