"""Fetch sessions: who has one, what it remembers, and that idle partitions cost nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.cluster import PartitionId
from brokers.fetch_sessions import INT32_MAX, FetchSessions
from brokers.purgatory import wait
from brokers.requests import FetchPart, FetchReply, FetchRequest, ReplicaIdentity
from kraftlog.errors import ErrorCode, KraftError
from tests.brokers.aio import async_test
from tests.brokers.brokers import FAST, Cluster
from tests.loops import until

NEW = FetchRequest(session_epoch=0)
IDLE_MS = 1_000


def sessions(limit: int = 3) -> FetchSessions:
    return FetchSessions(limit=limit, idle_ms=IDLE_MS)


def following(session_id: int, epoch: int) -> FetchRequest:
    return FetchRequest(session_id=session_id, session_epoch=epoch)


def replica(broker_id: int) -> FetchRequest:
    return FetchRequest(replica=ReplicaIdentity(broker_id, 1), session_epoch=0)


def test_epochs_count_requests_and_a_wrong_one_is_refused() -> None:
    # R21
    all_of_them = sessions()
    session = all_of_them.take(NEW, 0)
    assert session.id > 0
    assert all_of_them.take(following(session.id, 1), 0) is session
    with pytest.raises(KraftError) as wrong:
        all_of_them.take(following(session.id, 1), 0)
    assert wrong.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert all_of_them.take(following(session.id, 2), 0) is session
    session.next_epoch = INT32_MAX
    all_of_them.take(following(session.id, INT32_MAX), 0)
    assert session.next_epoch == 1


def test_a_session_that_is_gone_is_refused() -> None:
    # R21
    with pytest.raises(KraftError) as gone:
        sessions().take(following(77, 1), 0)
    assert gone.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_nobody_uses_the_session_of_someone_else() -> None:
    all_of_them = sessions()
    session = all_of_them.take(replica(2), 0)
    with pytest.raises(KraftError):
        all_of_them.take(following(session.id, 1), 0)


def test_a_fetch_alone_leaves_no_session() -> None:
    all_of_them = sessions()
    assert all_of_them.take(FetchRequest(), 0).id == 0
    assert len(all_of_them) == 0


def test_the_least_used_makes_room_but_none_that_was_used_just_now() -> None:
    # R21
    all_of_them = sessions(limit=2)
    first = all_of_them.take(NEW, 0)
    second = all_of_them.take(NEW, 10)
    all_of_them.take(following(first.id, 1), 20)
    assert all_of_them.take(NEW, IDLE_MS).id == 0
    third = all_of_them.take(NEW, 10 + IDLE_MS)
    assert {session.id for session in all_of_them} == {first.id, third.id}
    assert second.id not in {session.id for session in all_of_them}
    assert all_of_them.evictions == 1


def test_replicas_come_first_and_have_one_each() -> None:
    # R21
    all_of_them = sessions(limit=2)
    all_of_them.take(NEW, 0)
    kept = all_of_them.take(NEW, 1)
    two = all_of_them.take(replica(2), 2)
    assert {session.id for session in all_of_them} == {kept.id, two.id}
    again = all_of_them.take(replica(2), 3)
    assert {session.id for session in all_of_them} == {kept.id, again.id}
    three = all_of_them.take(replica(3), 4)
    assert {session.id for session in all_of_them} == {again.id, three.id}
    assert all_of_them.take(replica(4), 5).id == 0
    all_of_them.close()
    assert len(all_of_them) == 0


@async_test
async def test_a_replica_has_a_session_though_all_consumers_are_parked(tmp_path: Path) -> None:
    """Its answer is then the end of a consumer's session."""
    # R21
    settings = replace(FAST, sessions_max=2)
    async with Cluster(tmp_path, count=1, settings=settings) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager, replies = cluster.brokers[1].manager, list[FetchReply]()
        parked = FetchRequest(parts=[FetchPart(topic, 0)], max_wait_ms=60_000, session_epoch=0)
        manager.fetch(parked, replies.append)
        manager.fetch(parked, replies.append)
        (first, second) = manager.fetches.sessions
        third = manager.fetches.sessions.take(NEW, 0)
        assert third.id == 0  # another consumer gets none
        follower = manager.fetches.sessions.take(replica(2), 0)
        assert [each.id for each in manager.fetches.sessions] == [second.id, follower.id]
        assert [(each.session_id, each.error) for each in replies] == [(first.id, None)]
        assert manager.purgatory.counts == {"fetch": 1}


@async_test
async def test_a_session_answers_only_with_news(tmp_path: Path) -> None:
    # R21
    async with Cluster(tmp_path, count=1) as cluster:
        topics = [await cluster.create(name, replicas=(1,)) for name in "abc"]
        manager = cluster.brokers[1].manager

        async def fetch(epoch: int, *parts: FetchPart, forget: int | None = None) -> FetchReply:
            request = FetchRequest(
                max_wait_ms=0,
                session_id=session_id,
                session_epoch=epoch,
                parts=parts,
                forgotten=[] if forget is None else [topics[forget]],
            )
            reply: FetchReply = await wait(lambda done: manager.fetch(request, done))
            return reply

        def named(reply: FetchReply) -> list[PartitionId]:
            return sorted(each.partition for each in reply.parts)

        session_id = 0
        first = await fetch(0, *(FetchPart(topic, 0) for topic in topics))
        assert named(first) == sorted(topics)
        session_id = first.session_id
        assert named(await fetch(1)) == []
        await cluster.produce(topics[1], b"x")
        assert named(await fetch(2)) == [topics[1]]
        assert named(await fetch(3)) == [topics[1]]  # its reader has not moved
        assert named(await fetch(4, FetchPart(topics[1], 1))) == []
        await cluster.produce(topics[1], b"y")
        assert named(await fetch(5, forget=1)) == []
        (session,) = manager.fetches.sessions
        assert len(session.parts) == 2
        assert not cluster.brokers[1].partition(topics[1]).watchers


@async_test
async def test_a_session_that_ends_lets_go_of_its_partitions(tmp_path: Path) -> None:
    # V3
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager = cluster.brokers[1].manager
        replies: list[FetchReply] = []
        new = FetchRequest(parts=[FetchPart(topic, 0)], max_wait_ms=60_000, session_epoch=0)
        manager.fetch(new, replies.append)
        (session,) = manager.fetches.sessions
        last = FetchRequest(max_wait_ms=0, session_id=session.id, session_epoch=-1)
        manager.fetch(last, replies.append)
        assert len(replies) == 2
        assert len(manager.fetches.sessions) == 0
        assert not cluster.brokers[1].partition(topic).watchers


@async_test
async def test_a_second_fetch_of_a_session_answers_the_first(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager, replies = cluster.brokers[1].manager, list[FetchReply]()
        new = FetchRequest(parts=[FetchPart(topic, 0)], max_wait_ms=60_000, session_epoch=0)
        manager.fetch(new, replies.append)
        (session,) = manager.fetches.sessions
        again = FetchRequest(max_wait_ms=60_000, session_id=session.id, session_epoch=1)
        manager.fetch(again, replies.append)
        assert len(replies) == 1
        assert len(manager.purgatory) == 1
        await cluster.produce(topic, b"a")
        await until(lambda: len(replies) == 2)
        assert replies[1].parts[0].records
