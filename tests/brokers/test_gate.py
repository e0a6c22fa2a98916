"""Who may answer when: a broker that cannot know whether it still leads acknowledges nothing and
shows nothing; one that can goes on without any controller.
"""

import asyncio
from pathlib import Path

from brokers.cluster import PartitionId
from brokers.gate import AlwaysOpen
from brokers.requests import ACKS_ALL, EndsAnswer, EndsPart, EndsRequest, EpochQuery, OffsetQuery
from kraftlog.errors import ErrorCode
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.loops import until


def close_gates(cluster: Cluster) -> None:
    """The whole quorum is lost: no heartbeat is answered any more."""
    for broker in cluster.brokers.values():
        broker.gate.is_open = False
        broker.hears_controller = False


def is_sure(cluster: Cluster, topic: PartitionId) -> bool:
    leader = cluster.leader(topic)
    state = leader.partition(topic).state
    now_ms = leader.manager.clock.monotonic_ms()
    return state.is_sure_to_lead(now_ms, cluster.settings.heard_window_ms)


def test_without_a_controller_at_all_the_gate_is_open() -> None:
    assert AlwaysOpen().session_alive(0)
    assert not AlwaysOpen().told_fenced


@async_test
async def test_losing_the_quorum_stops_metadata_not_data(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        close_gates(cluster)
        await until(lambda: is_sure(cluster, topic))
        assert (await cluster.produce(topic, b"a", acks=1)).error is None
        assert (await cluster.produce(topic, b"b")).error is None
        assert await cluster.read(topic) == [b"a", b"b"]


@async_test
async def test_a_leader_that_nobody_answers_shows_and_takes_nothing(tmp_path: Path) -> None:
    # M8
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        close_gates(cluster)
        cluster.cut(1, 3)  # one of the others is enough to doubt
        await until(lambda: not is_sure(cluster, topic))
        manager = cluster.brokers[1].manager
        refused = await cluster.produce(topic, b"b", acks=1)
        assert refused.error is not None
        assert refused.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert cluster.brokers[1].partition(topic).end_offset == 1
        read = await cluster.fetch(topic, 0)
        assert read.error is not None
        assert not read.records
        (listed,) = manager.list_offsets([OffsetQuery(topic, -1)])
        assert listed.error is not None
        (epoch_end,) = manager.epoch_ends([EpochQuery(topic, 0)])
        assert epoch_end.error is not None
        assert epoch_end.end is None
        ends: list[list[EndsAnswer]] = []
        manager.ends(EndsRequest([EndsPart(topic)]), ends.append)
        assert ends[0][0].error is not None


@async_test
async def test_a_reader_that_waited_is_told_nothing_by_one_that_was_cut_off_meanwhile(
    tmp_path: Path,
) -> None:
    # M8
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        await until(lambda: is_sure(cluster, topic))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(cluster.fetch(topic, 1, max_wait_ms=600))
            await until(lambda: cluster.brokers[1].manager.purgatory.counts.get("fetch", 0) > 0)
            close_gates(cluster)
            cluster.cut(1, 3)
        told = waiting.result()
        assert told.error is not None
        assert told.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@async_test
async def test_a_sole_member_goes_on_only_if_one_is_enough(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        alone = await cluster.create("alone", replicas=(1,))
        lone = await cluster.create("lone", replicas=(1, 2), min_insync=2)
        await cluster.kill(2)
        await cluster.in_sync(lone, 1)
        close_gates(cluster)
        assert (await cluster.produce(alone, b"a", acks=1)).error is None
        refused = await cluster.produce(lone, b"a", acks=1)
        assert refused.error is not None
        assert refused.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@async_test
async def test_acks_all_does_not_ask_for_the_session(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        close_gates(cluster)
        assert (await cluster.produce(topic, b"a")).error is None


@async_test
async def test_who_knows_that_it_is_fenced_takes_nothing(tmp_path: Path) -> None:
    """Not even with acks=all: it could only time out (30 s later, its outcome unknown)."""
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        cluster.brokers[1].gate.told_fenced = True
        for acks in (0, 1, ACKS_ALL):
            refused = await cluster.produce(topic, b"b", acks=acks)
            assert refused.error is not None
            assert refused.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert cluster.brokers[1].partition(topic).end_offset == 1
        cluster.brokers[1].gate.told_fenced = False
        assert (await cluster.produce(topic, b"b")).error is None


@async_test
async def test_a_follower_without_a_session_shows_nothing_though_its_leader_answers(
    tmp_path: Path,
) -> None:
    """Both may be cut off together, and fenced, while others lead and take records."""
    # R8 M8
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        assert (await cluster.fetch(topic, 0, of=2, rack="here")).records
        close_gates(cluster)
        await until(lambda: is_sure(cluster, topic))
        refused = await cluster.fetch(topic, 0, of=2, rack="here")
        assert refused.error is not None
        assert refused.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not refused.records


@async_test
async def test_a_leader_without_a_session_sends_nobody_to_a_follower(tmp_path: Path) -> None:
    """That one has no session either, most likely: its readers would be sent back and forth."""
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        cluster.place(2, "east")
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        await cluster.settled()
        assert (await cluster.fetch(topic, 0, rack="east")).preferred_replica == 2
        close_gates(cluster)
        await until(lambda: is_sure(cluster, topic))
        shown = await cluster.fetch(topic, 0, rack="east")
        assert (shown.preferred_replica, shown.error) == (None, None)
        assert shown.records
