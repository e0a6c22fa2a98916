"""Changing the voters, one at a time, through the log (KIP-853)."""

from dataclasses import replace

import pytest

from kraftlog.types import Uuid
from quorum.core.effects import LeadershipLost
from quorum.core.messages import (
    AddVoterReply,
    AddVoterRequest,
    Batch,
    EndQuorumEpochRequest,
    Refusal,
    RemoveVoterReply,
    RemoveVoterRequest,
    ReplicaKey,
    Voter,
    VoterSet,
)
from quorum.core.state import Follower, Leader, Resigned, Unattached
from tests.quorum.core.cluster import CLUSTER_ID, Cluster, key_of, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import fetch, update, vote
from tests.quorum.core.world import Node

OTHER_CLUSTER = Uuid(bytes(16))


def led(voters: int = 3, observers: int = 1) -> tuple[Cluster, Node]:
    """Node 1 leads; the observers have caught up."""
    cluster = Cluster(voters, observers)
    leader = cluster.elect(1)
    cluster.run(1_000)
    return cluster, leader


def voter_sets(node: Node) -> list[VoterSet]:
    controls = (batch.control for batch in node.disk.batches)
    return [control for control in controls if isinstance(control, VoterSet)]


# -- adding


def test_a_newcomer_that_has_caught_up_becomes_a_voter() -> None:
    cluster, leader = led()
    number = cluster.add_voter(voter_of(4))
    assert leader.core.voters == voters_of(1, 2, 3, 4), "it acts when it is appended"
    assert number not in cluster.answers, "it is done when it is committed"
    cluster.settle()
    reply = cluster.answers[number]
    assert isinstance(reply, AddVoterReply)
    assert (reply.refusal, reply.leader) == (None, voter_of(1))
    assert all(node.core.voters == voters_of(1, 2, 3, 4) for node in cluster.alive)
    assert cluster.nodes[4].core.is_voter


def test_a_change_needs_the_majority_of_the_new_voters() -> None:
    # from 2 voters to 3: both of the old ones had it, and that is no longer the question
    cluster, leader = led(3)
    cluster.crash(2)
    cluster.crash(3)
    cluster.crash(4)
    cluster.lose_all()
    cluster.plays_others = True
    cluster.ask(1, fetch(4, epoch=1, offset=2, last_epoch=1, max_wait_ms=0))
    cluster.add_voter(voter_of(4))
    cluster.ask(1, fetch(2, epoch=1, offset=3, last_epoch=1, max_wait_ms=0))
    assert leader.core.high_watermark == 2, "two of four"
    cluster.ask(1, fetch(4, epoch=1, offset=3, last_epoch=1, max_wait_ms=0))
    assert leader.core.high_watermark == 3


def test_a_sole_voter_that_has_led_for_long_adds_a_second_one() -> None:
    """Nobody had to fetch from it before; the time for that begins with the second voter."""
    cluster, leader = led(1, 1)
    cluster.run(60_000)
    number = cluster.add_voter(voter_of(2))
    cluster.settle()
    assert cluster.answers[number].refusal is None
    cluster.run(60_000)
    assert leader.core.is_leader
    assert leader.core.epoch == 1


@pytest.mark.parametrize(
    ("voter", "cluster_id", "refusal"),
    [
        (voter_of(4), OTHER_CLUSTER, Refusal.WRONG_CLUSTER),
        (Voter(key_of(4), ""), CLUSTER_ID, Refusal.INVALID_REQUEST),
        (Voter(ReplicaKey(4, Uuid(bytes(16))), "n4"), CLUSTER_ID, Refusal.INVALID_REQUEST),
        (Voter(ReplicaKey(0, key_of(4).directory_id), "n4"), CLUSTER_ID, Refusal.INVALID_REQUEST),
        (voter_of(3), CLUSTER_ID, Refusal.DUPLICATE_VOTER),
        (voter_of(3, disk=2), CLUSTER_ID, Refusal.DUPLICATE_VOTER),
        (voter_of(4, disk=2), CLUSTER_ID, Refusal.NOT_CAUGHT_UP),
        (voter_of(9), CLUSTER_ID, Refusal.NOT_CAUGHT_UP),
    ],
)
def test_who_cannot_be_added_hears_why(voter: Voter, cluster_id: Uuid, refusal: Refusal) -> None:
    cluster, leader = led()
    end = leader.disk.end_offset
    reply = cluster.answer(1, AddVoterRequest(cluster_id=cluster_id, voter=voter))
    assert reply.refusal is refusal
    assert leader.disk.end_offset == end
    assert leader.core.voters == voters_of(1, 2, 3)


def test_only_the_leader_adds_and_others_name_it() -> None:
    cluster, _ = led()
    for node_id in (2, 4):
        reply = cluster.answers[cluster.add_voter(voter_of(4), at=node_id)]
        assert (reply.refusal, reply.leader) == (Refusal.NOT_LEADER, voter_of(1))
    # Whether the voter makes sense is said by the leader; whether it is our cluster, by anybody.
    wrong = AddVoterRequest(cluster_id=OTHER_CLUSTER, voter=Voter(key_of(4), ""))
    assert cluster.answer(2, wrong).refusal is Refusal.WRONG_CLUSTER


def test_nothing_changes_before_the_epoch_has_committed() -> None:
    # the error in thesis 4.1 that was found later
    cluster = Cluster(3, 1)
    cluster.elect(1)
    cluster.run(1_000)
    cluster.resign(1)
    while not any(node.core.epoch == 2 for node in cluster.leaders):
        cluster.deliver()
    new = cluster.leader
    assert not new.core.has_committed_epoch()
    for number in (
        cluster.add_voter(voter_of(4), at=new.node_id),
        cluster.remove_voter(key_of(3), at=new.node_id),
    ):
        assert cluster.answers[number].refusal is Refusal.EPOCH_NOT_COMMITTED


def test_one_change_at_a_time() -> None:
    cluster, _ = led(3, 2)
    cluster.add_voter(voter_of(4))
    for number in (cluster.add_voter(voter_of(5)), cluster.remove_voter(key_of(3))):
        assert cluster.answers[number].refusal is Refusal.CHANGE_PENDING
    cluster.settle()
    number = cluster.add_voter(voter_of(5))
    cluster.settle()
    assert cluster.answers[number].refusal is None
    assert len(cluster.leader.core.voters) == 5


def test_voters_of_a_predecessor_that_are_not_committed_are_pending_too() -> None:
    cluster, _ = led(3, 2)
    cluster.nodes[1].core._replica.log.append(
        Batch(cluster.nodes[1].core.log.end_offset, 1, 1, control=voters_of(1, 2, 3))
    )
    reply = cluster.answers[cluster.add_voter(voter_of(5))]
    assert reply.refusal is Refusal.CHANGE_PENDING


def test_an_observer_that_has_fallen_behind_or_silent_is_not_caught_up() -> None:
    cluster, _ = led()
    cluster.cut(4)
    cluster.run(cluster.timing.fetch_timeout_ms + 1)
    number = cluster.add_voter(voter_of(4))
    assert cluster.answers[number].refusal is Refusal.NOT_CAUGHT_UP
    cluster.heal()
    cluster.run(5_000)
    number = cluster.add_voter(voter_of(4))
    cluster.settle()
    assert cluster.answers[number].refusal is None


def test_a_leader_that_falls_does_not_know_what_comes_of_its_change() -> None:
    cluster, leader = led()
    cluster.cut(1)
    number = cluster.add_voter(voter_of(4))
    cluster.run(cluster.timing.check_quorum_ms)
    assert cluster.answers[number].refusal is Refusal.LEADERSHIP_LOST
    assert LeadershipLost(1) in leader.news


def test_a_change_that_was_never_committed_is_taken_back() -> None:
    cluster, leader = led()
    cluster.cut(1)
    cluster.add_voter(voter_of(4))
    assert len(leader.core.voters) == 4
    cluster.until(lambda: any(node.core.epoch == 2 for node in cluster.leaders))
    cluster.heal()
    cluster.until(lambda: leader.core.log.last_epoch == 2)
    assert leader.core.voters == voters_of(1, 2, 3)


# -- removing


def test_a_removed_voter_follows_on_without_a_vote() -> None:
    cluster, leader = led()
    number = cluster.remove_voter(key_of(3))
    assert leader.core.voters == voters_of(1, 2)
    cluster.settle()
    reply = cluster.answers[number]
    assert isinstance(reply, RemoveVoterReply)
    assert reply.refusal is None
    cluster.propose("a")
    cluster.run(1_000)
    assert cluster.nodes[3].records == [b"a"]
    assert not cluster.nodes[3].core.is_voter
    # KAFKA-19850: and it stays out.
    cluster.run(60_000)
    assert cluster.leader.core.voters == voters_of(1, 2)


@pytest.mark.parametrize(
    ("key", "cluster_id", "refusal"),
    [
        (key_of(3), OTHER_CLUSTER, Refusal.WRONG_CLUSTER),
        (key_of(4), CLUSTER_ID, Refusal.VOTER_NOT_FOUND),
        (key_of(3, disk=2), CLUSTER_ID, Refusal.VOTER_NOT_FOUND),
    ],
)
def test_who_cannot_be_removed(key: ReplicaKey, cluster_id: Uuid, refusal: Refusal) -> None:
    cluster, leader = led()
    reply = cluster.answer(1, RemoveVoterRequest(cluster_id=cluster_id, key=key))
    assert reply.refusal is refusal
    assert leader.core.voters == voters_of(1, 2, 3)


def test_the_last_voter_stays() -> None:
    cluster, _ = led(1, 1)
    assert cluster.answers[cluster.remove_voter(key_of(1))].refusal is Refusal.LAST_VOTER
    assert cluster.answers[cluster.remove_voter(key_of(2))].refusal is Refusal.VOTER_NOT_FOUND


def test_a_leader_removes_itself_leads_on_uncounted_and_resigns_at_the_commit() -> None:
    # thesis 4.2.2, KAFKA-16530
    cluster, leader = led(3, 0)
    high_watermark = leader.core.high_watermark
    number = cluster.remove_voter(key_of(1))
    assert leader.core.is_leader
    cluster.propose("last")
    # One of the two others is no majority, and the leader is none of them.
    cluster.cut(3)
    cluster.settle()
    assert leader.core.high_watermark == high_watermark
    cluster.heal()
    cluster.until(lambda: number in cluster.answers)
    assert cluster.answers[number].refusal is None
    assert isinstance(leader.role, Resigned)
    sent = [p.body for p in cluster.wire if isinstance(p.body, EndQuorumEpochRequest)]
    assert {request.sender for request in sent} <= {key_of(1)}
    cluster.until(lambda: cluster.leader.core.epoch == 2)
    cluster.run(10_000)
    assert cluster.leader.core.voters == voters_of(2, 3)
    assert cluster.nodes[1].records == [b"last"]
    assert isinstance(cluster.nodes[1].role, Follower), "as an observer"


def test_two_voters_can_become_one_either_way() -> None:
    for gone, stays in ((2, 1), (1, 2)):
        cluster, _ = led(2, 0)
        number = cluster.remove_voter(key_of(gone))
        cluster.until(lambda: number in cluster.answers)  # noqa: B023
        assert cluster.answers[number].refusal is None
        cluster.until(lambda: cluster.leader.node_id == stays)  # noqa: B023
        cluster.propose("alone")
        cluster.settle()
        assert cluster.nodes[stays].records == [b"alone"]


def test_who_is_removed_only_in_its_own_log_still_campaigns() -> None:
    # thesis 4.2.2: nobody else has that record, so that nobody else may be electable
    cluster, leader = led(2, 0)
    cluster.propose("ahead", at=1)
    cluster.settle()
    cluster.cut(2)
    cluster.remove_voter(key_of(1))
    cluster.crash(1)
    cluster.heal()
    cluster.restart(1)
    assert leader.core.voters == voters_of(2)
    cluster.until(lambda: bool(cluster.leaders))
    cluster.run(5_000)
    assert cluster.leader.core.has_committed_epoch()
    assert cluster.leader.records == [b"ahead"]


def test_a_wiped_disk_comes_back_by_removing_the_old_key_and_adding_the_new() -> None:
    # KIP-853, Q14
    cluster, _ = led(3, 0)
    node = cluster.wipe(3)
    cluster.run(2_000)
    assert isinstance(node.role, Follower), "it follows as an observer"
    assert (
        cluster.answers[cluster.add_voter(voter_of(3, disk=2))].refusal is Refusal.DUPLICATE_VOTER
    )
    first = cluster.remove_voter(key_of(3))
    cluster.settle()
    second = cluster.add_voter(voter_of(3, disk=2))
    cluster.settle()
    assert [cluster.answers[number].refusal for number in (first, second)] == [None, None]
    assert node.core.is_voter


def test_the_time_of_a_newcomer_begins_with_it_and_that_of_the_rest_goes_on() -> None:
    # Q12: a leader that is cut off gains nothing from a change of voters
    cluster, leader = led(3, 1)
    cluster.run(700)
    cluster.cut(1)
    cluster.run(100)
    heard_ms = cluster.role(1, Leader).heard_ms.copy()
    cluster.add_voter(voter_of(4))
    role = cluster.role(1, Leader)
    assert role.heard_ms == {**heard_ms, key_of(4): cluster.now_ms}
    since_ms = max(heard_ms.values())
    assert role.check_quorum_deadline_ms == since_ms + cluster.timing.check_quorum_ms
    assert leader.core.is_leader


# -- moving


def test_a_voter_that_has_moved_is_written_down_and_answered_at_once() -> None:
    cluster, leader = led()
    moved = Voter(key_of(2), "new")
    assert cluster.answer(1, update(2, moved, epoch=1)).refusal is None
    assert leader.core.voters.find(2) == moved
    cluster.settle()
    assert cluster.answer(1, update(2, moved, epoch=1)).refusal is None
    assert voter_sets(leader) == [voters_of(1, 2, 3), voters_of(1, 2, 3).with_voter(moved)]


@pytest.mark.parametrize(
    ("sender", "voter", "epoch", "refusal"),
    [
        (key_of(2), Voter(key_of(2), "new"), 0, Refusal.EPOCH_STALE),
        (key_of(2), Voter(key_of(2), "new"), 2, Refusal.EPOCH_UNKNOWN),
        (key_of(2), Voter(key_of(2), ""), 1, Refusal.INVALID_REQUEST),
        (key_of(2), Voter(key_of(3), "new"), 1, Refusal.VOTER_NOT_FOUND),
        (key_of(2, disk=2), Voter(key_of(2, disk=2), "new"), 1, Refusal.VOTER_NOT_FOUND),
        (key_of(4), Voter(key_of(4), "new"), 1, Refusal.VOTER_NOT_FOUND),
    ],
)
def test_who_cannot_move(sender: ReplicaKey, voter: Voter, epoch: int, refusal: Refusal) -> None:
    cluster, leader = led()
    assert cluster.answer(1, update(sender, voter, epoch=epoch)).refusal is refusal
    assert voter_sets(leader) == [voters_of(1, 2, 3)]


def test_nobody_moves_during_a_change() -> None:
    cluster, _ = led()
    cluster.add_voter(voter_of(4))
    reply = cluster.answer(1, update(2, Voter(key_of(2), "new"), epoch=1))
    assert reply.refusal is Refusal.CHANGE_PENDING


def test_followers_do_not_write_voters_down() -> None:
    cluster, _ = led()
    reply = cluster.answer(2, update(3, Voter(key_of(3), "new"), epoch=1))
    assert (reply.refusal, reply.leader) == (Refusal.NOT_LEADER, voter_of(1))


# -- stale views


def test_a_voter_whose_set_is_stale_finds_the_leader() -> None:
    # KAFKA-17030: of those it knows only itself is left.
    cluster, _ = led(3, 3)
    cluster.cut(3)
    for node_id in (4, 5):
        cluster.add_voter(voter_of(node_id))
        cluster.settle()
    for node_id in (2, 1):
        number = cluster.remove_voter(key_of(node_id))
        cluster.until(lambda: number in cluster.answers)  # noqa: B023
        cluster.until(lambda: any(n.core.has_committed_epoch() for n in cluster.leaders))
    cluster.crash(1)
    cluster.crash(2)
    stale = cluster.nodes[3]
    assert stale.core.voters == voters_of(1, 2, 3)
    cluster.heal()
    cluster.until(lambda: stale.core.voters == cluster.leader.core.voters)
    assert stale.core.voters == voters_of(3, 4, 5)


def test_a_vote_counts_for_those_that_the_candidate_knows_as_voters() -> None:
    # Q13: observers grant votes, which nobody counts.
    cluster = Cluster(3, 2)
    cluster.crash(2)
    cluster.crash(3)
    cluster.run(4_000)
    assert cluster.leaders == []
    assert cluster.answer(4, vote(1, epoch=cluster.nodes[1].core.epoch + 1)).refusal is None
    assert isinstance(cluster.nodes[4].role, Unattached)


def test_an_empty_directory_starts_as_an_observer_whatever_its_peers_are() -> None:
    cluster, _ = led(3, 0)
    node = cluster.add_node(9, Disk())
    cluster.run(5_000)
    assert isinstance(node.role, Follower)
    assert not node.core.is_voter
    assert replace(node.config).peers == ("n1", "n2", "n3")
