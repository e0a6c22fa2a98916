"""Snapshots as nodes take them, and logs that begin behind them."""

import errno
from random import Random

from chaos.sim.snapshots import drop_log, take_snapshot
from tests.chaos.sim.clusters import (
    append,
    elect,
    followers,
    has_all,
    machine_of,
    run_for,
    run_until,
    start,
)


def test_a_snapshot_is_written_told_and_the_log_dropped_behind_it() -> None:  # Q11
    cluster = start(3)
    leader = elect(cluster)
    for number in range(5):
        append(cluster, leader, b"v%d" % number)
    assert leader.core is not None
    drop_log(cluster, leader, Random(1))
    assert leader.core.log.start_offset == 0  # there is no snapshot yet
    run_until(cluster, lambda: has_all(cluster, [leader]))
    take_snapshot(cluster, leader, Random(1))
    assert leader.core.log.snapshots == []
    run_until(cluster, lambda: cluster.sightings["snapshot written"] == 1)
    end = leader.core.log.snapshots[0].end_offset
    drop_log(cluster, leader, Random(1))
    assert leader.core.log.start_offset == end > 0
    take_snapshot(cluster, leader, Random(1))  # there is one already
    run_for(cluster, 1_000)
    assert cluster.sightings["snapshot written"] == 1


def test_a_newcomer_loads_the_snapshot_of_the_leader() -> None:  # Q11
    cluster = start(3)
    leader = elect(cluster)
    append(cluster, leader, b"v")
    run_until(cluster, lambda: has_all(cluster, [leader]))
    take_snapshot(cluster, leader, Random(1))
    run_until(cluster, lambda: cluster.sightings["snapshot written"] == 1)
    drop_log(cluster, leader, Random(1))
    newcomer = cluster.replace_disk(followers(cluster, leader)[0])
    run_until(cluster, lambda: has_all(cluster, [newcomer]))
    assert machine_of(newcomer).records == machine_of(leader).records
    assert cluster.sightings["snapshot of a leader loaded"] == 1


def test_a_full_disk_costs_only_the_snapshot() -> None:
    cluster = start(1)
    leader = elect(cluster)
    run_until(cluster, lambda: has_all(cluster, [leader]))
    take_snapshot(cluster, leader, Random(1))
    leader.disk_error = ("create", errno.ENOSPC)
    run_until(cluster, lambda: cluster.sightings["snapshot could not be written"] == 1)
    assert leader.is_leader
