"""Fetch: what a reader gets, how much of it, and when."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brokers import fetch as fetching
from brokers.cluster import PartitionId
from brokers.partition_state import Leading
from brokers.purgatory import wait
from brokers.requests import (
    FetchPart,
    FetchReply,
    FetchRequest,
    FetchResult,
    ReplicaIdentity,
)
from brokers.settings import REPLY_BYTES_MAX
from kraftlog.errors import ErrorCode, KraftError
from kraftlog.record_batch import read_batches
from tests.brokers.aio import async_test
from tests.brokers.brokers import FAST, Broker, Cluster
from tests.loops import until


async def fetch(broker: Broker, request: FetchRequest) -> FetchReply:
    reply: FetchReply = await wait(lambda done: broker.manager.fetch(request, done))
    return reply


def error_of(result: FetchResult) -> KraftError:
    assert result.error is not None
    return result.error


def bytes_in(parts: Sequence[FetchResult]) -> int:
    return sum(len(each.records) for each in parts)


# -- what


@async_test
async def test_consumers_see_nothing_above_the_high_watermark(tmp_path: Path) -> None:
    # R14 P6
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        cluster.cut(1, 2)
        await cluster.produce(topic, b"b", acks=1)
        found = await cluster.fetch(topic, 0)
        assert [each.next_offset for each in read_batches(found.records)] == [1]
        assert found.high_watermark == 1
        assert (await cluster.fetch(topic, 1)).records == b""


@async_test
async def test_replicas_see_all(tmp_path: Path) -> None:
    # R9
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await cluster.create("t", replicas=(1, 2))
        cluster.cut(1, 2)
        await cluster.produce(topic, b"a", acks=1)
        request = FetchRequest(
            replica=ReplicaIdentity(2, 2), max_wait_ms=0, parts=[FetchPart(topic, 0, 0)]
        )
        (found,) = (await fetch(cluster.brokers[1], request)).parts
        assert len(list(read_batches(found.records))) == 1
        assert (found.high_watermark, found.end_offset) == (0, 1)


@async_test
async def test_what_a_replica_asked_for_before_the_leader_knew_of_it_counts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reply had no room to say so, and once the leader knows the partition nothing is wrong:
    the replica will not ask again, and could never join the ISR.
    """
    monkeypatch.setattr(fetching, "REPLY_PARTS_MAX", 1)
    places = [PartitionId(name.ljust(16, b"."), 0) for name in (b"t", b"u")]
    async with Cluster(tmp_path, count=2) as cluster:
        cluster.cut(1, 2)
        replica = ReplicaIdentity(2, 2)
        early = FetchRequest(
            replica=replica,
            max_wait_ms=0,
            session_epoch=0,
            parts=[FetchPart(place, 0, 0) for place in places],
        )
        told = await fetch(cluster.brokers[1], early)
        assert [error_of(part).code for part in told.parts] == [ErrorCode.UNKNOWN_TOPIC_ID]
        for name in ("t", "u"):
            await cluster.create(name, replicas=(1, 2))
        later = FetchRequest(
            replica=replica, max_wait_ms=0, session_id=told.session_id, session_epoch=1
        )
        assert (await fetch(cluster.brokers[1], later)).error is None
        missed = places[1]
        role = cluster.brokers[1].partition(missed).state.role
        assert isinstance(role, Leading)
        assert role.followers[2].end_offset == 0


@async_test
async def test_a_replica_must_name_its_leader_epoch(tmp_path: Path) -> None:
    # P4
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await cluster.create("t", replicas=(1, 2))
        cluster.cut(1, 2)
        await cluster.produce(topic, b"a", acks=1)
        request = FetchRequest(
            replica=ReplicaIdentity(2, 2), max_wait_ms=0, parts=[FetchPart(topic, 1)]
        )
        (found,) = (await fetch(cluster.brokers[1], request)).parts
        assert error_of(found).code == ErrorCode.INVALID_REQUEST
        assert cluster.brokers[1].partition(topic).high_watermark == 0


@async_test
async def test_a_parked_fetch_hears_that_nobody_leads(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(cluster.fetch(topic, 0, max_wait_ms=30_000))
            purgatory = cluster.brokers[1].manager.purgatory
            await until(lambda: purgatory.counts.get("fetch", 0) == 1)
            cluster.change(lambda controller: controller.fence(1))
        assert error_of(waiting.result()).code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@async_test
async def test_an_offset_out_of_range_is_an_error(tmp_path: Path) -> None:
    # R20
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        await cluster.produce(topic, b"a", b"b")
        assert error_of(await cluster.fetch(topic, 3)).code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (await cluster.fetch(topic, 2)).error is None
        cluster.brokers[1].partition(topic).delete_below(2)
        below = await cluster.fetch(topic, 1)
        assert error_of(below).code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert below.log_start_offset == 2


@async_test
async def test_leader_epochs_fence(tmp_path: Path) -> None:
    # P4
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.elect(topic, 2)
        old = await cluster.fetch(topic, 0, leader_epoch=0)
        assert error_of(old).code == ErrorCode.FENCED_LEADER_EPOCH
        assert old.leader == (2, 1)
        ahead = await cluster.fetch(topic, 0, leader_epoch=2)
        assert error_of(ahead).code == ErrorCode.UNKNOWN_LEADER_EPOCH
        elsewhere = await cluster.fetch(topic, 0, of=1)
        assert error_of(elsewhere).code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert elsewhere.leader == (2, 1)


@async_test
async def test_a_consumer_learns_where_its_history_parts(tmp_path: Path) -> None:
    # P11
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        await cluster.elect(topic, 2)
        await cluster.produce(topic, b"b")
        parted = await cluster.fetch(topic, 2, last_epoch=0)
        assert parted.diverging is not None
        assert (parted.diverging.epoch, parted.diverging.end_offset) == (0, 1)
        assert not parted.records
        assert (await cluster.fetch(topic, 1, last_epoch=0)).diverging is None


@async_test
async def test_what_is_not_here_is_named(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        unknown = PartitionId(b"?" * 16, 0)
        cluster.change(lambda controller: controller.change_broker(controller.now.brokers[1]))
        found = await fetch(
            cluster.brokers[1], FetchRequest(max_wait_ms=1_000, parts=[FetchPart(unknown, 0)])
        )
        assert error_of(found.parts[0]).code == ErrorCode.UNKNOWN_TOPIC_ID


# -- how much


@async_test
async def test_limits_of_a_partition_and_of_the_whole(tmp_path: Path) -> None:
    # R20
    async with Cluster(tmp_path, count=1) as cluster:
        topics = [await cluster.create(name, replicas=(1,)) for name in "abc"]
        for topic in topics:
            for _ in range(4):
                await cluster.produce(topic, b"x" * 1_000)
        broker = cluster.brokers[1]
        one = (await cluster.fetch(topics[0], 0, max_bytes=10)).records
        assert 1_000 < len(one) < 2_000  # one batch at least
        parts = [FetchPart(topic, 0, max_bytes=2_500) for topic in topics]
        all_of_them = await fetch(broker, FetchRequest(parts=parts, max_wait_ms=0))
        assert {len(each.records) for each in all_of_them.parts} == {2 * len(one)}
        limited = await fetch(broker, FetchRequest(parts=parts, max_wait_ms=0, max_bytes=3_500))
        sizes = {each.partition: len(each.records) for each in limited.parts}
        assert sizes == {topics[0]: 2 * len(one), topics[1]: len(one), topics[2]: 0}


@async_test
async def test_a_first_batch_comes_whole_and_a_reply_stays_small(tmp_path: Path) -> None:
    # R20
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        for _ in range(5):
            await cluster.produce(topic, b"x" * 400_000)
        whole = await cluster.fetch(topic, 0, max_bytes=50 << 20)
        assert len(whole.records) <= REPLY_BYTES_MAX
        assert len(list(read_batches(whole.records))) == 2
        request = FetchRequest(parts=[FetchPart(topic, 0)], max_wait_ms=0, max_bytes=1)
        tiny = await fetch(cluster.brokers[1], request)
        assert bytes_in(tiny.parts) > 400_000


@async_test
async def test_there_are_as_many_sessions_as_is_set(tmp_path: Path) -> None:
    # R21
    settings = replace(FAST, sessions_max=2)
    async with Cluster(tmp_path, count=1, settings=settings) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        request = FetchRequest(parts=[FetchPart(topic, 0)], max_wait_ms=0, session_epoch=0)
        given = [(await fetch(cluster.brokers[1], request)).session_id for _ in range(3)]
        assert [bool(session_id) for session_id in given] == [True, True, False]


@async_test
async def test_those_without_room_come_first_the_next_time(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topics = [await cluster.create(name, replicas=(1,)) for name in "abc"]
        for topic in topics:
            await cluster.produce(topic, b"x" * 1_000)
        broker, seen = cluster.brokers[1], []
        parts = [FetchPart(topic, 0) for topic in topics]
        reply = await fetch(
            broker, FetchRequest(parts=parts, max_wait_ms=0, max_bytes=900, session_epoch=0)
        )
        for epoch in range(1, 4):
            seen += [each.partition for each in reply.parts if each.records]
            reply = await fetch(
                broker,
                FetchRequest(
                    max_wait_ms=0,
                    max_bytes=900,
                    session_id=reply.session_id,
                    session_epoch=epoch,
                ),
            )
        assert sorted(seen) == sorted(topics)


@async_test
async def test_a_huge_fetch_is_taken_in_by_turns(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        await cluster.produce(topic, b"a")
        many = [FetchPart(PartitionId(b"?" * 16, n), 0) for n in range(60_000)]
        replies: list[FetchReply] = []
        request = FetchRequest(parts=[*many, FetchPart(topic, 0)], max_wait_ms=0, session_epoch=0)
        cluster.brokers[1].manager.fetch(request, replies.append)
        assert not replies
        await until(lambda: bool(replies))
        (session,) = cluster.brokers[1].manager.fetches.sessions
        assert len(session.parts) == 60_001
        assert len(replies[0].parts) < 60_001


# -- when


@async_test
async def test_a_fetch_waits_for_records(tmp_path: Path) -> None:
    # R20
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(cluster.fetch(topic, 0, max_wait_ms=30_000))
            await until(lambda: len(cluster.brokers[1].manager.purgatory) == 1)
            await cluster.produce(topic, b"a")
        assert waiting.result().records


@async_test
async def test_a_fetch_waits_for_enough_bytes(tmp_path: Path) -> None:
    # R20
    async with Cluster(tmp_path, count=1) as cluster:
        topics = [await cluster.create(name, replicas=(1,)) for name in "ab"]
        request = FetchRequest(
            parts=[FetchPart(topic, 0) for topic in topics], max_wait_ms=30_000, min_bytes=250
        )
        replies: list[FetchReply] = []
        cluster.brokers[1].manager.fetch(request, replies.append)
        for number in range(3):
            assert not replies
            await cluster.produce(topics[number % 2], b"x" * 30)
        await until(lambda: bool(replies))
        assert bytes_in(replies[0].parts) >= 250


@async_test
async def test_time_runs_out_and_all_partitions_are_told(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topics = [await cluster.create(name, replicas=(1,)) for name in "ab"]
        await cluster.produce(topics[1], b"a")
        request = FetchRequest(
            parts=[FetchPart(topics[0], 0), FetchPart(topics[1], 1)], max_wait_ms=5
        )
        reply = await fetch(cluster.brokers[1], request)
        assert {each.partition: each.high_watermark for each in reply.parts} == {
            topics[0]: 0,
            topics[1]: 1,
        }


@async_test
async def test_a_parked_fetch_hears_of_a_new_leader_at_once(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(cluster.fetch(topic, 0, max_wait_ms=30_000, leader_epoch=0))
            await until(lambda: cluster.brokers[1].manager.purgatory.counts.get("fetch", 0) == 1)
            await cluster.elect(topic, 3)
        assert error_of(waiting.result()).code == ErrorCode.FENCED_LEADER_EPOCH


@async_test
async def test_a_reader_that_leaves_leaves_nothing_behind(tmp_path: Path) -> None:
    # V3
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager = cluster.brokers[1].manager
        parked = manager.fetch(
            FetchRequest(parts=[FetchPart(topic, 0)], max_wait_ms=60_000), lambda _: None
        )
        assert parked is not None
        assert len(cluster.brokers[1].partition(topic).watchers) == 1
        parked.cancel()
        parked.cancel()
        assert len(manager.purgatory) == 0
        assert not cluster.brokers[1].partition(topic).watchers


@async_test
async def test_a_higher_high_watermark_reaches_replicas_without_records(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        await until(
            lambda: all(b.partition(topic).high_watermark == 1 for b in cluster.brokers.values())
        )


@async_test
async def test_a_parked_fetch_can_be_woken_to_say_more(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager, replies = cluster.brokers[1].manager, list[FetchReply]()
        first = await fetch(
            cluster.brokers[1],
            FetchRequest(parts=[FetchPart(topic, 0)], max_wait_ms=0, session_epoch=0),
        )
        manager.fetch(
            FetchRequest(max_wait_ms=60_000, session_id=first.session_id, session_epoch=1),
            replies.append,
        )
        assert not replies
        woken = await fetch(
            cluster.brokers[1], FetchRequest(session_id=first.session_id, wake=True)
        )
        assert (woken.error, list(woken.parts)) == (None, [])
        assert len(replies) == 1


# -- from where


@async_test
async def test_a_consumer_is_sent_to_the_replica_in_its_rack(tmp_path: Path) -> None:
    # R8
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        for broker, rack in ((1, "west"), (2, "east"), (3, "south")):
            cluster.place(broker, rack)
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        await cluster.settled()
        sent = await cluster.fetch(topic, 0, rack="east")
        assert (sent.preferred_replica, sent.records) == (2, b"")
        there = await cluster.fetch(topic, 0, of=2, rack="east")
        assert there.records
        assert there.preferred_replica is None
        assert (await cluster.fetch(topic, 0, rack="west")).records
        assert (await cluster.fetch(topic, 0, rack="nowhere")).records
        cluster.change(lambda controller: controller.fence(2))
        await cluster.settled()
        assert (await cluster.fetch(topic, 0, rack="east")).preferred_replica is None


@async_test
async def test_a_follower_serves_no_more_than_it_knows_to_be_committed(tmp_path: Path) -> None:
    # P6
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        cluster.cut(1, 3)
        await cluster.produce(topic, b"a", acks=1)
        await until(lambda: cluster.brokers[2].partition(topic).end_offset == 1)
        shown = await cluster.fetch(topic, 0, of=2, rack="here")
        assert (shown.error, shown.records) == (None, b"")
