"""Stories told step by step: those that Kafka tells its own quorum, and one for each bug that a
seed has found.
"""

from collections.abc import Callable
from itertools import permutations

import pytest

from chaos.sim.atlas import Atlas
from chaos.sim.cluster import Cluster
from chaos.sim.node import SimNode
from chaos.sim.operators import Operators
from quorum.core.messages import VoterSet
from quorum.core.state import Follower, Leader
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


def epoch_of(node: SimNode) -> int:
    assert node.core is not None
    return node.core.epoch


def part(cluster: Cluster, one: list[SimNode], other: list[SimNode]) -> None:
    """Neither side hears the other."""
    pairs = [(a.node_id, b.node_id) for a in one for b in other]
    cluster.network.block([*pairs, *((b, a) for a, b in pairs)])


def new_leader(cluster: Cluster, old: SimNode) -> SimNode:
    epoch = epoch_of(old)
    run_until(cluster, lambda: any(epoch_of(node) > epoch for node in cluster.leaders))
    leader = cluster.leader
    assert leader is not None
    assert leader is not old
    return leader


@pytest.mark.parametrize(("voters", "observers"), [(1, 0), (2, 1), (3, 2), (5, 1)])
def test_a_first_leader_is_elected_and_all_follow(voters: int, observers: int) -> None:
    cluster = start(voters, observers=observers)
    append(cluster, elect(cluster), b"v")
    run_until(cluster, lambda: has_all(cluster, cluster.nodes))
    roles = [type(node.core.role) for node in cluster.nodes if node.core]
    assert sorted(role.__name__ for role in roles).count(Leader.__name__) == 1
    assert roles.count(Follower) == voters + observers - 1


@pytest.mark.parametrize("end", ["resigns", "dies", "loses power"])
def test_a_new_leader_after_the_old_one(end: str) -> None:  # R3
    cluster = start(3)
    old = elect(cluster)
    offset = append(cluster, old, b"v1")
    if end == "resigns":
        old.act(lambda driver: driver.resign())
    else:
        old.die(power=end == "loses power")
    leader = new_leader(cluster, old)
    assert append(cluster, leader, b"v2") > offset
    run_until(cluster, lambda: has_all(cluster, cluster.nodes))


@pytest.mark.parametrize("power", [False, True])
def test_all_nodes_die_at_once(power: bool) -> None:  # R6
    cluster = start(3)
    append(cluster, elect(cluster), b"v1")
    for node in cluster.nodes:
        node.die(power=power)
    append(cluster, elect(cluster), b"v2")
    run_until(cluster, lambda: has_all(cluster, cluster.nodes))
    assert b"v1" in cluster.checker.ledger.offset_of


def test_a_leader_that_is_cut_off_resigns_and_has_acknowledged_nothing() -> None:  # Q12
    cluster = start(3)
    old = elect(cluster)
    part(cluster, [old], followers(cluster, old))
    outcomes: list[object] = []
    old.propose([([b"lost"], outcomes.append)], epoch=epoch_of(old))
    leader = new_leader(cluster, old)
    append(cluster, leader, b"kept")
    run_until(cluster, lambda: not old.is_leader)
    assert outcomes == ["unknown"]
    cluster.network.heal()
    run_until(cluster, lambda: has_all(cluster, cluster.nodes))
    assert b"lost" not in cluster.checker.ledger.offset_of


@pytest.mark.parametrize("pause_ms", range(50, 500, 50))
def test_one_voter_of_five_gives_its_leader_no_more_time(pause_ms: int) -> None:  # Q12
    """Whenever one voter fetches, the time is over one and a half fetch timeouts after the others
    were last heard. The checker is the judge.
    """
    cluster = start(5)
    leader = elect(cluster)
    run_for(cluster, 1_000)
    near, *far = followers(cluster, leader)
    near.paused = True
    run_for(cluster, pause_ms)
    near.resume()
    run_for(cluster, 5)
    part(cluster, [leader, near], far)
    run_until(cluster, lambda: not leader.is_leader)


def test_the_larger_part_goes_on_and_the_smaller_one_joins_it_again() -> None:  # V1
    cluster = start(5)
    old = elect(cluster)
    rest = followers(cluster, old)
    part(cluster, [old, rest[0]], rest[1:])
    leader = new_leader(cluster, old)
    assert leader in rest[1:]
    append(cluster, leader, b"v")
    cluster.network.heal()
    run_until(cluster, lambda: has_all(cluster, cluster.nodes))


def test_leaders_that_die_one_after_the_other() -> None:
    cluster = start(5)
    leader = elect(cluster)
    for number in range(2):
        append(cluster, leader, b"v%d" % number)
        leader.die()
        cluster.stays_down.add(leader.node_id)
        leader = new_leader(cluster, leader)
    append(cluster, leader, b"last")
    run_until(cluster, lambda: has_all(cluster, cluster.alive))


def test_a_voter_that_lost_its_disk_comes_back_as_another_one() -> None:
    cluster = start(3)
    leader = elect(cluster)
    append(cluster, leader, b"v")
    run_until(cluster, lambda: has_all(cluster, cluster.nodes))
    Operators(cluster, Atlas(cluster)).begin()
    old = followers(cluster, leader)[0]
    new = cluster.replace_disk(old)

    def is_voter() -> bool:
        newest = cluster.leader
        return newest is not None and newest.core is not None and new.key in newest.core.voters

    run_until(cluster, lambda: is_voter() and has_all(cluster, cluster.nodes))
    assert machine_of(new).records == machine_of(leader).records


def test_who_cannot_be_heard_does_not_raise_the_epoch() -> None:  # V4
    cluster = start(3)
    leader = elect(cluster)
    epoch = epoch_of(leader)
    alone = followers(cluster, leader)[0]
    for one, other in permutations(cluster.nodes, 2):
        if other is alone:
            cluster.network.block([(one.node_id, other.node_id)])
    run_for(cluster, 10_000)
    assert {epoch_of(node) for node in cluster.nodes} == {epoch}
    assert leader.is_leader


def test_a_leader_alone_with_its_own_removal_can_still_be_elected() -> None:
    """Of two voters the leader removed itself and died before the other one had the record. The
    other needs its vote and does not get it, being behind: only the removed one can lead.
    """
    cluster = start(2)
    leader = elect(cluster)
    append(cluster, leader, b"v")
    other = followers(cluster, leader)[0]
    run_until(cluster, lambda: has_all(cluster, [other]))
    part(cluster, [leader], [other])
    operators = Operators(cluster, Atlas(cluster))
    assert leader.core is not None
    operators._remove(leader, leader.core.voters, leader.key)
    run_for(cluster, 20)
    assert leader.core.voters.keys == (other.key,)
    leader.die()
    cluster.network.heal()

    def is_settled() -> bool:
        newest = cluster.checker.ledger.voters_at(cluster.checker.ledger.end)
        return isinstance(newest, VoterSet) and newest.keys == (other.key,)

    run_until(cluster, is_settled)
    run_until(cluster, lambda: other.is_leader)
    append(cluster, other, b"w")


def test_so_it_can_where_it_was_no_voter_when_its_log_began() -> None:
    """After its restart it knows no high watermark, and at offset 0 it was no voter yet."""
    cluster = start(1, observers=1)
    first = elect(cluster)
    late = followers(cluster, first)[0]
    operators = Operators(cluster, Atlas(cluster))
    assert first.core is not None
    run_until(cluster, lambda: has_all(cluster, [late]))
    run_for(cluster, 1_000)
    operators._add(first, first.core.voters, late)
    run_until(cluster, lambda: late.core is not None and late.core.is_voter)
    append(cluster, first, b"v")
    run_until(cluster, lambda: has_all(cluster, [late]))
    first.act(lambda driver: driver.resign(late.key))
    run_until(cluster, lambda: late.is_leader and elect(cluster) is late)
    part(cluster, [late], [first])
    assert late.core is not None
    operators._remove(late, late.core.voters, late.key)
    run_for(cluster, 20)
    assert late.core.voters.keys == (first.key,)
    late.die()
    cluster.network.heal()
    run_until(cluster, lambda: first.is_leader)
    assert first.core.voters.keys == (first.key,)
    append(cluster, first, b"w")


def test_one_that_may_have_been_removed_finds_a_later_leader_by_itself() -> None:
    """Its only voter and last leader is gone, and nobody tells it who leads now."""
    cluster = start(1, observers=3)
    first, late, third, fourth = cluster.nodes
    assert elect(cluster) is first
    operators = Operators(cluster, Atlas(cluster))

    def change(act: Callable[[VoterSet], None], *ids: int) -> None:
        run_until(cluster, lambda: has_all(cluster, cluster.alive))
        run_for(cluster, 1_000)
        assert first.core is not None
        act(first.core.voters)
        run_until(cluster, lambda: all(voters_of(node) == set(ids) for node in cluster.alive))

    change(lambda voters: operators._add(first, voters, late), 1, 2)
    change(lambda voters: operators._remove(first, voters, late.key), 1)
    cluster.stays_down.add(late.node_id)
    late.die()
    change(lambda voters: operators._add(first, voters, third), 1, 3)
    change(lambda voters: operators._add(first, voters, fourth), 1, 3, 4)
    first.paused = True
    run_until(cluster, lambda: third.is_leader or fourth.is_leader)
    cluster.stays_down.clear()
    late.start()
    run_until(cluster, lambda: has_all(cluster, [late]))


def voters_of(node: SimNode) -> set[int]:
    return {key.node_id for key in node.core.voters.keys} if node.core else set()
