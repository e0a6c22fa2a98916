import json
from pathlib import Path

import pytest

from kraftlog.errors import NetworkError
from quorum.client import QuorumClient
from quorum.local import free_port
from quorum.output import Json
from quorum.status import Status, read_status, status_json, status_text
from tests.loops import run
from tests.quorum.cells import Cell, cell


async def status_of(three: Cell, *addresses: str) -> Status:
    async with QuorumClient(addresses or three.endpoints[:1], timeout_ms=3_000) as client:
        return await read_status(client)


def as_json(status: Status) -> dict[str, Json]:
    loaded = json.loads(json.dumps(status_json(status)))
    assert isinstance(loaded, dict)
    return loaded


def test_a_healthy_quorum(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            await three.propose(b"x")
            await three.settle()
            leader = await three.leader()
            status = await status_of(three)
            assert status.healthy
            text = status_text(status)
            assert text.startswith(f"cluster {three.cluster_id}  epoch {leader.node.core.epoch}")
            assert len(text.splitlines()) == 2 + 3
            said = as_json(status)
            assert said["healthy"] is True
            members = said["members"]
            assert isinstance(members, list)
            assert {member["role"] for member in members} == {"leader", "follower"}
            assert {member["believes"] for member in members} == {leader.identity.key.node_id}

    run(story())


def test_a_voter_that_is_down_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            follower = await three.follower()
            gone = follower.identity.key.node_id
            await three.stop(gone)
            status = await status_of(three, (await three.leader()).address.endpoint)
            assert not status.healthy
            assert f"voter {gone} at {follower.address.endpoint} does not answer" in status_text(
                status
            )
            (lost,) = [member for member in status.members if member.said is None]
            assert lost.node_id == gone

    run(story())


def test_nobody_answers(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            with pytest.raises(NetworkError):
                await status_of(one, f"127.0.0.1:{free_port()}")

    run(story())
