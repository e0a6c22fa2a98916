"""What goes over the wire between two brokers is what was sent, for any fetch and any reply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.cluster import PartitionId
from brokers.fetch_wire import (
    RANGE_MESSAGE_BYTES,
    RANGE_MESSAGE_BYTES_MAX,
    decode_fetch,
    decode_fetch_reply,
    decode_range,
    encode_fetch,
    encode_fetch_envelope,
    encode_range_piece,
)
from brokers.refusals import LeaderHint
from brokers.requests import (
    FetchPart,
    FetchReply,
    FetchRequest,
    FetchResult,
    RangePiece,
    RangeRequest,
    ReplicaIdentity,
)
from kraftlog.errors import ErrorCode, OffsetOutOfRange, UnknownTopicOrPartition
from kraftlog.rpc import broker_pb2
from kraftlog.types import EpochEnd
from tests.brokers.images import topic, uuid
from tests.brokers.views import view_of

A = uuid("a").raw
VIEW = view_of(topic("a", [1, 2], [2, 1]))

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
partitions = st.builds(
    PartitionId, st.sampled_from([A, b"b" * 16, b"c" * 16]), st.integers(0, 2**31 - 1)
)
fetch_parts = st.builds(
    FetchPart, partitions, int64, st.none() | int32, st.none() | int32, int64, int32, int64
)
requests = st.builds(
    FetchRequest,
    replica=st.none() | st.builds(ReplicaIdentity, int32, int64),
    max_wait_ms=int32,
    min_bytes=int32,
    max_bytes=int32,
    session_id=int32,
    session_epoch=int32,
    parts=st.lists(fetch_parts, max_size=5),
    forgotten=st.lists(partitions, max_size=5),
    rack=st.text(max_size=5),
    wake=st.booleans(),
)
results = st.builds(
    FetchResult,
    partitions,
    high_watermark=int64,
    log_start_offset=int64,
    end_offset=int64,
    records=st.binary(max_size=50),
    diverging=st.none() | st.builds(EpochEnd, int32, int64),
    preferred_replica=st.none() | int32,
)


@given(requests)
def test_a_fetch_is_the_same_there_and_back(request: FetchRequest) -> None:
    message = broker_pb2.FetchDataRequest.FromString(encode_fetch(request).SerializeToString())
    back = decode_fetch(message, VIEW)
    # Topics stand together on the wire; among their partitions the order stays.
    assert sorted(back.parts, key=repr) == sorted(request.parts, key=repr)
    assert sorted(back.forgotten) == sorted(request.forgotten)
    assert encode_fetch(back) == message
    assert back.replica == request.replica
    assert back.wake == request.wake


@given(st.lists(results, max_size=5), int32)
def test_a_reply_is_the_same_there_and_back(parts: list[FetchResult], session_id: int) -> None:
    envelope = encode_fetch_envelope(FetchReply(session_id, parts), 77, VIEW)
    wire = broker_pb2.BrokerReply.FromString(b"".join(envelope))
    assert (wire.correlation_id, wire.WhichOneof("reply")) == (77, "fetch")
    back = decode_fetch_reply(wire.fetch, "b1")
    assert back.session_id == session_id
    assert sorted(back.parts, key=repr) == sorted(parts, key=repr)


def test_an_error_of_a_partition_carries_the_leader() -> None:
    refused = FetchResult(
        PartitionId(A, 0), error=OffsetOutOfRange("9 is too far"), leader=LeaderHint(2, 5)
    )
    envelope = encode_fetch_envelope(FetchReply(0, [refused]), 1, VIEW)
    wire = broker_pb2.BrokerReply.FromString(b"".join(envelope))
    [back] = decode_fetch_reply(wire.fetch, "b1").parts
    assert back.error is not None
    assert back.error.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert back.leader == LeaderHint(2, 5)


def test_a_topic_by_name() -> None:
    part = broker_pb2.FetchPartition(partition=1, offset=3)
    by_name = broker_pb2.FetchTopic(name="a", partitions=[part])
    request = decode_fetch(broker_pb2.FetchDataRequest(topics=[by_name]), VIEW)
    assert request.parts[0].partition == PartitionId(A, 1)
    wrong = broker_pb2.FetchTopic(name="nope", partitions=[part])
    with pytest.raises(UnknownTopicOrPartition, match="nope"):
        decode_fetch(broker_pb2.FetchDataRequest(topics=[wrong]), VIEW)


def test_a_range() -> None:
    message = broker_pb2.FetchRangeRequest(
        name="a", partition=1, from_offset=5, to_offset=9, leader_epoch=0
    )
    expected = RangeRequest(PartitionId(A, 1), 5, 9, 0, RANGE_MESSAGE_BYTES)
    assert decode_range(message, VIEW) == expected
    message.message_bytes = 1 << 30
    assert decode_range(message, VIEW).message_bytes == RANGE_MESSAGE_BYTES_MAX
    message.name = "nope"
    with pytest.raises(UnknownTopicOrPartition):
        decode_range(message, VIEW)


def test_a_piece_of_a_range() -> None:
    told = encode_range_piece(RangePiece(b"records", 9, 12), VIEW)
    assert (told.records, told.next_offset, told.high_watermark) == (b"records", 9, 12)
    refused = RangePiece(error=OffsetOutOfRange("too far"), leader=LeaderHint(1, 2))
    assert encode_range_piece(refused, VIEW).error.leader.leader.node_id == 1
