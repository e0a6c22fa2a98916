"""What goes wrong with real brokers, at the worst moments."""

from dataclasses import replace

import pytest

from brokers.cluster import PartitionId
from brokers.requests import IsrChange, IsrMember
from chaos.sim.options import DATA_RANGES, Options
from chaos.sim.partitions_clients import PartitionClients
from chaos.sim.partitions_cluster import PartitionsCluster
from chaos.sim.partitions_faults import PartitionFaults
from chaos.sim.runner import run_seed
from tests.chaos.sim.governed import ONE_OF_EACH, start_real, until


@pytest.mark.parametrize("fault", DATA_RANGES)
def test_each_fault_by_itself_is_survived(fault: str) -> None:
    options = Options(
        kind="partitions",
        voters=1,
        brokers=3,
        safety_ms=4_000,
        faults={fault: DATA_RANGES[fault][1], "broker_crashes": 0.5},
    )
    outcome = run_seed(3, options)
    assert outcome.failure == ""
    assert outcome.reached["record acknowledged by all"] > 0


def test_without_faults_nothing_happens() -> None:
    cluster = start_real()
    PartitionFaults(cluster).begin()
    before = cluster.on_alter
    assert all(node.is_up for node in cluster.brokers())
    assert cluster.on_alter is before
    cluster.take_apart()


def with_records(fault: str) -> PartitionsCluster:
    cluster = start_real(options=replace(ONE_OF_EACH, faults={fault: 1.0}))
    PartitionClients(cluster).begin()
    until(cluster, lambda: cluster.rules.acked > 1)
    return cluster


def told(cluster: PartitionsCluster, words: str) -> bool:
    return any(words in line for line in cluster.trace.recent())


def test_a_leader_is_stranded() -> None:
    cluster = with_records("strandings")
    PartitionFaults(cluster).begin()
    until(cluster, lambda: told(cluster, "is stranded"))
    cluster.take_apart()


def test_a_leader_and_a_follower_are_exiled_together_once_at_a_time() -> None:
    cluster = with_records("exiles")
    PartitionFaults(cluster).begin()
    until(cluster, lambda: told(cluster, "are exiled"))
    line = next(each for each in cluster.trace.recent() if "are exiled" in each)
    fenced = [each for each in cluster.brokers() if f"n{each.node_id} " in line.split("exiled")[0]]
    assert len(fenced) == 2

    def are_fenced() -> bool:
        brokers = cluster.metadata.image.brokers
        return all(brokers[each.node_id].is_fenced for each in fenced)

    until(cluster, are_fenced)
    assert sum("are exiled" in each for each in cluster.trace.recent()) <= 1
    cluster.take_apart()


def test_a_leader_does_not_hear_who_joins_but_hears_who_leaves() -> None:
    cluster = with_records("half_joins")
    PartitionFaults(cluster).begin()
    topic = next(iter(cluster.metadata.image.topics.values()))
    state, place = topic.partitions[0], PartitionId(topic.id.raw, 0)
    leader = next(node for node in cluster.brokers() if node.node_id == state.leader)

    def ask(*ids: int) -> None:
        members = tuple(IsrMember(each) for each in ids)
        change = IsrChange(place, state.leader_epoch, state.partition_epoch, members)
        cluster.on_alter(leader, [change])

    ask(state.leader)
    assert not told(cluster, "does not hear who joins")
    ask(*state.isr, 99)
    assert told(cluster, "does not hear who joins")
    cluster.take_apart()
