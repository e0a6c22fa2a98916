"""One replica over its log."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.refusals import Refused
from brokers.settings import TopicSettings
from kraftlog.errors import ErrorCode, StorageError
from kraftlog.types import EpochEnd
from storage.log_config import LogConfig
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster, values_in
from tests.loops import until


@async_test
async def test_an_empty_partition_has_no_log_until_its_first_record(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        partition = cluster.brokers[1].partition(topic)
        assert partition.log is None
        assert (partition.start_offset, partition.high_watermark, partition.end_offset) == (0, 0, 0)
        assert partition.data.last_epoch is None
        assert partition.data.locate(0, 100, 10).read() == b""
        partition.request_flush()
        partition.delete_below(0)
        await partition.truncate_to(0)
        assert partition.log is None
        await cluster.produce(topic, b"a")
        assert partition.log is not None


@async_test
async def test_an_empty_leader_tells_a_longer_follower_to_cut(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        partition = cluster.brokers[1].partition(topic)
        assert partition.find_divergence(10, 0) == EpochEnd(0, 0)
        assert partition.find_divergence(0, 0) is None
        assert partition.find_divergence(10, None) is None
        with pytest.raises(Refused) as beyond:
            partition.find_divergence(10, 99)
        assert beyond.value.error.code == ErrorCode.OFFSET_OUT_OF_RANGE


@async_test
async def test_below_the_start_is_out_of_range_even_where_logs_part(tmp_path: Path) -> None:
    """KAFKA-12996"""
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        for value in (b"a", b"b"):
            await cluster.produce(topic, value)
        await cluster.elect(topic, 2)
        await cluster.produce(topic, b"c")
        partition = cluster.brokers[2].partition(topic)
        partition.delete_below(3)
        with pytest.raises(Refused) as below:
            partition.find_divergence(2, 0)
        assert below.value.error.code == ErrorCode.OFFSET_OUT_OF_RANGE


@async_test
async def test_settings_take_effect_while_it_runs(tmp_path: Path) -> None:
    # R22
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        await cluster.kill(3)
        await cluster.kill(2)
        await cluster.settled()
        assert (await cluster.produce(topic, b"b")).error is None
        stricter = TopicSettings(
            log=LogConfig(max_message_bytes=200), min_insync_replicas=2, flush_before_ack=False
        )
        cluster.change(lambda controller: controller.configure("t", stricter))
        await cluster.settled()
        refused = await cluster.produce(topic, b"c")
        assert refused.error is not None
        assert refused.error.code == ErrorCode.NOT_ENOUGH_REPLICAS
        large = await cluster.produce(topic, b"x" * 200, acks=1)
        assert large.error is not None
        assert large.error.code == ErrorCode.MESSAGE_TOO_LARGE


@async_test
async def test_turning_flushes_on_flushes_what_is_there(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        durable = TopicSettings(flush_before_ack=True)
        cluster.change(lambda controller: controller.configure("t", durable))
        await cluster.settled()
        for broker in cluster.brokers.values():
            partition = broker.partition(topic)
            await until(partial(flushes, partition))
            assert partition.log is not None
            assert partition.log.flushed_offset == 1
        assert (await cluster.produce(topic, b"b")).error is None


def flushes(partition: Partition) -> bool:
    return partition.state.flush_before_ack


@async_test
async def test_nothing_changes_a_log_while_it_is_being_cut(tmp_path: Path) -> None:
    """Metadata that makes us the leader waits for a cut that runs off the loop."""
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await cluster.create("t", replicas=(1, 2))
        for value in (b"a", b"b"):
            await cluster.produce(topic, value)
        cluster.cut(1, 2)
        partition = cluster.brokers[2].partition(topic)
        started, go_on = asyncio.Event(), asyncio.Event()

        real = partition.data._in_executor

        def held_up(work: Callable[[], object]) -> "asyncio.Future[object]":
            async def later() -> object:
                started.set()
                await go_on.wait()
                return await real(work)

            return tasks.create_task(later())

        async with asyncio.TaskGroup() as tasks:
            partition.data._in_executor = held_up  # type: ignore[assignment]
            cutting = tasks.create_task(partition.truncate_to(1))
            await started.wait()
            cluster.change(lambda controller: controller.fence(1))
            await asyncio.sleep(0.01)
            assert not partition.is_leader
            partition.data._in_executor = real
            go_on.set()
            await cutting
        await until(lambda: partition.is_leader)
        assert partition.end_offset == 1
        assert partition.state.role.epoch_start == 1  # type: ignore[union-attr]


@async_test
async def test_a_log_of_another_topic_of_that_name_is_kept_aside(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        await cluster.produce(topic, b"old")
        await cluster.stop(1)
        other = PartitionId(b"another".ljust(16, b"."), 0)
        old = cluster.controller.now.assignments[topic]
        cluster.controller.remove(topic)
        cluster.controller.put(replace(old, id=other))
        cluster.start(1)
        await cluster.caught_up(1)
        assert values_in(cluster.brokers[1], other) == []
        await cluster.produce(other, b"new")
        assert stray_directories(tmp_path / "b1")


def stray_directories(path: Path) -> list[Path]:
    return list(path.glob("t-0.*-stray"))


def deleted_directories(path: Path) -> list[Path]:
    return list(path.glob("t-0.*-delete"))


@async_test
async def test_a_partition_that_is_removed_is_deleted_and_waiters_hear_of_it(
    tmp_path: Path,
) -> None:
    # R22
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        cluster.cut(1, 2)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(cluster.produce(topic, b"b"))
            partition = cluster.brokers[1].partition(topic)
            await until(lambda: len(partition.at_high_watermark) == 1)
            cluster.change(lambda controller: controller.remove(topic))
        refused = waiting.result()
        assert refused.error is not None
        assert refused.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await cluster.settled()
        for broker in cluster.brokers.values():
            assert topic not in broker.manager.table.hosted
            assert len(deleted_directories(tmp_path / f"b{broker.id}")) == 1
        cluster.heal()
        again = await cluster.create("t")
        assert (await cluster.produce(again, b"c")).error is None
        assert await cluster.read(again) == [b"c"]


@async_test
async def test_a_damaged_log_does_not_stop_the_others(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        bad = await cluster.create("bad", replicas=(3,))
        good = await cluster.create("good", min_insync=2)
        for topic in (bad, good):
            await cluster.produce(topic, b"a")
            await cluster.replicated(topic)
        await cluster.kill(3)
        (tmp_path / "b3" / "bad-0" / "partition.metadata").write_text("nonsense")
        await cluster.restart(3)
        await cluster.in_sync(good, 1, 2, 3)
        manager = cluster.brokers[3].manager
        assert manager.counts().damaged == 1
        refused = await cluster.fetch(bad, 0)
        assert isinstance(refused.error, StorageError)
        cluster.change(lambda controller: controller.remove(bad))
        await cluster.settled()
        assert manager.counts().damaged == 0
