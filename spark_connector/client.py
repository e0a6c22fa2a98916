"""A cluster as source and sink see it: one connection per process, made when it is first used.

Spark's Python workers are forked and used again, and readers travel to them pickled: so nothing
that is open is kept in a reader, and what is open belongs to the process that opened it.
"""

import asyncio
import difflib
import os
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeVar

import grpc

from kraftlog._background import Background
from kraftlog._client_wire import error_of, header, hint_of
from kraftlog._loop_thread import LoopThread
from kraftlog._offset_finder import locate, query_offsets
from kraftlog.client_config import CommonOptions
from kraftlog.cluster_client import ClusterClient, no_answer, not_reached
from kraftlog.cluster_view import Node, TopicView
from kraftlog.connection import CHANNEL_OPTIONS
from kraftlog.errors import ConfigError, KraftError, UnknownTopicOrPartition
from kraftlog.offsets import Offset
from kraftlog.resolver import resolver
from kraftlog.retry import may_repeat, needs_new_view
from kraftlog.rpc import broker_pb2
from kraftlog.types import TopicPartition
from spark_connector.loss import TopicGone
from spark_connector.offsets import Offsets, Range

FETCH_RANGE = "/kraftlog.rpc.Broker/FetchRange"
MISSING_TOPIC_MS = 3_000
"""How long a topic may be unknown: one that was made just now is not known to every broker yet."""
WAIT_SLACK_MS = 2_000
"""A broker that lets us wait answers so much later than it was asked to, at most."""

T = TypeVar("T")


class RangeCall(Protocol):
    """A stream of messages that is under way."""

    def __iter__(self) -> Iterator[bytes]: ...
    def cancel(self) -> object: ...


class Ends(NamedTuple):
    """What there is of a partition; the end is exclusive."""

    start: int
    end: int


class Cluster:
    """Use `cluster()` to get the one of this process."""

    def __init__(self, options: CommonOptions) -> None:
        self._options = options
        self._resolve = resolver(os.environ)
        self._channels: dict[str, grpc.Channel] = {}
        self._failure: BaseException | None = None
        self._thread = LoopThread(options.client_id, self.close)
        self._background, self._client = self._thread.run(self._open())

    async def _open(self) -> tuple[Background, ClusterClient]:
        background = await Background.open(self._options.client_id, self._failed)
        return background, ClusterClient(self._options, background)

    def _failed(self, error: BaseException) -> None:
        self._failure = error

    @property
    def is_usable(self) -> bool:
        return self._thread.is_alive and self._failure is None

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        if self._thread.is_alive:
            self._thread.run(self._background.close())
            self._thread.stop()

    def _run(self, work: Coroutine[object, object, T]) -> T:
        return self._thread.run(work)

    @property
    def api_timeout_ms(self) -> int:
        return self._options.api_timeout_ms

    # -- topics

    def topics(self, names: Sequence[str]) -> dict[str, int]:
        """How many partitions each has, as of now; a missing one is an error."""
        return self._run(self._topics(set(names)))

    async def _topics(self, names: set[str]) -> dict[str, int]:
        self._client.watch_topics(names)
        await self._look_again()
        deadline = time.monotonic() + MISSING_TOPIC_MS / 1000
        while missing := sorted(names - self._client.view.topics.keys()):
            if time.monotonic() >= deadline:
                raise await self._unknown_topic(missing[0])
            await asyncio.sleep(self._options.backoff.first_ms / 1000)
            await self._look_again()
        return {name: len(self._client.view.topics[name].partitions) for name in sorted(names)}

    def existing(self, names: Sequence[str]) -> dict[str, int]:
        """As topics, without those that do not exist."""

        async def look() -> dict[str, TopicView]:
            self._client.watch_topics(set(names))
            await self._look_again()
            return self._client.view.topics

        found = self._run(look())
        return {name: len(found[name].partitions) for name in sorted(names) if name in found}

    def matching(self, pattern: str) -> dict[str, int]:
        """The topics whose whole name matches a regular expression."""
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f"option subscribePattern = {pattern!r} is no regular expression: {error}"
            ) from None
        found = self._run(self._all_topics())
        return {name: found[name] for name in sorted(found) if wanted.fullmatch(name)}

    def topic_ids(self, names: Sequence[str]) -> dict[str, bytes]:
        """Of those that exist, as of the last look."""
        known = self._client.view.topics
        if not known.keys() >= set(names):
            self.existing(names)
            known = self._client.view.topics
        return {name: known[name].topic_id for name in names if name in known}

    async def _all_topics(self) -> dict[str, int]:
        self._client.watch_topics(set(), all_topics=True)
        await self._look_again()
        return {name: len(each.partitions) for name, each in self._client.view.topics.items()}

    async def _look_again(self) -> None:
        """A view that was asked for after this call began."""
        client = self._client

        async def once(remaining_ms: float) -> None:
            if not await client.refresh(timeout_ms=remaining_ms) or client.last_failure:
                raise client.last_failure or not_reached(", ".join(self._options.bootstrap))

        await client.retry.run(once, timeout_ms=self._options.api_timeout_ms, harmless=True)

    async def _unknown_topic(self, name: str) -> UnknownTopicOrPartition:
        known = await self._all_topics()
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else "create it first"
        return UnknownTopicOrPartition(f"no topic {name}", hint=hint)

    # -- offsets

    def locate(self, places: Mapping[TopicPartition, Offset]) -> Offsets:
        """The offset that each place means now."""
        found = self._run(locate(self._client, places, timeout_ms=self.api_timeout_ms))
        return {place: _value(found[place]) for place in places}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first record at or after each time; None: no record is that late."""
        found = self._run(query_offsets(self._client, times, timeout_ms=self.api_timeout_ms))
        offsets = {place: _value(answer) for place, answer in found.items()}
        return {place: None if offset[0] < 0 else offset[0] for place, offset in offsets.items()}

    def ends(
        self, places: Sequence[TopicPartition], known: Offsets | None = None, wait_ms: int = 0
    ) -> dict[TopicPartition, Ends]:
        """Start and end of each. With a time to wait: as soon as one goes beyond what is known."""
        return self._run(self._ends(places, known or {}, wait_ms))

    async def _ends(
        self, places: Sequence[TopicPartition], known: Offsets, wait_ms: int
    ) -> dict[TopicPartition, Ends]:
        async def once(remaining_ms: float) -> dict[TopicPartition, Ends]:
            groups = await self._by_leader(places)
            found: dict[TopicPartition, Ends] = {}
            # Those that are not asked to wait tell the others' ends too, so nothing is missed.
            asked = [
                self._ask_ends(node, group, known, wait_ms, remaining_ms) for node, group in groups
            ]
            for each in await _until_news(asked, wait_ms, self._no_wait(groups, remaining_ms)):
                found |= each
            return found

        return await self._client.retry.run(
            once,
            timeout_ms=self.api_timeout_ms,
            harmless=True,
            on_failure=self._client.refresh_after,
        )

    def _no_wait(
        self, groups: Sequence[tuple[Node, list[TopicPartition]]], remaining_ms: float
    ) -> "Callable[[int], Coroutine[object, object, dict[TopicPartition, Ends]]]":
        def ask(number: int) -> Coroutine[object, object, dict[TopicPartition, Ends]]:
            node, group = groups[number]
            return self._ask_ends(node, group, {}, 0, remaining_ms)

        return ask

    async def _by_leader(
        self, places: Sequence[TopicPartition]
    ) -> list[tuple[Node, list[TopicPartition]]]:
        for name in {place.topic for place in places}:
            await self._client.ensure_topic(name, timeout_ms=MISSING_TOPIC_MS)
        groups: dict[int, tuple[Node, list[TopicPartition]]] = {}
        for place in places:
            node, _ = self._client.view.leader(place)
            groups.setdefault(node.node_id, (node, []))[1].append(place)
        return list(groups.values())

    async def _ask_ends(
        self,
        node: Node,
        places: Sequence[TopicPartition],
        known: Offsets,
        wait_ms: int,
        remaining_ms: float,
    ) -> dict[TopicPartition, Ends]:
        request = broker_pb2.EndsRequest(max_wait_ms=wait_ms)
        by_id: dict[tuple[bytes, int], TopicPartition] = {}
        for place in places:
            topic = self._client.view.topic(place.topic)
            asked = request.topics.add(topic_id=topic.topic_id, name=place.topic)
            asked.partitions.add(partition=place.partition, known_end=known.get(place, -1))
            by_id[topic.topic_id, place.partition] = place
        timeout_ms = min(remaining_ms, self._options.request_timeout_ms) + wait_ms + WAIT_SLACK_MS
        reply = await self._client.ask(
            node.address, "ends", request, timeout_ms=timeout_ms, purpose="ends"
        )
        found: dict[TopicPartition, Ends] = {}
        for told in reply.ends.topics:
            for part in told.partitions:
                place = by_id[told.topic_id, part.partition]
                self.check_reply(part, place, node)
                found[place] = Ends(part.log_start_offset, part.high_watermark)
        if len(found) < len(places):
            raise no_answer("ends (left out)", node.address)
        return found

    def check_reply(
        self,
        part: broker_pb2.EndsPartitionReply | broker_pb2.FetchRangeReply,
        place: TopicPartition,
        node: Node,
    ) -> None:
        """Raise what an answer about a partition says, and take over whom it names."""
        if part.HasField("error"):
            hint = hint_of(part.error)
            if hint is not None:
                self._client.view.learn_leader(place, hint)
            raise error_of(part.error, node.address)

    def estimate_bytes(self, ranges: Sequence[Range]) -> dict[TopicPartition, int]:
        """About how many bytes of log each range has."""

        async def once(remaining_ms: float) -> dict[TopicPartition, int]:
            groups = await self._by_leader([each.place for each in ranges])
            asked = [self._ask_bytes(node, group, by_place, remaining_ms) for node, group in groups]
            return {
                place: size
                for found in await asyncio.gather(*asked)
                for place, size in found.items()
            }

        by_place = {each.place: each for each in ranges}
        return self._run(
            self._client.retry.run(
                once,
                timeout_ms=self.api_timeout_ms,
                harmless=True,
                on_failure=self._client.refresh_after,
            )
        )

    async def _ask_bytes(
        self,
        node: Node,
        places: Sequence[TopicPartition],
        ranges: Mapping[TopicPartition, Range],
        remaining_ms: float,
    ) -> dict[TopicPartition, int]:
        request = broker_pb2.EstimateBytesRequest()
        for place in places:
            request.ranges.add(
                topic_id=self._client.view.topic(place.topic).topic_id,
                name=place.topic,
                partition=place.partition,
                from_offset=ranges[place].start,
                to_offset=ranges[place].end,
            )
        timeout_ms = min(remaining_ms, self._options.request_timeout_ms)
        reply = await self._client.ask(
            node.address, "estimate_bytes", request, timeout_ms=timeout_ms
        )
        for told in reply.estimate_bytes.ranges:
            if told.HasField("error"):
                raise error_of(told.error, node.address)
        sizes = [told.bytes for told in reply.estimate_bytes.ranges]
        return dict(zip(places, sizes, strict=True))

    # -- reading; see `spark_connector.fetch`

    @property
    def silence(self) -> float:
        """For so many seconds a broker may say nothing."""
        return self._options.request_timeout_ms / 1000

    def leader_of(self, wanted: Range) -> tuple[Node, bytes]:
        """Who leads the partition of a range, and the topic's id; TopicGone if the topic is."""
        return self._run(self._leader(wanted))

    async def _leader(self, wanted: Range) -> tuple[Node, bytes]:
        name = wanted.place.topic
        self._client.watch_topics({name})
        deadline = time.monotonic() + MISSING_TOPIC_MS / 1000
        while (topic := self._client.view.topics.get(name)) is None or not wanted.is_of(
            topic.topic_id
        ):
            if time.monotonic() >= deadline:
                what = "does not exist any more" if topic is None else "is another one by now"
                raise TopicGone(f"topic {name} {what}: {wanted} was to be read")
            await asyncio.sleep(self._options.backoff.first_ms / 1000)
            await self._look_again()
        node, _ = self._client.view.leader(wanted.place)
        return node, topic.topic_id

    def range_request(
        self, wanted: Range, topic_id: bytes, message_bytes: int
    ) -> broker_pb2.FetchRangeRequest:
        return broker_pb2.FetchRangeRequest(
            header=header("fetch_range", 0, self._options.client_id),
            topic_id=topic_id,
            name=wanted.place.topic,
            partition=wanted.place.partition,
            from_offset=wanted.start,
            to_offset=wanted.end,
            message_bytes=message_bytes,
        )

    def open_range(self, address: str, request: broker_pb2.FetchRangeRequest) -> RangeCall:
        target = self._resolve(address)
        channel = self._channels.get(target)
        if channel is None:
            channel = self._channels[target] = grpc.insecure_channel(
                target, options=CHANNEL_OPTIONS
            )
        fetch: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(FETCH_RANGE)
        return fetch(request.SerializeToString(), wait_for_ready=False)

    def pause(self, error: KraftError, failures: int, deadline: float) -> None:
        """Before another attempt; where none is allowed, the error is raised."""
        pause = self._options.backoff.pause_ms(failures, self._client.dice) / 1000
        if not may_repeat(error, harmless=True) or time.monotonic() + pause >= deadline:
            error.attempts = failures
            raise error
        if needs_new_view(error):
            self._run(self._client.refresh_after(error))
        time.sleep(pause)


def _value(answer: T | KraftError) -> T:
    if isinstance(answer, KraftError):
        raise answer
    return answer


async def _until_news(
    asked: Sequence[Coroutine[object, object, T]],
    wait_ms: int,
    ask_now: "Callable[[int], Coroutine[object, object, T]]",
) -> list[T]:
    """All answers as soon as one has come; who still waits then is asked again, not to wait."""
    if wait_ms <= 0 or len(asked) == 1:
        return list(await asyncio.gather(*asked))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_caught(each)) for each in asked]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        late = [number for number, task in enumerate(tasks) if not task.done()]
        again = {number: group.create_task(_caught(ask_now(number))) for number in late}
        for number in late:
            tasks[number].cancel()
    results = [again.get(number, task).result() for number, task in enumerate(tasks)]
    return [_value(result) for result in results]


async def _caught(work: Coroutine[object, object, T]) -> T | KraftError:
    """No task of a group may fail: Python 3.11 then takes its parent for cancelled."""
    try:
        return await work
    except KraftError as error:
        return error


# -- the one of this process

_lock = threading.Lock()
_clusters: dict[tuple[int, CommonOptions], Cluster] = {}


def cluster(options: CommonOptions) -> Cluster:
    """The connection of this process to a cluster; a forked process makes its own."""
    # Every query has a client id of its own, and workers are used for many queries.
    key = (os.getpid(), replace(options, client_id=""))
    with _lock:
        found = _clusters.get(key)
        if found is None or not found.is_usable:
            found = _clusters[key] = Cluster(options)
        return found
