"""Controllers and scripted brokers, put together."""

from chaos.sim.metadata_machine import ControllerMachine
from tests.chaos.sim.governed import start_scripted, until


def test_brokers_register_and_are_unfenced() -> None:
    cluster = start_scripted()
    assert cluster.sightings["broker registered"] == 3
    assert cluster.sightings["broker unfenced"] == 3
    (controller,) = cluster.controllers()
    assert isinstance(controller.machine, ControllerMachine)
    assert controller.machine.controller.is_active


def test_a_broker_that_dies_is_fenced_and_comes_back_with_a_higher_epoch() -> None:
    cluster = start_scripted()
    node = cluster.brokers()[0]
    before = cluster.metadata.image.brokers[node.node_id].epoch
    cluster.stays_down.add(node.node_id)
    node.die()
    until(cluster, lambda: cluster.metadata.image.brokers[node.node_id].is_fenced)
    node.start()
    until(cluster, lambda: not cluster.metadata.image.brokers[node.node_id].is_fenced)
    assert cluster.metadata.image.brokers[node.node_id].epoch > before


def test_a_clean_stop_is_written_down_once() -> None:
    cluster = start_scripted()
    node = cluster.brokers()[0]
    cluster.ask_to_stop(node)
    until(cluster, lambda: not node.is_up)
    assert cluster.sightings["broker stopped in good order"] == 1
    assert cluster.take_clean_epoch(node) is not None
    assert cluster.take_clean_epoch(node) is None
