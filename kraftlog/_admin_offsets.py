"""What an administrator asks of the leaders of partitions: offsets, and to delete records."""

import asyncio
from collections.abc import Mapping
from typing import Literal

from kraftlog._client_wire import error_of
from kraftlog._fetch_wire import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetFound
from kraftlog._offset_finder import locate, query_offsets
from kraftlog.admin_types import ListedOffset
from kraftlog.cluster_client import ClusterClient
from kraftlog.cluster_view import Node
from kraftlog.errors import KraftError
from kraftlog.offsets import Anchor, Offset, to_offset
from kraftlog.results import Results
from kraftlog.rpc import broker_pb2
from kraftlog.types import TopicPartition

OffsetPlace = int | str | Offset
"""As for `seek`, or "max_timestamp": the record with the latest timestamp."""


async def list_offsets(
    cluster: ClusterClient, places: Mapping[TopicPartition, OffsetPlace], timeout_ms: float
) -> Results[TopicPartition, ListedOffset]:
    await _find_topics(cluster, places, timeout_ms)
    timestamps: dict[TopicPartition, int] = {}
    others: dict[TopicPartition, Offset] = {}
    for place, wanted in places.items():
        timestamp = _timestamp(wanted, cluster.clock.wall_ms())
        if timestamp is None:
            others[place] = to_offset(wanted)
        else:
            timestamps[place] = timestamp
    asked = await query_offsets(cluster, timestamps, timeout_ms=timeout_ms)
    located = await locate(cluster, others, timeout_ms=timeout_ms)
    found: dict[TopicPartition, ListedOffset | KraftError] = {
        place: ListedOffset(*answer) if isinstance(answer, OffsetFound) else answer
        for place, answer in asked.items()
    }
    for place, offset in located.items():
        found[place] = ListedOffset(offset) if isinstance(offset, int) else offset
    return Results({place: found[place] for place in places})


async def _find_topics(
    cluster: ClusterClient, places: Mapping[TopicPartition, object], timeout_ms: float
) -> None:
    """Have the topics in the view; one that does not exist is an error of its partitions alone."""
    missing = {place.topic for place in places} - cluster.view.topics.keys()
    if missing:
        cluster.watch_topics(missing)
        await cluster.refresh(timeout_ms=timeout_ms)


def _timestamp(place: OffsetPlace, now_ms: int) -> int | None:
    """What ListOffsets calls a place; None where it takes more than one question."""
    if place == "max_timestamp":
        return MAX_TIMESTAMP
    offset = to_offset(place)
    if offset.anchor in (Anchor.START, Anchor.END) and offset.number == 0:
        return EARLIEST if offset.anchor is Anchor.START else LATEST
    return offset.time_ms(now_ms)


async def delete_records(
    cluster: ClusterClient,
    before: Mapping[TopicPartition, int | Literal["end"]],
    timeout_ms: float,
) -> Results[TopicPartition, int]:
    outcomes = await asyncio.gather(
        *(_delete(cluster, place, offset, timeout_ms) for place, offset in before.items())
    )
    return Results(dict(zip(before, outcomes, strict=True)))


async def _delete(
    cluster: ClusterClient, place: TopicPartition, offset: int | Literal["end"], timeout_ms: float
) -> int | KraftError:
    async def attempt(node: Node, _epoch: int, remaining_ms: float) -> int:
        topic_id = cluster.view.topic(place.topic).topic_id
        request = broker_pb2.DeleteRecordsRequest(timeout_ms=int(remaining_ms))
        topic = request.topics.add(topic_id=topic_id, name=place.topic)
        topic.partitions.add(partition=place.partition, offset=-1 if offset == "end" else offset)
        reply = await cluster.ask(node.address, "delete_records", request, timeout_ms=remaining_ms)
        told = reply.delete_records.topics[0].partitions[0]
        if told.HasField("error"):
            raise error_of(told.error, node.address)
        return told.log_start_offset

    try:
        return await cluster.ask_leader(place, attempt, timeout_ms=timeout_ms)
    except KraftError as error:
        return error
