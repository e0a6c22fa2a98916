"""A real broker on a virtual loop."""

from chaos.sim.partitions_broker import SortedPartitions, leaf
from tests.chaos.sim.governed import start_real, until


def test_a_broker_lives_and_stops_in_good_order() -> None:
    cluster = start_real()
    node = cluster.brokers()[0]
    broker = cluster.real[node.node_id]
    assert broker.manager is not None
    assert broker.lifecycle is not None
    lifecycle = broker.lifecycle
    until(cluster, lambda: not lifecycle.is_fenced)
    before = broker.lifecycle.broker_epoch
    cluster.ask_to_stop(node)
    until(cluster, lambda: cluster.real.get(node.node_id) not in (None, broker))
    again = cluster.real[node.node_id]
    assert again.lifecycle is not None
    assert again.lifecycle.registration.previous_epoch == before
    cluster.take_apart()


def test_the_first_cause_is_told() -> None:
    inner = ValueError("x")
    assert leaf(BaseExceptionGroup("g", [ExceptionGroup("h", [inner])])) is inner
    interrupt = KeyboardInterrupt()
    assert leaf(BaseExceptionGroup("g", [inner, interrupt])) is interrupt


def test_a_set_of_partitions_has_an_order() -> None:
    assert list(SortedPartitions()) == []
