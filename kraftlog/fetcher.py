"""The loop half of a consumer: keeps a fetch open at every leader of an assigned partition.

One task. It wakes when a reply came, the caller made room or sought elsewhere, a pause is over or
the view changed. Partitions without a position get one first. Each broker has one fetch at a time,
in a session; while that one is parked at the broker and a partition is not in it, the broker is
asked to answer it at once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kraftlog._client_wire import error_of
from kraftlog._fetch_wire import Fetched, decode_fetched, fetch_request, wake_request
from kraftlog._offset_finder import locate
from kraftlog.cluster_client import ClusterClient, no_answer, not_reached
from kraftlog.cluster_view import NO_LEADER, NO_LEADERSHIP, Leadership
from kraftlog.consumer_options import ConsumerOptions
from kraftlog.errors import (
    CorruptRecord,
    ErrorCode,
    KraftError,
    OffsetOutOfRange,
    ThrottledError,
)
from kraftlog.fetch_buffer import FetchBuffer, PartitionState
from kraftlog.fetch_session import FetchSession, Place, Wanted
from kraftlog.logs import client_logger
from kraftlog.offsets import Offset
from kraftlog.record_batch import read_batches
from kraftlog.retry import Backoff, may_repeat, needs_new_view
from kraftlog.rpc import broker_pb2
from kraftlog.types import EpochEnd, TopicPartition

logger = client_logger(__name__)

PLACE_TIMEOUT_MS = 5_000
SHUNNED_MS = 1_000
"""How long a partition is read from its leader after a closer replica has failed; twice as long
each time that it fails again.
"""
_SESSION_LOST = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


class _Flight(NamedTuple):
    """A partition in a request: which generation of it, and what was asked."""

    state: PartitionState
    generation: int
    wanted: Wanted


@dataclass(slots=True)
class _Source:
    """A broker that we fetch from."""

    node_id: int
    address: str
    session: FetchSession = field(default_factory=FetchSession)
    flights: dict[Place, _Flight] | None = None
    """What is asked for; None while nothing is."""
    is_waking: bool = False
    failures: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class _Trouble:
    """Why a partition is left alone for a while."""

    failures: int = 0
    not_before: float = 0.0
    asked: Leadership = NO_LEADERSHIP


class _Replica(NamedTuple):
    """A follower that the leader sent us to."""

    node_id: int
    until: float


class Fetcher:
    def __init__(
        self, options: ConsumerOptions, buffer: FetchBuffer, client: ClusterClient
    ) -> None:
        self._options = options
        self._buffer = buffer
        self._client = client
        self._view = client.view
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._sources: dict[int, _Source] = {}
        self._troubles: dict[TopicPartition, _Trouble] = {}
        self._replicas: dict[TopicPartition, _Replica] = {}
        self._shunned: dict[TopicPartition, _Trouble] = {}
        """Where a closer replica failed, until when no other is asked for."""
        self._shunning = Backoff(SHUNNED_MS, options.common.metadata_max_age_ms)
        self._placing: set[tuple[TopicPartition, int]] = set()
        client.on_change(self.wake)

    def wake(self) -> None:
        self._woken.set()

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            self._start_placing()
            self._fetch_all(self._loop.time())

    # -- positions

    def _start_placing(self) -> None:
        starts: dict[TopicPartition, Offset] = {}
        states: dict[TopicPartition, tuple[PartitionState, int]] = {}
        for state, generation, start in self._buffer.unplaced():
            if (state.place, generation) not in self._placing:
                self._placing.add((state.place, generation))
                starts[state.place] = start
                states[state.place] = (state, generation)
        if starts:
            self._client.start(self._place(starts, states), "positions")

    async def _place(
        self,
        starts: dict[TopicPartition, Offset],
        states: dict[TopicPartition, tuple[PartitionState, int]],
    ) -> None:
        found = await locate(self._client, starts, timeout_ms=PLACE_TIMEOUT_MS)
        for place, offset in found.items():
            state, generation = states[place]
            self._placing.discard((place, generation))
            if isinstance(offset, int):
                self._buffer.place_at(state, generation, offset)
            elif not may_repeat(offset, harmless=True):
                self._buffer.fail(state, generation, offset, stuck=True)
            else:
                logger.debug("no position for %s yet: %s", place, offset)
        self._woken.set()

    # -- asking

    def _fetch_all(self, now: float) -> None:
        by_source: dict[int, dict[Place, _Flight]] = {}
        for state in self._buffer.fetchable():
            if self._is_left_alone(state.place, now):
                continue
            node_id = self._source_of(state.place, now)
            topic = self._view.topics.get(state.place.topic)
            if node_id == NO_LEADER or topic is None:
                self._client.want_refresh()
                self._trouble(state.place)
                continue
            flights = by_source.setdefault(node_id, {})
            flights[topic.topic_id, state.place.partition] = self._flight(state)
        for node_id, flights in by_source.items():
            self._fetch_from(self._source(node_id), flights, now)

    def _is_left_alone(self, place: TopicPartition, now: float) -> bool:
        trouble = self._troubles.get(place)
        if trouble is None or trouble.not_before <= now:
            return False
        if self._view.has_moved(place.topic, place.partition, trouble.asked):
            return False
        self._wake_at(trouble.not_before)
        self._client.look_soon()
        return True

    def _source_of(self, place: TopicPartition, now: float) -> int:
        replica = self._replicas.get(place)
        if replica is not None:
            if replica.until > now and replica.node_id in self._view.brokers:
                return replica.node_id
            del self._replicas[place]
        return self._view.leader_id(place.topic, place.partition)

    def _flight(self, state: PartitionState) -> _Flight:
        known = self._view.partition(state.place)
        wanted = Wanted(state.place.topic, state.fetch_offset, known.leader_epoch, state.last_epoch)
        return _Flight(state, state.generation, wanted)

    def _source(self, node_id: int) -> _Source:
        address = self._view.brokers[node_id].address
        source = self._sources.get(node_id)
        if source is None or source.address != address:
            source = self._sources[node_id] = _Source(node_id, address)
        return source

    def _fetch_from(self, source: _Source, flights: dict[Place, _Flight], now: float) -> None:
        if source.flights is not None:
            self._wake_parked(source, flights)
            return
        if source.not_before > now:
            self._wake_at(source.not_before)
            self._client.look_soon()
            return
        asked = source.session.request({place: each.wanted for place, each in flights.items()})
        limits = self._options.limits
        if self._shunned and any(
            self._is_shunned(each.state.place, now) for each in flights.values()
        ):
            limits = limits._replace(rack="")  # then it serves, and sends us nowhere
        self._send(
            source,
            fetch_request(asked, limits),
            timeout_ms=limits.max_wait_ms + self._options.common.request_timeout_ms,
            on_end=lambda reply, error: self._landed(source, flights, reply, error),
        )
        source.flights = flights

    def _wake_parked(self, source: _Source, flights: dict[Place, _Flight]) -> None:
        """A partition with a new position must not wait until the others have something to say."""
        asked = source.flights or {}
        is_new = any(
            place not in asked or asked[place].generation != flight.generation
            for place, flight in flights.items()
        )
        if is_new and not source.is_waking and source.session.session_id:
            source.is_waking = True
            self._send(
                source,
                wake_request(source.session.session_id),
                timeout_ms=self._options.common.request_timeout_ms,
                on_end=lambda _reply, _error: None,
            )

    def _send(
        self,
        source: _Source,
        request: broker_pb2.FetchDataRequest,
        *,
        timeout_ms: float,
        on_end: Callable[[broker_pb2.FetchDataReply | None, KraftError | None], None],
    ) -> None:
        address = source.address

        def on_reply(reply: broker_pb2.BrokerReply | None) -> None:
            if reply is not None and reply.throttle_ms:
                source.not_before = self._loop.time() + reply.throttle_ms / 1000
            if reply is None:
                on_end(None, no_answer("fetch", address))
            elif reply.HasField("error"):
                on_end(None, error_of(reply.error, address))
            else:
                on_end(reply.fetch, None)

        try:
            self._client.stream(address, "fetch").send(
                self._client.encode("fetch", (request.SerializeToString(),)),
                timeout_ms=timeout_ms,
                on_reply=on_reply,
                on_unsent=lambda: on_end(None, not_reached(address)),
            )
        except ThrottledError as error:
            throttled = error
            self._loop.call_soon(lambda: on_end(None, throttled))

    # -- answers

    def _landed(
        self,
        source: _Source,
        flights: dict[Place, _Flight],
        reply: broker_pb2.FetchDataReply | None,
        error: KraftError | None,
    ) -> None:
        source.flights = None
        source.is_waking = False
        if reply is None or error is not None:
            self._lost(source, error)
        else:
            source.failures = 0
            source.session.answered(reply.session_id)
            for place, fetched in decode_fetched(reply, source.address).items():
                if place in flights:
                    self._take(source, flights[place], fetched)
        self._woken.set()

    def _lost(self, source: _Source, error: KraftError | None) -> None:
        """The whole request came to nothing."""
        source.session.lost()
        if error is not None and error.code in _SESSION_LOST:
            return  # a full request will do
        source.failures += 1
        pause_ms = self._options.common.backoff.pause_ms(source.failures, self._client.dice)
        source.not_before = self._loop.time() + pause_ms / 1000
        for place in [p for p, r in self._replicas.items() if r.node_id == source.node_id]:
            self._shun_replica(place)
        self._client.want_refresh()
        logger.debug("no fetch from %s: %s", source.address, error)

    def _take(self, source: _Source, flight: _Flight, fetched: Fetched) -> None:
        state, generation = flight.state, flight.generation
        has_failed = fetched.error is not None or fetched.diverging is not None
        if self._is_replica(source, state.place):
            if has_failed:  # what a follower says of the log, the leader knows better
                logger.debug("%s of %s: %s", source.address, state.place, fetched)
                self._shun_replica(state.place)
                return
            self._shunned.pop(state.place, None)
        if fetched.error is not None:
            self._refused(source, flight, fetched, fetched.error)
            return
        if fetched.diverging is not None:
            self._diverged(flight, fetched.diverging)
            return
        if fetched.preferred_replica is not None:
            self._go_to_replica(state.place, fetched.preferred_replica)
        self._troubles.pop(state.place, None)
        try:
            batches = [
                batch
                for batch in read_batches(fetched.records)
                if batch.next_offset > flight.wanted.offset
            ]
        except CorruptRecord as error:
            self._buffer.fail(state, generation, error, stuck=True)
            return
        asked = (generation, flight.wanted.offset)
        self._buffer.put(state, asked, batches, watermark=fetched.high_watermark)

    def _refused(
        self, source: _Source, flight: _Flight, fetched: Fetched, error: KraftError
    ) -> None:
        place = flight.state.place
        if isinstance(error, OffsetOutOfRange):
            self._out_of_range(flight, error)
        elif fetched.hint is not None and self._view.learn_leader(place, fetched.hint):
            logger.debug("%s moved: %s", place, fetched.hint)
        elif may_repeat(error, harmless=True):
            self._trouble(place)
            if needs_new_view(error) or error.code == ErrorCode.UNKNOWN_LEADER_EPOCH:
                self._client.want_refresh()
        else:
            self._buffer.fail(flight.state, flight.generation, error, stuck=True)
        logger.debug("fetch of %s from %s refused: %s", place, source.address, error)

    # -- closer replicas

    def _is_replica(self, source: _Source, place: TopicPartition) -> bool:
        replica = self._replicas.get(place)
        return replica is not None and replica.node_id == source.node_id

    def _go_to_replica(self, place: TopicPartition, node_id: int) -> None:
        """The leader sends us to a follower."""
        now = self._loop.time()
        if node_id not in self._view.brokers:
            self._client.want_refresh()
            self._shun_replica(place)
        elif not self._is_shunned(place, now):
            until = now + self._options.common.metadata_max_age_ms / 1000
            self._replicas[place] = _Replica(node_id, until)

    def _shun_replica(self, place: TopicPartition) -> None:
        """The leader would send us to the same one again, so for a while it is to serve itself."""
        self._replicas.pop(place, None)
        shunned = self._shunned.setdefault(place, _Trouble())
        shunned.failures += 1
        pause_ms = self._shunning.pause_ms(shunned.failures, self._client.dice)
        shunned.not_before = self._loop.time() + pause_ms / 1000

    def _is_shunned(self, place: TopicPartition, now: float) -> bool:
        shunned = self._shunned.get(place)
        return shunned is not None and shunned.not_before > now

    # -- trouble

    def _trouble(self, place: TopicPartition) -> None:
        trouble = self._troubles.setdefault(place, _Trouble())
        trouble.failures += 1
        trouble.asked = self._view.leadership(place.topic, place.partition)
        pause_ms = self._options.common.backoff.pause_ms(trouble.failures, self._client.dice)
        trouble.not_before = self._loop.time() + pause_ms / 1000
        self._wake_at(trouble.not_before)

    def _out_of_range(self, flight: _Flight, error: OffsetOutOfRange) -> None:
        place, reset = flight.state.place, self._options.reset
        if reset is None:
            told = OffsetOutOfRange(
                f"{place}: {error.message}",
                hint="seek to an offset that exists, or choose another offset_reset",
                node=error.node,
            )
            self._buffer.fail(flight.state, flight.generation, told, stuck=True)
            return
        logger.warning("%s: %s; going on from %s", place, error.message, reset)
        self._buffer.restart(flight.state, flight.generation, reset)

    def _diverged(self, flight: _Flight, end: EpochEnd) -> None:
        """What we read last is no longer in the log: it was cut there and went on differently."""
        place = flight.state.place
        what = f"{place} was cut at {end.end_offset} (epoch {end.epoch}), we were behind it"
        if self._options.reset is None:
            told = OffsetOutOfRange(what, hint="seek to where reading shall go on")
            self._buffer.fail(flight.state, flight.generation, told, stuck=True)
            return
        logger.warning("%s, at %d; going on from the cut", what, flight.wanted.offset)
        position = min(flight.state.position, end.end_offset)
        self._buffer.restart(flight.state, flight.generation, Offset.at(position))
