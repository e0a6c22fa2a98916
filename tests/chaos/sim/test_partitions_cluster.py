"""Real brokers under a controller."""

from chaos.sim.partitions_clients import PartitionClients
from tests.chaos.sim.governed import start_real, until


def test_records_are_acknowledged_and_kept_by_all() -> None:
    cluster = start_real()
    clients = PartitionClients(cluster)
    clients.begin()
    until(cluster, lambda: cluster.rules.acked > 5)
    assert sum(shared.ledger.end for shared in cluster.rules.shared.values()) > 5
    cluster.take_apart()


def test_the_last_sound_copy_may_not_be_lost() -> None:
    cluster = start_real()
    clients = PartitionClients(cluster)
    clients.begin()
    until(cluster, lambda: cluster.rules.acked > 1)
    brokers = cluster.brokers()
    lost = [cluster.may_lose_data(node) for node in brokers]
    assert not all(lost)
    cluster.take_apart()
