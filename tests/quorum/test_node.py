import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path

import pytest

from kraftlog._check import InvariantViolation
from kraftlog.clock import SystemClock
from kraftlog.errors import (
    KraftError,
    NotLeaderError,
    RecordTooLarge,
    RequestTimedOut,
    StorageError,
    ThrottledError,
)
from kraftlog.types import Buffer
from quorum import node as module
from quorum.core.config import RaftConfig
from quorum.core.messages import (
    AddVoterRequest,
    Refusal,
    ReplicaRequest,
    Reply,
    VoteReply,
    VoteRequest,
    VoterSet,
)
from quorum.node import RaftNode
from quorum.store import Store, format_store
from storage.files import OsFiles
from tests.loops import run, until
from tests.quorum.cells import CALM, first_error
from tests.quorum.machines import Recorder
from tests.quorum.samples import CLUSTER, key, voter, voters

ME, PEER = 1, 2

OnReply = Callable[[Reply | None], None]


class Nowhere:
    """A transport whose other end is the test."""

    def __init__(self) -> None:
        self.sent: list[tuple[ReplicaRequest, OnReply]] = []

    def send(
        self, _endpoint: str, request: ReplicaRequest, _timeout_ms: int, on_reply: OnReply
    ) -> None:
        self.sent.append((request, on_reply))

    async def run(self) -> None:
        await asyncio.Event().wait()


@asynccontextmanager
async def running(directory: Path, members: VoterSet) -> AsyncIterator[tuple[RaftNode, Nowhere]]:
    files, clock = OsFiles(), SystemClock()
    format_store(files, str(directory), clock, members)
    store = Store(files, str(directory), clock)
    config = RaftConfig(cluster_id=CLUSTER, key=key(ME), endpoint="c1:1", timing=CALM)
    transport = Nowhere()
    node = RaftNode(config, store, Recorder(), transport, clock=clock, draw=lambda _: 0)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(node.run())
        try:
            yield node, transport
        finally:
            task.cancel()
    store.close()


@asynccontextmanager
async def leading(directory: Path) -> AsyncIterator[RaftNode]:
    async with running(directory, voters(ME)) as (node, _):
        await until(node.core.has_committed_epoch, "leadership")
        yield node


def machine(node: RaftNode) -> Recorder:
    assert isinstance(node.machine, Recorder)
    return node.machine


def test_proposals_of_one_round_are_one_batch(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as node:
            offsets = await asyncio.gather(*(node.propose_and_wait([b"x"]) for _ in range(500)))
            assert sorted(offsets) == list(range(2, 502))
            assert node.counts.batches_proposed < 50
            assert node.counts.records_proposed == 500
            await node.wait_applied(502)
            assert len(machine(node).values) == 500
            await node.wait_applied(1)  # long past

    run(story())


def test_records_of_one_proposal_stay_together(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as node:
            both = (node.propose_and_wait(values) for values in ([b"a", b"b"], [b"c"]))
            assert await asyncio.gather(*both) == [2, 4]

    run(story())


def test_large_proposals_are_refused_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with leading(tmp_path) as node:
            with pytest.raises(RecordTooLarge, match="over 2097152"):
                await node.propose_and_wait([bytes(2 << 20)])
            sizes = [10, 1_500_000, 10, 1_500_000, 2_000_000, 10]
            waiting = (node.propose_and_wait([bytes(size)]) for size in sizes)
            assert await asyncio.gather(*waiting) == [2, 3, 4, 5, 6, 7]

    run(story())


def test_a_proposal_for_another_epoch_is_refused(tmp_path: Path) -> None:  # R3
    async def story() -> None:
        async with leading(tmp_path) as node:
            epoch = node.core.epoch
            assert await node.propose_and_wait([b"now"], epoch=epoch) == 2
            for other in (epoch - 1, epoch + 1):
                with pytest.raises(NotLeaderError):
                    await node.propose_and_wait([b"not now"], epoch=other)
            await node.read_barrier()
            assert machine(node).values == [b"now"]

    run(story())


def test_who_does_not_lead_says_who_does(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, voters(ME, PEER)) as (node, _):
            with pytest.raises(NotLeaderError, match="epoch 0 is not led here"):
                node.propose([b"x"], lambda _: None)
            with pytest.raises(NotLeaderError, match="no read here"):
                await node.read_barrier()

    run(story())


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INBOX_MAX", 3)
    monkeypatch.setattr(module, "PROPOSALS_MAX", 5)

    async def story() -> None:
        async with leading(tmp_path) as node:
            request = AddVoterRequest(cluster_id=CLUSTER, voter=voter(PEER))
            replies: list[Reply] = []

            def on_reply(reply: Reply, _: Buffer) -> None:
                replies.append(reply)

            for _ in range(3):
                node.handle_request(request, on_reply)
            with pytest.raises(ThrottledError, match="inbox of the node is full"):
                node.handle_request(request, on_reply)
            done: list[int | KraftError] = []
            for _ in range(5):
                node.propose([b"x"], done.append)
            with pytest.raises(ThrottledError, match="too many proposals"):
                node.propose([b"x"], done.append)
            await until(lambda: len(replies) == 3 and len(done) == 5)
            assert node.counts.requests_refused == 2
            assert await node.propose_and_wait([b"room again"]) > 0

    run(story())


async def elect(node: RaftNode, transport: Nowhere) -> None:
    """The one peer says yes to all."""
    while not node.core.is_leader:
        await until(lambda: bool(transport.sent))
        request, on_reply = transport.sent.pop()
        if isinstance(request, VoteRequest):
            on_reply(VoteReply(epoch=request.epoch, leader=None))
        else:
            on_reply(None)


def test_a_lost_leadership_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, voters(ME, PEER)) as (node, transport):
            await elect(node, transport)
            waiting = asyncio.gather(
                *(node.propose_and_wait([b"x"]) for _ in range(3)), return_exceptions=True
            )
            await until(lambda: node.counts.batches_proposed == 1)
            await node.call(lambda driver: driver.resign())
            results = await waiting
            assert all(isinstance(result, RequestTimedOut) for result in results)
            assert all(
                result.outcome_unknown for result in results if isinstance(result, KraftError)
            )
            with pytest.raises(NotLeaderError) as caught:
                await node.propose_and_wait([b"late"])
            assert not caught.value.outcome_unknown  # nothing was appended

    run(story())


def test_an_answer_that_comes_too_late_is_dropped(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, voters(ME, PEER)) as (node, transport):
            await elect(node, transport)
            await until(lambda: bool(transport.sent))
            request, on_reply = transport.sent.pop()
            await node.call(lambda driver: driver.resign())
            on_reply(VoteReply(epoch=request.epoch, leader=None, refusal=Refusal.LOG_BEHIND))
            await node.call(lambda _: None)

    run(story())


def test_a_read_sees_all_that_was_acknowledged(tmp_path: Path) -> None:  # M2
    async def story() -> None:
        async with leading(tmp_path) as node:
            for number in range(20):
                await node.propose_and_wait([b"%d" % number])
                await node.read_barrier()
                assert machine(node).values[-1] == b"%d" % number

    run(story())


def test_a_long_replay_holds_up_no_timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with running(tmp_path, voters(ME, PEER)) as (node, transport):
            monkeypatch.setattr(node.machine, "handle_snapshot", lambda _: repeat(None))
            snapshot = node.store.latest_snapshot()
            assert snapshot is not None
            node.driver.applier.load(snapshot)

            def campaigns() -> bool:
                return any(isinstance(request, VoteRequest) for request, _ in transport.sent)

            await until(campaigns, "an election")
            assert node.driver.applier.has_work

    run(story())


async def fail_in_node(directory: Path, error: BaseException) -> BaseException:
    def fail(_: object) -> None:
        raise error

    try:
        async with leading(directory) as node:
            await node.call(fail)
    except BaseExceptionGroup as group:
        return first_error(group)
    raise AssertionError("the node goes on")


@pytest.mark.parametrize("error", [InvariantViolation("a rule: x=1"), StorageError("disk full")])
def test_whatever_is_wrong_in_its_task_ends_the_node(tmp_path: Path, error: BaseException) -> None:
    assert run(fail_in_node(tmp_path, error)) is error


def test_a_full_disk_ends_the_node_and_acknowledges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("no space left")

    async def propose_on_full_disk(done: list[int | KraftError]) -> None:
        async with leading(tmp_path) as node:
            monkeypatch.setattr(node.store, "append", full)
            node.propose([b"x"], done.append)
            await asyncio.Event().wait()

    async def story() -> None:
        done: list[int | KraftError] = []
        with pytest.raises(BaseExceptionGroup) as caught:
            await propose_on_full_disk(done)
        assert isinstance(first_error(caught.value), StorageError)
        assert done == []

    run(story())
