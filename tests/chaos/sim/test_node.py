"""A node: what survives its deaths, and when they come."""

import errno

import pytest

from chaos.sim.cluster import Cluster
from chaos.sim.node import Outcome, SimNode
from kraftlog._check import InvariantViolation
from kraftlog.errors import InvalidRequest
from quorum.core.raft import RaftCore
from quorum.core.state import Resigned
from quorum.driver import Driver
from tests.chaos.sim.clusters import append, elect, followers, run_for, run_until, start


def propose(node: SimNode, value: bytes) -> list[Outcome]:
    outcomes: list[Outcome] = []
    assert node.core is not None
    node.propose([([value], outcomes.append)], epoch=node.core.epoch)
    return outcomes


def log_end(node: SimNode) -> int:
    assert node.core is not None
    return node.core.log.end_offset


def hold(cluster: Cluster, leader: SimNode) -> None:
    for node in followers(cluster, leader):
        node.paused = True


def test_a_killed_process_keeps_what_it_wrote_and_a_power_cut_does_not() -> None:
    ends = {}
    for power in (False, True):
        cluster = start(3)
        leader = elect(cluster)
        hold(cluster, leader)
        before = log_end(leader)
        assert propose(leader, b"v") == []
        leader.die(power=power)
        leader.start()
        ends[power] = log_end(leader) - before
    assert ends[False] == 1
    assert ends[True] in (0, 1)


def test_what_was_asked_of_a_dead_process_has_an_unknown_outcome() -> None:
    cluster = start(3)
    leader = elect(cluster)
    hold(cluster, leader)
    outcomes, reads = propose(leader, b"v"), list[bool]()
    leader.read(reads.append)
    assert leader.open_operations == 2
    leader.die()
    assert (outcomes, reads, leader.open_operations) == (["unknown"], [False], 0)


def test_a_restarted_leader_has_resigned() -> None:
    cluster = start(3)
    leader = elect(cluster)
    leader.die()
    leader.start()
    assert leader.core is not None
    assert isinstance(leader.core.role, Resigned)


def test_a_process_is_killed_between_two_effects() -> None:
    cluster = start(3)
    leader = elect(cluster)
    leader.dies_in = 3
    run_until(cluster, lambda: not leader.is_up)
    assert cluster.sightings["process killed between two effects"] == 1


@pytest.mark.parametrize("power", [False, True])
def test_it_dies_inside_a_disk_operation(power: bool) -> None:
    cluster = start(1)
    leader = elect(cluster)
    if power:
        leader.disk.crash_after = leader.disk.op_count
    else:
        leader.disk.kill_after = leader.disk.op_count
    outcomes = propose(leader, b"v")
    assert not leader.is_up
    assert outcomes == ["unknown"]
    what = "power cut" if power else "process killed"
    assert cluster.sightings[f"{what} inside a disk operation"] == 1
    run_until(cluster, lambda: leader.is_leader)


def test_a_disk_error_ends_the_process() -> None:
    cluster = start(1)
    leader = elect(cluster)
    leader.disk_error = ("pwrite", errno.ENOSPC)
    propose(leader, b"v")
    assert not leader.is_up
    assert cluster.sightings["process ended by a disk error"] == 1
    run_until(cluster, lambda: leader.is_leader)


def test_a_failed_sync_ends_the_process() -> None:
    cluster = start(1)
    leader = elect(cluster)
    leader.disk_error = ("sync", errno.EIO)
    propose(leader, b"v")
    run_until(cluster, lambda: not leader.is_up)
    assert cluster.sightings["process ended by a disk error"] == 1


def test_an_error_that_nobody_planned_is_a_finding() -> None:  # V3
    leader = elect(start(1))

    def fail(driver: Driver) -> None:
        raise InvalidRequest("no")

    with pytest.raises(InvariantViolation, match="V3 a node ends by an error"):
        leader.act(fail)


def test_a_node_that_does_not_sleep_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:  # V3
    leader = elect(start(1))
    monkeypatch.setattr(RaftCore, "wake_at_ms", property(lambda core: core.now_ms))
    with pytest.raises(InvariantViolation, match="V3 a node wakes again and again"):
        leader.act(lambda driver: driver.tick())


def test_a_paused_process_does_all_later() -> None:
    cluster = start(1)
    leader = elect(cluster)
    leader.paused = True
    outcomes = propose(leader, b"v")
    end = log_end(leader)
    run_for(cluster, 1_000)
    assert (outcomes, log_end(leader)) == ([], end)
    leader.resume()
    run_until(cluster, lambda: outcomes == [end])


def test_an_orderly_stop_flushes_all() -> None:
    cluster = start(3)
    leader = elect(cluster)
    hold(cluster, leader)
    propose(leader, b"v")
    end = log_end(leader)
    leader.act(lambda driver: driver.resign())
    leader.shut_down()
    assert not leader.is_up
    leader.disk.restart()
    leader.start()
    assert log_end(leader) == end


def test_a_flush_takes_effect_before_it_is_reported() -> None:
    cluster = start(1)
    leader = elect(cluster)
    offset = append(cluster, leader, b"v")
    assert leader.core is not None
    assert leader.store is not None
    assert leader.core.log.flushed_offset == leader.store.log.flushed_offset == offset + 1


def test_what_nobody_would_append_is_refused() -> None:
    cluster = start(3)
    leader = elect(cluster)
    other = followers(cluster, leader)[0]
    assert propose(other, b"v") == ["refused"]
    assert propose(leader, bytes(10_000)) == ["refused"]
    reads: list[bool] = []
    other.read(reads.append)
    assert reads == [False]
