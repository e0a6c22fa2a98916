"""Producers that repeat until they are told."""

from chaos.sim.partitions_clients import PartitionClients
from tests.chaos.sim.governed import start_real, until


def test_sequences_go_on_where_a_batch_was_acknowledged() -> None:
    cluster = start_real()
    clients = PartitionClients(cluster)
    clients.begin()
    until(cluster, lambda: sum(clients.progress().values()) > 5)
    assert any(each.sequence > 0 for each in clients.sendings.values())
    assert all(each.acked <= each.attempt for each in clients.sendings.values())
    clients.end()
    cluster.take_apart()
