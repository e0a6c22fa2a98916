"""What a leader owes: to resign when nobody fetches, and to prove that it leads before it reads."""

import pytest

from quorum.core.effects import Committed, LeadershipLost
from quorum.core.messages import NoOp, Refusal
from quorum.core.state import Leader, Resigned
from tests.quorum.core.cluster import Cluster, key_of
from tests.quorum.core.requests import fetch, fetch_snapshot
from tests.quorum.core.world import Node


def led(voters: int = 3, observers: int = 0) -> tuple[Cluster, Node]:
    cluster = Cluster(voters, observers)
    return cluster, cluster.elect(1)


# -- check-quorum (thesis 6.2, KAFKA-15489)


def test_a_leader_from_which_no_majority_fetches_resigns() -> None:
    # Q12
    cluster, leader = led()
    cluster.cut(1)
    cluster.run(cluster.timing.check_quorum_ms - 1)
    assert leader.core.is_leader
    cluster.run(1)
    assert isinstance(leader.role, Resigned)
    assert LeadershipLost(1) in leader.news


def test_a_fetch_that_waited_while_the_leader_stood_still_does_not_keep_it_in_office() -> None:
    # Q12: it is handled before any timer is looked at
    cluster, leader = led()
    cluster.cut(1)
    end = leader.core.log.end_offset
    cluster.now_ms += cluster.timing.check_quorum_ms
    cluster.ask(1, fetch(2, epoch=1, offset=end, last_epoch=1))
    assert isinstance(leader.role, Resigned)


def test_one_follower_of_two_is_enough_for_three_voters() -> None:
    cluster, leader = led()
    cluster.crash(3)
    cluster.run(30_000)
    assert leader.core.is_leader
    assert leader.core.epoch == 1


def test_one_follower_of_four_is_not_enough_for_five_voters() -> None:
    cluster, leader = led(5)
    for node_id in (3, 4, 5):
        cluster.crash(node_id)
    cluster.run(2 * cluster.timing.check_quorum_ms)
    assert not leader.core.is_leader


def test_a_fetch_of_one_does_not_renew_that_of_another() -> None:
    # Q12: the time of a majority runs from the oldest of its newest fetches
    cluster, leader = led(5)
    for node_id in (2, 3, 4, 5):
        cluster.crash(node_id)
    for node_id in (2, 3, 3):
        cluster.ask(1, fetch(node_id, epoch=1, offset=2, last_epoch=1))
    cluster.run(cluster.timing.check_quorum_ms - 1)
    cluster.ask(1, fetch(2, epoch=1, offset=2, last_epoch=1))
    assert leader.core.is_leader
    cluster.run(1)
    assert isinstance(leader.role, Resigned)


def test_observers_keep_nobody_in_office() -> None:
    cluster, leader = led(3, 3)
    cluster.crash(2)
    cluster.crash(3)
    cluster.run(cluster.timing.check_quorum_ms)
    assert not leader.core.is_leader


def test_a_sole_voter_never_resigns() -> None:
    cluster, leader = led(1, 1)
    cluster.cut(1)
    cluster.run(100_000)
    assert leader.core.is_leader


def test_a_download_counts_as_a_sign_of_life() -> None:
    # A voter may load a large snapshot for longer than the time of check-quorum.
    cluster, leader = led()
    cluster.propose("a")
    cluster.settle()
    snapshot = cluster.snapshot(1)
    cluster.crash(2)
    cluster.crash(3)
    for _ in range(5):
        cluster.run(cluster.timing.check_quorum_ms - 100)
        cluster.ask(1, fetch_snapshot(2, snapshot, epoch=1))
    assert leader.core.is_leader


@pytest.mark.parametrize("offset", [0, 99])
def test_a_fetch_that_parts_from_our_log_or_begins_too_early_does_not_count(offset: int) -> None:
    cluster, leader = led()
    cluster.snapshot(1)
    cluster.crash(2)
    cluster.crash(3)
    for _ in range(3):
        cluster.run(cluster.timing.check_quorum_ms // 3)
        if leader.core.is_leader:
            cluster.ask(1, fetch(2, epoch=1, offset=offset, last_epoch=min(1, offset)))
    cluster.run(1)
    assert not leader.core.is_leader


def test_a_leader_outside_of_its_voters_needs_a_majority_without_itself() -> None:
    cluster, leader = led(3)
    cluster.crash(3)
    cluster.remove_voter(key_of(1))
    cluster.cut(1)
    cluster.lose_all()
    role = cluster.role(1, Leader)
    deadline_ms = role.check_quorum_deadline_ms
    cluster.now_ms += 100
    cluster.ask(1, fetch(2, epoch=1, offset=2, last_epoch=1))
    assert role.check_quorum_deadline_ms == deadline_ms, "one of two is no majority"
    cluster.ask(1, fetch(3, epoch=1, offset=2, last_epoch=1))
    assert role.check_quorum_deadline_ms == cluster.now_ms + cluster.timing.check_quorum_ms
    assert leader.core.is_leader


def test_one_follower_that_fetches_often_is_still_one() -> None:
    cluster, leader = led(5)
    for node_id in (2, 3, 4, 5):
        cluster.crash(node_id)
    for _ in range(40):
        cluster.run(100)
        if leader.core.is_leader:
            cluster.ask(1, fetch(2, epoch=1, offset=2, last_epoch=1, max_wait_ms=0))
    assert not leader.core.is_leader


# -- reads (thesis 6.4; no lease, and a fetch is no proof)


def test_a_read_waits_for_a_no_op_of_its_own() -> None:
    # M2
    cluster, leader = led()
    end = leader.disk.end_offset
    token = cluster.read(1)
    assert isinstance(leader.disk.batches[-1].control, NoOp)
    assert token not in cluster.reads
    cluster.settle()
    assert cluster.reads[token] == end + 1


def test_reads_that_come_meanwhile_share_the_next_no_op() -> None:
    cluster, leader = led()
    tokens = [cluster.read(1) for _ in range(100)]
    cluster.settle()
    no_ops = [batch for batch in leader.disk.batches if isinstance(batch.control, NoOp)]
    assert len(no_ops) == 2
    assert cluster.reads[tokens[0]] == no_ops[0].next_offset
    assert {cluster.reads[token] for token in tokens[1:]} == {no_ops[1].next_offset}


def test_a_proposal_after_a_read_proves_as_much_as_a_no_op() -> None:
    cluster, leader = led()
    cluster.read(1)
    token = cluster.read(1)
    cluster.propose("a")
    cluster.settle()
    end = leader.disk.end_offset
    assert cluster.reads[token] == end
    assert len([batch for batch in leader.disk.batches if isinstance(batch.control, NoOp)]) == 1


def test_a_proposal_before_a_read_proves_nothing() -> None:
    cluster, leader = led()
    cluster.propose("a")
    end = leader.disk.end_offset
    token = cluster.read(1)
    cluster.settle()
    assert cluster.reads[token] == end + 1


def test_a_deposed_leader_answers_no_read() -> None:
    # M2: it may not know yet that another one commits.
    cluster, leader = led()
    cluster.cut(1)
    token = cluster.read(1)
    cluster.until(lambda: any(node.core.epoch == 2 for node in cluster.leaders))
    cluster.propose("news")
    cluster.settle()
    assert cluster.reads.get(token) in (None, Refusal.LEADERSHIP_LOST)
    cluster.heal()
    cluster.run(5_000)
    assert cluster.reads[token] is Refusal.LEADERSHIP_LOST
    assert not leader.core.is_leader


def test_fetches_prove_no_leadership() -> None:
    """The followers fetch all the while, but what they have does not reach the no-op."""
    cluster, _ = led()
    cluster.crash(2)
    cluster.crash(3)
    token = cluster.read(1)
    for _ in range(20):
        for node_id in (2, 3):
            cluster.ask(1, fetch(node_id, epoch=1, offset=2, last_epoch=1, max_wait_ms=0))
    assert token not in cluster.reads


def test_a_follower_refuses_a_read() -> None:
    cluster, _ = led()
    assert cluster.reads[cluster.read(2)] is Refusal.NOT_LEADER


def test_a_read_of_a_new_leader_waits_for_its_epoch() -> None:
    # What it reads includes all that its predecessors committed.
    cluster, _ = led()
    cluster.propose("a")
    cluster.settle()
    cluster.resign(1)
    cluster.settle()
    new = cluster.leader
    token = cluster.read(new.node_id)
    cluster.settle()
    end = cluster.reads[token]
    assert isinstance(end, int)
    assert end > cluster.role(new.node_id, Leader).start_offset
    assert Committed(end) in new.news
