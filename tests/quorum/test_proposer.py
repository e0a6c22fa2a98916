import asyncio
from pathlib import Path

import pytest

from kraftlog.errors import LeaderNotAvailable, NetworkError, NotLeaderError
from quorum.local import free_port
from quorum.proposer import Proposer
from tests.loops import run
from tests.quorum.cells import cell


def test_many_proposals_share_a_stream(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three, asyncio.TaskGroup() as tasks:
            leader = await three.leader()
            proposer = Proposer(leader.address.endpoint, three.cluster_id)
            task = tasks.create_task(proposer.run())
            waiting = (proposer.propose([b"%d" % number]) for number in range(300))
            offsets = await asyncio.gather(*waiting)
            assert sorted(offsets) == list(range(min(offsets), min(offsets) + 300))
            assert leader.node.counts.batches_proposed < 100
            task.cancel()

    run(story())


def test_a_follower_refuses_and_names_the_leader(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three, asyncio.TaskGroup() as tasks:
            follower, leader = await three.follower(), await three.leader()
            proposer = Proposer(follower.address.endpoint, three.cluster_id)
            task = tasks.create_task(proposer.run())
            with pytest.raises(NotLeaderError):
                await proposer.propose([b"x"])
            assert proposer.leader == leader.address.endpoint
            with pytest.raises(NotLeaderError):
                await proposer.propose([b"x"], epoch=1)
            task.cancel()

    run(story())


def test_what_could_not_be_sent_surely_did_not_happen(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one, asyncio.TaskGroup() as tasks:
            proposer = Proposer(f"127.0.0.1:{free_port()}", one.cluster_id)
            task = tasks.create_task(proposer.run())
            with pytest.raises(LeaderNotAvailable, match="nothing was sent") as caught:
                await proposer.propose([b"x"])
            assert not caught.value.outcome_unknown
            task.cancel()

    run(story())


def test_no_answer_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three, asyncio.TaskGroup() as tasks:
            leader = await three.leader()
            proposer = Proposer(leader.address.endpoint, three.cluster_id)
            task = tasks.create_task(proposer.run())
            await proposer.propose([b"x"])
            for node_id, server in list(three.servers.items()):
                if server is not leader:
                    await three.stop(node_id)  # no majority is left to commit anything
            with pytest.raises(NetworkError, match="committed or not") as caught:
                await proposer.propose([b"x"], timeout_ms=200)
            assert caught.value.outcome_unknown
            task.cancel()

    run(story())
