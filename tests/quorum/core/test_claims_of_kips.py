"""What Kafka's proposals claim for the quorum, and we keep: KIP-595, 630, 853, 996 and 1166."""

from kraftlog.types import EpochEnd
from quorum.core.effects import LeaderChanged, SaveElection, Send
from quorum.core.messages import (
    BOOTSTRAP_SNAPSHOT,
    BeginQuorumEpochRequest,
    FetchReply,
    FetchRequest,
    FetchSnapshotRequest,
    Refusal,
    SnapshotId,
    Voter,
)
from quorum.core.state import ElectionState, Follower, Leader, Prospective, Unattached
from tests.quorum.core.cluster import Cluster, key_of, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import fetch, fetch_snapshot, vote
from tests.quorum.core.world import Node


def led(voters: int = 3, observers: int = 0) -> tuple[Cluster, Node]:
    cluster = Cluster(voters, observers)
    return cluster, cluster.elect(1)


# -- KIP-595: a Raft protocol for the metadata quorum


def test_595_the_next_fetch_is_the_acknowledgement() -> None:
    cluster, leader = led()
    cluster.cut(3)
    end = cluster.propose("a") + 1
    offsets: list[int] = []
    while leader.core.high_watermark < end:
        offsets = [p.body.offset for p in cluster.wire if isinstance(p.body, FetchRequest)]
        assert leader.core.high_watermark == 2, "records on their way are not progress"
        cluster.deliver()
    assert end in offsets


def test_595_the_high_watermark_reaches_followers_with_the_answer_to_their_next_fetch() -> None:
    cluster, _ = led()
    cluster.propose("a")
    assert cluster.nodes[2].core.high_watermark == 2
    cluster.settle()
    assert cluster.nodes[2].core.high_watermark == 3


def test_595_a_leader_finds_the_divergence_and_the_follower_repairs_it() -> None:
    cluster, leader = led()
    reply = cluster.answer(1, fetch(2, epoch=1, offset=7, last_epoch=1))
    assert isinstance(reply, FetchReply)
    assert reply.diverging == EpochEnd(1, leader.disk.end_offset)
    assert reply.batches == ()


def test_595_a_new_leader_announces_itself_to_all_other_voters() -> None:
    cluster = Cluster(3, 1)
    while not cluster.leaders:
        if cluster.wire:
            cluster.deliver()
        else:
            cluster.now_ms = cluster.nodes[1].core.wake_at_ms
            cluster.tick(1)
    begun = [p.target for p in cluster.wire if isinstance(p.body, BeginQuorumEpochRequest)]
    assert begun == [2, 3]


def test_595_observers_fetch_uncommitted_records_and_have_no_say() -> None:
    cluster, leader = led(3, 2)
    cluster.crash(2)
    cluster.crash(3)
    cluster.propose("not committed")
    cluster.settle()
    assert [cluster.nodes[node_id].disk.end_offset for node_id in (4, 5)] == [3, 3]
    assert leader.core.high_watermark == 2
    assert [cluster.nodes[node_id].core.high_watermark for node_id in (4, 5)] == [2, 2]


def test_595_whoever_is_asked_knows_the_leader() -> None:
    cluster, _ = led(3, 1)
    for node_id in (2, 3, 4):
        reply = cluster.answer(node_id, fetch(9, epoch=1))
        assert (reply.refusal, reply.leader) == (Refusal.NOT_LEADER, voter_of(1))


def test_595_an_unknown_epoch_of_a_fetch_changes_nothing() -> None:
    # Only votes and announcements bring epochs.
    cluster, leader = led()
    assert cluster.answer(1, fetch(2, epoch=9)).refusal is Refusal.EPOCH_UNKNOWN
    assert leader.core.is_leader


def test_595_leader_and_epoch_are_known_again_after_a_restart() -> None:
    cluster, _ = led()
    node = cluster.restart(2)
    assert cluster.role(2, Follower).leader == voter_of(1)
    assert node.core.epoch == 1


def test_595_a_restarted_leader_resigns_and_the_others_do_not_wait_for_it() -> None:
    cluster, _ = led()
    cluster.restart(1)
    cluster.break_connections(1)
    at_ms = cluster.now_ms
    cluster.until(lambda: bool(cluster.leaders))
    assert cluster.leader.core.epoch == 2
    assert cluster.now_ms - at_ms < cluster.timing.election_timeout_ms


# -- KIP-630: snapshots


def test_630_a_snapshot_is_named_by_its_exclusive_end_and_last_epoch() -> None:
    # KAFKA-14618
    cluster, leader = led()
    cluster.propose("a")
    cluster.settle()
    assert cluster.snapshot(1) == SnapshotId(leader.core.high_watermark, 1)


def test_630_the_log_starts_at_the_end_of_a_snapshot() -> None:
    cluster, leader = led()
    cluster.propose("a", "b")
    cluster.settle()
    snapshot = cluster.snapshot(1)
    cluster.drop_log(1, snapshot)
    assert leader.core.log.start_offset == leader.disk.start_offset == snapshot.end_offset
    assert leader.core.log.snapshots == [snapshot]
    # What the dropped log knew is still answered.
    assert leader.core.log.last_epoch == 1
    assert leader.core.voters == voters_of(1, 2, 3)


def test_630_a_download_goes_on_where_it_was_interrupted() -> None:
    cluster, _ = led()
    cluster.propose("a", "b")
    cluster.settle()
    cluster.snapshot(1)
    node = cluster.wipe(3)
    positions: list[int] = []

    def note(_: object, effect: object) -> None:
        if isinstance(effect, Send) and isinstance(effect.request, FetchSnapshotRequest):
            positions.append(effect.request.position)

    cluster.trace = note
    while len(positions) < 2:
        cluster.deliver()
    cluster.lose_all()
    cluster.break_connections(1)
    cluster.until(lambda: node.core.high_watermark == 4)
    assert positions == [0, 20, 20]


def test_630_every_replica_writes_its_own_snapshots() -> None:
    cluster, _ = led(3, 1)
    cluster.propose("a")
    cluster.run(1_000)
    assert len({cluster.snapshot(node_id) for node_id in (1, 2, 3, 4)}) == 1


# -- KIP-853: changing voters


def test_853_a_voter_is_a_node_and_its_disk() -> None:
    cluster, _ = led()
    cluster.wipe(2)
    cluster.run(2_000)
    assert not cluster.nodes[2].core.is_voter
    assert cluster.leader.core.voters == voters_of(1, 2, 3)


def test_853_a_wiped_disk_does_not_vote_as_its_former_self() -> None:
    # 1 and 3 hold a committed record; 3 loses its disk and 1 dies: 2 must not win with 3's vote.
    cluster, _ = led()
    cluster.cut(2)
    cluster.propose("precious")
    cluster.settle()
    cluster.crash(1)
    cluster.wipe(3)
    cluster.heal()
    cluster.run(20_000)
    assert cluster.leaders == []
    cluster.restart(1)
    cluster.until(lambda: any(node.core.has_committed_epoch() for node in cluster.leaders))
    assert cluster.leader.records == [b"precious"]


def test_853_the_bootstrap_checkpoint_is_never_served() -> None:
    cluster, _ = led()
    reply = cluster.answer(1, fetch_snapshot(3, BOOTSTRAP_SNAPSHOT, epoch=1))
    assert reply.refusal is Refusal.SNAPSHOT_NOT_FOUND
    first = cluster.answer(1, fetch(9, epoch=1))
    assert isinstance(first, FetchReply)
    assert first.snapshot is None


def test_853_the_first_leader_copies_the_bootstrap_voters_into_the_log() -> None:
    cluster, leader = led(3, 1)
    assert leader.disk.batches[1].control == voters_of(1, 2, 3)
    assert cluster.nodes[4].core.voters == voters_of(1, 2, 3)


def test_853_a_leader_without_history_does_not_forget_the_voters_of_a_snapshot() -> None:
    cluster, _ = led(3, 1)
    cluster.run(1_000)
    cluster.add_voter(voter_of(4))
    cluster.settle()
    cluster.drop_log(1, cluster.snapshot(1))
    assert cluster.restart(1).core.voters == voters_of(1, 2, 3, 4)


def test_853_endpoints_are_in_the_log_and_can_change() -> None:
    cluster, _ = led()
    cluster.restart(3, endpoint="elsewhere")
    moved = Voter(key_of(3), "elsewhere")
    cluster.until(lambda: all(node.core.voters.find(3) == moved for node in cluster.alive))


# -- KIP-996: pre-vote


def prospective_world() -> Cluster:
    """Node 2 has lost sight of leader 1 and asks 3 and 1."""
    cluster, _ = led()
    cluster.cut(2)
    cluster.until(lambda: isinstance(cluster.nodes[2].role, Prospective))
    cluster.lose_all()
    return cluster


def test_996_asking_writes_nothing_and_raises_nothing() -> None:
    cluster, _ = led()
    saved: list[object] = []
    cluster.trace = lambda _, e: saved.append(e) if isinstance(e, SaveElection) else None
    cluster.cut(2)
    cluster.run(60_000)
    assert saved == []
    assert cluster.nodes[2].core.epoch == 1


def test_996_who_hears_the_leader_says_no() -> None:
    cluster = prospective_world()
    reply = cluster.answer(3, vote(2, epoch=1, last=(1, 2), pre_vote=True, to=3))
    assert reply.refusal is Refusal.LEADER_ALIVE
    reply = cluster.answer(1, vote(2, epoch=1, last=(1, 2), pre_vote=True, to=1))
    assert reply.refusal is Refusal.LEADER_ALIVE


def test_996_a_follower_that_has_not_fetched_from_its_leader_yet_says_yes() -> None:
    # Else a leader that was elected and is out of reach for a majority would block all others.
    cluster = Cluster(0)
    disk = Disk(bootstrap=voters_of(1, 2, 3), election=ElectionState(5, None, 1))
    cluster.add_node(2, disk)
    assert cluster.answer(2, vote(3, epoch=5, pre_vote=True)).refusal is None


def test_996_any_number_of_pre_votes_may_be_granted() -> None:
    cluster = Cluster(5)
    for sender in (1, 3, 4, 5):
        assert cluster.answer(2, vote(sender, epoch=0, pre_vote=True)).refusal is None
    assert cluster.nodes[2].disk.election == ElectionState()


def test_996_a_majority_of_pre_votes_makes_a_candidate_and_nothing_else_does() -> None:
    cluster = Cluster(5)
    cluster.cut(1, 2)
    cluster.run(20_000)
    assert {cluster.nodes[node_id].core.epoch for node_id in (1, 2)} == {0}
    assert cluster.leader.core.epoch >= 1


def test_996_a_leader_that_a_majority_hears_is_not_deposed_by_a_minority() -> None:
    cluster, leader = led(5)
    for node_id in (4, 5):
        cluster.cut_way(1, node_id)
    cluster.run(60_000)
    assert leader.core.is_leader
    assert leader.core.epoch == 1


def test_996_a_leader_that_only_a_minority_hears_is_replaced() -> None:
    cluster, leader = led(5)
    for node_id in (3, 4, 5):
        cluster.cut_way(1, node_id)
        cluster.cut_way(node_id, 1)
    cluster.until(lambda: any(node.core.epoch > 1 for node in cluster.leaders))
    assert cluster.leader.node_id != 1
    cluster.run(cluster.timing.check_quorum_ms)
    assert not leader.core.is_leader


def test_996_nobody_is_stuck_in_prospective() -> None:
    cluster = Cluster(3)
    cluster.cut(1)
    for _ in range(20):
        cluster.run(1_500)
        assert isinstance(cluster.nodes[1].role, Prospective | Unattached)
    cluster.heal()
    cluster.run(5_000)
    assert isinstance(cluster.nodes[1].role, Follower)


# -- KIP-1166: the high watermark reaches idle followers


def test_1166_the_high_watermark_reaches_everybody_within_the_round() -> None:
    # KAFKA-14145: not only when a long poll ends, or with the next record
    cluster, _ = led(3, 2)
    cluster.run(2_000)
    at_ms = cluster.now_ms
    end = cluster.propose("a") + 1
    cluster.settle()
    assert cluster.now_ms == at_ms
    assert {node.core.high_watermark for node in cluster.alive} == {end}


def test_1166_a_fetch_says_which_high_watermark_is_known() -> None:
    cluster, _ = led()
    cluster.propose("a")
    cluster.settle()
    cluster.run(600)
    parked = cluster.role(1, Leader).parked.values()
    assert {fetch_.request.high_watermark for fetch_ in parked} == {3}


def test_1166_an_idle_quorum_does_not_answer_for_nothing() -> None:
    cluster, _ = led(3, 2)
    replies: list[object] = []
    cluster.run(1_000)
    cluster.trace = lambda _, effect: replies.append(effect)
    cluster.run(499)
    # Each of the four has asked at most once: the long poll is as long as before.
    assert len([e for e in replies if type(e).__name__ in ("SendReply", "SendRecords")]) <= 4 + 2


# -- leadership as the state machine hears of it


def test_leader_changes_are_told_once_each() -> None:
    cluster, _ = led()
    cluster.resign(1)
    cluster.until(lambda: cluster.leader.core.epoch == 2)
    cluster.run(5_000)
    told = [each for each in cluster.nodes[3].news if isinstance(each, LeaderChanged)]
    assert told == [
        LeaderChanged(0, None),
        LeaderChanged(1, None),
        LeaderChanged(1, 1),
        LeaderChanged(2, None),
        LeaderChanged(2, 2),
    ]
