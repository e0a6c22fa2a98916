"""Fetches on the wire, both ways: a broker serves them, and asks them of other brokers."""

from collections.abc import Iterable

from brokers.cluster import PartitionId
from brokers.requests import (
    FetchPart,
    FetchReply,
    FetchRequest,
    FetchResult,
    RangePiece,
    RangeRequest,
    ReplicaIdentity,
)
from brokers.wire import (
    Directory,
    decode_error,
    decode_hint,
    encode_error,
    unknown_topic,
)
from kraftlog.framing import Pieces, enclose
from kraftlog.rpc import broker_pb2
from kraftlog.types import Buffer, EpochEnd

RANGE_MESSAGE_BYTES = 1 << 20
RANGE_MESSAGE_BYTES_MAX = 3 << 20
"""A message holds at most 4 MiB, and a batch may reach beyond what was asked for."""

_FETCH = broker_pb2.BrokerReply.FETCH_FIELD_NUMBER
_TOPICS = broker_pb2.FetchDataReply.TOPICS_FIELD_NUMBER
_PARTITIONS = broker_pb2.FetchTopicReply.PARTITIONS_FIELD_NUMBER
_RECORDS = broker_pb2.FetchPartitionReply.RECORDS_FIELD_NUMBER

# -- requests


def decode_fetch(message: broker_pb2.FetchDataRequest, directory: Directory) -> FetchRequest:
    """UnknownTopicOrPartition if a topic is given by a name that does not exist: the reply, which
    holds ids, could not say which one it was.
    """
    return FetchRequest(
        replica=_decode_replica(message),
        max_wait_ms=message.max_wait_ms,
        min_bytes=message.min_bytes,
        max_bytes=message.max_bytes,
        session_id=message.session_id,
        session_epoch=message.session_epoch,
        parts=[
            _decode_part(PartitionId(topic_id, part.partition), part)
            for topic_id, topic in _with_ids(message.topics, directory)
            for part in topic.partitions
        ],
        forgotten=[
            PartitionId(topic_id, part.partition)
            for topic_id, topic in _with_ids(message.forgotten, directory)
            for part in topic.partitions
        ],
        rack=message.rack,
        wake=message.wake,
    )


def _decode_replica(message: broker_pb2.FetchDataRequest) -> ReplicaIdentity | None:
    if not message.HasField("replica"):
        return None
    return ReplicaIdentity(message.replica.broker_id, message.replica.broker_epoch)


def _with_ids(
    topics: Iterable[broker_pb2.FetchTopic], directory: Directory
) -> Iterable[tuple[bytes, broker_pb2.FetchTopic]]:
    for topic in topics:
        topic_id = topic.topic_id or directory.topic_id(topic.name)
        if topic_id is None:
            raise unknown_topic(topic.name)
        yield topic_id, topic


def _decode_part(partition: PartitionId, part: broker_pb2.FetchPartition) -> FetchPart:
    return FetchPart(
        partition,
        part.offset,
        part.leader_epoch if part.HasField("leader_epoch") else None,
        part.last_fetched_epoch if part.HasField("last_fetched_epoch") else None,
        part.log_start_offset,
        part.max_bytes,
        part.high_watermark,
    )


def encode_fetch(request: FetchRequest) -> broker_pb2.FetchDataRequest:
    message = broker_pb2.FetchDataRequest(
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        rack=request.rack,
        wake=request.wake,
    )
    if request.replica is not None:
        message.replica.broker_id = request.replica.broker_id
        message.replica.broker_epoch = request.replica.broker_epoch
    topics: dict[bytes, broker_pb2.FetchTopic] = {}
    for part in request.parts:
        topic_id = part.partition.topic_id
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = message.topics.add(topic_id=topic_id)
        topic.partitions.append(_encode_part(part))
    forgotten: dict[bytes, broker_pb2.FetchTopic] = {}
    for partition in request.forgotten:
        topic = forgotten.get(partition.topic_id)
        if topic is None:
            topic = message.forgotten.add(topic_id=partition.topic_id)
            forgotten[partition.topic_id] = topic
        topic.partitions.add(partition=partition.partition)
    return message


def _encode_part(part: FetchPart) -> broker_pb2.FetchPartition:
    return broker_pb2.FetchPartition(
        partition=part.partition.partition,
        leader_epoch=part.leader_epoch,
        offset=part.offset,
        last_fetched_epoch=part.last_fetched_epoch,
        log_start_offset=part.log_start_offset,
        max_bytes=part.max_bytes,
        high_watermark=part.high_watermark,
    )


# -- replies


def encode_fetch_envelope(reply: FetchReply, correlation_id: int, directory: Directory) -> Pieces:
    """The whole BrokerReply, in pieces. Only what is small passes through protobuf: records are
    copied once, into the message on the stream.
    """
    topics: dict[bytes, list[Buffer]] = {}
    for result in reply.parts:
        topic_id = result.partition.topic_id
        chunks = topics.get(topic_id)
        if chunks is None:
            head = broker_pb2.FetchTopicReply(topic_id=topic_id)
            chunks = topics[topic_id] = [head.SerializeToString()]
        chunks += _encode_result(result, directory)
    session = broker_pb2.FetchDataReply(session_id=reply.session_id)
    fetched: list[Buffer] = [session.SerializeToString()]
    for chunks in topics.values():
        fetched += enclose(_TOPICS, chunks)
    envelope = broker_pb2.BrokerReply(correlation_id=correlation_id).SerializeToString()
    return envelope, *enclose(_FETCH, fetched)


def _encode_result(result: FetchResult, directory: Directory) -> Pieces:
    part = broker_pb2.FetchPartitionReply(
        partition=result.partition.partition,
        high_watermark=result.high_watermark,
        log_start_offset=result.log_start_offset,
        end_offset=result.end_offset,
        preferred_replica=result.preferred_replica,
    )
    if result.error is not None:
        part.error.CopyFrom(encode_error(result.error, result.leader, directory))
    if result.diverging is not None:
        part.diverging.epoch = result.diverging.epoch
        part.diverging.end_offset = result.diverging.end_offset
    small, records = part.SerializeToString(), result.records
    return enclose(_PARTITIONS, (small, *enclose(_RECORDS, (records,))) if records else (small,))


def decode_fetch_reply(message: broker_pb2.FetchDataReply, node: str) -> FetchReply:
    return FetchReply(
        message.session_id,
        [
            _decode_result(PartitionId(topic.topic_id, part.partition), part, node)
            for topic in message.topics
            for part in topic.partitions
        ],
    )


def _decode_result(
    partition: PartitionId, part: broker_pb2.FetchPartitionReply, node: str
) -> FetchResult:
    result = FetchResult(
        partition,
        high_watermark=part.high_watermark,
        log_start_offset=part.log_start_offset,
        end_offset=part.end_offset,
        records=part.records,
    )
    if part.HasField("diverging"):
        result.diverging = EpochEnd(part.diverging.epoch, part.diverging.end_offset)
    if part.HasField("preferred_replica"):
        result.preferred_replica = part.preferred_replica
    if part.HasField("error"):
        result.error = decode_error(part.error, node)
        result.leader = decode_hint(part.error)
    return result


# -- ranges


def decode_range(message: broker_pb2.FetchRangeRequest, directory: Directory) -> RangeRequest:
    topic_id = message.topic_id or directory.topic_id(message.name)
    if topic_id is None:
        raise unknown_topic(message.name)
    wanted = message.message_bytes if message.HasField("message_bytes") else RANGE_MESSAGE_BYTES
    return RangeRequest(
        PartitionId(topic_id, message.partition),
        message.from_offset,
        message.to_offset,
        message.leader_epoch if message.HasField("leader_epoch") else None,
        max(1, min(wanted, RANGE_MESSAGE_BYTES_MAX)),
    )


def encode_range_piece(piece: RangePiece, directory: Directory) -> broker_pb2.FetchRangeReply:
    message = broker_pb2.FetchRangeReply(
        high_watermark=piece.high_watermark, records=piece.records, next_offset=piece.next_offset
    )
    if piece.error is not None:
        message.error.CopyFrom(encode_error(piece.error, piece.leader, directory))
    return message
