"""Requests about partitions, but for fetches: from the wire and back.

Such a request names topics, each by id or by name, and partitions of them. Its reply has the same
topics and partitions in the same order, so that one by name can be told from another even where
there is no topic of that name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from brokers.cluster import PartitionId
from brokers.refusals import LeaderHint
from brokers.requests import (
    DeleteAnswer,
    DeletePart,
    DeleteRequest,
    EndsAnswer,
    EndsPart,
    EndsRequest,
    EpochAnswer,
    EpochQuery,
    OffsetAnswer,
    OffsetQuery,
    ProducePart,
    ProduceRequest,
    ProduceResult,
    RangeAnswer,
    RangeQuery,
    ReplicaInfo,
)
from brokers.wire import Directory, encode_error, unknown_topic
from kraftlog.errors import KraftError
from kraftlog.rpc import broker_pb2, common_pb2

# -- topics and partitions


@dataclass(frozen=True, slots=True)
class AskedTopic:
    """The part of a request that its reply is laid out by; the records themselves are not kept."""

    topic_id: bytes | None
    """None: there is no topic of that name."""
    name: str
    partitions: tuple[int, ...]


Layout = Sequence[AskedTopic]

P = TypeVar("P")
P_co = TypeVar("P_co", covariant=True)


class _Repeated(Protocol[P_co]):
    """A repeated field of a message."""

    def add(self, **fields: object) -> P_co: ...


class _Numbered(Protocol):
    @property
    def partition(self) -> int: ...


class _Topic(Protocol):
    """A topic in a request."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Iterable[_Numbered]: ...


def layout(topics: Iterable[_Topic], directory: Directory) -> Layout:
    return [
        AskedTopic(
            topic.topic_id or directory.topic_id(topic.name),
            topic.name,
            tuple(part.partition for part in topic.partitions),
        )
        for topic in topics
    ]


class _Answer(Protocol):
    """What the data plane says of one partition."""

    @property
    def error(self) -> KraftError | None: ...
    @property
    def leader(self) -> LeaderHint | None: ...


class _PartReply(Protocol):
    """What the reply says of one partition."""

    @property
    def error(self) -> common_pb2.Error: ...


class _TopicReply(Protocol[P_co]):
    @property
    def partitions(self) -> _Repeated[P_co]: ...


A = TypeVar("A", bound=_Answer)
R = TypeVar("R", bound=_PartReply)


def _lay_out(
    asked: Layout,
    answers: Iterable[A],
    reply: _Repeated[_TopicReply[R]],
    write: Callable[[R, A], None],
    directory: Directory,
) -> None:
    """Fill a reply: one answer for each partition of a topic that exists, in order."""
    following = iter(answers)
    for topic in asked:
        topic_reply = reply.add(topic_id=topic.topic_id or b"")
        for partition in topic.partitions:
            part = topic_reply.partitions.add(partition=partition)
            if topic.topic_id is None:
                part.error.CopyFrom(encode_error(unknown_topic(topic.name), None, directory))
                continue
            answer = next(following)
            if answer.error is not None:
                part.error.CopyFrom(encode_error(answer.error, answer.leader, directory))
            write(part, answer)


# -- produce


def decode_produce(message: broker_pb2.ProduceRequest, asked: Layout) -> ProduceRequest:
    parts = [
        ProducePart(PartitionId(ours.topic_id, part.partition), part.records)
        for topic, ours in zip(message.topics, asked, strict=True)
        if ours.topic_id is not None
        for part in topic.partitions
    ]
    return ProduceRequest(message.acks, message.timeout_ms, parts)


def write_produce(
    reply: broker_pb2.ProduceReply,
    asked: Layout,
    results: Iterable[ProduceResult],
    directory: Directory,
) -> None:
    _lay_out(asked, results, reply.topics, _write_part, directory)


def _write_part(part: broker_pb2.ProducePartitionReply, result: ProduceResult) -> None:
    part.base_offset = result.base_offset
    part.append_time = result.append_time
    part.log_start_offset = result.log_start_offset


# -- offsets


def decode_list_offsets(message: broker_pb2.ListOffsetsRequest, asked: Layout) -> list[OffsetQuery]:
    return [
        OffsetQuery(
            PartitionId(ours.topic_id, part.partition),
            part.timestamp,
            part.leader_epoch if part.HasField("leader_epoch") else None,
        )
        for topic, ours in zip(message.topics, asked, strict=True)
        if ours.topic_id is not None
        for part in topic.partitions
    ]


def write_list_offsets(
    reply: broker_pb2.ListOffsetsReply,
    asked: Layout,
    answers: Iterable[OffsetAnswer],
    directory: Directory,
) -> None:
    _lay_out(asked, answers, reply.topics, _write_offset, directory)


def _write_offset(part: broker_pb2.ListOffsetsPartitionReply, answer: OffsetAnswer) -> None:
    part.offset = answer.offset
    part.timestamp = answer.timestamp
    part.leader_epoch = answer.leader_epoch


def decode_epoch_ends(message: broker_pb2.EpochEndsRequest, asked: Layout) -> list[EpochQuery]:
    return [
        EpochQuery(
            PartitionId(ours.topic_id, part.partition),
            part.leader_epoch,
            part.current_leader_epoch if part.HasField("current_leader_epoch") else None,
        )
        for topic, ours in zip(message.topics, asked, strict=True)
        if ours.topic_id is not None
        for part in topic.partitions
    ]


def write_epoch_ends(
    reply: broker_pb2.EpochEndsReply,
    asked: Layout,
    answers: Iterable[EpochAnswer],
    directory: Directory,
) -> None:
    _lay_out(asked, answers, reply.topics, _write_epoch_end, directory)


def _write_epoch_end(part: broker_pb2.EpochEndsPartitionReply, answer: EpochAnswer) -> None:
    if answer.end is not None:
        part.end.epoch = answer.end.epoch
        part.end.end_offset = answer.end.end_offset


def decode_ends(message: broker_pb2.EndsRequest, asked: Layout) -> EndsRequest:
    parts = [
        EndsPart(PartitionId(ours.topic_id, part.partition), part.known_end)
        for topic, ours in zip(message.topics, asked, strict=True)
        if ours.topic_id is not None
        for part in topic.partitions
    ]
    return EndsRequest(parts, message.max_wait_ms)


def write_ends(
    reply: broker_pb2.EndsReply, asked: Layout, answers: Iterable[EndsAnswer], directory: Directory
) -> None:
    _lay_out(asked, answers, reply.topics, _write_end, directory)


def _write_end(part: broker_pb2.EndsPartitionReply, answer: EndsAnswer) -> None:
    part.log_start_offset = answer.log_start_offset
    part.high_watermark = answer.high_watermark
    part.leader_epoch = answer.leader_epoch


# -- delete records


def decode_delete_records(message: broker_pb2.DeleteRecordsRequest, asked: Layout) -> DeleteRequest:
    parts = [
        DeletePart(PartitionId(ours.topic_id, part.partition), part.offset)
        for topic, ours in zip(message.topics, asked, strict=True)
        if ours.topic_id is not None
        for part in topic.partitions
    ]
    return DeleteRequest(parts, message.timeout_ms)


def write_delete_records(
    reply: broker_pb2.DeleteRecordsReply,
    asked: Layout,
    answers: Iterable[DeleteAnswer],
    directory: Directory,
) -> None:
    _lay_out(asked, answers, reply.topics, _write_delete, directory)


def _write_delete(part: broker_pb2.DeleteRecordsPartitionReply, answer: DeleteAnswer) -> None:
    part.log_start_offset = answer.log_start_offset


# -- estimates, one for each range


@dataclass(frozen=True, slots=True)
class AskedRange:
    name: str
    query: RangeQuery | None
    """None: there is no topic of that name."""


def decode_estimates(
    message: broker_pb2.EstimateBytesRequest, directory: Directory
) -> list[AskedRange]:
    return [_decode_estimate(asked, directory) for asked in message.ranges]


def _decode_estimate(asked: broker_pb2.OffsetRange, directory: Directory) -> AskedRange:
    topic_id = asked.topic_id or directory.topic_id(asked.name)
    if topic_id is None:
        return AskedRange(asked.name, None)
    partition = PartitionId(topic_id, asked.partition)
    return AskedRange(asked.name, RangeQuery(partition, asked.from_offset, asked.to_offset))


def write_estimates(
    reply: broker_pb2.EstimateBytesReply,
    asked: Sequence[AskedRange],
    answers: Iterable[RangeAnswer],
    directory: Directory,
) -> None:
    following = iter(answers)
    for each in asked:
        result = reply.ranges.add()
        if each.query is None:
            result.error.CopyFrom(encode_error(unknown_topic(each.name), None, directory))
            continue
        answer = next(following)
        result.bytes = answer.bytes
        if answer.error is not None:
            result.error.CopyFrom(encode_error(answer.error, answer.leader, directory))


# -- what is on disk


def decode_digest_ranges(
    request: broker_pb2.DescribeReplicasRequest, directory: Directory
) -> dict[PartitionId, tuple[int, int]]:
    """A partition that is unknown here has none."""
    asked = [
        (each.topic_id or directory.topic_id(each.name) or b"", each) for each in request.digest_of
    ]
    return {
        PartitionId(topic_id, each.partition): (each.from_offset, each.to_offset)
        for topic_id, each in asked
    }


def encode_replica(info: ReplicaInfo) -> broker_pb2.ReplicaDescription:
    return broker_pb2.ReplicaDescription(
        topic=info.topic,
        topic_id=info.partition.topic_id,
        partition=info.partition.partition,
        log_dir=info.log_dir,
        size_bytes=info.size_bytes,
        log_start_offset=info.log_start_offset,
        high_watermark=info.high_watermark,
        end_offset=info.end_offset,
        leader_epoch=info.leader_epoch,
        is_leader=info.is_leader,
        digest=info.digest,
    )
