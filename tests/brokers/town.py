"""A whole cluster on the loop of a test: one real controller, real brokers, real files and gRPC.

Sessions are long, so that a busy machine does not look like a dead broker.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from brokers.config import broker_config
from brokers.controller_link import ControllerFinder, ControllerLink
from brokers.server import BrokerServer, open_broker
from kraftlog.clock import SystemClock
from kraftlog.config import load
from kraftlog.config_keys import Scope
from kraftlog.rpc import controller_pb2
from kraftlog.types import Uuid
from quorum.config import ServerConfig
from quorum.core.config import Timing
from quorum.directory import Identity, Seat, form_directories
from quorum.local import free_port
from quorum.metadata_service import MetadataService
from quorum.server import ControllerServer, open_controller
from storage.files import OsFiles
from tests.brokers.views import static
from tests.loops import until

CALM = Timing(
    fetch_timeout_ms=4_000,
    election_timeout_ms=50,
    election_backoff_max_ms=50,
    request_timeout_ms=4_000,
)
SESSION = "20s"


@dataclass
class Town:
    directory: Path
    cluster_id: Uuid
    peer: str
    tasks: asyncio.TaskGroup
    link: ControllerLink
    brokers: dict[str, BrokerServer] = field(default_factory=dict)
    running: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    async def open(self, name: str, **flags: str) -> BrokerServer:
        """A broker that has begun to run; it may still be fenced."""
        given = {
            "log_dirs": str(self.directory / name),
            "cluster_id": str(self.cluster_id),
            "quorum_peers": self.peer,
            "listeners": "127.0.0.1:0",
            "broker_heartbeat_interval_ms": "50",
            "broker_session_timeout_ms": SESSION,
            "controlled_shutdown_timeout_ms": "10s",
        } | flags
        self.running[name] = self.tasks.create_task(self._run(name, given))
        await until(lambda: name in self.brokers or self.running[name].done(), "the broker")
        return self.brokers[name]

    async def _run(self, name: str, flags: dict[str, str]) -> None:
        async with open_broker(broker_config(static(**flags)), resolve=str) as server:
            self.brokers[name] = server
            try:
                await server.run()
            finally:
                self.brokers.pop(name, None)

    async def start(self, name: str, **flags: str) -> BrokerServer:
        """A broker that is unfenced."""
        server = await self.open(name, **flags)
        await until(
            lambda: not server.lifecycle.is_fenced or self.running[name].done(), "its unfencing"
        )
        return server

    async def stop(self, name: str) -> None:
        """In order."""
        self.brokers[name].stop()
        await self.running[name]

    async def ask(
        self, request: controller_pb2.ControllerRequest
    ) -> controller_pb2.ControllerReply:
        """Something of the controller, as an administrator."""
        return await self.link.ask(request, api_key=0, timeout_ms=20_000)

    async def create(self, topic: str, *replicas: int) -> bytes:
        """A topic with one partition on these brokers, known to all; its id."""
        new = controller_pb2.NewTopic(
            name=topic, assignments=[controller_pb2.Replicas(broker_ids=replicas)]
        )
        message = controller_pb2.CreateTopicsRequest(topics=[new])
        reply = await self.ask(controller_pb2.ControllerRequest(create_topics=message))
        [result] = reply.create_topics.topics
        assert not result.HasField("error"), result.error
        for server in self.brokers.values():
            await server.wait_applied(reply.offset)
        return bytes(result.topic_id)


@asynccontextmanager
async def town(directory: Path) -> AsyncIterator[Town]:
    """One controller that is active, and no broker yet."""
    address = f"127.0.0.1:{free_port()}"
    data = str(directory / "controller")
    cluster_id, _ = form_directories(OsFiles(), [Seat(101, data, address)], SystemClock())
    settings = load(Scope.CONTROLLER, flags={"broker.session.timeout.ms": SESSION})
    config = ServerConfig(directory=data, listen=address, timing=CALM, settings=settings)

    def make(identity: Identity) -> MetadataService:
        return MetadataService(identity.key.node_id, identity.cluster_id, settings)

    async with open_controller(config, make) as controller, asyncio.TaskGroup() as tasks:
        tasks.create_task(_serve(controller))
        link = ControllerLink(
            ControllerFinder([address]), cluster_id=cluster_id.raw, client_id="a test"
        )
        made = Town(directory, cluster_id, address, tasks, link)
        try:
            yield made
        finally:
            for name in list(made.brokers):
                made.running[name].cancel()
            await link.close()
            controller.stop()


async def _serve(controller: ControllerServer) -> None:
    await controller.run()
