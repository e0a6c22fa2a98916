"""What the Raft paper and Ongaro's thesis claim, section by section, and we keep."""

from itertools import pairwise

import pytest

from quorum.core.effects import LeadershipGained
from quorum.core.messages import Batch, LeaderChange, Refusal
from quorum.core.state import ElectionState, Follower, Leader, Prospective, Resigned, Unattached
from tests.quorum.core.cluster import Cluster, key_of, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import begin, fetch, vote
from tests.quorum.core.world import Node


def with_logs(*logs: tuple[int, ...], epochs: int | None = None) -> Cluster:
    """Voters 1, 2, ... with these epochs in their logs, and none of them leads."""
    voters = voters_of(*range(1, len(logs) + 1))
    cluster = Cluster(0)
    highest = max(max(log, default=0) for log in logs) if epochs is None else epochs
    for node_id, log in enumerate(logs, 1):
        disk = Disk(bootstrap=voters, election=ElectionState(highest))
        for offset, epoch in enumerate(log):
            # Data that tells the same record in two logs from another one in its place.
            disk.append(Batch(offset, epoch, 1, f"{epoch}.{offset}".encode()))
        cluster.add_node(node_id, disk)
    return cluster


def epochs_of(node: Node) -> list[int]:
    return [batch.epoch for batch in node.disk.batches]


def campaign(cluster: Cluster, node_id: int) -> None:
    """Let this one ask first."""
    role = cluster.nodes[node_id].role
    match role:
        case Unattached():
            role.election_deadline_ms = cluster.now_ms
        case Follower():
            role.fetch_deadline_ms = cluster.now_ms
        case _:
            raise AssertionError(role)
    cluster.tick(node_id)


# -- 3.3 Raft basics


def test_3_3_a_stale_epoch_is_refused() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    for request in (vote(3, epoch=0, pre_vote=True), begin(3, epoch=0)):
        assert cluster.answer(2, request).refusal is Refusal.EPOCH_STALE


def test_3_3_a_leader_that_hears_of_a_higher_epoch_is_none_any_more() -> None:
    cluster = Cluster(3)
    leader = cluster.elect(1)
    cluster.answer(1, vote(3, epoch=2, last=(1, 2)))
    assert not leader.core.is_leader
    assert leader.core.epoch == 2


# -- 3.4 leader election


def test_3_4_a_replica_begins_without_a_leader_and_campaigns_after_its_time() -> None:
    cluster = Cluster(3)
    cluster.cut(1)
    cluster.run(999)
    assert cluster.role(1, Unattached).election_deadline_ms == 1_000
    cluster.run(1)
    assert cluster.role(1, Prospective).leader is None


def test_3_4_who_hears_a_leader_does_not_campaign() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.run(60_000)
    assert {node.core.epoch for node in cluster.alive} == {1}


@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5])
def test_3_4_a_majority_elects_exactly_one_leader(voters: int) -> None:
    cluster = Cluster(voters)
    cluster.elect(1)
    assert [node.node_id for node in cluster.leaders] == [1]
    granted = cluster.role(1, Leader).granted_by
    assert len(granted) > voters / 2


@pytest.mark.parametrize(("voters", "alive"), [(2, 1), (3, 1), (4, 2), (5, 2)])
def test_3_4_less_than_a_majority_elects_nobody(voters: int, alive: int) -> None:
    cluster = Cluster(voters)
    for node_id in range(alive + 1, voters + 1):
        cluster.crash(node_id)
    cluster.run(5_000)
    assert cluster.leaders == []


def test_3_4_one_vote_per_epoch_first_come_first_served() -> None:
    cluster = Cluster(3)
    assert cluster.answer(2, vote(1, epoch=1)).refusal is None
    assert cluster.answer(2, vote(3, epoch=1)).refusal is Refusal.ALREADY_VOTED
    assert cluster.answer(2, vote(1, epoch=1)).refusal is None


def test_3_4_a_candidate_follows_the_leader_of_its_epoch() -> None:
    cluster = Cluster(0)
    disk = Disk(bootstrap=voters_of(1, 2, 3), election=ElectionState(4, key_of(1)))
    cluster.add_node(1, disk)
    cluster.answer(1, begin(2, epoch=4))
    assert cluster.role(1, Follower).leader == voter_of(2)


def test_3_4_a_split_vote_is_decided_by_another_epoch() -> None:
    # Two candidates of an epoch with one vote each; the third voter is dead.
    cluster = Cluster(0)
    for node_id in (1, 2):
        election = ElectionState(1, key_of(node_id))
        cluster.add_node(node_id, Disk(bootstrap=voters_of(1, 2, 3), election=election))
    cluster.until(lambda: bool(cluster.leaders))
    assert cluster.leader.core.epoch == 2
    assert 1 not in cluster.rules.leaders


# -- 3.5 log replication

# Figure 3.6: a new leader of epoch 8, and what its followers may look like.
FIGURE = {
    "a few missing": (1, 1, 1, 4, 4, 5, 5, 6, 6),
    "many missing": (1, 1, 1, 4),
    "one too many": (1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6),
    "two of a later epoch": (1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7),
    "missing and too many": (1, 1, 1, 4, 4, 4, 4),
    "all of other epochs": (1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3),
}
LEADER = (1, 1, 1, 4, 4, 5, 5, 6, 6, 6)


@pytest.mark.parametrize("follower", FIGURE.values(), ids=FIGURE.keys())
def test_3_5_whatever_a_follower_has_it_becomes_the_leaders_log(follower: tuple[int, ...]) -> None:
    cluster = with_logs(LEADER, follower, LEADER, epochs=7)
    cluster.crash(2)
    campaign(cluster, 1)
    cluster.settle()
    assert cluster.leader.core.epoch == 8
    cluster.restart(2)
    cluster.run(5_000)
    assert epochs_of(cluster.nodes[2]) == epochs_of(cluster.nodes[1])
    assert epochs_of(cluster.nodes[1])[:10] == list(LEADER), "a leader only appends (Q9)"


def test_3_5_what_a_majority_has_is_committed_and_stays() -> None:
    cluster = Cluster(5)
    leader = cluster.elect(1)
    cluster.crash(4)
    cluster.crash(5)
    end = cluster.propose("kept") + 1
    cluster.settle()
    assert leader.core.high_watermark == end
    cluster.crash(1)
    cluster.restart(4)
    cluster.restart(5)
    cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
    assert cluster.leader.records == [b"kept"]


def test_3_5_a_slow_follower_holds_nobody_up() -> None:
    cluster = Cluster(3)
    leader = cluster.elect(1)
    cluster.cut(3)
    for number in range(20):
        cluster.propose(f"v{number}")
        cluster.settle()
    assert len(leader.records) == 20
    cluster.heal()
    cluster.run(5_000)
    assert cluster.nodes[3].records == leader.records


# -- 3.6 safety


@pytest.mark.parametrize(
    ("ours", "theirs", "granted"),
    [
        ((1, 1), (1, 1), True),
        ((1, 1), (1, 1, 1), True),
        ((1, 1, 1), (1, 1), False),
        ((1, 1, 1), (1, 2), True),
        ((1, 2), (1, 1, 1, 1), False),
    ],
)
def test_3_6_1_no_vote_for_a_log_that_is_behind(
    ours: tuple[int, ...], theirs: tuple[int, ...], granted: bool
) -> None:
    cluster = with_logs(ours, (), (), epochs=2)
    reply = cluster.answer(1, vote(2, epoch=3, last=(theirs[-1], len(theirs))))
    assert reply.refusal is (None if granted else Refusal.LOG_BEHIND)


def test_3_6_1_a_new_leader_has_every_committed_record_and_fetches_none() -> None:
    # Q5: records flow from leaders to followers only
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.cut(3)
    cluster.propose("a", "b")
    cluster.settle()
    cluster.heal()
    cluster.crash(1)
    campaign(cluster, 3)
    cluster.until(lambda: bool(cluster.leaders))
    assert cluster.leader.node_id == 2


def test_3_6_2_figure_3_7_a_record_of_an_old_epoch_is_not_committed_by_counting() -> None:
    """S1 leads epoch 4 and spreads its record of epoch 2: three of five hold it, and it is still
    not safe, since S5 with a record of epoch 3 can be elected and overwrite it.
    """
    cluster = with_logs((1, 2), (1, 2), (1,), (1,), (1, 3), epochs=3)
    cluster.crash(4)
    cluster.crash(5)
    campaign(cluster, 1)
    while not cluster.leaders:
        cluster.deliver()
    leader = cluster.leader
    assert (leader.node_id, leader.core.epoch) == (1, 4)
    # The followers say how far they are: S2 has the record, and S3 has got it by now.
    cluster.plays_others = True
    for node_id in (2, 3):
        cluster.ask(1, fetch(node_id, epoch=4, offset=2, last_epoch=2, max_wait_ms=0))
    assert leader.core.high_watermark == 0
    cluster.ask(1, fetch(2, epoch=4, offset=3, last_epoch=4, max_wait_ms=0))
    assert leader.core.high_watermark == 0, "a record of epoch 4 on two of five"
    cluster.ask(1, fetch(3, epoch=4, offset=3, last_epoch=4, max_wait_ms=0))
    assert leader.core.high_watermark == 3, "on three: and now the record of epoch 2 is safe too"


def test_3_6_2_figure_3_7_until_then_it_can_be_overwritten() -> None:
    cluster = with_logs((1, 2), (1, 2), (1, 2), (1,), (1, 3), epochs=4)
    cluster.crash(1)
    campaign(cluster, 5)
    cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
    assert cluster.leader.node_id == 5
    cluster.restart(1)
    cluster.run(5_000)
    assert [epochs_of(node)[:2] for node in cluster.alive] == [[1, 3]] * 5


def test_3_6_2_figure_3_7_a_record_of_the_own_epoch_commits_all_before_it() -> None:
    cluster = with_logs((1, 2), (1, 2), (1,), (1,), (1, 3), epochs=3)
    for node_id in (4, 5):
        cluster.crash(node_id)
    campaign(cluster, 1)
    cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
    assert cluster.nodes[1].core.high_watermark >= 3
    cluster.crash(1)
    cluster.restart(5)
    cluster.restart(4)
    cluster.run(1_000)
    campaign(cluster, 5)
    cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
    assert cluster.leader.node_id != 5
    assert epochs_of(cluster.leader)[:2] == [1, 2]


def test_3_6_3_no_two_replicas_apply_different_records_at_an_offset() -> None:
    # State machine safety; the rules of the tests compare digests at every commit.
    cluster = Cluster(5)
    for turn in range(6):
        cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
        leader = cluster.leader
        cluster.propose(f"turn {turn}")
        if turn % 2:
            cluster.settle()
        cluster.restart(leader.node_id)
        cluster.run(700)
    cluster.run(10_000)
    assert len({tuple(node.records) for node in cluster.alive}) == 1


# -- 3.7, 3.8 crashes


def test_3_7_requests_may_come_twice() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.propose("once")
    for _ in range(100):
        cluster.wire.insert(1, cluster.wire[0])
        cluster.deliver()
        cluster.deliver()
    cluster.run(2_000)
    assert [node.records for node in cluster.alive] == [[b"once"]] * 3


def test_3_8_epoch_and_vote_survive_a_crash_and_what_was_flushed_does() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.propose("kept")
    cluster.settle()
    before = [(node.disk.election, node.disk.end_offset) for node in cluster.alive]
    for node_id in (1, 2, 3):
        cluster.restart(node_id)
    assert [(node.disk.election, node.disk.end_offset) for node in cluster.alive] == before
    assert cluster.leaders == []
    cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
    assert cluster.leader.records == [b"kept"]


def test_3_8_a_vote_is_not_given_twice_over_a_restart() -> None:
    cluster = Cluster(3)
    assert cluster.answer(2, vote(1, epoch=1)).refusal is None
    cluster.restart(2)
    assert cluster.answer(2, vote(3, epoch=1)).refusal is Refusal.ALREADY_VOTED
    assert cluster.answer(2, vote(1, epoch=1)).refusal is None


# -- 3.10 leadership transfer (ours lets the best one win)


def test_3_10_a_leader_that_goes_hands_over_without_an_election_timeout() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    at_ms = cluster.now_ms
    cluster.resign(1)
    cluster.settle()
    assert cluster.leader.node_id != 1
    assert cluster.now_ms == at_ms


# -- 4 membership


def test_4_1_majorities_of_sets_in_a_row_overlap() -> None:
    cluster = Cluster(3, 2)
    leader = cluster.elect(1)
    cluster.run(1_000)
    for node_id in (4, 5):
        cluster.add_voter(voter_of(node_id))
        cluster.settle()
    for node_id in (3, 2):
        cluster.remove_voter(key_of(node_id))
        cluster.settle()
    sets = [set(entry.voters.keys) for entry in leader.core.log.voter_history]
    assert [len(one ^ next_) for one, next_ in pairwise(sets)] == [0, 1, 1, 1, 1]


def test_4_2_1_a_newcomer_catches_up_before_it_counts() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.propose("a", "b", "c")
    cluster.settle()
    cluster.add_node(4, Disk())
    assert cluster.answers[cluster.add_voter(voter_of(4))].refusal is Refusal.NOT_CAUGHT_UP
    cluster.run(1_000)
    number = cluster.add_voter(voter_of(4))
    cluster.settle()
    assert cluster.answers[number].refusal is None


def test_4_2_2_a_leader_can_remove_itself() -> None:
    cluster = Cluster(3)
    leader = cluster.elect(1)
    cluster.remove_voter(key_of(1))
    assert leader.core.is_leader
    cluster.until(lambda: isinstance(leader.role, Resigned))
    cluster.until(lambda: cluster.leader.node_id != 1)
    assert cluster.leader.core.voters == voters_of(2, 3)


def test_4_2_3_a_removed_voter_does_not_disturb() -> None:
    cluster = Cluster(4)
    cluster.elect(1)
    cluster.cut(4)
    cluster.remove_voter(key_of(4))
    cluster.settle()
    cluster.run(30_000)
    assert cluster.nodes[4].core.is_voter, "it never heard"
    # It can be heard, and hears nothing (V4).
    cluster.heal()
    for node_id in (1, 2, 3):
        cluster.cut_way(node_id, 4)
    cluster.run(60_000)
    assert {cluster.nodes[node_id].core.epoch for node_id in (1, 2, 3)} == {1}


# -- 5 log compaction


def test_5_1_a_follower_that_is_too_far_behind_gets_a_snapshot() -> None:
    cluster = Cluster(3)
    leader = cluster.elect(1)
    cluster.cut(3)
    cluster.propose("a", "b", "c")
    cluster.settle()
    snapshot = cluster.snapshot(1)
    cluster.drop_log(1, snapshot)
    cluster.heal()
    cluster.propose("d")
    cluster.run(5_000)
    node = cluster.nodes[3]
    assert node.disk.start_offset == snapshot.end_offset
    assert node.core.high_watermark == leader.core.high_watermark


# -- 6 clients


def test_6_2_a_leader_without_a_majority_stops_being_one() -> None:
    # Q12
    cluster = Cluster(5)
    leader = cluster.elect(1)
    cluster.cut(1, 2)
    cluster.run(cluster.timing.check_quorum_ms + cluster.timing.fetch_wait_ms)
    assert not leader.core.is_leader


def test_6_4_a_read_needs_a_record_of_the_epoch_and_a_majority() -> None:
    # M2
    cluster = Cluster(3)
    cluster.elect(1)
    token = cluster.read(1)
    assert token not in cluster.reads
    cluster.settle()
    assert isinstance(cluster.reads[token], int)


# -- 9.6 pre-vote


def test_9_6_a_voter_that_was_cut_off_raises_no_epoch_and_deposes_nobody() -> None:
    # V4
    cluster = Cluster(3)
    leader = cluster.elect(1)
    cluster.cut(3)
    cluster.run(120_000)
    assert cluster.nodes[3].core.epoch == 1
    cluster.heal()
    cluster.run(10_000)
    assert leader.core.is_leader
    assert {node.core.epoch for node in cluster.alive} == {1}


# -- 10.2.1 writing to the leader's disk in parallel


def test_10_2_1_followers_may_commit_what_the_leaders_disk_does_not_have() -> None:
    cluster = Cluster(3)
    leader = cluster.elect(1)
    cluster.auto_flush = False
    end = cluster.propose("quick") + 1
    for _ in range(4):
        cluster.settle()
        for node_id in (2, 3):
            cluster.finish_flush(node_id)
    assert leader.core.high_watermark == end
    assert leader.disk.flushed_offset < end


def test_every_epoch_with_a_leader_begins_with_its_leader_change() -> None:
    # 3.6.2 in our form, and 6.4: the no-op at the start of an epoch
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.resign(1)
    cluster.until(lambda: cluster.leader.core.epoch == 2)
    firsts = {batch.epoch: batch.control for batch in reversed(cluster.leader.disk.batches)}
    assert all(isinstance(control, LeaderChange) for control in firsts.values())
    gained = [each for each in cluster.leader.news if isinstance(each, LeadershipGained)]
    assert gained == [LeadershipGained(2, 2)]
