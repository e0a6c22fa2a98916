"""Requests from the wire and replies back to it, for topics by id, by name, and by wrong names."""

from brokers import data_wire
from brokers.cluster import PartitionId
from brokers.refusals import LeaderHint
from brokers.requests import (
    DeleteAnswer,
    DeletePart,
    EndsAnswer,
    EndsPart,
    EpochAnswer,
    EpochQuery,
    OffsetAnswer,
    OffsetQuery,
    ProducePart,
    ProduceResult,
    RangeAnswer,
    RangeQuery,
    ReplicaInfo,
)
from kraftlog.errors import ErrorCode, NotLeaderError
from kraftlog.rpc import broker_pb2 as pb
from kraftlog.types import EpochEnd
from tests.brokers.images import topic, uuid
from tests.brokers.views import view_of

A, B = uuid("a").raw, uuid("b").raw
VIEW = view_of(topic("a", [1, 2], [2, 1]), topic("b", [3]))


def test_produce_by_id_name_and_wrong_name() -> None:
    message = pb.ProduceRequest(
        acks=-1,
        timeout_ms=500,
        topics=[
            pb.ProduceTopic(
                topic_id=A, partitions=[pb.ProducePartition(partition=1, records=b"x")]
            ),
            pb.ProduceTopic(name="nope", partitions=[pb.ProducePartition(partition=0)]),
            pb.ProduceTopic(name="b", partitions=[pb.ProducePartition(partition=0, records=b"y")]),
        ],
    )
    asked = data_wire.layout(message.topics, VIEW)
    request = data_wire.decode_produce(message, asked)
    assert (request.acks, request.timeout_ms) == (-1, 500)
    assert request.parts == [
        ProducePart(PartitionId(A, 1), b"x"),
        ProducePart(PartitionId(B, 0), b"y"),
    ]
    reply = pb.ProduceReply()
    results = [
        ProduceResult(PartitionId(A, 1), 17, 5, 3),
        ProduceResult(PartitionId(B, 0), error=NotLeaderError("no"), leader=LeaderHint(3, 4)),
    ]
    data_wire.write_produce(reply, asked, results, VIEW)
    first, second, third = (topic.partitions[0] for topic in reply.topics)
    assert [each.topic_id for each in reply.topics] == [A, b"", B]
    assert (first.partition, first.base_offset, first.append_time) == (1, 17, 5)
    assert first.log_start_offset == 3
    assert not first.HasField("error")
    assert second.error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "'nope'" in second.error.message
    assert third.error.leader.leader.node_id == 3
    assert third.base_offset == -1


def test_list_offsets() -> None:
    part = pb.ListOffsetsPartition(partition=1, timestamp=-2, leader_epoch=0)
    message = pb.ListOffsetsRequest(
        topics=[
            pb.ListOffsetsTopic(name="a", partitions=[part]),
            pb.ListOffsetsTopic(
                name="b", partitions=[pb.ListOffsetsPartition(partition=0, timestamp=-1)]
            ),
        ]
    )
    asked = data_wire.layout(message.topics, VIEW)
    assert data_wire.decode_list_offsets(message, asked) == [
        OffsetQuery(PartitionId(A, 1), -2, 0),
        OffsetQuery(PartitionId(B, 0), -1, None),
    ]
    reply = pb.ListOffsetsReply()
    answers = [
        OffsetAnswer(PartitionId(A, 1), 4, 1_000, 2),
        OffsetAnswer(PartitionId(B, 0)),
    ]
    data_wire.write_list_offsets(reply, asked, answers, VIEW)
    first, second = (topic.partitions[0] for topic in reply.topics)
    assert (first.offset, first.timestamp, first.leader_epoch) == (4, 1_000, 2)
    assert (second.offset, second.timestamp, second.leader_epoch) == (-1, -1, -1)


def test_epoch_ends() -> None:
    part = pb.EpochEndsPartition(partition=0, leader_epoch=3, current_leader_epoch=0)
    message = pb.EpochEndsRequest(
        topics=[
            pb.EpochEndsTopic(
                topic_id=A,
                partitions=[part, pb.EpochEndsPartition(partition=1, leader_epoch=5)],
            )
        ]
    )
    asked = data_wire.layout(message.topics, VIEW)
    assert data_wire.decode_epoch_ends(message, asked) == [
        EpochQuery(PartitionId(A, 0), 3, 0),
        EpochQuery(PartitionId(A, 1), 5, None),
    ]
    reply = pb.EpochEndsReply()
    answers = [
        EpochAnswer(PartitionId(A, 0), EpochEnd(2, 40)),
        EpochAnswer(PartitionId(A, 1)),
    ]
    data_wire.write_epoch_ends(reply, asked, answers, VIEW)
    first, second = reply.topics[0].partitions
    assert (first.end.epoch, first.end.end_offset) == (2, 40)
    assert not second.HasField("end")


def test_ends() -> None:
    message = pb.EndsRequest(
        topics=[
            pb.EndsTopic(name="b", partitions=[pb.EndsPartition(partition=0, known_end=7)]),
        ],
        max_wait_ms=300,
    )
    asked = data_wire.layout(message.topics, VIEW)
    request = data_wire.decode_ends(message, asked)
    assert (request.max_wait_ms, request.parts) == (300, [EndsPart(PartitionId(B, 0), 7)])
    reply = pb.EndsReply()
    data_wire.write_ends(reply, asked, [EndsAnswer(PartitionId(B, 0), 1, 9, 2)], VIEW)
    part = reply.topics[0].partitions[0]
    assert (part.log_start_offset, part.high_watermark, part.leader_epoch) == (1, 9, 2)


def test_delete_records() -> None:
    message = pb.DeleteRecordsRequest(
        topics=[
            pb.DeleteRecordsTopic(
                topic_id=A, partitions=[pb.DeleteRecordsPartition(partition=0, offset=-1)]
            ),
        ],
        timeout_ms=300,
    )
    asked = data_wire.layout(message.topics, VIEW)
    request = data_wire.decode_delete_records(message, asked)
    assert (request.timeout_ms, request.parts) == (300, [DeletePart(PartitionId(A, 0), -1)])
    reply = pb.DeleteRecordsReply()
    data_wire.write_delete_records(reply, asked, [DeleteAnswer(PartitionId(A, 0), 12)], VIEW)
    assert reply.topics[0].partitions[0].log_start_offset == 12


def test_estimates_keep_their_order() -> None:
    message = pb.EstimateBytesRequest(
        ranges=[
            pb.OffsetRange(name="nope", partition=0),
            pb.OffsetRange(name="a", partition=1, from_offset=2, to_offset=9),
        ]
    )
    asked = data_wire.decode_estimates(message, VIEW)
    assert [each.query for each in asked] == [None, RangeQuery(PartitionId(A, 1), 2, 9)]
    reply = pb.EstimateBytesReply()
    data_wire.write_estimates(reply, asked, [RangeAnswer(700)], VIEW)
    assert reply.ranges[0].error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reply.ranges[1].bytes == 700


def test_a_replica_has_a_digest_only_if_it_was_asked_for() -> None:
    info = ReplicaInfo(PartitionId(A, 1), "a", "/d", 100, 1, 2, 3, 4, is_leader=True)
    assert not data_wire.encode_replica(info).HasField("digest")
    with_digest = ReplicaInfo(PartitionId(A, 1), "a", "/d", 100, 1, 2, 3, 4, True, 0)
    told = data_wire.encode_replica(with_digest)
    assert told.HasField("digest")
    assert (told.topic, told.topic_id, told.partition, told.log_dir) == ("a", A, 1, "/d")
    assert (told.size_bytes, told.log_start_offset, told.high_watermark) == (100, 1, 2)
    assert (told.end_offset, told.leader_epoch, told.is_leader) == (3, 4, True)
