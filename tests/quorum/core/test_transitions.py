"""How a replica changes role: what it starts as, what it keeps, what it gives up."""

import pytest

from kraftlog._check import InvariantViolation
from quorum.core.config import KAFKA, Timing
from quorum.core.effects import LeaderChanged, LeadershipGained, LeadershipLost, SaveElection
from quorum.core.messages import (
    Batch,
    EndQuorumEpochReply,
    FetchReply,
    Refusal,
    SnapshotId,
    VoteReply,
)
from quorum.core.state import (
    Candidate,
    ElectionState,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorum.core.transitions import become_follower, become_prospective
from tests.quorum.core.cluster import Cluster, key_of, kinds, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import begin, end, vote
from tests.quorum.core.world import Node


def disk_with(election: ElectionState, *, voters: tuple[int, ...] = (1, 2, 3)) -> Disk:
    return Disk(bootstrap=voters_of(*voters), election=election)


def started(election: ElectionState, *, voters: tuple[int, ...] = (1, 2, 3)) -> Node:
    """Node 1 as it comes up with this on its disk."""
    return Cluster(0).add_node(1, disk_with(election, voters=voters))


# -- what a replica starts as (KIP-595)


@pytest.mark.parametrize(
    ("election", "role"),
    [
        (ElectionState(), Unattached),
        (ElectionState(4), Unattached),
        (ElectionState(4, key_of(2)), Unattached),
        (ElectionState(4, key_of(2), 2), Follower),
        (ElectionState(4, None, 3), Follower),
        (ElectionState(4, key_of(1), 2), Follower),
        (ElectionState(4, None, 9), Unattached),
        (ElectionState(4, key_of(1)), Candidate),
        (ElectionState(4, key_of(1), 1), Resigned),
    ],
)
def test_the_role_after_a_start(election: ElectionState, role: type[Role]) -> None:
    node = started(election)
    assert type(node.role) is role
    assert node.core.election == node.disk.election == election, "nothing new was decided"


def test_an_ex_leader_does_not_lead_its_epoch_again() -> None:
    # KAFKA-17333: nor does it say so to its state machine.
    node = started(ElectionState(4, key_of(1), 1))
    assert not [each for each in node.news if isinstance(each, LeadershipGained)]
    assert LeaderChanged(4, None) in node.news


def test_a_node_that_voted_for_itself_and_is_no_voter_any_more_does_not_campaign() -> None:
    # KAFKA-17067
    node = started(ElectionState(4, key_of(1)), voters=(2, 3))
    assert isinstance(node.role, Unattached)


def test_a_log_that_knows_a_later_epoch_wins_over_the_election_file() -> None:
    disk = disk_with(ElectionState(2, key_of(1), 1))
    disk.append(Batch(0, 5, 1))
    node = Cluster(0).add_node(1, disk)
    assert isinstance(node.role, Unattached)
    assert disk.election == ElectionState(5)


def test_a_snapshot_that_knows_a_later_epoch_does_too() -> None:
    disk = disk_with(ElectionState(2))
    disk.start_offset = disk.flushed_offset = 9
    cluster = Cluster(3)
    cluster.elect(1)
    snapshot = cluster.snapshot(1)
    disk.snapshots = {SnapshotId(9, 7): cluster.nodes[1].disk.snapshots[snapshot]}
    assert cluster.add_node(3, disk).core.epoch == 7


def test_a_sole_voter_leads_at_once() -> None:
    cluster = Cluster(1)
    assert cluster.leader.core.has_committed_epoch()
    assert cluster.now_ms == 0
    assert cluster.wire == []


@pytest.mark.parametrize(
    "election", [ElectionState(3, key_of(1)), ElectionState(3, key_of(1), 1), ElectionState(3)]
)
def test_a_sole_voter_leads_at_once_whatever_it_was(election: ElectionState) -> None:
    node = started(election, voters=(1,))
    assert isinstance(node.role, Leader)
    # Only a candidate may still lead the epoch that it wakes up in.
    assert node.core.epoch == (3 if election.leader_id is None and election.voted_key else 4)


# -- from role to role


def test_the_way_to_leadership_is_unattached_prospective_candidate_leader() -> None:
    cluster = Cluster(3)
    roles: list[type[Role]] = [Unattached]

    def note(node: Node, _: object) -> None:
        if node.node_id == 1 and type(node.role) is not roles[-1]:
            roles.append(type(node.role))

    cluster.trace = note
    cluster.elect(1)
    assert roles == [Unattached, Prospective, Candidate, Leader]


def test_one_durable_write_holds_epoch_and_own_vote() -> None:
    # hashicorp/raft 661: epoch and vote in two writes voted twice.
    cluster, saved = Cluster(3), []

    def note(node: Node, effect: object) -> None:
        if node.node_id == 1 and isinstance(effect, SaveElection):
            saved.append(effect.election)

    cluster.trace = note
    cluster.elect(1)
    assert saved == [ElectionState(1, key_of(1)), ElectionState(1, key_of(1), 1)]


def test_a_new_epoch_and_its_leader_are_one_durable_write() -> None:
    cluster, saved = Cluster(3), []
    cluster.trace = lambda _, effect: (
        saved.append(effect.election) if isinstance(effect, SaveElection) else None
    )
    cluster.answer(2, begin(1, epoch=5))
    assert saved == [ElectionState(5, None, 1)]


def test_unattached_keeps_what_is_left_of_its_election_time() -> None:
    cluster = Cluster(3)
    deadline_ms = cluster.role(2, Unattached).election_deadline_ms
    cluster.now_ms = 300
    cluster.answer(2, vote(3, epoch=4, pre_vote=True))
    assert cluster.nodes[2].core.epoch == 4
    assert cluster.role(2, Unattached).election_deadline_ms == deadline_ms


def test_a_vote_that_is_given_starts_a_new_election_time() -> None:
    cluster = Cluster(3)
    cluster.now_ms = 300
    assert cluster.answer(2, vote(3, epoch=4)).refusal is None
    assert cluster.role(2, Unattached).election_deadline_ms == 300 + 1_000 + 125


def test_nobody_follows_itself() -> None:
    node = Cluster(1).leader
    with pytest.raises(InvariantViolation, match="following ourselves"):
        become_follower(node.core._replica, voter_of(1))
    with pytest.raises(InvariantViolation, match="a leader follows"):
        become_follower(node.core._replica, voter_of(2))


def test_an_observer_does_not_campaign() -> None:
    # KAFKA-17067
    cluster = Cluster(1, 1)
    with pytest.raises(InvariantViolation, match="observer campaigns"):
        become_prospective(cluster.nodes[2].core._replica)
    cluster.cut(1)
    cluster.run(100_000)
    assert isinstance(cluster.nodes[2].role, Unattached)


def test_a_leader_with_our_node_id_and_another_disk_is_nobody_to_follow() -> None:
    # The others still follow what our disk was before it was wiped.
    cluster = Cluster(3)
    cluster.elect(1)
    node = cluster.wipe(1)
    cluster.run(500)
    assert node.core.epoch == 1
    assert isinstance(node.role, Unattached)
    assert node.core.election.leader_id is None


# -- elections that are lost


def lone_candidate(timing: Timing = KAFKA, drawn: int = 0) -> Cluster:
    """Node 1 of 3 asks for votes in epoch 1, and all it ever draws is this."""
    cluster = Cluster(3, timing=timing, draw=lambda _, n: min(drawn, n - 1))
    cluster.add_node(1, disk_with(ElectionState(1, key_of(1))))
    cluster.cut(1)
    cluster.lose_all()
    return cluster


def refuse_all(cluster: Cluster, node_id: int) -> None:
    no = VoteReply(epoch=cluster.nodes[node_id].core.epoch, leader=None, refusal=Refusal.LOG_BEHIND)
    for request_id in list(cluster.nodes[node_id].open_requests):
        cluster.reply(node_id, request_id, no)


@pytest.mark.parametrize(("retries", "most_ms"), [(0, 100), (1, 300), (2, 700), (3, 1_000)])
def test_a_lost_election_is_followed_by_a_pause_that_grows(retries: int, most_ms: int) -> None:
    # 100 ms times a number below 2^(retries + 1), and no longer than election.backoff.max.ms
    cluster = lone_candidate(drawn=1 << 30)
    role = cluster.role(1, Candidate)
    role.retries = retries
    refuse_all(cluster, 1)
    assert role.lost
    assert role.deadline_ms == cluster.now_ms + most_ms


def test_a_pause_of_nothing_is_possible() -> None:
    cluster = lone_candidate()
    refuse_all(cluster, 1)
    assert isinstance(cluster.nodes[1].role, Prospective)
    assert cluster.nodes[1].core.epoch == 1


def test_a_candidate_that_hears_nothing_asks_for_pre_votes_anew() -> None:
    cluster = lone_candidate()
    cluster.run(999)
    assert cluster.role(1, Candidate).retries == 0
    cluster.run(1)
    assert cluster.role(1, Prospective).retries == 1
    assert cluster.nodes[1].core.epoch == 1, "it costs no epoch"


def test_a_prospect_goes_back_to_a_leader_that_others_hear() -> None:
    # KIP-996
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.cut_way(2, 1)
    cluster.until(lambda: isinstance(cluster.nodes[2].role, Prospective))
    cluster.run(10_000)
    assert cluster.nodes[2].core.epoch == 1
    cluster.heal()
    cluster.run(2_000)
    assert cluster.role(2, Follower).has_fetched


def test_a_prospect_without_a_leader_waits_unattached() -> None:
    cluster = Cluster(3)
    cluster.cut(1)
    cluster.lose_all()
    cluster.now_ms = 1_000
    cluster.tick(1)
    assert cluster.role(1, Prospective).leader is None
    refuse_all(cluster, 1)
    assert cluster.role(1, Unattached).election_deadline_ms == 1_500


# -- stepping down


def test_leaving_leadership_answers_everybody_who_waits() -> None:
    cluster = Cluster(3, 1, auto_flush=True)
    leader = cluster.elect(1)
    cluster.cut(1)
    add = cluster.add_voter(voter_of(4))
    cluster.propose("never")
    read = cluster.read(1)
    cluster.resign(1)
    assert LeadershipLost(1) in leader.news
    assert cluster.reads[read] is Refusal.LEADERSHIP_LOST
    assert cluster.answers[add].refusal is Refusal.LEADERSHIP_LOST


def test_parked_fetches_hear_of_a_resignation_at_once() -> None:
    # KAFKA-15100 the other way round: nobody waits out a long poll for it.
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.resign(1)
    told = [p.target for p in cluster.wire if isinstance(p.body, FetchReply)]
    refusals = {p.body.refusal for p in cluster.wire if isinstance(p.body, FetchReply)}
    assert sorted(told) == [2, 3]
    assert refusals == {Refusal.NOT_LEADER}


def test_successors_are_named_by_what_they_have() -> None:
    cluster = Cluster(5)
    cluster.elect(1)
    cluster.cut(4)
    cluster.propose("a")
    cluster.settle()
    cluster.cut(2)
    cluster.propose("b")
    cluster.settle()
    cluster.resign(1)
    assert [key.node_id for key in cluster.role(1, Resigned).successors] == [3, 5, 2, 4]


def test_a_resigned_voter_waits_and_then_opens_the_next_epoch_for_others() -> None:
    cluster = Cluster(0)
    node = cluster.add_node(1, disk_with(ElectionState(4, key_of(1), 1)))
    cluster.run(999)
    assert cluster.role(1, Resigned).unacked == ()
    cluster.run(1)
    assert isinstance(node.role, Unattached)
    assert node.disk.election == ElectionState(5)


def test_a_resigned_leader_that_is_no_voter_any_more_opens_no_epoch() -> None:
    cluster = Cluster(3)
    leader = cluster.elect(1)
    number = cluster.remove_voter(key_of(1))
    cluster.until(lambda: isinstance(leader.role, Resigned))
    assert cluster.answers[number].refusal is None
    cluster.lose_all()
    cluster.cut(1)
    cluster.run(5_000)
    assert isinstance(leader.role, Unattached)
    assert leader.core.epoch == 1


def test_a_resigned_leader_tells_the_voters_until_they_have_heard() -> None:
    cluster = Cluster(3)
    leader = cluster.elect(1)
    cluster.resign(1)
    lost = kinds(cluster.wire).index("1>3 EndQuorumEpochRequest")
    cluster.lose(lost)
    cluster.deliver_to(2)
    heard = [packet for packet in cluster.wire if isinstance(packet.body, EndQuorumEpochReply)]
    cluster.deliver(cluster.wire.index(heard[0]))
    assert [voter.key.node_id for voter in cluster.role(1, Resigned).unacked] == [3]
    cluster.until(lambda: cluster.leader.core.epoch == 2)
    assert leader.core.epoch == 2


def test_what_a_prospect_knew_of_a_leader_that_resigned_is_void() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.cut_way(2, 1)
    cluster.until(lambda: isinstance(cluster.nodes[2].role, Prospective))
    assert cluster.role(2, Prospective).leader == voter_of(1)
    cluster.answer(2, end(1, 2, 3, epoch=1))
    assert cluster.role(2, Prospective).leader is None
