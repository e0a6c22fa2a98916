"""Which offset a place in a partition is: asked of the leaders, all partitions of one at once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from kraftlog._fetch_wire import (
    EARLIEST,
    LATEST,
    OffsetFound,
    OffsetQuery,
    decode_offsets,
    list_offsets_request,
)
from kraftlog.cluster_client import ClusterClient, no_answer
from kraftlog.cluster_view import Node
from kraftlog.errors import KraftError
from kraftlog.fetch_session import Place
from kraftlog.offsets import Anchor, Offset
from kraftlog.retry import may_repeat, needs_new_view
from kraftlog.types import TopicPartition

NO_RECORD = -1

Answers = dict[TopicPartition, OffsetFound | KraftError]


@dataclass(slots=True)
class _Group:
    node: Node
    queries: dict[Place, OffsetQuery]
    places: dict[Place, TopicPartition]


async def query_offsets(
    client: ClusterClient, timestamps: Mapping[TopicPartition, int], *, timeout_ms: float
) -> Answers:
    """What ListOffsets says of each; an error is the answer for its partition alone."""
    answers: Answers = {}
    pending = dict(timestamps)
    deadline = client.clock.monotonic_ms() + timeout_ms
    client.watch_topics({place.topic for place in pending})
    failures = 0
    while pending:
        remaining = deadline - client.clock.monotonic_ms()
        answers |= await _ask_once(client, pending, max(remaining, 1))
        pending = {place: pending[place] for place in pending if _is_open(answers[place])}
        failures += 1
        pause_ms = client.retry.backoff.pause_ms(failures, client.dice)
        if not pending or remaining <= pause_ms:
            break
        if any(needs_new_view(error) for error in map(_error, answers.values()) if error):
            await client.refresh(timeout_ms=pause_ms)
        await asyncio.sleep(pause_ms / 1000)
    return answers


def _error(answer: OffsetFound | KraftError) -> KraftError | None:
    return answer if isinstance(answer, KraftError) else None


def _is_open(answer: OffsetFound | KraftError) -> bool:
    return isinstance(answer, KraftError) and may_repeat(answer, harmless=True)


async def _ask_once(
    client: ClusterClient, timestamps: Mapping[TopicPartition, int], remaining_ms: float
) -> Answers:
    answers: Answers = {}
    groups: dict[int, _Group] = {}
    for place, timestamp in timestamps.items():
        try:
            node, epoch = client.view.leader(place)
            topic_id = client.view.topic(place.topic).topic_id
        except KraftError as error:
            answers[place] = error
            continue
        group = groups.setdefault(node.node_id, _Group(node, {}, {}))
        key = (topic_id, place.partition)
        group.queries[key] = OffsetQuery(place.topic, timestamp, epoch)
        group.places[key] = place
    asked = [_ask_group(client, group, remaining_ms) for group in groups.values()]
    for found in await asyncio.gather(*asked):
        answers |= found
    return answers


async def _ask_group(client: ClusterClient, group: _Group, remaining_ms: float) -> Answers:
    timeout_ms = min(remaining_ms, client.options.request_timeout_ms)
    address = group.node.address
    try:
        reply = await client.ask(
            address, "list_offsets", list_offsets_request(group.queries), timeout_ms=timeout_ms
        )
    except KraftError as error:
        return dict.fromkeys(group.places.values(), error)
    left_out: KraftError = no_answer("list_offsets (left out)", address)
    answers: Answers = dict.fromkeys(group.places.values(), left_out)
    for key, answer, hint in decode_offsets(reply.list_offsets, address):
        if key in group.places:
            answers[group.places[key]] = answer
            if hint is not None:
                client.view.learn_leader(group.places[key], hint)
    return answers


async def locate(
    client: ClusterClient, starts: Mapping[TopicPartition, Offset], *, timeout_ms: float
) -> dict[TopicPartition, int | KraftError]:
    """The offset of each place: within what the partition has, unless an offset was named."""
    now_ms = client.clock.wall_ms()
    found: dict[TopicPartition, int | KraftError] = {}
    edges: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    for place, start in starts.items():
        time_ms = start.time_ms(now_ms)
        if start.anchor is Anchor.ABSOLUTE:
            found[place] = start.number
        elif time_ms is not None:
            times[place] = time_ms
        else:
            edges[place] = EARLIEST if start.anchor is Anchor.START else LATEST
    by_time = await query_offsets(client, times, timeout_ms=timeout_ms)
    # No record is that late: the next one will be.
    late = {place: LATEST for place, answer in by_time.items() if _is_none(answer)}
    far = {place: starts[place] for place in edges if starts[place].number}
    opposite = {
        place: LATEST if start.anchor is Anchor.START else EARLIEST for place, start in far.items()
    }
    at_edges = await query_offsets(client, edges | late, timeout_ms=timeout_ms)
    limits = await query_offsets(client, opposite, timeout_ms=timeout_ms)
    for place, answer in (by_time | at_edges).items():
        found[place] = _offset_of(answer)
    for place, start in far.items():
        found[place] = _shift(start, found[place], _offset_of(limits[place]))
    return found


def _is_none(answer: OffsetFound | KraftError) -> bool:
    return isinstance(answer, OffsetFound) and answer.offset == NO_RECORD


def _offset_of(answer: OffsetFound | KraftError) -> int | KraftError:
    return answer if isinstance(answer, KraftError) else answer.offset


def _shift(start: Offset, edge: int | KraftError, limit: int | KraftError) -> int | KraftError:
    """So many records behind the start or before the end, but not past the other edge."""
    if isinstance(edge, KraftError):
        return edge
    if isinstance(limit, KraftError):
        return limit
    if start.anchor is Anchor.START:
        return min(edge + start.number, limit)
    return max(edge - start.number, limit)
