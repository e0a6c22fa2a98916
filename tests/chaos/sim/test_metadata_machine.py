"""The controller on a simulated node."""

from random import Random

from chaos.sim.metadata_machine import ControllerMachine, FollowerMachine, SimDraw
from tests.chaos.sim.governed import start_scripted, until


def test_all_machines_come_to_the_same_state() -> None:
    cluster = start_scripted()
    until(cluster, lambda: len({id(n) for n in cluster.nodes if n.machine.digest}) == 4)
    (controller,) = cluster.controllers()
    assert isinstance(controller.machine, ControllerMachine)
    assert controller.machine.dumped_digest() == controller.machine.digest
    follower = cluster.brokers()[0].machine
    assert isinstance(follower, FollowerMachine)
    assert follower.dumped_digest() == follower.digest


def test_dice_are_those_of_the_seed() -> None:
    assert SimDraw(Random(1)).uuid() == SimDraw(Random(1)).uuid()
    assert 0 <= SimDraw(Random(1)).below(3) < 3
