"""Batches and records as named fields."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.record_batch import Record, RecordBatch, encode_batch
from kraftlog.types import Compression, TimestampType
from storage.dump_events import Fields
from storage.dump_fields import batch_fields, printable, record_fields


def fields_of(record: Record, *, is_control: bool = False) -> Fields:
    batch = RecordBatch(encode_batch([record], is_control=is_control, producer_id=1))
    return record_fields(batch, batch.records()[0])


def test_a_header_is_shown_whole() -> None:  # R28
    records = [Record(5, 1_000, b"k", b"v", ()), Record(7, 2_000, b"k", b"v", ())]
    batch = RecordBatch(
        encode_batch(
            records,
            leader_epoch=3,
            compression=Compression.ZSTD,
            timestamp_type=TimestampType.APPEND,
            max_timestamp=2_000,
            producer_id=9,
            producer_epoch=1,
            base_sequence=40,
            is_transactional=True,
        )
    )
    assert batch_fields(batch, 123, is_valid=True) == {
        "baseOffset": 5,
        "lastOffset": 7,
        "count": 2,
        "baseSequence": 40,
        "lastSequence": 42,
        "producerId": 9,
        "producerEpoch": 1,
        "partitionLeaderEpoch": 3,
        "isTransactional": True,
        "isControl": False,
        "deleteHorizonMs": None,
        "position": 123,
        "timestamp": 2_000,
        "timestampType": "LogAppendTime",
        "size": batch.size,
        "magic": 2,
        "compresscodec": "zstd",
        "crc": batch.crc,
        "isvalid": True,
    }


def test_a_record_is_shown_with_its_headers() -> None:  # R28
    record = Record(5, 1_000, None, "größe\n".encode(), (("h", b"\xff"), ("empty", None)))
    assert fields_of(record) == {
        "offset": 5,
        "timestamp": 1_000,
        "key": None,
        "keyEncoding": None,
        "value": "größe\n",
        "valueEncoding": "utf-8",
        "headers": [
            {"key": "h", "value": "/w==", "valueEncoding": "base64"},
            {"key": "empty", "value": None, "valueEncoding": None},
        ],
    }


@given(st.binary(max_size=50))
def test_no_byte_of_a_value_is_lost(value: bytes) -> None:
    fields = fields_of(Record(0, 1, None, value, ()))
    text = str(fields["value"])
    back = base64.b64decode(text) if fields["valueEncoding"] == "base64" else text.encode()
    assert back == value


@pytest.mark.parametrize("data", [b"\x1b[2J", b"\xc2\x9b2J", b"\x00", "\u202e".encode(), b"\xff"])
def test_what_would_act_on_a_terminal_is_not_text(data: bytes) -> None:
    assert printable(data) is None


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (struct.pack(">hh", 0, 0), "ABORT"),
        (struct.pack(">hh", 0, 1), "COMMIT"),
        (struct.pack(">hh", 0, 2), "LEADER_CHANGE"),
        (struct.pack(">hh", 0, 99), "UNKNOWN"),
        (b"\0", "UNKNOWN"),
        (None, "UNKNOWN"),
    ],
)
def test_a_control_record_is_named(key: bytes | None, name: str) -> None:
    record = Record(0, 1, key, struct.pack(">hi", 0, 0), ())
    assert fields_of(record, is_control=True)["controlType"] == name
    assert "controlType" not in fields_of(record)
