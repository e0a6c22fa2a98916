import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from kraftlog.connection import RequestStream, open_channel
from kraftlog.rpc import common_pb2, raft_pb2
from kraftlog.types import Uuid
from quorum.transport import CHANNEL_METHOD, parse_replies
from tests.loops import run
from tests.quorum.cells import Cell, cell

Envelope = raft_pb2.RaftRequest
Stream = RequestStream[raft_pb2.RaftReply]


@asynccontextmanager
async def asking(directory: Path, nodes: int = 1) -> AsyncIterator[tuple[Cell, Stream]]:
    """A stream to the leader."""
    async with cell(directory, nodes) as made, asyncio.TaskGroup() as tasks:
        leader = await made.leader()
        stream = RequestStream(leader.address.endpoint, CHANNEL_METHOD, parse=parse_replies)
        task = tasks.create_task(stream.run())
        yield made, stream
        task.cancel()


async def ask(stream: Stream, envelope: Envelope) -> raft_pb2.RaftReply:
    def encode(number: int) -> bytes:
        envelope.correlation_id = number
        return envelope.SerializeToString()

    reply = await stream.ask(encode, timeout_ms=20_000)
    assert reply is not None
    return reply


def propose(cluster_id: Uuid, *values: bytes, epoch: int | None = None) -> Envelope:
    request = raft_pb2.ProposeRequest(cluster_id=cluster_id.raw, records=values, epoch=epoch)
    return Envelope(propose=request)


def test_a_proposal_is_answered_at_its_commit(tmp_path: Path) -> None:
    async def story() -> None:
        async with asking(tmp_path, nodes=3) as (three, stream):
            one, two = await asyncio.gather(
                ask(stream, propose(three.cluster_id, b"a")),
                ask(stream, propose(three.cluster_id, b"b", b"c")),
            )
            assert not one.propose.header.HasField("refusal")
            assert two.propose.base_offset == one.propose.base_offset + 1

    run(story())


def test_bad_proposals_are_refused_by_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with asking(tmp_path) as (one, stream):
            epoch = (await one.leader()).node.core.epoch
            cases = [
                (propose(Uuid.random(), b"x"), "wrong cluster", 104),
                (Envelope(propose=raft_pb2.ProposeRequest()), "wrong cluster", 104),
                (propose(one.cluster_id), "invalid request", 42),
                (propose(one.cluster_id, bytes(3 << 20)), "batch too large", 10),
                (propose(one.cluster_id, b"x", epoch=epoch + 1), "not leader", 6),
                (propose(one.cluster_id, b"x", epoch=2**31 - 1), "not leader", 6),
            ]
            end = (await one.leader()).node.core.log.end_offset
            for envelope, word, code in cases:
                header = (await ask(stream, envelope)).propose.header
                assert (header.refusal, header.error.code) == (word, code)
            assert (await one.leader()).node.core.log.end_offset == end
            assert await one.propose(b"goes on") == end

    run(story())


def header(one: Cell, **changes: object) -> raft_pb2.ReplicaHeader:
    known = raft_pb2.ReplicaHeader(
        cluster_id=one.cluster_id.raw,
        sender=common_pb2.VoterKey(node_id=999, directory_id=bytes(range(16))),
        epoch=1,
    )
    for name, value in changes.items():
        if isinstance(value, common_pb2.VoterKey):
            getattr(known, name).CopyFrom(value)
        else:
            setattr(known, name, value)
    return known


def vote(of: raft_pb2.ReplicaHeader) -> Envelope:
    return Envelope(vote=raft_pb2.VoteRequest(header=of, last_epoch=0, end_offset=0))


def test_bad_votes_change_nothing(tmp_path: Path) -> None:  # Q14
    stranger = common_pb2.VoterKey(node_id=101, directory_id=bytes(16))

    async def story() -> None:
        async with asking(tmp_path) as (one, stream):
            core = (await one.leader()).node.core
            before = core.election
            cases = [
                (vote(header(one, cluster_id=Uuid.random().raw, epoch=5)), "wrong cluster"),
                (vote(header(one, recipient=stranger, epoch=5)), "wrong recipient"),
                (vote(header(one, epoch=2**31 - 1)), "epoch too far ahead"),
                (vote(header(one, epoch=-1)), "invalid request"),
                (vote(header(one, cluster_id=b"short")), "invalid request"),
                (vote(header(one, sender=common_pb2.VoterKey(node_id=-3))), "invalid request"),
                (vote(header(one, sender=stranger, epoch=5)), "same node id"),
            ]
            for envelope, word in cases:
                assert (await ask(stream, envelope)).vote.header.refusal == word
            assert core.election == before
            assert core.is_leader

    run(story())


def test_an_envelope_of_no_kind_is_answered(tmp_path: Path) -> None:
    async def story() -> None:
        async with asking(tmp_path) as (_, stream):
            reply = await ask(stream, Envelope())
            assert reply.describe_quorum.header.refusal == "invalid request"

    run(story())


def test_the_unary_calls_are_the_same(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            await one.leader()
            async with open_channel(one.endpoints[0]) as channel:
                call: grpc.aio.UnaryUnaryMultiCallable[
                    raft_pb2.ProposeRequest, raft_pb2.ProposeReply
                ] = channel.unary_unary(
                    "/kraftlog.rpc.Raft/Propose",
                    request_serializer=raft_pb2.ProposeRequest.SerializeToString,
                    response_deserializer=raft_pb2.ProposeReply.FromString,
                )
                good = propose(one.cluster_id, b"x").propose
                assert (await call(good)).base_offset > 0
                bad = propose(Uuid.random(), b"x").propose
                assert (await call(bad)).header.refusal == "wrong cluster"

    run(story())


def test_a_follower_names_the_leader(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three, asyncio.TaskGroup() as tasks:
            follower = await three.follower()
            leader = await three.leader()
            stream = RequestStream(follower.address.endpoint, CHANNEL_METHOD, parse=parse_replies)
            task = tasks.create_task(stream.run())
            answer = (await ask(stream, propose(three.cluster_id, b"x"))).propose.header
            assert answer.refusal == "not leader"
            assert answer.leader.endpoint == leader.address.endpoint
            task.cancel()

    run(story())
