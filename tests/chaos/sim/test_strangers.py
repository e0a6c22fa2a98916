"""Requests that are not meant for us."""

from random import Random

import pytest

from chaos.sim.mutants import MUTANTS
from chaos.sim.patching import planted
from chaos.sim.strangers import Strangers
from kraftlog._check import InvariantViolation
from tests.chaos.sim.clusters import elect, start


def call_often(strangers: Strangers, dice: Random) -> None:
    for _ in range(40):
        strangers.call(dice)


def test_strangers_are_refused_by_all() -> None:  # Q14
    cluster = start(3)
    elect(cluster)
    call_often(Strangers(cluster), Random(1))
    assert cluster.sightings["stranger refused"] == 40


def test_a_node_that_takes_the_vote_of_another_disk_is_found() -> None:  # Q14
    mutant = next(each for each in MUTANTS if each.name == "directory id of the voter ignored")
    cluster = start(3)
    elect(cluster)
    with planted(mutant), pytest.raises(InvariantViolation, match="Q14 a stranger"):
        call_often(Strangers(cluster), Random(1))


def test_nobody_is_asked_where_nobody_is() -> None:
    cluster = start(1)
    cluster.nodes[0].die()
    Strangers(cluster).call(Random(1))
    assert cluster.sightings["stranger refused"] == 0
