"""Controllers of one test: real servers with real files and real gRPC, all on the test's own loop.

Elections are quick and timeouts long, so that a busy machine does not look like a dead leader.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kraftlog.clock import SystemClock
from kraftlog.errors import NotLeaderError
from kraftlog.types import Uuid
from quorum.config import ServerConfig
from quorum.core.config import Timing
from quorum.core.state import Leader
from quorum.directory import Seat, form_directories
from quorum.journal import Journal, JournalApplication
from quorum.local import free_port
from quorum.server import ControllerServer, open_controller
from storage.files import OsFiles
from tests.loops import until

CALM = Timing(
    fetch_timeout_ms=4_000,
    election_timeout_ms=250,
    election_backoff_max_ms=250,
    request_timeout_ms=4_000,
)


@dataclass
class Cell:
    """A cluster of first voters; others may be added by `start`."""

    cluster_id: Uuid
    configs: dict[int, ServerConfig]
    tasks: asyncio.TaskGroup
    servers: dict[int, ControllerServer] = field(default_factory=dict)
    running: dict[int, "asyncio.Task[None]"] = field(default_factory=dict)

    @property
    def endpoints(self) -> list[str]:
        return [server.address.endpoint for server in self.servers.values()]

    async def start(self, node_id: int) -> ControllerServer:
        self.running[node_id] = self.tasks.create_task(self._serve(node_id))
        await until(lambda: node_id in self.servers or self.running[node_id].done(), "the server")
        return self.servers[node_id]

    async def _serve(self, node_id: int) -> None:
        config = self.configs[node_id]
        async with open_controller(config, lambda _: JournalApplication()) as server:
            self.servers[node_id] = server
            try:
                await server.run()
            finally:
                del self.servers[node_id]

    async def stop(self, node_id: int) -> None:
        """In order; it is started again with the same address."""
        self.servers[node_id].stop()
        await self.running[node_id]

    async def leader(self) -> ControllerServer:
        """Who leads and has committed a record of its epoch."""
        await until(lambda: self._leader() is not None, "a leader")
        found = self._leader()
        assert found is not None
        return found

    def _leader(self) -> ControllerServer | None:
        for server in self.servers.values():
            role = server.node.core.role
            if isinstance(role, Leader) and server.node.core.has_committed_epoch():
                return server
        return None

    async def follower(self) -> ControllerServer:
        leader = await self.leader()
        others = [each for each in self.servers.values() if each is not leader]
        await until(lambda: others[0].node.core.leader is not None, "a follower")
        return others[0]

    async def propose(self, *values: bytes) -> int:
        while True:
            try:
                return await (await self.leader()).node.propose_and_wait(values)
            except NotLeaderError:
                continue

    async def settle(self) -> None:
        """Until all have applied what the leader has."""
        leader = await self.leader()
        end = leader.node.core.log.end_offset
        for server in list(self.servers.values()):
            await server.node.wait_applied(end)


def configs_for(
    directory: Path, node_ids: Sequence[int], template: ServerConfig | None = None
) -> dict[int, ServerConfig]:
    base = template or ServerConfig(directory="", timing=CALM)
    return {
        node_id: replace(
            base, directory=f"{directory}/c{node_id}", listen=f"127.0.0.1:{free_port()}"
        )
        for node_id in node_ids
    }


@asynccontextmanager
async def cell(
    directory: Path, nodes: int = 3, template: ServerConfig | None = None
) -> AsyncIterator[Cell]:
    configs = configs_for(directory, range(101, 101 + nodes), template)
    seats = [Seat(node_id, each.directory, each.listen) for node_id, each in configs.items()]
    cluster_id, _ = form_directories(OsFiles(), seats, SystemClock())
    async with asyncio.TaskGroup() as tasks:
        made = Cell(cluster_id, configs, tasks)
        for node_id in configs:
            await made.start(node_id)
        try:
            yield made
        finally:
            for server in list(made.servers.values()):
                server.stop()


def journal(server: ControllerServer) -> Journal:
    machine = server.application.machine
    assert isinstance(machine, Journal)
    return machine


def first_error(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
