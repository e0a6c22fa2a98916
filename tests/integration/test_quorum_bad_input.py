"""What a controller that runs makes of nonsense: a named error, no state change, and on it goes."""

import asyncio
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftlog.connection import RequestStream
from kraftlog.rpc import common_pb2, raft_pb2
from kraftlog.types import Uuid
from quorum.client import Description, QuorumClient
from quorum.core.messages import Refusal
from quorum.local import ControllerProcess, LocalQuorum, ProcessFailed, run_command
from quorum.proposer import Proposer
from quorum.transport import CHANNEL_METHOD, parse_replies

pytestmark = pytest.mark.slow

ARGUMENTS = ("--profile", "fast", "--state", "journal")


@contextmanager
def one_controller(directory: Path, *more: str) -> Iterator[LocalQuorum]:
    with LocalQuorum(str(directory), nodes=1, arguments=(*ARGUMENTS, *more)).start() as quorum:
        yield quorum


async def propose(quorum: LocalQuorum, value: bytes) -> int:
    async with QuorumClient(quorum.endpoints, timeout_ms=30_000) as client:
        leader = (await client.find_leader()).header.leader.endpoint
        return await client.propose(leader, Uuid.parse(quorum.cluster_id), [value])


async def describe(quorum: LocalQuorum) -> Description:
    async with QuorumClient(quorum.endpoints, timeout_ms=30_000) as client:
        return await client.find_leader()


# -- bytes


def noises() -> Iterator[bytes]:
    dice = random.Random(4)
    yield b""
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # half a handshake
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + dice.randbytes(4_096)
    yield b"\x16\x03\x01" + dice.randbytes(200)  # TLS to a port without
    yield from (dice.randbytes(size) for size in (1, 100, 10_000, 1_000_000))


def send(address: str, noise: bytes) -> None:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        try:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
        except OSError:
            pass  # it hung up on us, and rightly so


def test_garbage_to_the_port(tmp_path: Path) -> None:
    with one_controller(tmp_path) as quorum:
        before = asyncio.run(propose(quorum, b"before"))
        for noise in noises():
            send(quorum.endpoints[0], noise)
        assert asyncio.run(propose(quorum, b"after")) == before + 1
        assert quorum.stop() == [0]


# -- messages that are well formed and wrong


def header(
    quorum: LocalQuorum,
    *,
    epoch: int = 7,
    cluster_id: bytes | None = None,
    sender: common_pb2.VoterKey | None = None,
    recipient: common_pb2.VoterKey | None = None,
) -> raft_pb2.ReplicaHeader:
    stranger = common_pb2.VoterKey(node_id=999, directory_id=bytes(range(16)))
    return raft_pb2.ReplicaHeader(
        cluster_id=cluster_id or Uuid.parse(quorum.cluster_id).raw,
        sender=sender or stranger,
        recipient=recipient,
        epoch=epoch,
    )


def votes(quorum: LocalQuorum) -> Iterator[tuple[raft_pb2.ReplicaHeader, Refusal]]:
    other = common_pb2.VoterKey(node_id=101, directory_id=bytes(16))
    yield header(quorum, epoch=2**31 - 1), Refusal.EPOCH_TOO_FAR_AHEAD
    yield header(quorum, cluster_id=Uuid.random().raw), Refusal.WRONG_CLUSTER
    yield header(quorum, recipient=other), Refusal.WRONG_RECIPIENT
    yield header(quorum, sender=other), Refusal.SAME_NODE_ID
    yield header(quorum, epoch=-5), Refusal.INVALID_REQUEST
    yield header(quorum, cluster_id=b"x"), Refusal.INVALID_REQUEST


async def refuse_all(quorum: LocalQuorum) -> None:
    before = await describe(quorum)
    stream = RequestStream(quorum.endpoints[0], CHANNEL_METHOD, parse=parse_replies)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(stream.run())
        for head, refusal in votes(quorum):
            for pre_vote in (True, False):
                request = raft_pb2.VoteRequest(header=head, pre_vote=pre_vote)

                def encode(number: int, vote: raft_pb2.VoteRequest = request) -> bytes:
                    envelope = raft_pb2.RaftRequest(correlation_id=number, vote=vote)
                    return envelope.SerializeToString()

                reply = await stream.ask(encode, timeout_ms=30_000)
                assert reply is not None
                assert reply.vote.header.refusal == refusal.text
        task.cancel()
    after = await describe(quorum)
    assert after.header.epoch == before.header.epoch
    assert after.end_offset == before.end_offset


def test_votes_for_others_and_from_nowhere(tmp_path: Path) -> None:  # Q14
    with one_controller(tmp_path) as quorum:
        asyncio.run(propose(quorum, b"before"))
        asyncio.run(refuse_all(quorum))
        asyncio.run(propose(quorum, b"after"))
        assert quorum.stop() == [0]


async def overwhelm(quorum: LocalQuorum) -> None:
    """More than any queue holds, from somebody who does not wait."""
    proposer = Proposer(quorum.endpoints[0], Uuid.parse(quorum.cluster_id))
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(proposer.run())
        waiting = (proposer.propose([bytes(1_000)], timeout_ms=60_000) for _ in range(15_000))
        results = await asyncio.gather(*waiting, return_exceptions=True)
        done = [result for result in results if isinstance(result, int)]
        assert len(done) >= 9_000
        assert len(set(done)) == len(done)
        task.cancel()


def test_more_than_fits(tmp_path: Path) -> None:
    with one_controller(tmp_path) as quorum:
        asyncio.run(propose(quorum, b"before"))
        asyncio.run(overwhelm(quorum))
        asyncio.run(propose(quorum, b"after"))
        assert quorum.stop() == [0]


# -- files


def refused_start(node: ControllerProcess) -> str:
    node.start()
    with pytest.raises(ProcessFailed) as caught:
        node.wait_ready()
    return str(caught.value)


def test_a_damaged_directory_refuses_to_start(tmp_path: Path) -> None:  # Q15
    with one_controller(tmp_path, "-X", "metadata.log.segment.bytes=2000") as quorum:
        for _ in range(8):
            asyncio.run(propose(quorum, bytes(1_000)))
        (node,) = quorum
        second = run_command("run", "--directory", quorum.seats[0].directory, "-o", "json")
        assert second.returncode == 6
        assert "is locked by process" in second.stdout
        assert quorum.stop() == [0]

        metadata = Path(quorum.seats[0].directory) / "__cluster_metadata-0"
        state = metadata / "quorum-state"
        whole = state.read_bytes()
        state.write_bytes(whole[:30])
        assert "quorum-state makes no sense" in refused_start(node)
        assert state.read_bytes() == whole[:30]
        state.write_bytes(whole)

        segments = sorted(metadata.glob("*.log"))
        assert len(segments) > 3
        middle = segments[2].rename(metadata / "elsewhere")
        assert "__cluster_metadata-0" in refused_start(node)
        middle.rename(segments[2])

        quorum.restart(101)
        asyncio.run(propose(quorum, b"as if nothing had been"))
        assert quorum.stop() == [0]
