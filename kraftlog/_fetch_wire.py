"""Fetch and ListOffsets, between a consumer's own types and the messages of brokers."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kraftlog._client_wire import error_of, hint_of
from kraftlog.cluster_view import Hint
from kraftlog.errors import KraftError
from kraftlog.fetch_session import FetchLimits, Place, SessionRequest, Wanted
from kraftlog.rpc import broker_pb2
from kraftlog.types import EpochEnd

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3


def fetch_request(request: SessionRequest, limits: FetchLimits) -> broker_pb2.FetchDataRequest:
    message = broker_pb2.FetchDataRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        session_id=request.session_id,
        session_epoch=request.epoch,
        rack=limits.rack,
    )
    topics: dict[bytes, broker_pb2.FetchTopic] = {}
    for (topic_id, partition), wanted in request.named.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = message.topics.add(topic_id=topic_id, name=wanted.topic)
        topic.partitions.append(_partition(partition, wanted, limits))
    for topic_id, partition in request.forgotten:
        message.forgotten.add(topic_id=topic_id).partitions.add(partition=partition)
    return message


def _partition(partition: int, wanted: Wanted, limits: FetchLimits) -> broker_pb2.FetchPartition:
    return broker_pb2.FetchPartition(
        partition=partition,
        leader_epoch=wanted.leader_epoch,
        offset=wanted.offset,
        last_fetched_epoch=wanted.last_epoch,
        log_start_offset=-1,
        max_bytes=limits.partition_max_bytes,
        high_watermark=-1,
    )


def wake_request(session_id: int) -> broker_pb2.FetchDataRequest:
    """Has the parked fetch of a session answered at once."""
    return broker_pb2.FetchDataRequest(session_id=session_id, wake=True)


class Fetched(NamedTuple):
    """What a reply has of one partition."""

    records: bytes
    high_watermark: int
    log_start_offset: int
    error: KraftError | None
    hint: Hint | None
    diverging: EpochEnd | None
    preferred_replica: int | None


def decode_fetched(reply: broker_pb2.FetchDataReply, node: str) -> dict[Place, Fetched]:
    return {
        (topic.topic_id, part.partition): _fetched(part, node)
        for topic in reply.topics
        for part in topic.partitions
    }


def _fetched(part: broker_pb2.FetchPartitionReply, node: str) -> Fetched:
    has_error = part.HasField("error")
    diverging = part.diverging if part.HasField("diverging") else None
    return Fetched(
        part.records,
        part.high_watermark,
        part.log_start_offset,
        error_of(part.error, node) if has_error else None,
        hint_of(part.error) if has_error else None,
        None if diverging is None else EpochEnd(diverging.epoch, diverging.end_offset),
        part.preferred_replica if part.HasField("preferred_replica") else None,
    )


# -- offsets


class OffsetFound(NamedTuple):
    """The answer of a ListOffsets query; an offset of -1 means that no record is that late."""

    offset: int
    timestamp: int
    leader_epoch: int


class OffsetQuery(NamedTuple):
    topic: str
    timestamp: int
    leader_epoch: int


def list_offsets_request(
    queries: Mapping[Place, OffsetQuery],
) -> broker_pb2.ListOffsetsRequest:
    message = broker_pb2.ListOffsetsRequest()
    for (topic_id, partition), query in queries.items():
        topic = message.topics.add(topic_id=topic_id, name=query.topic)
        topic.partitions.add(
            partition=partition, timestamp=query.timestamp, leader_epoch=query.leader_epoch
        )
    return message


def decode_offsets(
    reply: broker_pb2.ListOffsetsReply, node: str
) -> Iterable[tuple[Place, OffsetFound | KraftError, Hint | None]]:
    for topic in reply.topics:
        for part in topic.partitions:
            place = (topic.topic_id, part.partition)
            if part.HasField("error"):
                yield place, error_of(part.error, node), hint_of(part.error)
            else:
                yield place, OffsetFound(part.offset, part.timestamp, part.leader_epoch), None
