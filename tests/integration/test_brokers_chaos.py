"""Brokers and controllers are killed and paused at random while records are written and read: of
what was acknowledged nothing is lost, doubled or out of order.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kraftlog.admin_types import NewTopic
from kraftlog.delivery import DeliveryFuture
from kraftlog.errors import KraftError
from kraftlog.local import LocalCluster

TOPIC = "chaos"
PARTITIONS = 3
MIN_INSYNC = {"min.insync.replicas": 2}


@dataclass
class Writer:
    """Writes numbers, one after the other, to each partition; remembers what became of them."""

    cluster: LocalCluster
    acknowledged: dict[int, list[int]] = field(default_factory=dict)
    failures: list[KraftError] = field(default_factory=list)
    is_over: bool = False

    def run(self) -> None:
        self.acknowledged = {partition: [] for partition in range(PARTITIONS)}
        with self.cluster.producer(linger="2ms", delivery_timeout="60s") as producer:
            number = 0
            while not self.is_over:
                sent = [
                    (partition, producer.send(TOPIC, b"%d" % number, partition=partition))
                    for partition in range(PARTITIONS)
                ]
                for partition, delivery in sent:
                    self._note(partition, number, delivery)
                number += 1

    def _note(self, partition: int, number: int, delivery: DeliveryFuture) -> None:
        try:
            delivery.result(90)
        except KraftError as error:
            self.failures.append(error)
        else:
            self.acknowledged[partition].append(number)


def disturb(cluster: LocalCluster, dice: random.Random, seconds: float) -> list[str]:
    """One node at a time is killed, paused or stopped, and comes back; what was done."""
    done: list[str] = []
    actions: list[tuple[str, Callable[[str], object]]] = [
        ("kill", cluster.kill),
        ("stop", cluster.stop_node),
        ("pause", cluster.pause),
    ]
    over = time.monotonic() + seconds
    never = threading.Event()
    while time.monotonic() < over:
        name, (what, act) = dice.choice(cluster.nodes), dice.choice(actions)
        act(name)
        done.append(f"{what} {name}")
        never.wait(dice.uniform(0.1, 2.5))  # sometimes shorter than a session, sometimes longer
        if what == "pause":
            cluster.resume(name)
        else:
            cluster.start_node(name)
        cluster.wait_healthy("60s", in_sync=True)
    return done


def read_all(cluster: LocalCluster, last: dict[int, int]) -> dict[int, list[int]]:
    """Everything that is in the topic, by partition: up to these, and what comes after them."""
    found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    with cluster.consumer(TOPIC, offset_reset="earliest") as consumer:
        complete = False
        while records := consumer.poll("500ms" if complete else "5s"):
            for record in records:
                found[record.partition].append(int(record.value or b"-1"))
            complete = all(last[partition] in found[partition] for partition in last)
    return found


def run_chaos(seed: int, seconds: float) -> None:
    dice = random.Random(seed)
    with LocalCluster(3, 3, config=MIN_INSYNC) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).raise_for_errors()
        cluster.wait_healthy("60s", in_sync=True)
        writer = Writer(cluster)
        thread = threading.Thread(target=writer.run)
        thread.start()
        try:
            done = disturb(cluster, dice, seconds)
        finally:
            writer.is_over = True
            thread.join()
        story = f"seed {seed}: {', '.join(done)}"
        assert writer.failures == [], story
        assert all(writer.acknowledged.values()), story
        last = {partition: numbers[-1] for partition, numbers in writer.acknowledged.items()}
        found = read_all(cluster, last)
        for partition, numbers in writer.acknowledged.items():
            assert found[partition] == numbers, f"partition {partition}; {story}"


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_reordered() -> None:  # R13, R14, R34
    run_chaos(seed=1, seconds=15)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 6))
def test_nothing_is_lost_for_minutes(seed: int) -> None:
    run_chaos(seed, seconds=120)
