"""Questions about offsets."""

import asyncio
from dataclasses import replace
from pathlib import Path

from brokers.cluster import PartitionId
from brokers.partition_state import Leading
from brokers.purgatory import wait
from brokers.requests import (
    DeleteAnswer,
    DeletePart,
    DeleteRequest,
    EndsAnswer,
    EndsPart,
    EndsRequest,
    EpochQuery,
    OffsetAnswer,
    OffsetQuery,
    RangeQuery,
)
from kraftlog.errors import ErrorCode, KraftError
from kraftlog.types import EpochEnd
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.loops import until
from tests.storage.logs import TIME_MS, batch, small_segments


def error_of(answer: OffsetAnswer | EndsAnswer | DeleteAnswer) -> KraftError:
    assert answer.error is not None
    return answer.error


async def ends(cluster: Cluster, broker: int, request: EndsRequest) -> list[EndsAnswer]:
    manager = cluster.brokers[broker].manager
    answer: list[EndsAnswer] = await wait(lambda done: manager.ends(request, done))
    return answer


async def delete(
    cluster: Cluster, topic: PartitionId, offset: int, *, timeout_ms: int = 5_000
) -> DeleteAnswer:
    manager = cluster.leader(topic).manager
    request = DeleteRequest([DeletePart(topic, offset)], timeout_ms)
    answers: list[DeleteAnswer] = await wait(lambda done: manager.delete_records(request, done))
    return answers[0]


# -- by time


@async_test
async def test_earliest_latest_by_time_and_largest(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager = cluster.brokers[1].manager

        def ask(timestamp: int) -> tuple[int, int]:
            (answer,) = manager.list_offsets([OffsetQuery(topic, timestamp)])
            assert answer.error is None
            return answer.offset, answer.timestamp

        assert (ask(-1), ask(-2), ask(-3), ask(0)) == ((0, -1), (0, -1), (-1, -1), (-1, -1))
        for late in (0, 50, 20):
            data = batch(b"v", timestamp=TIME_MS + late)
            assert (await cluster.produce_batch(topic, data)).error is None
        assert ask(-1) == (3, -1)
        assert ask(-2) == (0, -1)
        assert ask(-3) == (1, TIME_MS + 50)
        assert ask(TIME_MS + 1) == (1, TIME_MS + 50)
        assert ask(TIME_MS + 51) == (-1, -1)
        await delete(cluster, topic, 2)
        assert ask(-2) == (2, -1)


@async_test
async def test_what_is_not_committed_is_not_found_by_time(tmp_path: Path) -> None:
    # P6
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        cluster.cut(1, 2)
        await cluster.produce(topic, b"a", acks=1)
        manager = cluster.brokers[1].manager
        answers = manager.list_offsets([OffsetQuery(topic, TIME_MS), OffsetQuery(topic, -3)])
        assert [each.offset for each in answers] == [-1, -1]


@async_test
async def test_a_new_leader_tells_no_end_before_it_knows_it(tmp_path: Path) -> None:
    # P2
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        cluster.cut(1, 2)
        cluster.cut(2, 3)
        partition = cluster.brokers[2].partition(topic)
        partition.state.high_watermark = 0  # as if the last news had not come
        await cluster.elect(topic, 2)
        manager = cluster.brokers[2].manager
        (early,) = manager.list_offsets([OffsetQuery(topic, -1)])
        assert error_of(early).code == ErrorCode.OFFSET_NOT_AVAILABLE
        (end,) = await ends(cluster, 2, EndsRequest([EndsPart(topic)]))
        assert error_of(end).code == ErrorCode.OFFSET_NOT_AVAILABLE
        cluster.heal()
        await until(lambda: manager.list_offsets([OffsetQuery(topic, -1)])[0].offset == 1)


@async_test
async def test_old_epochs_and_other_brokers_are_refused(tmp_path: Path) -> None:
    # P4
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.elect(topic, 2)
        (old,) = cluster.brokers[2].manager.list_offsets([OffsetQuery(topic, -1, 0)])
        assert error_of(old).code == ErrorCode.FENCED_LEADER_EPOCH
        (elsewhere,) = cluster.brokers[1].manager.list_offsets([OffsetQuery(topic, -1)])
        assert error_of(elsewhere).code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert elsewhere.leader == (2, 1)


# -- epochs


@async_test
async def test_ends_of_epochs(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        manager = cluster.brokers[1].manager
        (empty,) = manager.epoch_ends([EpochQuery(topic, 0)])
        assert empty.end == EpochEnd(0, 0)
        await cluster.produce(topic, b"a", b"b")
        await cluster.elect(topic, 2)
        await cluster.produce(topic, b"c")
        there = cluster.brokers[2].manager
        asked = there.epoch_ends([EpochQuery(topic, 0), EpochQuery(topic, 1), EpochQuery(topic, 9)])
        assert [each.end for each in asked] == [EpochEnd(0, 2), EpochEnd(1, 3), None]
        (old,) = there.epoch_ends([EpochQuery(topic, 0, current_leader_epoch=0)])
        assert old.error is not None


# -- many ends at once


@async_test
async def test_ends_of_many_partitions_in_one_call(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topics = [await cluster.create(name, replicas=(1,)) for name in "abc"]
        await cluster.produce(topics[1], b"x", b"y")
        parts = [EndsPart(topic) for topic in (*topics, PartitionId(b"?" * 16, 0))]
        answers = await ends(cluster, 1, EndsRequest(parts))
        assert [each.high_watermark for each in answers] == [0, 2, 0, -1]
        assert error_of(answers[3]).code == ErrorCode.UNKNOWN_TOPIC_ID


@async_test
async def test_a_call_waits_until_any_end_is_above_the_known_one(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topics = [await cluster.create(name, replicas=(1,)) for name in "ab"]
        request = EndsRequest([EndsPart(topic, 0) for topic in topics], max_wait_ms=30_000)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(ends(cluster, 1, request))
            await until(lambda: cluster.brokers[1].manager.purgatory.counts.get("ends") == 1)
            await cluster.produce(topics[1], b"x")
        assert [each.high_watermark for each in waiting.result()] == [0, 1]
        assert not cluster.brokers[1].partition(topics[0]).watchers
        at_once = EndsRequest([EndsPart(topic, 0) for topic in topics], max_wait_ms=30_000)
        assert len(await ends(cluster, 1, at_once)) == 2


@async_test
async def test_a_call_that_waits_in_vain_answers_with_what_there_is(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        (answer,) = await ends(cluster, 1, EndsRequest([EndsPart(topic, 0)], max_wait_ms=5))
        assert (answer.high_watermark, answer.error) == (0, None)


@async_test
async def test_a_call_hears_that_leadership_is_lost(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        request = EndsRequest([EndsPart(topic, 0)], max_wait_ms=30_000)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(ends(cluster, 1, request))
            await until(lambda: cluster.brokers[1].manager.purgatory.counts.get("ends") == 1)
            await cluster.elect(topic, 2)
        assert error_of(waiting.result()[0]).code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- sizes


@async_test
async def test_bytes_of_ranges_are_estimated_from_the_indexes(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,), log=small_segments(1_000))
        for _ in range(50):
            await cluster.produce(topic, b"x" * 100)
        manager = cluster.brokers[1].manager
        log = cluster.brokers[1].partition(topic).log
        assert log is not None

        def estimate(begin: int, end: int) -> int:
            (answer,) = manager.estimate_bytes([RangeQuery(topic, begin, end)])
            assert answer.error is None
            return answer.bytes

        each = log.size // 50
        assert estimate(0, 50) == log.size
        assert abs(estimate(10, 20) - 10 * each) <= 2 * each
        assert estimate(20, 20) == estimate(30, 20) == 0
        assert estimate(0, 10**9) == log.size
        (unknown,) = manager.estimate_bytes([RangeQuery(PartitionId(b"?" * 16, 0), 0, 1)])
        assert unknown.error is not None
        empty = await cluster.create("u", replicas=(1,))
        assert manager.estimate_bytes([RangeQuery(empty, 0, 5)])[0].bytes == 0


# -- deletion


@async_test
async def test_deleted_records_are_gone_from_all_replicas(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        for value in (b"a", b"b", b"c"):
            await cluster.produce(topic, value)
        done = await delete(cluster, topic, 2)
        assert (done.error, done.log_start_offset) == (None, 2)
        for broker in cluster.brokers.values():
            assert broker.partition(topic).start_offset == 2
        everything = await delete(cluster, topic, -1)
        assert everything.log_start_offset == 3


@async_test
async def test_what_is_not_committed_is_not_deleted(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        refused = await delete(cluster, topic, 2)
        assert error_of(refused).code == ErrorCode.OFFSET_OUT_OF_RANGE
        elsewhere = DeleteRequest([DeletePart(topic, 1)], 100)
        manager = cluster.brokers[2].manager
        answers: list[list[DeleteAnswer]] = []
        manager.delete_records(elsewhere, answers.append)
        assert error_of(answers[0][0]).code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@async_test
async def test_a_replica_that_cannot_be_reached_is_told_later(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        cluster.cut(1, 3)
        late = await delete(cluster, topic, 1, timeout_ms=20)
        assert error_of(late).code == ErrorCode.REQUEST_TIMED_OUT
        cluster.heal()
        await until(lambda: cluster.brokers[3].partition(topic).start_offset == 1)


@async_test
async def test_a_replica_that_does_not_count_any_more_is_not_waited_for(tmp_path: Path) -> None:
    """It is fenced, or it is no replica any more, while a deletion waits for it."""
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        await cluster.produce(topic, b"b")
        cluster.cut(1, 3)
        for offset, act in ((1, fence_third), (2, move_away_from_third)):
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(delete(cluster, topic, offset))
                await second_has_dropped(cluster, topic, offset)
                act(cluster, topic)
            assert (waiting.result().error, waiting.result().log_start_offset) == (None, offset)
            cluster.change(lambda controller: controller.unfence(3))


async def second_has_dropped(cluster: Cluster, topic: PartitionId, offset: int) -> None:
    role = cluster.leader(topic).partition(topic).state.role
    assert isinstance(role, Leading)
    await until(lambda: role.followers[2].start_offset == offset)


def fence_third(cluster: Cluster, _topic: PartitionId) -> None:
    cluster.change(lambda controller: controller.fence(3))


def move_away_from_third(cluster: Cluster, topic: PartitionId) -> None:
    now = cluster.controller.now.assignments[topic]
    epoch = now.partition_epoch + 1
    after = replace(now, replicas=(1, 2), isr=(1, 2), partition_epoch=epoch)
    cluster.change(lambda controller: controller.put(after))
