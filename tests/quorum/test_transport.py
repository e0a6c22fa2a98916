import asyncio
from pathlib import Path

from kraftlog.types import Uuid
from quorum.core.messages import FetchReply, FetchRequest, Refusal, Reply, VoteReply, VoteRequest
from quorum.transport import GrpcTransport
from tests.loops import run, until
from tests.quorum.cells import cell
from tests.quorum.samples import key


def vote(cluster_id: Uuid, epoch: int = 0) -> VoteRequest:
    return VoteRequest(
        cluster_id=cluster_id,
        sender=key(9),
        recipient=None,
        epoch=epoch,
        last_epoch=0,
        end_offset=0,
        pre_vote=True,
    )


def test_requests_travel_and_replies_come_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one, asyncio.TaskGroup() as tasks:
            await one.leader()
            transport = GrpcTransport()
            replies: list[Reply | None] = []
            # What is sent before it runs waits for it.
            transport.send(one.endpoints[0], vote(one.cluster_id), 20_000, replies.append)
            task = tasks.create_task(transport.run())
            transport.send(one.endpoints[0], vote(Uuid.random()), 20_000, replies.append)
            await until(lambda: len(replies) == 2)
            assert isinstance(replies[0], VoteReply)
            assert [reply.refusal for reply in replies if reply] == [
                Refusal.EPOCH_STALE,
                Refusal.WRONG_CLUSTER,
            ]
            task.cancel()

    run(story())


def test_nobody_there_is_no_answer() -> None:
    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            transport = GrpcTransport(lambda _: "127.0.0.1:1")
            replies: list[Reply | None] = []
            task = tasks.create_task(transport.run())
            transport.send("anybody:9093", vote(Uuid.random()), 20_000, replies.append)
            await until(lambda: replies == [None])
            task.cancel()

    run(story())


def test_a_fetch_that_finds_nothing_new_is_kept_for_its_wait(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one, asyncio.TaskGroup() as tasks:
            leader = await one.leader()
            await one.settle()
            core = leader.node.core
            fetch = FetchRequest(
                cluster_id=one.cluster_id,
                sender=key(9),
                recipient=core.key,
                epoch=core.epoch,
                offset=core.log.end_offset,
                last_epoch=core.epoch,
                high_watermark=core.high_watermark,
                max_wait_ms=60_000,
                max_bytes=1_000,
            )
            transport = GrpcTransport()
            task = tasks.create_task(transport.run())
            replies: list[Reply | None] = []
            transport.send(one.endpoints[0], fetch, 60_000, replies.append)
            await until(lambda: key(9) in getattr(core.role, "parked", {}))
            offset = await one.propose(b"news")
            await until(lambda: bool(replies))
            (reply,) = replies
            assert isinstance(reply, FetchReply)
            assert [batch.base_offset for batch in reply.batches] == [offset]
            task.cancel()

    run(story())
