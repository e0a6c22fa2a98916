"""Copies to new places are held back; those who acknowledge are not."""

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.cluster import PartitionId
from brokers.replication_throttle import BURST_MS, ReplicationThrottle, names
from brokers.settings import TopicSettings
from kraftlog.clock import ManualClock
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster, values_in
from tests.loops import until


def test_a_rate_is_kept() -> None:
    clock = ManualClock()
    clock.advance(10_000)
    throttle = ReplicationThrottle(clock)
    assert throttle.wait_ms() == 0
    throttle.bytes_per_second = 1_000
    throttle.spend(BURST_MS)  # what the idle time before was worth
    assert throttle.wait_ms() <= 1
    throttle.spend(500)
    assert throttle.wait_ms() in (500, 501)
    clock.advance(400)
    throttle.spend(100)
    assert throttle.wait_ms() in (200, 201)
    clock.advance(60_000)
    throttle.spend(1_000)
    assert throttle.wait_ms() >= 1_000 - BURST_MS
    throttle.bytes_per_second = None
    assert throttle.wait_ms() == 0


def test_a_topic_names_replicas() -> None:
    assert names(("*",), 3, 1)
    assert names(("3:1", "4:2"), 3, 1)
    assert not names(("3:1",), 3, 2)
    assert not names((), 3, 1)


@pytest.mark.parametrize("side", ["leader", "follower"])
@async_test
async def test_a_new_replica_is_copied_slowly_and_clients_are_not_held_up(
    tmp_path: Path, side: str
) -> None:
    # R43
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", replicas=(1, 2), min_insync=2)
        for _ in range(20):
            await cluster.produce(topic, b"x" * 100_000)
        throttled = TopicSettings(
            min_insync_replicas=2,
            leader_throttled=("*",) if side == "leader" else (),
            follower_throttled=("0:3",) if side == "follower" else (),
        )
        cluster.change(lambda controller: controller.configure("t", throttled))
        for broker in cluster.brokers.values():
            broker.manager.set_replication_rates(leader=1_500_000, follower=1_500_000)
        grow(cluster, topic, 3)
        hosted = cluster.brokers[3].manager.table.hosted
        await until(lambda: topic in hosted and hosted[topic].end_offset > 0)
        assert (await cluster.produce(topic, b"meanwhile")).error is None
        assert hosted[topic].end_offset < 20  # more than one reply, and the second has to wait
        await cluster.in_sync(topic, 1, 2, 3)
        assert values_in(cluster.brokers[3], topic)[-1] == b"meanwhile"


def grow(cluster: Cluster, topic: PartitionId, broker_id: int) -> None:
    """One more replica, as a reassignment adds it."""
    now = cluster.controller.now.assignments[topic]
    cluster.controller.put(
        replace(
            now,
            replicas=(*now.replicas, broker_id),
            adding=(broker_id,),
            partition_epoch=now.partition_epoch + 1,
        )
    )
    cluster.publish()
