"""Brokers and controllers are killed and paused at random while records are written and read: of
what was acknowledged nothing is lost, doubled or out of order.
"""

import random
import threading
import time
from collections.abc import Callable

import pytest

from kraftlog.admin_types import NewTopic
from kraftlog.local import LocalCluster
from tests.integration.load import Load

TOPIC = "chaos"
PARTITIONS = 3
MIN_INSYNC = {"min.insync.replicas": 2}


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


def run_chaos(seed: int, seconds: float) -> None:
    dice = random.Random(seed)
    with LocalCluster(3, 3, config=MIN_INSYNC) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).raise_for_errors()
        cluster.wait_healthy("60s", in_sync=True)
        load = Load(cluster, TOPIC, PARTITIONS)
        with load.running():
            done = disturb(cluster, dice, seconds)
        load.check(f"seed {seed}: {', '.join(done)}")


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_reordered() -> None:  # R13, R14, R34
    run_chaos(seed=1, seconds=15)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 6))
def test_nothing_is_lost_for_minutes(seed: int) -> None:
    run_chaos(seed, seconds=120)
