"""One broker process: directories, metadata, data plane and gRPC, under one TaskGroup.

It starts in this order. The directories are locked and recovered, off the loop. The port is bound,
so that the address is known. The broker registers, and follows the metadata log. Once it has
applied all up to its own registration it knows what it is to do: logs of partitions that are not
its own are set aside, partitions are led and followed, requests are answered, and the controller
hears that it may be counted on.

It ends in one of four ways. `stop` (SIGTERM) is a controlled shutdown: others take over what it
leads, while it serves on; then logs are flushed, closed and marked as clean. A second `stop` does
not wait for the others. An error of the disk, of the registration or of the metadata log ends the
process and is told. A broken invariant ends it at once, with its facts: what has found itself wrong
must not write, not even the mark of a clean stop.
"""

import asyncio
import contextlib
import gc
import logging
import os
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import NoReturn

import grpc.aio

from brokers.auto_topics import TopicCreator
from brokers.cluster import ClusterChange, ClusterView
from brokers.cluster_state import AppliedCluster, ReadyBackend
from brokers.config import BrokerConfig
from brokers.controller_calls import ControllerCalls
from brokers.controller_link import Active, ControllerFinder
from brokers.controller_wire import Registered, Registration
from brokers.directories import Directories, open_directories
from brokers.lifecycle import Lifecycle
from brokers.metadata import MetadataFollower, MetadataPublisher
from brokers.metadata_answers import MetadataAnswers
from brokers.metrics import (
    register_data_plane,
    register_isrs,
    register_lifecycle,
    register_metadata,
)
from brokers.producer_ids import ProducerIds
from brokers.replica_manager import ReplicaManager
from brokers.requests_table import RequestTable
from brokers.service import SERVICE, BrokerService
from brokers.source_link import BrokerLink
from kraftlog import config_keys as keys
from kraftlog.clock import Clock
from kraftlog.config import Config
from kraftlog.drill_hooks import hooks_directory, server_clock, wait_while_stalled
from kraftlog.health import Health
from kraftlog.loop_failures import end_on_broken_invariant
from kraftlog.loop_lag import LoopLag
from kraftlog.metrics import Registry, serve_metrics
from kraftlog.reflection import reflection_handlers
from kraftlog.resolver import Resolve, resolver
from kraftlog.serving import open_server, start_server
from kraftlog.types import TopicPartition, Uuid
from metadata_log.decide.features import SUPPORTED
from quorum.observer import MetadataObserver, observer_config, open_observer
from storage.cleaner import Cleaner
from storage.compaction import CleanOptions
from storage.durable_copy import server_files
from storage.files import Files
from storage.log_config import LogConfig
from storage.throttle import Throttle

logger = logging.getLogger(__name__)

STOP_GRACE_SECONDS = 0.2
APPLIED_TIMEOUT_SECONDS = 2.0
GC_NEVER = 1_000_000_000


class _Stopped(Exception):
    """Somebody asked the broker to end, and it may."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker is: for clients and other brokers, and for Prometheus if it was asked for."""

    endpoint: str
    metrics: str | None


class BrokerServer:
    """Use `open_broker` to get one; `run` to run it."""

    def __init__(
        self,
        config: BrokerConfig,
        directories: Directories,
        server: grpc.aio.Server,
        address: Address,
        *,
        registry: Registry,
        metadata: tuple[MetadataFollower, MetadataPublisher],
        files: Files,
        clock: Clock,
        resolve: Resolve,
    ) -> None:
        self.config = config
        self.directories = directories
        self.address = address
        self.registry = registry
        self.cluster_id = directories.cluster_id
        self._server = server
        self._files = files
        self._clock = clock
        self._resolve = resolve
        self._follower, self._publisher = metadata
        self._observer: MetadataObserver | None = None
        self._manager: ReplicaManager | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._failure: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        self._stops = asyncio.Semaphore(0)
        self._health = Health()
        self._calls = self._make_calls()
        self.lifecycle = Lifecycle(
            self._registration(),
            config.lifecycle,
            register=self._calls.register,
            send_heartbeat=self._calls.heartbeat,
            applied_offset=lambda: self._publisher.applied_offset,
            clock=clock,
            on_fencing=lambda fenced: self._health.set(SERVICE, serving=not fenced),
        )
        self.service = BrokerService(
            self.cluster_id,
            RequestTable(config.slow_request_ms),
            spawn=self._spawn,
            fail=self.fail,
        )

    def _make_calls(self) -> ControllerCalls:
        return ControllerCalls(
            ControllerFinder(self.config.peers, active=self._active, voters=self._voters),
            self.cluster_id,
            client_id=f"broker at {self.address.endpoint}",
            resolve=self._resolve,
            identity=lambda: (self.lifecycle.broker_id, self.lifecycle.broker_epoch),
        )

    def _registration(self) -> Registration:
        return Registration(
            broker_id=self.directories.logs.node_id,
            incarnation_id=Uuid.random(),
            endpoint=self.address.endpoint,
            rack=self.config.rack,
            log_dir_ids=self.directories.log_dir_ids,
            previous_epoch=self.directories.previous_epoch,
            features={
                name: (feature.min_level, feature.max_level) for name, feature in SUPPORTED.items()
            },
        )

    # -- for others

    def stop(self) -> None:
        """End in order: the first time after others have taken over, the second time now."""
        self._stops.release()

    def fail(self, error: BaseException) -> None:
        """Something is wrong that must end the process."""
        if not self._failure.done():
            self._failure.set_exception(error)

    async def wait_applied(self, offset: int) -> None:
        """Until all metadata below `offset` holds here."""
        await self._publisher.wait_applied(offset)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        if self._tasks is None:
            work.close()
        else:
            self._tasks.create_task(work)

    def _active(self) -> Active | None:
        observer = self._observer
        leader = None if observer is None else observer.leader
        if observer is None or leader is None:
            return None
        return Active(observer.epoch, leader.endpoint)

    def _voters(self) -> tuple[str, ...]:
        if self._observer is None:
            return ()
        return tuple(voter.endpoint for voter in self._observer.controllers)

    # -- the whole life

    async def run(self) -> None:
        """Until `stop`, or until something is wrong."""
        end_on_broken_invariant(asyncio.get_running_loop(), self.fail)
        handlers = [self.service.handlers(), self._health.handlers()]
        self._server.add_generic_rpc_handlers((*handlers, *reflection_handlers(handlers)))
        self._health.set("", serving=True)
        await start_server(self._server)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._raise_failure(), name="failures")
                tasks.create_task(LoopLag(self.registry).run(), name="loop lag")
                tasks.create_task(self._live(), name="life")
                tasks.create_task(self._end_in_order(), name="stop")
        except* _Stopped:
            pass
        finally:
            self._tasks = None
            self.service.close()
            await self._calls.close()
        await self._close()

    async def _raise_failure(self) -> None:
        await asyncio.shield(self._failure)

    async def _end_in_order(self) -> None:
        await self._stops.acquire()
        logger.info("broker %d stops", self.lifecycle.broker_id)
        if self.lifecycle.registered is not None:
            self.lifecycle.begin_stop()
            await self._wait_for_relief()
        self._health.set("", serving=False)
        self._health.set(SERVICE, serving=False)
        raise _Stopped

    async def _wait_for_relief(self) -> None:
        """Until nothing depends on us, or it takes too long, or somebody is in a hurry."""
        waits = (self.lifecycle.may_stop.wait(), self._stops.acquire())
        try:
            async with asyncio.timeout(self.config.shutdown_ms / 1000):
                await _first_of(*waits)
        except TimeoutError:
            logger.warning(
                "others have not taken over within %d ms; stopping all the same",
                self.config.shutdown_ms,
            )

    async def _close(self) -> None:
        """Flush, close, and mark the stop as clean; only after everything has ended in order."""
        registered = self.lifecycle.registered
        epoch = self.directories.previous_epoch if registered is None else registered.broker_epoch
        if self._manager is not None:
            clean = await self._manager.close(epoch)
            self.directories.was_closed()
        else:
            loop = asyncio.get_running_loop()
            clean = await loop.run_in_executor(None, self.directories.close, epoch)
        await self._server.stop(STOP_GRACE_SECONDS)
        logger.info("stopped%s", "" if clean else ", but not cleanly: the next start recovers")

    async def _live(self) -> None:
        """Register, follow the metadata, serve."""
        directories, loop = self.directories, asyncio.get_running_loop()
        if directories.logs.node_id is None:
            registered = await self.lifecycle.register()
            await loop.run_in_executor(None, directories.keep_node_id, registered.broker_id)
        config = observer_config(
            self.config.static,
            directory=directories.metadata.path,
            cluster_id=self.cluster_id,
            node_id=directories.logs.node_id or 0,
            directory_id=directories.metadata_dir_id,
        )
        async with open_observer(
            config, self._follower, files=self._files, clock=self._clock, resolve=self._resolve
        ) as observer:
            self._observer = observer
            logger.info("the metadata log here ends at offset %d", observer.end_offset)
            try:
                await self._follow(observer)
            finally:
                self._observer = None

    async def _follow(self, observer: MetadataObserver) -> None:
        self._publisher.consumed_offset = lambda: observer.applied_offset
        register_lifecycle(self.registry, self.lifecycle)
        register_metadata(
            self.registry,
            self._follower,
            self._publisher,
            lambda: observer.end_offset,
            node_id=lambda: self.directories.logs.node_id or 0,
        )
        observer.register_metrics(self.registry)
        self.service.table.register(self.registry)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(observer.run(), name="metadata")
            registered = self.lifecycle.registered or await self.lifecycle.register()
            tasks.create_task(self.lifecycle.run(), name="heartbeats")
            await observer.wait_applied(registered.offset)
            await self._set_strays_aside(registered)
            await self._serve(tasks, observer)

    async def _set_strays_aside(self, registered: Registered) -> None:
        loop = asyncio.get_running_loop()
        kept = await loop.run_in_executor(
            None,
            self.directories.set_strays_aside,
            self._follower.image,
            registered.broker_id,
        )
        for path in kept:
            logger.warning("not a partition of this broker: kept as %s", path)

    async def _serve(self, tasks: asyncio.TaskGroup, observer: MetadataObserver) -> None:
        manager = self._manager = self._make_manager()
        register_data_plane(self.registry, manager.counts)
        register_isrs(self.registry, manager.isr_sizes)
        tasks.create_task(manager.run(), name="data plane")
        await self._publisher.begin(manager.broker_id, self._apply)
        tasks.create_task(self._publisher.run(), name="metadata changes")
        producer_ids = ProducerIds(self._calls.allocate_producer_ids)
        tasks.create_task(producer_ids.run(), name="producer ids")
        creator = TopicCreator(self._calls.create_topics, self._wait_applied)
        self.service.open(
            ReadyBackend(
                manager,
                AppliedCluster(self._publisher, observer),
                MetadataAnswers(self.cluster_id.raw),
                producer_ids,
                creator if self.config.auto_create else None,
            )
        )
        gc.freeze()
        self.lifecycle.set_ready()

    async def _apply(self, view: ClusterView, change: ClusterChange) -> None:
        if self._manager is not None:
            rates = self._publisher.rates(self._manager.broker_id)
            self._manager.set_replication_rates(leader=rates.leader, follower=rates.follower)
            await self._manager.apply(view, change)

    def _make_manager(self) -> ReplicaManager:
        return ReplicaManager(
            self.lifecycle.broker_id,
            self.directories.logs,
            settings=self.config.replica,
            clock=self._clock,
            gate=self.lifecycle,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            alter_partitions=self._calls.alter_partitions,
            connect=self._connect,
            cleaner=_cleaner(self.config.static, self._clock),
        )

    def _connect(self, broker_id: int) -> BrokerLink:
        return BrokerLink(
            broker_id,
            endpoint=self._endpoint,
            resolve=self._resolve,
            client_id=f"broker {self.lifecycle.broker_id}",
        )

    def _endpoint(self, broker_id: int) -> str | None:
        """As the metadata has it now."""
        return self._publisher.view.endpoint(broker_id)

    async def _wait_applied(self, offset: int) -> None:
        """Not for ever: whoever asked gets what there is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(APPLIED_TIMEOUT_SECONDS):
                await self._publisher.wait_applied(offset)


async def _first_of(*waits: Coroutine[None, None, object]) -> None:
    """Until one of these is through."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(wait) for wait in waits]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            task.cancel()


def _cleaner(static: Config, clock: Clock) -> Cleaner | None:
    if not static[keys.LOG_CLEANER_ENABLE]:
        return None
    return Cleaner(
        CleanOptions(
            dedupe_buffer_bytes=static[keys.LOG_CLEANER_DEDUPE_BUFFER_SIZE],
            clock=clock,
            throttle=Throttle(static[keys.LOG_CLEANER_IO_MAX_BYTES_PER_SECOND]),
        )
    )


@contextlib.asynccontextmanager
async def open_broker(
    config: BrokerConfig,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    resolve: Resolve | None = None,
) -> AsyncIterator[BrokerServer]:
    """A broker whose directories are locked and recovered and whose port is bound. All of it is
    given back at the end, unless `run` has closed it in order.
    """
    hooks = hooks_directory(os.environ, config.listen)
    files = files or server_files(hooks, *config.log_dirs, config.metadata_dir)
    clock = clock or server_clock(hooks)
    follower = MetadataFollower()
    publisher = MetadataPublisher(
        follower, config.static, before_change=lambda: wait_while_stalled(hooks)
    )
    defaults = LogConfig.from_config(config.static)

    def config_of(name: TopicPartition) -> LogConfig:
        view = publisher.view
        return view.topic_settings(name.topic).log if view.image.end_offset else defaults

    server, port = open_server(config.listen)
    registry = Registry()
    loop = asyncio.get_running_loop()
    try:
        directories = await loop.run_in_executor(
            None, open_directories, config, files, clock, config_of
        )
        try:
            async with _metrics(registry, config.metrics) as metrics:
                yield BrokerServer(
                    config,
                    directories,
                    server,
                    Address(config.endpoint(port), metrics),
                    registry=registry,
                    metadata=(follower, publisher),
                    files=files,
                    clock=clock,
                    resolve=resolve or resolver(os.environ),
                )
        finally:
            directories.release()
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def _metrics(registry: Registry, address: str | None) -> AsyncIterator[str | None]:
    if address is None:
        yield None
        return
    async with serve_metrics(registry, address) as port:
        yield f"{address.rpartition(':')[0]}:{port}"


def spare_the_loop() -> None:
    """No full collection from here on: it would stop the loop for as long as there are objects."""
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, GC_NEVER)
