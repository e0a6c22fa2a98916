"""The controller of a cluster on a real node with a real log, served over gRPC."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.scripted import ScriptedBroker, ScriptedClient, raise_error
from kraftlog.clock import SystemClock
from kraftlog.config import load
from kraftlog.config_keys import Scope
from kraftlog.errors import ErrorCode
from kraftlog.rpc import common_pb2
from kraftlog.rpc import controller_pb2 as pb
from kraftlog.types import Uuid
from quorum.config import server_config
from quorum.directory import Identity, Seat, form_directories
from quorum.local import free_port
from quorum.metadata_service import MetadataService, SystemDraw
from quorum.server import ControllerServer, open_controller
from storage.files import OsFiles

Life = Callable[[ControllerServer, ScriptedClient], Awaitable[bytes]]


def test_a_cluster_is_governed_over_grpc_and_comes_back_after_a_restart(tmp_path: Path) -> None:
    directory, endpoint = str(tmp_path / "c1"), f"127.0.0.1:{free_port()}"
    form_directories(OsFiles(), [Seat(101, directory, endpoint)], SystemClock())
    topic_id = asyncio.run(served(directory, endpoint, first_life))
    assert asyncio.run(served(directory, endpoint, second_life)) == topic_id


async def served(directory: str, endpoint: str, live: Life) -> bytes:
    """One life of the controller, from its start to its stop."""
    config = server_config(
        load(
            Scope.CONTROLLER,
            flags={"log.dirs": directory, "listeners": endpoint, "timing.profile": "fast"},
        )
    )

    def make(identity: Identity) -> MetadataService:
        return MetadataService(identity.key.node_id, identity.cluster_id, config.settings)

    async with open_controller(config, make) as server, asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run())
        client = ScriptedClient([endpoint])
        try:
            return await live(server, client)
        finally:
            await client.close()
            server.stop()


async def first_life(server: ControllerServer, client: ScriptedClient) -> bytes:
    broker = ScriptedBroker(client, 1)
    await broker.register()
    async with asyncio.timeout(30):
        while broker.is_fenced:
            await broker.beat()
    topic = pb.NewTopic(name="t", partitions=2, replication_factor=1)
    create = pb.ControllerRequest(create_topics=pb.CreateTopicsRequest(topics=[topic]))
    reply = await client.ask(create)
    raise_error(reply)
    wrong = pb.ControllerRequest(
        header=common_pb2.RequestHeader(api_version=9),
        describe_cluster=pb.DescribeClusterRequest(),
    )
    refused = await client.try_once(wrong)
    assert refused is not None
    assert refused.error.code == ErrorCode.UNSUPPORTED_VERSION
    return reply.create_topics.topics[0].topic_id


async def second_life(server: ControllerServer, client: ScriptedClient) -> bytes:
    describe = pb.DescribeTopicsRequest(topics=[pb.TopicRef(name="t")])
    reply = await client.ask(pb.ControllerRequest(describe_topics=describe))
    raise_error(reply)
    assert len(reply.describe_topics.topics[0].partitions) == 2
    return reply.describe_topics.topics[0].topic_id


def test_chance_is_fair_enough() -> None:
    draw = SystemDraw()
    assert {draw.below(3) for _ in range(200)} == {0, 1, 2}
    assert draw.uuid() != draw.uuid()


def test_without_a_node_there_is_no_leader() -> None:
    service = MetadataService(1, Uuid(b"x" * 16), load(Scope.CONTROLLER))
    assert "no controller is known" in service.controller.not_controller().hint
    assert not service.takes_proposals
