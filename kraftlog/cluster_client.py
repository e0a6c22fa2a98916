"""The loop side that all clients share: connections to brokers, and a view kept fresh.

Streams are opened on use, one per broker and purpose, so that a large fetch delays no produce. The
view is refreshed by age and whenever somebody found it wrong; any broker can be asked, and the one
that answered last is asked first.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import TypeAlias, TypeVar

from google.protobuf.message import Message

from kraftlog._background import Background
from kraftlog._client_wire import (
    CHANNEL_OF_BROKER,
    broker_request,
    decode_metadata,
    error_of,
    metadata_request,
    parse_broker_replies,
)
from kraftlog._closing import closed
from kraftlog._streams import ClientStream, Streams
from kraftlog.client_config import CommonOptions
from kraftlog.clock import Clock, SystemClock
from kraftlog.cluster_view import ClusterView, Node, TopicView
from kraftlog.errors import (
    ErrorCode,
    KraftError,
    NetworkError,
    RetriableError,
    TimeoutError_,
)
from kraftlog.framing import Pieces
from kraftlog.logs import client_logger
from kraftlog.resolver import resolver
from kraftlog.retry import Retry, needs_new_view
from kraftlog.rpc import broker_pb2
from kraftlog.types import TopicPartition

logger = client_logger(__name__)

LEADER_LOOK_SECONDS = 0.1
"""So often the view is refreshed while somebody waits for another leader."""
PROBE_TIMEOUT_MS = 1_000
"""How long one broker may take to answer for metadata before another is asked."""

BrokerStream: TypeAlias = ClientStream[broker_pb2.BrokerReply]
T = TypeVar("T")


class ClusterClient:
    def __init__(
        self,
        options: CommonOptions,
        background: Background,
        *,
        auto_create: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.options = options
        self.view = ClusterView()
        self.clock = clock or SystemClock()
        self.dice = Random()  # noqa: S311  spreads load, guards nothing
        self.retry = Retry(options.backoff, self.clock, self.dice)
        self._resolve = resolver(os.environ)
        size = options.receive_buffer_bytes
        self._channel_options = (("grpc.tcp_receive_buffer_size", size),) if size > 0 else ()
        self._background = background
        self._streams = Streams(background, self._open_stream)
        self._good_address = ""
        self._without_news = ""
        """A broker that told what we knew already; it may hear nothing itself."""
        self._topics: set[str] = set()
        self._all_topics = False
        self._auto_create = auto_create
        self._missing: dict[str, asyncio.Future[KraftError | None]] = {}
        """Topics that somebody waits for, to be created, and why brokers could not be asked."""
        self._creation_wanted = asyncio.Event()
        self._wanted = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None
        self._refreshed = asyncio.Event()
        self._is_over = False
        self._on_change: list[Callable[[], None]] = []
        self.last_failure: KraftError | None = None
        """Why the last refresh did not work; None if it did."""
        background.start(self._keep_fresh(), "metadata")
        if auto_create:
            background.start(self._keep_creating(), "missing topics")

    def start(self, work: Coroutine[object, object, None], name: str) -> None:
        self._background.start(work, name)

    # -- asking brokers

    def stream(self, address: str, purpose: str) -> BrokerStream:
        """The stream to a broker for a purpose."""
        return self._streams.get(address, purpose)

    def _open_stream(self, address: str) -> BrokerStream:
        return ClientStream(
            address,
            CHANNEL_OF_BROKER,
            parse=parse_broker_replies,
            resolve=self._resolve,
            channel_options=self._channel_options,
            # With acks=0 a broker speaks only of what it refuses, and nobody waits for that.
            on_stray=lambda _: self.want_refresh(),
        )

    def encode(self, kind: str, message: Pieces) -> Callable[[int], Pieces]:
        return broker_request(
            kind, message, client_id=self.options.client_id, cluster_id=self.view.cluster_id
        )

    async def ask(
        self,
        address: str,
        kind: str,
        message: Message,
        *,
        timeout_ms: float,
        purpose: str = "control",
    ) -> broker_pb2.BrokerReply:
        """One request and its reply; a refusal of the whole is raised."""
        answer: asyncio.Future[broker_pb2.BrokerReply] = asyncio.get_running_loop().create_future()

        def take(reply: broker_pb2.BrokerReply | None) -> None:
            if answer.done():
                return
            if reply is None:
                answer.set_exception(no_answer(kind, address))
            elif reply.HasField("error"):
                answer.set_exception(error_of(reply.error, address))
            else:
                answer.set_result(reply)

        def unsent() -> None:
            if not answer.done():
                answer.set_exception(not_reached(address))

        self.stream(address, purpose).send(
            self.encode(kind, (message.SerializeToString(),)),
            timeout_ms=timeout_ms,
            on_reply=take,
            on_unsent=unsent,
        )
        return await answer

    async def ask_leader(
        self,
        place: TopicPartition,
        attempt: Callable[[Node, int, float], Coroutine[object, object, T]],
        *,
        timeout_ms: float,
    ) -> T:
        """Ask the leader of a partition, whoever that is, until it answers. For requests that may
        be repeated.
        """

        async def once(remaining_ms: float) -> T:
            await self.ensure_topic(place.topic, timeout_ms=remaining_ms)
            node, epoch = self.view.leader(place)
            return await attempt(node, epoch, min(remaining_ms, self.options.request_timeout_ms))

        return await self.retry.run(
            once, timeout_ms=timeout_ms, harmless=True, on_failure=self.refresh_after
        )

    async def ask_any(
        self, kind: str, message: Message, *, timeout_ms: float
    ) -> broker_pb2.BrokerReply:
        """Ask one broker after another until one answers. For requests that may be repeated."""

        async def once(remaining_ms: float) -> broker_pb2.BrokerReply:
            return await self._try_all(kind, message, remaining_ms)

        return await self.retry.run(once, timeout_ms=timeout_ms, harmless=True)

    async def _try_all(
        self, kind: str, message: Message, remaining_ms: float
    ) -> broker_pb2.BrokerReply:
        failure: KraftError | None = None
        for address in self._candidates():
            timeout_ms = min(PROBE_TIMEOUT_MS, self.options.request_timeout_ms, remaining_ms)
            try:
                reply = await self.ask(address, kind, message, timeout_ms=timeout_ms)
            except KraftError as error:
                failure = error
                if not (error.retriable or error.outcome_unknown):
                    raise
            else:
                self._good_address = address
                return reply
        raise failure or not_reached("any broker")

    def _candidates(self) -> list[str]:
        """Who to ask: the last that answered, those of the view, those we were started with; last
        of all who had no news, since it would be asked for ever if its metadata stood still.
        """
        known = [node.address for node in self.view.brokers.values()]
        first = [self._good_address] if self._good_address else []
        bootstrap = list(self.options.bootstrap)
        self.dice.shuffle(known)
        self.dice.shuffle(bootstrap)
        found = dict.fromkeys([*first, *known, *bootstrap])
        return sorted(found, key=self._without_news.__eq__)

    # -- the view

    def on_change(self, callback: Callable[[], None]) -> None:
        """Called after each refresh."""
        self._on_change.append(callback)

    def watch_topics(self, topics: set[str], *, all_topics: bool = False) -> None:
        """Keep these in the view. Waking for a topic that is watched already costs nothing."""
        if not topics <= self._topics or (all_topics and not self._all_topics):
            self._topics |= topics
            self._all_topics = self._all_topics or all_topics
            self._wanted.set()

    @property
    def topics(self) -> set[str]:
        return self._topics

    def want_refresh(self) -> None:
        """The view was found to be wrong."""
        self._wanted.set()

    def look_soon(self) -> None:
        """Somebody waits for another leader. What follows the view hears of each refresh, and asks
        again if it still waits. While no broker says anything, that is left to those who pause.
        """
        if self._look is None and self.last_failure is None:
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(LEADER_LOOK_SECONDS, self._look_now)

    def _look_now(self) -> None:
        self._look = None
        self._wanted.set()

    async def refresh_after(self, error: KraftError) -> None:
        """Before another attempt: a new view, if the old one was to blame."""
        if needs_new_view(error):
            await self.refresh(timeout_ms=PROBE_TIMEOUT_MS)

    async def refresh(self, *, timeout_ms: float) -> bool:
        """Wait for the next refresh; whether it came in time."""
        refreshed = self._refreshed
        self._wanted.set()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await refreshed.wait()
        except TimeoutError:
            return False
        return True

    async def ensure_topic(self, topic: str, *, timeout_ms: float) -> TopicView:
        """A topic of the view, asked for until it is there or the time is over."""
        self.watch_topics({topic})
        known = self.view.topics.get(topic)
        if known is not None:
            return known

        async def once(remaining_ms: float) -> TopicView:
            is_fresh = await self.refresh(timeout_ms=remaining_ms)
            if self.last_failure is not None:
                raise self.last_failure
            if is_fresh and self._auto_create and topic not in self.view.topics:
                await self._create(topic, remaining_ms)
            return self.view.topic(topic)

        return await self.retry.run(once, timeout_ms=timeout_ms, harmless=True)

    async def _keep_fresh(self) -> None:
        try:
            while True:
                await self._wait_wanted()
                await self._refresh_once()
                await self._rest()
        finally:
            self._end()

    async def _wait_wanted(self) -> None:
        try:
            async with asyncio.timeout(self.options.metadata_max_age_ms / 1000):
                await self._wanted.wait()
        except TimeoutError:
            logger.debug("metadata is %d ms old", self.options.metadata_max_age_ms)
        self._wanted.clear()

    def _end(self) -> None:
        """Who waits for a refresh or for a topic, now or later, is told that there will be none."""
        self.last_failure, self._is_over = closed("client"), True
        _tell(self._missing, self.last_failure)
        if self._look is not None:
            self._look.cancel()
        self._refreshed.set()

    async def _rest(self) -> None:
        """However often it is wanted, brokers are asked only so often."""
        await asyncio.sleep(min(self.options.backoff.first_ms / 1000 / 5, LEADER_LOOK_SECONDS))

    async def _refresh_once(self) -> None:
        self.last_failure = await self._ask_metadata(self._topics, all_topics=self._all_topics)
        refreshed, self._refreshed = self._refreshed, asyncio.Event()
        refreshed.set()

    async def _ask_metadata(
        self, topics: Iterable[str], *, all_topics: bool = False, auto_create: bool = False
    ) -> KraftError | None:
        """Ask a broker, and learn what it says; the error if none says anything."""
        failure: KraftError | None = None
        request = metadata_request(sorted(topics), all_topics=all_topics, auto_create=auto_create)
        try:
            reply = await self._try_all("metadata", request, self.options.request_timeout_ms)
        except KraftError as error:
            failure = error
            logger.debug("no metadata: %s", error)
        else:
            told = decode_metadata(reply.metadata, self._good_address)
            metadata = replace(told, is_complete=all_topics)
            has_news = metadata.offset > self.view.offset
            self._without_news = "" if has_news else self._good_address
            self.view.learn(metadata)
            listening = {node.address for node in self.view.brokers.values()}
            self._streams.keep(listening.union(self.options.bootstrap))
        for callback in self._on_change:
            callback()
        return failure

    # -- topics that are not there yet

    async def _create(self, topic: str, timeout_ms: float) -> None:
        """Have brokers asked to make it, and wait until they have said something."""
        if self._is_over:
            raise closed("client")
        loop = asyncio.get_running_loop()
        asked = self._missing.setdefault(topic, loop.create_future())
        self._creation_wanted.set()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                failure = await asyncio.shield(asked)
        except TimeoutError:
            raise TimeoutError_(
                f"no broker has said in time whether it created {topic}",
                hint="does the quorum have a leader?",
            ) from None
        if failure is not None:
            raise failure

    async def _keep_creating(self) -> None:
        """Beside the refreshes: to make a topic takes a quorum, and meanwhile the leaders of others
        have to be found. By name: a topic that was deleted must not come back because it was once
        sent to.
        """
        missing: dict[str, asyncio.Future[KraftError | None]] = {}
        try:
            while True:
                await self._creation_wanted.wait()
                self._creation_wanted.clear()
                missing, self._missing = self._missing, {}
                _tell(missing, await self._ask_metadata(missing, auto_create=True))
                await self._rest()
        finally:
            self._end()
            _tell(missing, self.last_failure)


def _tell(
    waiting: Mapping[str, "asyncio.Future[KraftError | None]"], failure: KraftError | None
) -> None:
    for asked in waiting.values():
        if not asked.done():
            asked.set_result(failure)


def no_answer(kind: str, address: str) -> NetworkError:
    return NetworkError(f"no answer from {address} to {kind}", node=address)


def not_reached(address: str) -> RetriableError:
    return RetriableError(
        f"{address} cannot be reached",
        hint="is it running, and is that its address?",
        node=address,
        code=ErrorCode.BROKER_NOT_AVAILABLE,
    )
