"""Idempotent producers write to three brokers while these are killed, cut off and re-elected at
random: nothing that was acknowledged is lost, doubled or out of order, and all replicas end up the
same.
"""

import asyncio
import random
from pathlib import Path

import pytest

from brokers.cluster import NO_LEADER, PartitionId
from kraftlog.errors import KraftError
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.loops import until
from tests.storage.logs import small_segments

PRODUCERS = 3


class Producer:
    """Sends its values one after the other, each again and again until it is acknowledged."""

    def __init__(self, cluster: Cluster, topic: PartitionId, number: int) -> None:
        self.cluster = cluster
        self.topic = topic
        self.id = number
        self.acked: list[bytes] = []
        self.stops = False

    async def run(self) -> None:
        while not self.stops:
            value = b"%d:%d" % (self.id, len(self.acked))
            await self._send(value)
            self.acked.append(value)

    async def _send(self, value: bytes) -> None:
        sequence = (self.id, 0, len(self.acked))
        while True:
            leader = self.cluster.controller.now.assignments[self.topic].leader
            if leader == NO_LEADER or leader not in self.cluster.brokers:
                await asyncio.sleep(0.01)
                continue
            sent = await self.cluster.produce(
                self.topic, value, producer=sequence, timeout_ms=300, to=leader
            )
            if sent.error is None:
                return
            self._check(sent.error)
            await asyncio.sleep(0.01)

    def _check(self, error: KraftError) -> None:
        assert error.retriable or error.outcome_unknown, error


class Trouble:
    def __init__(self, cluster: Cluster, topic: PartitionId, seed: int) -> None:
        self.cluster = cluster
        self.topic = topic
        self.dice = random.Random(seed)

    async def step(self) -> None:
        act = self.dice.choice([self.kill, self.elect, self.cut, self.fence, self.come_back])
        await act(self.dice.choice((1, 2, 3)))
        await asyncio.sleep(self.dice.choice([0, 0.01, 0.05, 0.1]))

    async def kill(self, broker: int) -> None:
        if len(self.cluster.brokers) == 3:
            await self.cluster.kill(broker)

    async def come_back(self, _broker: int) -> None:
        """Everybody does."""
        self.cluster.heal()
        for broker in (1, 2, 3):
            if broker not in self.cluster.brokers:
                await self.cluster.restart(broker)
            elif self.cluster.controller.now.brokers[broker].fenced:
                self.cluster.controller.unfence(broker)
        self.cluster.publish()

    async def elect(self, broker: int) -> None:
        self.cluster.change(lambda controller: controller.elect(self.topic, broker))

    async def cut(self, broker: int) -> None:
        self.cluster.cut(broker, broker % 3 + 1)

    async def fence(self, broker: int) -> None:
        """A session ran out, though the broker lives."""
        if self.cluster.controller.is_active(broker):
            self.cluster.change(lambda controller: controller.fence(broker))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@async_test
async def test_nothing_acknowledged_is_lost_doubled_or_reordered(tmp_path: Path, seed: int) -> None:
    # R14 R34 P1 P3 P8
    await live_through(tmp_path, seed, steps=25)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", range(100, 130))
@async_test
async def test_long_trouble(tmp_path: Path, seed: int) -> None:
    await live_through(tmp_path, seed, steps=150)


async def live_through(path: Path, seed: int, steps: int) -> None:
    async with Cluster(path) as cluster:
        topic = await cluster.create("t", min_insync=2, log=small_segments(2_000))
        producers = [Producer(cluster, topic, number) for number in range(PRODUCERS)]
        trouble = Trouble(cluster, topic, seed)
        async with asyncio.TaskGroup() as tasks:
            for producer in producers:
                tasks.create_task(producer.run())
            for _ in range(steps):
                await trouble.step()
            await trouble.come_back(0)
            before = [len(producer.acked) for producer in producers]
            await until(
                lambda: all(len(p.acked) > n for p, n in zip(producers, before, strict=True))
            )
            for producer in producers:
                producer.stops = True
        await cluster.in_sync(topic, 1, 2, 3)
        await cluster.replicated(topic)
        found = await cluster.read(topic)
        for producer in producers:
            mine = [value for value in found if value and value.startswith(b"%d:" % producer.id)]
            assert mine == producer.acked
        digests = [
            (await broker.manager.describe_replicas([topic], digest=True))[0].digest
            for broker in cluster.brokers.values()
        ]
        assert len(set(digests)) == 1
