from pathlib import Path

import pytest

from kraftlog.errors import KraftError, LeaderNotAvailable, NetworkError
from kraftlog.types import Uuid
from quorum.batches import decode_key
from quorum.client import QuorumClient, raise_refusal, refusal_of
from quorum.config import ServerConfig
from quorum.core.config import FAST
from quorum.core.messages import AddVoterReply, Refusal
from quorum.local import free_port
from quorum.wire import encode_reply
from tests.loops import run, until
from tests.quorum.cells import cell
from tests.quorum.samples import key, voter


def test_the_leader_is_found_through_anybody(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            follower, leader = await three.follower(), await three.leader()
            addresses = [f"127.0.0.1:{free_port()}", follower.address.endpoint]
            async with QuorumClient(addresses, timeout_ms=20_000) as client:
                found = await client.find_leader()
                assert found.header.leader.endpoint == leader.address.endpoint
                assert found.role == "leader"
                assert Uuid(found.cluster_id) == three.cluster_id

    run(story())


def test_records_are_proposed(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path, nodes=1) as one:
            leader = (await one.leader()).address.endpoint
            async with QuorumClient([leader]) as client:
                offset = await client.propose(leader, one.cluster_id, [b"a", b"b"])
                assert await client.propose(leader, one.cluster_id, [b"c"]) == offset + 2
                with pytest.raises(KraftError, match="this is"):
                    await client.propose(leader, Uuid.random(), [b"d"])

    run(story())


def test_voters_come_and_go(tmp_path: Path) -> None:
    async def story() -> None:
        async with cell(tmp_path) as three:
            leader = (await three.leader()).address.endpoint
            async with QuorumClient([leader]) as client:
                with pytest.raises(KraftError) as caught:
                    await client.add_voter(leader, three.cluster_id, voter(9))
                assert refusal_of(caught.value) is Refusal.NOT_CAUGHT_UP
                with pytest.raises(KraftError) as caught:
                    await client.remove_voter(leader, three.cluster_id, key(9))
                assert refusal_of(caught.value) is Refusal.VOTER_NOT_FOUND
                gone = (await three.follower()).identity.key
                await client.remove_voter(leader, three.cluster_id, gone)
                described = await client.describe(leader)
                left = [decode_key(each.key) for each in described.voters]
                assert gone not in left
                assert len(left) == 2

    run(story())


def test_nobody_answers() -> None:
    async def story() -> None:
        address = f"127.0.0.1:{free_port()}"
        async with QuorumClient([address], timeout_ms=300) as client:
            with pytest.raises(NetworkError, match=f"{address} does not answer"):
                await client.find_leader()
            ((_, answer),) = await client.describe_all([address])
            assert isinstance(answer, NetworkError)

    run(story())


def test_nobody_leads(tmp_path: Path) -> None:
    async def story() -> None:
        quick = ServerConfig(directory="", timing=FAST)
        async with cell(tmp_path, template=quick) as three:
            leader = await three.leader()
            others = [node for node in three.servers if three.servers[node] is not leader]
            for node_id in others:
                await three.stop(node_id)
            await until(lambda: not leader.node.core.is_leader, "check-quorum")  # Q12
            async with QuorumClient(three.endpoints, timeout_ms=100) as client:
                with pytest.raises(LeaderNotAvailable, match="nobody leads epoch"):
                    await client.find_leader()
            await three.start(others[0])
            await three.leader()

    run(story())


def test_a_refusal_is_an_error_with_kafkas_number() -> None:
    granted = encode_reply(1, AddVoterReply(epoch=1, leader=None)).add_voter
    raise_refusal(granted.header, "c1:1")
    refused = AddVoterReply(epoch=1, leader=None, refusal=Refusal.DUPLICATE_VOTER)
    with pytest.raises(KraftError, match="duplicate voter") as caught:
        raise_refusal(encode_reply(1, refused).add_voter.header, "c1:1")
    assert caught.value.code == 126
    assert caught.value.node == "c1:1"
    assert refusal_of(caught.value) is Refusal.DUPLICATE_VOTER
    assert refusal_of(KraftError("something else")) is None
