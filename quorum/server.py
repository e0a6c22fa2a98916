"""One controller process: directory, log, node, gRPC, metrics and health, under one TaskGroup.

It ends in one of three ways. `stop` (SIGTERM) makes a leader resign first, so that its successor
need not wait for a timeout. An error of the node, of its disk above all, ends the process and is
told. A broken invariant ends it at once, with its facts: what has found itself wrong must not go
on (exit code 70).
"""

import asyncio
import contextlib
import gc
import logging
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import grpc
import grpc.aio

from kraftlog.clock import Clock
from kraftlog.drill_hooks import hooks_directory, server_clock
from kraftlog.errors import ConfigError
from kraftlog.health import Health
from kraftlog.loop_failures import end_on_broken_invariant
from kraftlog.loop_lag import LoopLag
from kraftlog.metrics import Registry, serve_metrics
from kraftlog.reflection import reflection_handlers
from kraftlog.resolver import Resolve, resolver
from kraftlog.serving import open_server, start_server
from quorum.config import ServerConfig
from quorum.core.config import RaftConfig
from quorum.core.state import Resigned
from quorum.directory import Identity, open_directory
from quorum.metrics import register
from quorum.node import RaftNode
from quorum.service import SERVICE, RaftService
from quorum.snapshots import SnapshotKeeper
from quorum.state_machine import StateMachine
from quorum.store import Store
from quorum.transport import GrpcTransport
from storage.durable_copy import server_files
from storage.files import Files

logger = logging.getLogger(__name__)

BROKEN_INVARIANT_EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h
POLL_SECONDS = 0.005
HEALTH_SECONDS = 0.1
STOP_GRACE_SECONDS = 0.05
SWITCH_SECONDS = 0.0005
WATERMARK_LINGER_MS = 3
GC_NEVER = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is: for other nodes, and for Prometheus if it was asked for."""

    endpoint: str
    metrics: str | None


Beside = Callable[["ControllerServer"], Coroutine[None, None, None]]


class Application(Protocol):
    """What the quorum is for. It is made before its node, which needs the state machine."""

    @property
    def machine(self) -> StateMachine: ...

    @property
    def takes_proposals(self) -> bool:
        """Whether anybody may propose records by `Raft.Propose`."""
        ...

    def attach(self, node: RaftNode) -> None: ...

    def register_metrics(self, registry: Registry) -> None: ...

    def handlers(self) -> Sequence[grpc.GenericRpcHandler]:
        """Its gRPC services, asked for once it is attached."""
        ...

    async def run(self) -> None:
        """Until cancelled; if it fails, the process must end."""
        ...


MakeApplication = Callable[[Identity], Application]


class ControllerServer:
    """Use `open_controller` to get one; `run` to run it."""

    def __init__(
        self,
        identity: Identity,
        address: Address,
        node: RaftNode,
        server: grpc.aio.Server,
        *,
        application: Application,
        registry: Registry,
        snapshots: SnapshotKeeper,
    ) -> None:
        self.identity = identity
        self.address = address
        self.node = node
        self.application = application
        self.registry = registry
        self._server = server
        self._snapshots = snapshots
        self._health = Health()
        self._lag = LoopLag(registry)
        self._stop = asyncio.Event()
        self._failure: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()

    def fail(self, error: BaseException) -> None:
        """Something is wrong that must end the process."""
        if not self._failure.done():
            self._failure.set_exception(error)

    def stop(self) -> None:
        """End in order; a leader resigns first."""
        self._stop.set()

    async def run(self, beside: Beside | None = None) -> None:
        """Serve until `stop`, or until something is wrong, there or in what runs `beside` it."""
        end_on_broken_invariant(asyncio.get_running_loop(), self.fail)
        service = RaftService(
            self.node,
            self.identity.cluster_id,
            takes_proposals=self.application.takes_proposals,
        )
        handlers = [service.handlers(), self._health.handlers(), *self.application.handlers()]
        self._server.add_generic_rpc_handlers((*handlers, *reflection_handlers(handlers)))
        await start_server(self._server)
        work = [self.node.run(), self._snapshots.run(), self._lag.run(), self._watch_health()]
        work += [self.application.run(), self._raise_failure()]
        if beside is not None:
            work.append(beside(self))
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(each) for each in work]
                await self._stop.wait()
                await self._resign()
                await self._server.stop(STOP_GRACE_SECONDS)
                for task in running:
                    task.cancel()
        finally:
            await self._server.stop(None)

    async def _raise_failure(self) -> None:
        await self._failure

    async def _watch_health(self) -> None:
        """A controller serves while it knows who leads."""
        self._health.set("", serving=True)
        while True:
            self._health.set(SERVICE, serving=self.node.core.leader is not None)
            await asyncio.sleep(HEALTH_SECONDS)

    async def _resign(self) -> None:
        """Until all voters have heard it, or an election has had its time."""
        self._health.set("", serving=False)
        await self.node.call(lambda driver: driver.resign())
        deadline = self.node.now_ms() + self.node.timing.election_timeout_ms
        while self.node.now_ms() < deadline:
            role = self.node.core.role
            if not isinstance(role, Resigned) or not role.unacked:
                return
            await asyncio.sleep(POLL_SECONDS)
        logger.warning("not every voter has heard that this node stops")


@contextlib.asynccontextmanager
async def open_controller(
    config: ServerConfig,
    make: MakeApplication,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    resolve: Resolve | None = None,
) -> AsyncIterator[ControllerServer]:
    """A server whose directory is locked, whose log is open and whose port is bound. All of it is
    given back at the end.
    """
    hooks = hooks_directory(os.environ, config.listen)
    files = files or server_files(hooks, config.directory)
    clock = clock or server_clock(hooks)
    resolve = resolve or resolver(os.environ)
    with open_directory(files, config.directory, clock) as identity:
        _check_node_id(config, identity)
        server, port = open_server(config.listen)
        registry = Registry()
        async with _metrics(registry, config.metrics) as metrics:
            store = Store(files, config.directory, clock, config.log)
            try:
                endpoint = config.endpoint(port)
                raft = raft_config(config, identity, endpoint)
                dice = random.SystemRandom()
                application = make(identity)
                node = RaftNode(
                    raft,
                    store,
                    application.machine,
                    GrpcTransport(resolve),
                    clock=clock,
                    draw=dice.randrange,
                )
                application.attach(node)
                snapshots = SnapshotKeeper(node, config.snapshots, clock, after_write=gc.freeze)
                register(registry, node, snapshots)
                application.register_metrics(registry)
                yield ControllerServer(
                    identity,
                    Address(endpoint, metrics),
                    node,
                    server,
                    application=application,
                    registry=registry,
                    snapshots=snapshots,
                )
            finally:
                await server.stop(None)
                store.close()


def raft_config(config: ServerConfig, identity: Identity, endpoint: str) -> RaftConfig:
    return RaftConfig(
        cluster_id=identity.cluster_id,
        key=identity.key,
        endpoint=endpoint,
        timing=config.timing,
        peers=config.peers,
        watermark_linger_ms=WATERMARK_LINGER_MS,
    )


def _check_node_id(config: ServerConfig, identity: Identity) -> None:
    if config.node_id not in (None, identity.key.node_id):
        raise ConfigError(
            f"node.id = {config.node_id}, but {config.directory} belongs to node"
            f" {identity.key.node_id}",
            hint="leave node.id out, or give another directory",
        )


@contextlib.asynccontextmanager
async def _metrics(registry: Registry, address: str | None) -> AsyncIterator[str | None]:
    if address is None:
        yield None
        return
    async with serve_metrics(registry, address) as port:
        yield f"{address.rpartition(':')[0]}:{port}"


def spare_the_loop() -> None:
    """No full collection from here on: it would stop the loop for as long as there are objects.
    What is loaded stays, and what comes and goes is found in the young generations. And a thread
    that comes back from a sync soon gets its turn, however busy the loop is.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, GC_NEVER)
