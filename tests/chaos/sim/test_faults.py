"""Each class of faults alone: it strikes, and the quorum stands it."""

from dataclasses import replace
from functools import partial
from random import Random

import pytest

from chaos.sim.atlas import Atlas
from chaos.sim.faults import Faults
from chaos.sim.operators import Operators
from chaos.sim.options import RANGES, Options
from chaos.sim.world import World
from tests.chaos.sim.clusters import elect, run_for, start

QUIET = Options(voters=3, safety_ms=2_000)
STRIKES_MS = range(500, 1_900, 200)
STEADY = ("loss", "duplicate", "delay", "slow_disk", "clock_drift")

SIGNS = {
    "clogs": "message held back by a clog",
    "crashes": "restarted in an epoch that it had led",
    "power_cuts": "restarted in an epoch that it had led",
    "blackouts": "power cut for all",
    "disk_errors": "process ended by a disk error",
    "damage": "damage found at start",
    "wipes": "asked a voter whose disk was replaced",
    "snapshots": "snapshot written",
    "membership": "voter removed",
    "moves": "voter moved to another address",
    "strangers": "stranger refused",
}
"""By which it is known that a fault has struck."""


@pytest.mark.parametrize("fault", RANGES)
def test_one_fault_alone(fault: str) -> None:  # Q1 to Q15, V1 to V4: or `run` raises
    faults = {fault: RANGES[fault][1]} if fault in STEADY else {}
    # A voter that has moved tells its leader only after three fetch timeouts.
    safety_ms = 12_000 if fault == "moves" else QUIET.safety_ms
    world = World(2, replace(QUIET, faults=faults, safety_ms=safety_ms))
    if fault not in STEADY:
        dice, strike = Random(3), world._faults._acts[fault]
        for at_ms in STRIKES_MS:
            world.cluster.schedule.later(at_ms, partial(strike, dice))
    world.run()
    assert world.cluster.checker.ledger.end > 0
    assert world.cluster.sightings[SIGNS.get(fault, "leader elected")] > 0


def test_when_the_faults_end_all_is_mended() -> None:
    cluster = start(3)
    elect(cluster)
    atlas = Atlas(cluster)
    faults = Faults(cluster, atlas, Operators(cluster, atlas))
    node = cluster.nodes[0]
    cluster.network.block([(1, 2), (2, 1)])
    node.disk.crash_after = node.disk.op_count
    node.dies_in = 0
    node.disk_error = ("pwrite", 5)
    cluster.nodes[1].paused = True
    faults.end()
    run_for(cluster, 2_000)
    assert all(each.is_up and not each.paused for each in cluster.nodes)
    assert elect(cluster).is_leader


def test_nothing_strikes_without_strength() -> None:
    cluster = start(3)
    elect(cluster)
    atlas = Atlas(cluster)
    Faults(cluster, atlas, Operators(cluster, atlas)).begin()
    epoch = cluster.leader.core.epoch if cluster.leader and cluster.leader.core else -1
    run_for(cluster, 5_000)
    assert cluster.leader is not None
    assert cluster.leader.core is not None
    assert cluster.leader.core.epoch == epoch
