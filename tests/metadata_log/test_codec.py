import contextlib
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kraftlog.rpc import records_pb2 as pb
from metadata_log.codec import VERSION, UnknownRecord, decode, decode_record, encode
from metadata_log.records import (
    Cause,
    CausedRecord,
    CauseKind,
    NoOp,
    PartitionRecord,
    PartitionState,
    Record,
)
from tests.metadata_log.clusters import uuid
from tests.metadata_log.generated import caused_records


@given(caused_records)
def test_every_record_travels_there_and_back(caused: CausedRecord) -> None:
    value = encode(caused)
    assert decode(value) == caused
    assert type(decode(value).record) is type(caused.record)
    assert decode_record(value) == caused.record
    assert encode(decode(value)) == value


def test_every_type_of_record_has_a_message() -> None:
    assert len(get_args(Record)) == len(pb.MetadataRecord.DESCRIPTOR.oneofs[0].fields)


def test_the_numbers_on_the_wire_are_kafkas_plus_ten() -> None:
    fields = {each.name: each.number for each in pb.MetadataRecord.DESCRIPTOR.oneofs[0].fields}
    assert fields == {
        "register_broker": 10,
        "unregister_broker": 11,
        "topic": 12,
        "partition": 13,
        "config": 14,
        "partition_change": 15,
        "remove_topic": 19,
        "feature_level": 22,
        "producer_ids": 25,
        "broker_change": 27,
        "no_op": 30,
        "request_done": 100,
    }


def test_a_golden_record() -> None:
    """What was written once must be readable for ever."""
    state = PartitionState((1, 2, 3), (2, 3), 2, 1, 4, elr=(1,))
    record = PartitionRecord(uuid("topic", 1), 7, state)
    value = encode(CausedRecord(record, Cause(CauseKind.ADMIN_REQUEST, "why")))
    assert value.hex() == (
        "1207080112037768796a2a0a10746f7069632e2e2e000000000000000110"
        "071a0301020322040a02020328043001380442030a0101"
    )


def test_equal_brokers_are_one_object() -> None:
    """It makes images of many partitions small."""
    states = [
        decode_record(
            encode(
                CausedRecord(
                    PartitionRecord(uuid("t", 1), number, PartitionState((1, 2, 3), (3, 2, 1), 3)),
                    Cause(CauseKind.IDLE),
                )
            )
        )
        for number in range(2)
    ]
    one, other = states
    assert isinstance(one, PartitionRecord)
    assert isinstance(other, PartitionRecord)
    assert one.topic_id is other.topic_id
    assert one.state.replicas is other.state.replicas
    assert one.state.isr is other.state.isr


@given(st.binary(max_size=80))
@example(b"")
@example(pb.MetadataRecord(version=0, no_op=pb.NoOpMetadataRecord()).SerializeToString())
def test_any_bytes_are_read_or_refused_by_name(value: bytes) -> None:
    with contextlib.suppress(UnknownRecord):
        decode(value)


@given(caused_records, st.data())
def test_a_damaged_record_is_read_or_refused_by_name(
    caused: CausedRecord, data: st.DataObject
) -> None:
    value = bytearray(encode(caused))
    position = data.draw(st.integers(0, len(value) - 1))
    value[position] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(UnknownRecord):
        decode(bytes(value))


def message(**given: object) -> bytes:
    return pb.MetadataRecord(**given).SerializeToString()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (message(version=VERSION + 1, no_op=pb.NoOpMetadataRecord()), "has version 1"),
        (message(version=-1, no_op=pb.NoOpMetadataRecord()), "has version -1"),
        (message(), "of a type that we do not know"),
        (b"\xfa\x01\x00", "of a type that we do not know"),  # a field of the next version
        (message(no_op=pb.NoOpMetadataRecord())[:-1] + b"\x05", "are no metadata record"),
        (message(topic=pb.TopicRecord(name="t", topic_id=b"short")), "wrong id"),
        (message(config=pb.ConfigRecord(resource_type=77)), "a value we do not know"),
        (
            message(broker_change=pb.BrokerChangeRecord(fence_cause=99)),
            "a value we do not know",
        ),
        (
            message(
                cause=pb.RecordCause(kind=1),
                partition_change=pb.PartitionChangeRecord(topic_id=bytes(16), recovery=9),
            ),
            "a value we do not know",
        ),
    ],
)
def test_what_we_do_not_know_is_refused(value: bytes, why: str) -> None:
    with pytest.raises(UnknownRecord, match=why):
        decode_record(value)


def test_an_unknown_cause_stops_nobody_who_only_replays() -> None:
    value = message(cause=pb.RecordCause(kind=999), no_op=pb.NoOpMetadataRecord())
    assert decode_record(value) == NoOp()
    with pytest.raises(UnknownRecord):
        decode(value)
