"""Small clusters without faults, to be looked at and tampered with."""

from collections.abc import Callable

from chaos.sim.cluster import Cluster
from chaos.sim.machine import ListMachine
from chaos.sim.node import SimNode
from chaos.sim.options import Options

LONG_MS = 20_000.0


def start(voters: int = 3, *, observers: int = 0, brokers: int = 0, seed: int = 1) -> Cluster:
    cluster = Cluster(seed, Options(voters=voters, observers=observers, brokers=brokers))
    cluster.start()
    return cluster


def run_for(cluster: Cluster, ms: float) -> None:
    end = cluster.schedule.now + ms
    while cluster.schedule.is_due(end):
        cluster.schedule.step()


def run_until(cluster: Cluster, reached: Callable[[], bool]) -> None:
    end = cluster.schedule.now + LONG_MS
    while not reached():
        assert cluster.schedule.is_due(end), cluster.describe()
        cluster.schedule.step()


def elect(cluster: Cluster) -> SimNode:
    """Wait for a leader that has committed in its epoch."""
    run_until(cluster, lambda: any(map(has_committed, cluster.leaders)))
    return next(filter(has_committed, cluster.leaders))


def has_committed(node: SimNode) -> bool:
    return node.core is not None and node.core.has_committed_epoch()


def append(cluster: Cluster, leader: SimNode, value: bytes) -> int:
    """Propose and wait; the offset."""
    outcomes: list[object] = []
    assert leader.core is not None
    leader.propose([([value], outcomes.append)], epoch=leader.core.epoch)
    run_until(cluster, lambda: bool(outcomes))
    assert isinstance(outcomes[0], int), outcomes
    return outcomes[0]


def machine_of(node: SimNode) -> ListMachine:
    assert isinstance(node.machine, ListMachine)
    return node.machine


def followers(cluster: Cluster, leader: SimNode) -> list[SimNode]:
    return [node for node in cluster.nodes if node is not leader]


def has_all(cluster: Cluster, nodes: list[SimNode]) -> bool:
    """Whether these nodes have applied all that was committed."""
    end = cluster.checker.ledger.end
    return all(node.driver and node.driver.applier.applied_offset >= end for node in nodes)
