"""Rules that are broken on purpose, on real brokers."""

import pytest

from brokers.cluster import PartitionId
from brokers.requests import ACKS_ALL, ProduceReply, ProduceRequest, ProduceResult
from chaos.sim.partitions_clients import PartitionClients
from chaos.sim.partitions_cluster import PartitionsCluster
from kraftlog._check import InvariantViolation
from tests.chaos.sim.governed import start_real, until


def running() -> PartitionsCluster:
    cluster = start_real()
    PartitionClients(cluster).begin()
    until(cluster, lambda: cluster.rules.acked > 3)
    return cluster


def test_an_acknowledgement_of_nothing_is_noticed() -> None:
    cluster = running()
    place = next(iter(cluster.rules.shared))
    broker = next(each for each in cluster.real.values() if each.manager)
    reply = ProduceReply([ProduceResult(place, base_offset=10_000)])
    with pytest.raises(InvariantViolation, match="P1 acknowledged, not committed"):
        cluster.rules.on_served(broker, ProduceRequest(ACKS_ALL, 100, []), reply)
    cluster.take_apart()


def test_a_second_leader_of_an_epoch_is_noticed() -> None:
    cluster = running()
    place, shared = next((each, of) for each, of in cluster.rules.shared.items() if of.leaders)
    epoch = max(shared.leaders)
    leader = cluster.real[shared.leaders[epoch]]
    shared.leaders[epoch] = 99
    shared.copies[leader.node.node_id].leads = -1
    with pytest.raises(InvariantViolation, match="P4 two leaders in one epoch"):
        cluster.rules.look(leader)
    assert isinstance(place, PartitionId)
    cluster.take_apart()
