"""Each rule, broken on purpose in a cluster that is otherwise well."""

from dataclasses import replace

import pytest

from chaos.sim.cluster import CLUSTER_ID, Cluster
from chaos.sim.node import SimNode
from kraftlog._check import InvariantViolation
from quorum.core.config import FAST
from quorum.core.messages import (
    FetchReply,
    FetchRequest,
    ReplicaKey,
    SnapshotId,
    VoteReply,
    VoteRequest,
    VoterSet,
)
from quorum.core.replica import Replica
from quorum.core.state import Candidate, ElectionState
from quorum.core.tally import Tally
from tests.chaos.sim.clusters import append, elect, followers, has_all, machine_of, run_until, start


class Case:
    """Three voters that have committed something, and a look behind the curtain."""

    def __init__(self) -> None:
        self.cluster: Cluster = start(3)
        self.leader = elect(self.cluster)
        append(self.cluster, self.leader, b"v1")
        run_until(self.cluster, lambda: has_all(self.cluster, self.cluster.nodes))
        self.follower = followers(self.cluster, self.leader)[0]

    def break_rule(self, rule: str, node: SimNode) -> None:
        with pytest.raises(InvariantViolation, match=rule):
            self.cluster.checker.on_step(node)


@pytest.fixture
def case() -> Case:
    return Case()


def inside(node: SimNode) -> Replica:
    assert node.core is not None
    return node.core._replica


def epoch_of(node: SimNode) -> int:
    return inside(node).epoch


def vote_request(candidate: SimNode, voter: SimNode, epoch: int) -> VoteRequest:
    return VoteRequest(
        cluster_id=CLUSTER_ID,
        sender=candidate.key,
        recipient=voter.key,
        epoch=epoch,
        last_epoch=0,
        end_offset=0,
        pre_vote=False,
    )


def vote(candidate: SimNode, voter: SimNode, epoch: int) -> None:
    assert voter.store is not None
    voter.store.save_election(ElectionState(epoch, voted_key=candidate.key))


def fetch_request(sender: SimNode, leader: SimNode, offset: int) -> FetchRequest:
    return FetchRequest(
        cluster_id=CLUSTER_ID,
        sender=sender.key,
        recipient=leader.key,
        epoch=epoch_of(leader),
        offset=offset,
        last_epoch=1,
        high_watermark=0,
        max_wait_ms=0,
        max_bytes=1,
    )


def test_all_is_well(case: Case) -> None:
    for node in case.cluster.nodes:
        case.cluster.checker.on_step(node)
        case.cluster.checker.check_converged(node)


def test_two_leaders_of_an_epoch(case: Case) -> None:  # Q1
    case.cluster.checker._leaders[epoch_of(case.leader)] = (case.follower.key, 1)
    case.break_rule("Q1 two leaders", case.leader)


def test_a_leader_that_leads_again_after_a_restart(case: Case) -> None:  # Q1
    case.cluster.checker._leaders[epoch_of(case.leader)] = (case.leader.key, 0)
    case.break_rule("Q1 two leaders", case.leader)


def test_an_epoch_that_falls(case: Case) -> None:  # Q2
    election = inside(case.follower).election
    inside(case.follower).election = replace(election, epoch=election.epoch - 1)
    case.break_rule("Q2 an epoch fell", case.follower)


def test_an_epoch_that_is_not_on_disk(case: Case) -> None:  # Q2
    election = inside(case.follower).election
    inside(case.follower).election = replace(election, epoch=election.epoch + 1)
    case.break_rule("Q2 memory is ahead of disk", case.follower)


def test_two_votes_in_an_epoch(case: Case) -> None:  # Q3
    checker, voter = case.cluster.checker, case.follower
    yes = VoteReply(epoch=9, leader=None)
    vote(case.leader, voter, 9)
    checker.on_reply(voter, vote_request(case.leader, voter, 9), yes)
    checker.on_reply(voter, vote_request(case.leader, voter, 9), yes)
    other = followers(case.cluster, case.leader)[1]
    vote(other, voter, 9)
    with pytest.raises(InvariantViolation, match="Q3 two votes"):
        checker.on_reply(voter, vote_request(other, voter, 9), yes)


def test_a_vote_that_is_not_on_disk(case: Case) -> None:  # Q3
    request = vote_request(case.leader, case.follower, 9)
    with pytest.raises(InvariantViolation, match="Q3 a vote that is not on disk"):
        case.cluster.checker.on_reply(case.follower, request, VoteReply(epoch=9, leader=None))


def test_a_store_that_differs_from_its_core(case: Case) -> None:  # Q4
    inside(case.follower).log.end_offset += 1
    case.break_rule("Q4 core and store differ", case.follower)


def test_a_new_leader_without_a_committed_record(case: Case) -> None:  # Q5
    ledger = case.cluster.checker.ledger
    last = ledger.committed[-1]
    ledger.committed[-1] = last._replace(crc=0)
    ledger._committed_in = [0] * len(ledger.committed)
    case.cluster.checker._seen[case.leader.key].leads = -1
    case.break_rule("Q5 a leader lacks a committed record", case.leader)


def test_a_committed_record_that_is_cut(case: Case) -> None:  # Q6
    node = case.follower
    assert node.store is not None
    end = inside(node).log.end_offset - 1
    node.store.truncate(end)
    inside(node).log.truncate(end)
    case.break_rule("Q6 a committed record was cut", node)


def test_a_committed_record_that_is_gone_after_a_restart(case: Case) -> None:  # Q6
    node = case.follower
    assert node.store is not None
    end = inside(node).log.end_offset - 1
    node.store.truncate(end)
    node.die()
    with pytest.raises(InvariantViolation, match="Q6 a committed record vanished"):
        node.start()


def test_a_high_watermark_that_falls(case: Case) -> None:  # Q7
    inside(case.follower).high_watermark -= 1
    case.break_rule("Q7 a high watermark fell", case.follower)


def test_a_commit_without_a_majority(case: Case) -> None:  # Q7
    for node in followers(case.cluster, case.leader):
        node.paused = True
    assert case.leader.core is not None
    outcomes: list[object] = []
    case.leader.propose([([b"v2"], outcomes.append)], epoch=case.leader.core.epoch)
    inside(case.leader).high_watermark += 1
    case.break_rule("Q7 committed without a durable majority", case.leader)


def test_a_flush_that_was_none(case: Case) -> None:  # Q7
    assert case.follower.store is not None
    case.follower.store.log.flushed_offset -= 1
    case.break_rule("Q7 a flush that was none", case.follower)


def test_an_ack_before_the_flush(case: Case) -> None:  # Q7
    request = fetch_request(case.follower, case.leader, inside(case.follower).log.end_offset)
    case.cluster.checker.on_send(case.follower, request)
    with pytest.raises(InvariantViolation, match="Q7 acks what is not flushed"):
        case.cluster.checker.on_send(case.follower, replace(request, offset=request.offset + 1))


def test_a_campaign_with_what_may_vanish(case: Case) -> None:  # Q5
    request = vote_request(case.follower, case.leader, 9)
    case.cluster.checker.on_send(case.follower, request)
    with pytest.raises(InvariantViolation, match="Q5 campaigns with what may vanish"):
        case.cluster.checker.on_send(case.follower, replace(request, end_offset=1 << 40))


def test_a_commit_of_an_older_epoch(case: Case) -> None:  # Q8
    core = case.leader.core
    assert core is not None
    entries = case.cluster.checker._seen[case.leader.key].mirror.between(0, 1)
    older = [entries[0]._replace(epoch=core.epoch - 1)]
    with pytest.raises(InvariantViolation, match="Q8 commits an older epoch"):
        case.cluster.checker._check_commit(case.leader, core, older)


def test_a_leader_that_cuts_its_log(case: Case) -> None:  # Q9
    inside(case.leader).log.version += 1
    case.break_rule("Q9 a leader cut its log", case.leader)


def test_a_state_that_is_not_that_of_its_offset(case: Case) -> None:  # Q10
    machine_of(case.follower).digest += 1
    case.cluster.checker._seen[case.follower.key].applied = -1
    case.break_rule("Q10 a state is not that of its offset", case.follower)


def test_a_leader_that_acts_before_it_knows_all(case: Case) -> None:  # Q10
    assert case.leader.driver is not None
    case.leader.driver.applier.applied_offset = 0
    machine_of(case.leader).digest = 0
    case.break_rule("Q10 leads before it has applied all", case.leader)


def test_a_log_that_begins_without_a_snapshot(case: Case) -> None:  # Q11
    node = case.follower
    assert node.store is not None
    inside(node).log.start_offset = node.store.log.start_offset = 1
    case.break_rule("Q11 no snapshot behind the log start", node)
    inside(node).log.snapshots = [SnapshotId(1, 1)]
    case.cluster.checker.on_step(node)


def test_a_leader_that_loads_a_snapshot(case: Case) -> None:  # Q11
    case.leader.machine.snapshots_loaded += 1
    case.break_rule("Q11 a leader loads a snapshot", case.leader)


def test_a_leader_that_nobody_hears(case: Case) -> None:  # Q12
    case.cluster.schedule.now += FAST.check_quorum_ms
    case.break_rule("Q12 leads on alone", case.leader)
    for node in followers(case.cluster, case.leader):
        request = fetch_request(node, case.leader, 0)
        case.cluster.checker.on_request(case.leader, request)
    case.cluster.checker.on_step(case.leader)


def test_a_leader_without_the_votes_of_its_voters(case: Case) -> None:  # Q13
    checker = case.cluster.checker
    for node in followers(case.cluster, case.leader):
        checker._votes.pop((node.key, epoch_of(case.leader)), None)
    checker._seen[case.leader.key].leads = -1
    case.break_rule("Q13 elected by no majority of its voters", case.leader)


def test_voter_sets_that_could_decide_without_each_other(case: Case) -> None:  # Q13
    log = inside(case.leader).log
    stranger = replace(
        log.latest_voters.voters.voters[0], key=ReplicaKey(8, case.leader.key.directory_id)
    )
    newest = replace(log.latest_voters, offset=1 << 40, voters=VoterSet.of([stranger]))
    log.voter_history.append(newest)
    case.break_rule("Q13 majorities without a common voter", case.leader)


def test_an_observer_that_campaigns(case: Case) -> None:  # Q13
    observer = inside(case.follower)
    observer.log.voter_history = []
    observer.role = Candidate(Tally(VoterSet()), 0, 0)
    case.break_rule("Q13 an observer campaigns", case.follower)


def test_a_fetch_of_another_epoch(case: Case) -> None:  # Q14
    request = fetch_request(case.follower, case.leader, 0)
    reply = FetchReply(epoch=request.epoch + 1, leader=None)
    with pytest.raises(InvariantViolation, match="Q14 a fetch of another epoch"):
        case.cluster.checker.on_reply(case.leader, request, reply)


def test_damage_that_nobody_noticed(case: Case) -> None:  # Q15
    case.follower.die()
    case.follower.is_damaged = True
    with pytest.raises(InvariantViolation, match="Q15 runs on damaged files"):
        case.follower.start()


def test_what_a_dying_leader_decided_is_not_forgotten(case: Case) -> None:  # Q6
    ledger = case.cluster.checker.ledger
    lost = ledger.committed.pop()
    del ledger._place[lost.base_offset]
    ledger.offset_of.pop(b"v1", None)
    case.cluster.checker._seen[case.leader.key].high_watermark = lost.base_offset
    case.leader.die()
    assert ledger.committed[-1] == lost
