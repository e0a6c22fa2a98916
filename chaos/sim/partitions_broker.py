"""One life of a real broker: lifecycle, metadata, replica manager and fetchers, on a virtual loop.

It is put together as `brokers.server` does it, but for gRPC: requests come and go as the bytes of
the wire, over the simulated network, and the metadata observer is the simulated node itself.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from random import Random

from brokers import controller_wire
from brokers.alter_partition import AlterPartitions
from brokers.cluster import ClusterChange, PartitionId
from brokers.controller_link import ControllerLink
from brokers.controller_wire import Heartbeat, HeartbeatAnswer, Registered, Registration
from brokers.data_wire import (
    decode_ends,
    decode_list_offsets,
    decode_produce,
    layout,
    write_ends,
    write_list_offsets,
    write_produce,
)
from brokers.fetch_wire import (
    decode_fetch,
    decode_fetch_reply,
    encode_fetch,
    encode_fetch_envelope,
)
from brokers.housekeeping import Housekeeping
from brokers.lifecycle import Lifecycle, LifecycleTiming
from brokers.metadata import MetadataPublisher
from brokers.metadata_view import ImageView
from brokers.partition import Partition
from brokers.replica_fetcher import OnFetchReply
from brokers.replica_manager import ReplicaManager
from brokers.requests import (
    EndsAnswer,
    FetchReply,
    FetchRequest,
    IsrChange,
    IsrResult,
    ProduceReply,
    ProduceRequest,
)
from brokers.settings import ReplicaSettings
from brokers.wire import decode_error, encode_error
from chaos.sim.metadata_brokers import PORT, log_dir_of
from chaos.sim.metadata_machine import FollowerMachine
from chaos.sim.metadata_rpc import Caller
from chaos.sim.node import SimNode
from chaos.sim.partitions_loop import SimLoop
from kraftlog._check import invariant
from kraftlog.config import Config
from kraftlog.config_keys import Scope
from kraftlog.errors import NotController, RequestTimedOut, WireError, from_wire
from kraftlog.rpc import broker_pb2, controller_pb2
from kraftlog.types import TopicPartition, Uuid
from metadata_log.decide.features import SUPPORTED
from storage.log_config import LogConfig
from storage.log_dirs import UNKNOWN_BROKER_EPOCH, LogDirs

DATA = "/data"
RACKS = ("rack0", "rack1")
SESSION_MS = 1_500
TIMING = LifecycleTiming(heartbeat_ms=150, session_ms=SESSION_MS, registration_ms=1 << 40)
SETTINGS = ReplicaSettings(
    replica_lag_ms=2_000,
    fetch_wait_ms=150,
    fetch_timeout_ms=600,
    fetch_backoff_ms=400,
    checkpoint_ms=1_000,
    flush_check_ms=2_000,
    retention_check_ms=1 << 40,
)
LOG = LogConfig(segment_bytes=4_096, index_interval_bytes=256, file_delete_delay_ms=1_000)
STATIC = Config(Scope.BROKER, {})

Send = Callable[[int, bytes, Callable[[bytes], None]], None]
"""To a broker, by its id: the request, and what to do with its reply."""
Served = Callable[["RealBroker", ProduceRequest | FetchRequest, ProduceReply | FetchReply], None]
ToldEnd = Callable[["RealBroker", PartitionId, int], None]


class SortedPartitions(set[Partition]):
    """A set without an order would be one that no seed can repeat."""

    def __iter__(self) -> Iterator[Partition]:
        return iter(sorted(super().__iter__(), key=lambda each: each.id))


class SimControllerLink(ControllerLink):
    """Calls of the controllers over the simulated network."""

    def __init__(
        self, loop: SimLoop, caller: Caller, controllers: Callable[[], list[SimNode]], dice: Random
    ) -> None:
        self._sim_loop = loop
        self._caller = caller
        self._controllers = controllers
        self._dice = dice

    async def ask(
        self,
        request: controller_pb2.ControllerRequest,
        *,
        api_key: int,  # noqa: ARG002 - it is in the kind of the request as well
        timeout_ms: int,  # noqa: ARG002 - the caller has one of its own
    ) -> controller_pb2.ControllerReply:
        loop = self._sim_loop
        answer: asyncio.Future[controller_pb2.ControllerReply | None] = loop.create_future()

        def take(reply: controller_pb2.ControllerReply | None) -> None:
            if not answer.done() and not loop.is_dead:
                answer.set_result(reply)

        target = self._caller.choose(self._controllers(), self._dice.randrange)
        if target is None:
            raise NotController("there is no controller")
        self._caller.call(target, request, take)
        reply = await answer
        if reply is None:
            raise RequestTimedOut("no answer")
        if reply.HasField("error"):
            error = reply.error
            raise from_wire(WireError(error.code, error.message, error.hint))
        return reply


class SimSourceLink:
    """`brokers.replica_fetcher.SourceLink`."""

    def __init__(self, broker: "RealBroker", source: int) -> None:
        self._broker = broker
        self._source = source

    def send(self, request: FetchRequest, *, timeout_ms: int, on_reply: OnFetchReply) -> None:
        loop, waiting = self._broker.loop, [on_reply]

        def finish(reply: FetchReply | None) -> None:
            if waiting and not loop.is_dead:
                loop.call_soon(waiting.pop(), reply)

        def take(raw: bytes) -> None:
            envelope = broker_pb2.BrokerReply.FromString(raw)
            if envelope.HasField("error"):
                finish(FetchReply(error=decode_error(envelope.error, str(self._source))))
            else:
                finish(decode_fetch_reply(envelope.fetch, str(self._source)))

        data = broker_pb2.BrokerRequest(fetch=encode_fetch(request)).SerializeToString()
        loop.call_later(timeout_ms / 1000, finish, None)
        self._broker.send(self._source, data, take)

    async def run(self) -> None:
        """Nothing to keep open here."""


class RealBroker:
    def __init__(
        self, node: SimNode, machine: FollowerMachine, loop: SimLoop, link: SimControllerLink
    ) -> None:
        self.node = node
        self.loop = loop
        self.send: Send = lambda _target, _data, _take: None
        self.on_served: Served = lambda _broker, _request, _reply: None
        self.on_told_end: ToldEnd = lambda _broker, _partition, _end: None
        self.on_alter: Callable[[Sequence[IsrChange]], None] = lambda _changes: None
        self.on_clean_stop: Callable[[], None] = lambda: None
        self.manager: ReplicaManager | None = None
        self.lags_until = 0.0
        self._machine = machine
        self._link = link
        self._incarnation = Uuid(node.world.node_dice.randbytes(16))
        self.publisher = MetadataPublisher(machine.follower, STATIC, consumed_offset=self._consumed)
        self._logs: LogDirs | None = None
        self._life: asyncio.Task[None] | None = None
        self._stops = asyncio.Event()
        self.is_closing = False
        self.lifecycle: Lifecycle | None = None

    @property
    def incarnation(self) -> Uuid:
        return self._incarnation

    @property
    def applied_offset(self) -> int:
        return self.publisher.applied_offset

    def _consumed(self) -> int:
        driver = self.node.driver
        return driver.applier.applied_offset if driver else 0

    # -- its life

    def begin(self, cluster_id: Uuid) -> None:
        """Open the logs and start. May find that the power fails in the attempt."""
        disk = self.node.disk
        if not disk.exists(DATA):
            disk.make_dir(DATA)
            disk.sync_dir("/")
        self._logs = LogDirs.open(
            disk,
            [DATA],
            cluster_id=str(cluster_id),
            node_id=self.node.node_id,
            config_of=self._config_of,
            clock=self.node.clock,
        )
        previous = self._logs.previous_broker_epoch
        is_clean = previous != UNKNOWN_BROKER_EPOCH
        self.lifecycle = self._make_lifecycle(previous if is_clean else None)
        self._life = self.loop.begin(self._live(self._logs, self.lifecycle))

    def _config_of(self, name: TopicPartition) -> LogConfig:
        view = self.publisher.view
        return view.topic_settings(name.topic).log if view.image.end_offset else LOG

    def _make_lifecycle(self, previous_epoch: int | None) -> Lifecycle:
        registration = Registration(
            broker_id=self.node.node_id,
            incarnation_id=self._incarnation,
            endpoint=f"{self.node.name}:{PORT}",
            rack=RACKS[self.node.node_id % len(RACKS)],
            log_dir_ids=(log_dir_of(self.node),),
            previous_epoch=previous_epoch,
            features={each.name: (each.min_level, each.max_level) for each in SUPPORTED.values()},
        )
        return Lifecycle(
            registration,
            TIMING,
            register=self._register,
            send_heartbeat=self._heartbeat,
            applied_offset=lambda: self.publisher.applied_offset,
            clock=self.node.clock,
        )

    async def _register(self, registration: Registration, timeout_ms: int) -> Registered:
        return await controller_wire.register(self._link, registration, timeout_ms=timeout_ms)

    async def _heartbeat(self, beat: Heartbeat, timeout_ms: int) -> HeartbeatAnswer:
        return await controller_wire.send_heartbeat(self._link, beat, timeout_ms=timeout_ms)

    def _alter(self, lifecycle: Lifecycle) -> AlterPartitions:
        async def alter(changes: Sequence[IsrChange]) -> Sequence[IsrResult]:
            self.on_alter(changes)
            return await controller_wire.alter_partitions(
                self._link,
                changes,
                broker_id=lifecycle.broker_id,
                broker_epoch=lifecycle.broker_epoch,
                timeout_ms=SETTINGS.fetch_timeout_ms,
            )

        return alter

    async def _live(self, logs: LogDirs, lifecycle: Lifecycle) -> None:
        async with asyncio.TaskGroup() as tasks:
            registered = await lifecycle.register()
            tasks.create_task(lifecycle.run())
            while self._consumed() < registered.offset:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
            manager = self.manager = self._make_manager(logs, lifecycle)
            tasks.create_task(manager.run())
            await self.publisher.begin(manager.broker_id, self._apply)
            tasks.create_task(self.publisher.run())
            lifecycle.set_ready()
            await self._stops.wait()
            lifecycle.begin_stop()
            await lifecycle.may_stop.wait()
            self.is_closing = True
            await manager.close(lifecycle.broker_epoch)
            self.on_clean_stop()
            await asyncio.Event().wait()

    async def _apply(self, view: ImageView, change: ClusterChange) -> None:
        """A broker that lags has the metadata, and does not get round to it."""
        while self.node.world.schedule.now < self.lags_until:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
        if self.manager is not None:
            await self.manager.apply(view, change)

    def _make_manager(self, logs: LogDirs, lifecycle: Lifecycle) -> ReplicaManager:
        manager = ReplicaManager(
            self.node.node_id,
            logs,
            settings=SETTINGS,
            clock=self.node.clock,
            gate=lifecycle,
            broker_epoch=lambda: lifecycle.broker_epoch,
            alter_partitions=self._alter(lifecycle),
            connect=lambda source: SimSourceLink(self, source),
        )
        manager.unsettled = SortedPartitions()
        manager.housekeeping = Housekeeping(
            logs,
            settings=SETTINGS,
            partitions=lambda: list(manager.table),
            unsettled=manager.unsettled,
            cleaner=None,
        )
        return manager

    def stop(self) -> None:
        """In good order."""
        self._stops.set()

    def take_apart(self) -> None:
        if self._life is not None and not self._life.done():
            self.loop.take_apart(self._life)

    def check_alive(self) -> None:
        """After a turn: a task that ended by an error ends the process."""
        if self._life is not None and self._life.done():
            error = self._life.exception()
            self.loop.stop()
            raise leaf(error) if error else RuntimeError("a broker's life ended by itself")

    # -- requests

    def receive(self, raw: bytes, answer: Callable[[bytes], None]) -> None:
        """A request from a client or from another broker; unanswered while we do not serve."""
        manager = self.manager
        if manager is None or self.is_closing:
            return
        request = broker_pb2.BrokerRequest.FromString(raw)

        def handle() -> None:
            match request.WhichOneof("request"):
                case "fetch":
                    self._fetch(manager, request.fetch, answer)
                case "list_offsets":
                    self._list_offsets(manager, request.list_offsets, answer)
                case "ends":
                    self._ends(manager, request.ends, answer)
                case _:
                    self._produce(manager, request.produce, answer)

        self.loop.call_soon(handle)

    def _fetch(
        self,
        manager: ReplicaManager,
        message: broker_pb2.FetchDataRequest,
        answer: Callable[[bytes], None],
    ) -> None:
        directory = self.publisher.directory
        request = decode_fetch(message, directory)

        def done(reply: FetchReply) -> None:
            if self.is_closing or self.loop.is_dead:
                return
            self.on_served(self, request, reply)
            if reply.error is None:
                answer(b"".join(encode_fetch_envelope(reply, 0, directory)))
            else:
                refusal = encode_error(reply.error, None, directory)
                answer(broker_pb2.BrokerReply(error=refusal).SerializeToString())

        manager.fetch(request, done)

    def _produce(
        self,
        manager: ReplicaManager,
        message: broker_pb2.ProduceRequest,
        answer: Callable[[bytes], None],
    ) -> None:
        directory = self.publisher.directory
        asked = layout(message.topics, directory)
        request = decode_produce(message, asked)

        def done(reply: ProduceReply) -> None:
            if self.is_closing or self.loop.is_dead:
                return
            self.on_served(self, request, reply)
            envelope = broker_pb2.BrokerReply()
            write_produce(envelope.produce, asked, reply.parts, directory)
            answer(envelope.SerializeToString())

        manager.produce(request, done)

    def _list_offsets(
        self,
        manager: ReplicaManager,
        message: broker_pb2.ListOffsetsRequest,
        answer: Callable[[bytes], None],
    ) -> None:
        """Of ends alone: nobody here asks for a time."""
        directory = self.publisher.directory
        asked = layout(message.topics, directory)
        answers = manager.list_offsets(decode_list_offsets(message, asked))
        for each in answers:
            if each.error is None:
                self.on_told_end(self, each.partition, each.offset)
        envelope = broker_pb2.BrokerReply()
        write_list_offsets(envelope.list_offsets, asked, answers, directory)
        answer(envelope.SerializeToString())

    def _ends(
        self,
        manager: ReplicaManager,
        message: broker_pb2.EndsRequest,
        answer: Callable[[bytes], None],
    ) -> None:
        directory = self.publisher.directory
        asked = layout(message.topics, directory)

        def done(answers: Sequence[EndsAnswer]) -> None:
            if self.is_closing or self.loop.is_dead:
                return
            for each in answers:
                if each.error is None:
                    self.on_told_end(self, each.partition, each.high_watermark)
            envelope = broker_pb2.BrokerReply()
            write_ends(envelope.ends, asked, answers, directory)
            answer(envelope.SerializeToString())

        manager.ends(decode_ends(message, asked), done)


def leaf(error: BaseException) -> BaseException:
    """The first cause in a group of errors; a broken rule before all others."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = [leaf(each) for each in error.exceptions]
    invariant(bool(found), "a group without errors")
    return next((each for each in found if not isinstance(each, Exception)), found[0])
