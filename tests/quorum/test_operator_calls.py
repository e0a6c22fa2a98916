"""An operator asks a controller to step down, and looks at its log."""

from pathlib import Path

import pytest

from kraftlog.errors import ErrorCode, KraftError
from kraftlog.record_batch import read_batches, whole_batches
from kraftlog.rpc import raft_pb2
from kraftlog.types import Uuid
from quorum.client import QuorumClient
from quorum.config import ServerConfig
from quorum.core.messages import ReplicaKey
from quorum.core.raft import RaftCore
from quorum.core.state import Leader
from quorum.snapshots import SnapshotPolicy
from tests.loops import run, until
from tests.quorum.cells import CALM, Cell, cell


def client_of(made: Cell) -> QuorumClient:
    return QuorumClient([each.address.endpoint for each in made.servers.values()])


def has_all(core: RaftCore, role: Leader, key: ReplicaKey) -> bool:
    return role.replicas[key].end_offset >= core.high_watermark > role.start_offset


def test_leadership_goes_to_the_heir(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, 3) as made, client_of(made) as client:
            leader = await made.leader()
            heir = max(key for key in made.servers if key != leader.identity.key.node_id)
            key = made.servers[heir].identity.key
            core, endpoint = leader.node.core, leader.address.endpoint
            await until(lambda: isinstance(core.role, Leader) and has_all(core, core.role, key))
            await client.step_down(endpoint, made.cluster_id, key)
            await until(lambda: leader.node.core.leader_id == heir)
            with pytest.raises(KraftError) as not_leader:
                await client.step_down(endpoint, made.cluster_id, None)
            assert not_leader.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(story())


def test_what_cannot_lead_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, 3) as made, client_of(made) as client:
            leader = await made.leader()
            endpoint = leader.address.endpoint
            for heir in (ReplicaKey(77, Uuid.random()), ReplicaKey(102, Uuid.random())):
                with pytest.raises(KraftError) as unknown:
                    await client.step_down(endpoint, made.cluster_id, heir)
                assert unknown.value.code == ErrorCode.VOTER_NOT_FOUND
            with pytest.raises(KraftError) as other:
                await client.step_down(endpoint, Uuid.random(), None)
            assert other.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID

    run(story())


def test_a_sole_voter_keeps_leading(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, 1) as made, client_of(made) as client:
            leader = await made.leader()
            with pytest.raises(KraftError, match="only voter"):
                await client.step_down(leader.address.endpoint, made.cluster_id, None)
            key = leader.identity.key
            with pytest.raises(KraftError, match="only voter"):
                await client.step_down(leader.address.endpoint, made.cluster_id, key)

    run(story())


def test_the_committed_log_is_read_from_anywhere(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, 3) as made, client_of(made) as client:
            offset = await made.propose(b"a")
            for server in made.servers.values():
                await server.node.wait_applied(offset + 1)
                reply = await client.read_log(server.address.endpoint, 0)
                batches = list(read_batches(reply.data))
                assert (batches[0].base_offset, reply.log_start_offset) == (0, 0)
                assert [each.value for each in batches[-1].records()] == [b"a"]
                beyond = await client.read_log(server.address.endpoint, reply.high_watermark)
                assert beyond.data == b""
                with pytest.raises(KraftError, match="offset -1"):
                    await client.read_log(server.address.endpoint, -1)

    run(story())


def test_a_snapshot_stands_for_what_the_log_dropped(tmp_path: Path) -> None:
    policy = SnapshotPolicy(log_bytes=2_000, interval_ms=0, retention_bytes=1)
    template = ServerConfig(directory="", timing=CALM, snapshots=policy)

    async def story() -> None:
        async with cell(tmp_path, 1, template) as made, client_of(made) as client:
            leader = await made.leader()
            endpoint = leader.address.endpoint
            while leader.node.core.log.start_offset == 0:
                await made.propose(bytes(1_000))
            reply = await client.read_log(endpoint, 0)
            assert reply.data == b""
            assert reply.snapshot.end_offset >= reply.log_start_offset > 0
            found = await client.read_snapshot(endpoint, reply.snapshot)
            assert whole_batches(found)[0].is_control
            nothing = raft_pb2.SnapshotId(end_offset=9, epoch=9)
            with pytest.raises(KraftError) as missing:
                await client.read_snapshot(endpoint, nothing)
            assert missing.value.code == ErrorCode.SNAPSHOT_NOT_FOUND

    run(story())
