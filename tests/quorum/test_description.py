from pathlib import Path

from kraftlog.types import Uuid
from quorum.core.messages import VoteRequest
from quorum.description import describe, observers
from tests.loops import run, until
from tests.quorum.cells import cell
from tests.quorum.samples import key


def test_a_leader_knows_how_far_each_one_is(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            offset = await three.propose(b"x")
            await three.settle()
            leader = (await three.leader()).node

            def all_there() -> bool:
                said = describe(leader, three.cluster_id)
                return all(voter.end_offset == offset + 1 for voter in said.voters)

            await until(all_there, "progress of all")
            said = describe(leader, three.cluster_id)
            assert Uuid(said.cluster_id) == three.cluster_id
            assert said.role == "leader"
            assert said.high_watermark == said.end_offset == said.applied_offset == offset + 1
            assert [voter.key.node_id for voter in said.voters] == [101, 102, 103]
            assert all(voter.HasField("last_fetch_ago_ms") for voter in said.voters)
            assert not observers(leader.core)

    run(story())


def test_a_follower_speaks_for_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            await three.propose(b"x")
            await three.settle()
            node = (await three.follower()).node
            said = describe(node, three.cluster_id)
            assert said.role == "follower"
            known = {voter.key.node_id: voter.end_offset for voter in said.voters}
            itself = node.core.key.node_id
            assert known.pop(itself) == node.core.log.flushed_offset
            assert set(known.values()) == {-1}

    run(story())


def test_the_last_refusals_are_kept(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            node = (await one.leader()).node
            request = VoteRequest(
                cluster_id=one.cluster_id,
                sender=key(9),
                recipient=None,
                epoch=node.core.epoch,
                last_epoch=0,
                end_offset=0,
                pre_vote=True,
            )
            done: list[object] = []
            node.handle_request(request, lambda *reply: done.append(reply))
            await until(lambda: bool(done))
            (note,) = describe(node, one.cluster_id).refusals
            assert (note.node_id, note.refusal, note.ours) == (9, "leader alive", True)

    run(story())


def test_votes_and_who_is_heard_are_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            await three.propose(b"x")
            await three.settle()
            leader = (await three.leader()).node
            said = describe(leader, three.cluster_id)
            itself = leader.core.key.node_id
            assert said.voted.node_id == itself
            assert said.led_epoch == leader.core.epoch
            assert not said.HasField("leaderless_ms")
            heard = {each.key.node_id for each in said.voters if each.HasField("heard_ago_ms")}
            assert heard == {101, 102, 103} - {itself}

    run(story())


def test_how_long_nobody_leads_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            await three.settle()
            left = (await three.follower()).node
            epoch = left.core.epoch
            for node_id in {101, 102, 103} - {left.core.key.node_id}:
                await three.stop(node_id)
            await until(lambda: left.leaderless_ms is not None, "nobody leads")
            said = describe(left, three.cluster_id)
            assert said.HasField("leaderless_ms")
            assert epoch <= said.led_epoch <= left.core.epoch

    run(story())
