"""The core as its driver sees it: inputs in, effects out, and nothing in between."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.types import EpochEnd, Uuid
from quorum.core.config import EPOCH_LEAD_MAX, EPOCH_MAX
from quorum.core.effects import Append, DropLogBelow, Effect, SaveElection, Send, SendReply
from quorum.core.messages import (
    Batch,
    BeginQuorumEpochReply,
    FetchReply,
    RaftReply,
    RaftRequest,
    Refusal,
    ReplicaRequest,
    Reply,
    SnapshotId,
    Voter,
    VoteReply,
)
from quorum.core.state import Candidate, ElectionState, Follower, Leader, Unattached
from tests.quorum.core.cluster import CLUSTER_ID, Cluster, key_of, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import begin, end, fetch, fetch_snapshot, update, vote
from tests.quorum.core.roles import prospective
from tests.quorum.core.world import Node

ALL_REQUESTS: list[ReplicaRequest] = [
    vote(3, epoch=1),
    vote(3, epoch=1, pre_vote=True),
    begin(3, epoch=1),
    end(3, 2, epoch=1),
    fetch(3, epoch=1),
    fetch_snapshot(3, SnapshotId(2, 1), epoch=1),
    update(3, Voter(key_of(3), "new"), epoch=1),
]
NAMES = [f"{type(each).__name__}{getattr(each, 'pre_vote', '')}" for each in ALL_REQUESTS]


def led() -> tuple[Cluster, Node]:
    cluster = Cluster(3)
    return cluster, cluster.elect(1)


def state_of(node: Node) -> tuple[object, ...]:
    core = node.core
    return (
        core.election,
        type(core.role),
        core.log.end_offset,
        core.high_watermark,
        core.voters,
        dict(core.role.replicas) if isinstance(core.role, Leader) else None,
    )


@cache
def world_of_bad_input() -> tuple[Cluster, Node]:
    """Since bad input changes nothing, one world does for all of it."""
    return led()


# -- bad input: a named error, no state change, the quorum goes on


@pytest.mark.parametrize("request_", ALL_REQUESTS, ids=NAMES)
@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"cluster_id": Uuid(bytes(16))}, Refusal.WRONG_CLUSTER),
        ({"recipient": key_of(1, disk=2)}, Refusal.WRONG_RECIPIENT),
        ({"recipient": key_of(3)}, Refusal.WRONG_RECIPIENT),
        ({"sender": key_of(1, disk=2)}, Refusal.SAME_NODE_ID),
        ({"epoch": 1 + EPOCH_LEAD_MAX + 1}, Refusal.EPOCH_TOO_FAR_AHEAD),
        ({"epoch": EPOCH_MAX}, Refusal.EPOCH_TOO_FAR_AHEAD),
        ({"epoch": -1}, Refusal.INVALID_REQUEST),
    ],
    ids=lambda each: str(each) if isinstance(each, Refusal) else "",
)
def test_bad_input_is_refused_by_name_and_changes_nothing(
    request_: RaftRequest, change: dict[str, object], refusal: Refusal
) -> None:
    # Q14
    cluster, leader = world_of_bad_input()
    before = state_of(leader)
    bad = replace(request_, **change)  # type: ignore[arg-type]
    reply = cluster.answer(1, bad)  # type: ignore[arg-type]
    assert reply.refusal is refusal
    assert type(reply).__name__ == type(request_).__name__.replace("Request", "Reply")
    assert state_of(leader) == before


def test_a_quorum_goes_on_after_bad_input() -> None:
    cluster, leader = led()
    for request in ALL_REQUESTS:
        for node_id in (1, 2, 3):
            cluster.answer(node_id, replace(request, epoch=EPOCH_MAX, sender=key_of(9)))
            cluster.answer(node_id, replace(request, cluster_id=Uuid(bytes(16))))
    cluster.propose("still here")
    cluster.settle()
    assert [node.records for node in cluster.alive] == [[b"still here"]] * 3
    assert leader.core.epoch == 1


@pytest.mark.parametrize(
    "reply",
    [
        FetchReply(epoch=EPOCH_MAX, leader=voter_of(3)),
        FetchReply(epoch=1 + EPOCH_LEAD_MAX + 1, leader=None),
        FetchReply(epoch=2, leader=voter_of(3), refusal=Refusal.WRONG_CLUSTER),
        FetchReply(epoch=0, leader=voter_of(3), high_watermark=99),
        FetchReply(epoch=-1, leader=None),
        VoteReply(epoch=1, leader=None),
        BeginQuorumEpochReply(epoch=1, leader=None, refusal=Refusal.OTHER_LEADER),
        FetchReply(epoch=1, leader=voter_of(3)),
        FetchReply(epoch=1, leader=voter_of(1), batches=(Batch(99, 1, 1),)),
        FetchReply(epoch=1, leader=voter_of(1), diverging=EpochEnd(9, 99)),
        FetchReply(epoch=1, leader=voter_of(1), snapshot=SnapshotId(-1, -1)),
    ],
    ids=[
        "last epoch",
        "epoch too far ahead",
        "another cluster",
        "old epoch",
        "negative epoch",
        "a vote that was not asked for",
        "an answer to something else",
        "another leader",
        "a hole",
        "nonsense divergence",
        "nonsense snapshot",
    ],
)
def test_a_bad_answer_changes_nothing_either(reply: Reply) -> None:
    cluster, _ = led()
    node = cluster.nodes[2]
    before = state_of(node)
    number = max(node.open_requests)
    cluster.reply(2, number, reply)
    assert state_of(node) == before
    assert number not in node.core._replica.inflight


REPLIES = st.builds(
    FetchReply,
    epoch=st.integers(-1, 3),
    leader=st.sampled_from([None, voter_of(1), voter_of(2), voter_of(3), voter_of(2, disk=2)]),
    refusal=st.sampled_from([None, *Refusal]),
    high_watermark=st.one_of(st.none(), st.integers(-1, 2)),
    batches=st.lists(
        st.builds(Batch, st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), max_size=2
    ).map(tuple),
    snapshot=st.one_of(st.none(), st.builds(SnapshotId, st.integers(-1, 2), st.integers(-1, 3))),
)


@given(st.lists(REPLIES, max_size=4))
def test_no_answer_breaks_a_follower(replies: list[FetchReply]) -> None:
    """Whatever a peer says, the rules hold, and nothing committed is lost."""
    disk = Disk(bootstrap=voters_of(1, 2, 3), election=ElectionState(1, None, 1))
    disk.append(Batch(0, 1, 2))
    cluster = Cluster(0)
    node = cluster.add_node(2, disk)
    for reply in replies:
        if node.open_requests:
            cluster.reply(2, max(node.open_requests), reply)
            cluster.run(30)
    assert node.core.epoch >= 1
    assert node.disk.end_offset >= node.core.high_watermark


# -- answers


def test_an_answer_to_a_former_role_is_dropped() -> None:
    # KIP-595; bug 12 of nobody: the request number is simply not known any more.
    cluster, _ = led()
    node = cluster.nodes[2]
    number = max(node.open_requests)
    cluster.answer(2, begin(3, epoch=2))
    late = FetchReply(epoch=1, leader=voter_of(1), batches=(Batch(2, 1, 1),))
    cluster.reply(2, number, late)
    assert node.disk.end_offset == 2


def test_a_higher_epoch_in_any_answer_deposes() -> None:
    # thesis 3.3
    cluster, leader = led()
    cluster.run(cluster.timing.begin_period_ms)
    cluster.lose_all()
    cluster.now_ms = cluster.role(1, Leader).begin_at_ms
    cluster.tick(1)
    number = max(leader.open_requests)
    higher = BeginQuorumEpochReply(epoch=7, leader=voter_of(3), refusal=Refusal.EPOCH_STALE)
    cluster.reply(1, number, higher)
    assert leader.disk.election == ElectionState(7, None, 3)
    assert cluster.role(1, Follower).leader == voter_of(3)


def test_a_leader_in_an_answer_is_followed_if_none_was_known() -> None:
    cluster = Cluster(0)
    node = cluster.add_node(1, Disk(bootstrap=voters_of(1, 2, 3), election=ElectionState(4)))
    reply = FetchReply(epoch=4, leader=voter_of(3), refusal=Refusal.NOT_LEADER)
    cluster.reply(1, max(node.open_requests), reply)
    assert cluster.role(1, Follower).leader == voter_of(3)
    assert node.disk.election == ElectionState(4, None, 3)


def test_an_answer_of_an_older_epoch_is_ignored() -> None:
    cluster = Cluster(0)
    disk = Disk(bootstrap=voters_of(1, 2, 3), election=ElectionState(4, key_of(1)))
    node = cluster.add_node(1, disk)
    for number in list(node.open_requests):
        cluster.reply(1, number, VoteReply(epoch=3, leader=voter_of(2)))
    assert cluster.role(1, Candidate).tally.granted_by == (key_of(1),)


def test_whom_we_refused_and_who_refused_us_are_both_remembered() -> None:
    cluster = prospective()
    node = cluster.nodes[1]
    cluster.answer(1, fetch(2, epoch=5))
    inflight = node.core._replica.inflight
    number = next(number for number, flight in inflight.items() if flight.endpoint == "n2")
    cluster.reply(1, number, VoteReply(epoch=5, leader=None, refusal=Refusal.LEADER_ALIVE))
    notes = node.core.refusals[2]
    assert [(note.request, note.refusal, note.ours) for note in notes] == [
        ("fetch", Refusal.NOT_LEADER, True),
        ("pre-vote", Refusal.LEADER_ALIVE, False),
    ]
    assert (notes[0].epoch, notes[0].at_ms) == (5, cluster.now_ms)


# -- effects in order


def test_durable_writes_come_before_what_rests_on_them() -> None:
    """In every list of effects: no message of an epoch before the epoch is saved."""
    cluster = Cluster(3, 1)
    saved: dict[int, int] = {}

    def check(node: Node, effect: Effect) -> None:
        match effect:
            case SaveElection(election=election):
                saved[node.node_id] = election.epoch
            case Send(request=RaftRequest(epoch=epoch)) | SendReply(reply=RaftReply(epoch=epoch)):
                assert epoch <= saved.get(node.node_id, 0)
            case Append(batches=batches):
                assert batches[-1].epoch <= saved.get(node.node_id, 0)
            case _:
                pass

    cluster.trace = check
    cluster.elect(1)
    cluster.propose("a")
    cluster.crash(1)
    cluster.until(lambda: bool(cluster.leaders))
    cluster.restart(1)
    cluster.run(5_000)
    assert len(saved) == 4


def test_effects_are_handed_out_once() -> None:
    cluster, leader = led()
    leader.core.read(1, cluster.now_ms)
    assert leader.core.take_effects()
    assert leader.core.take_effects() == []


# -- time


def test_time_does_not_go_back() -> None:
    cluster, leader = led()
    with pytest.raises(InvariantViolation, match="time goes back"):
        leader.core.tick(cluster.now_ms - 1)


def test_a_core_without_work_sleeps() -> None:
    # KAFKA-17751; the world asserts after every input that the next tick lies ahead.
    cluster = Cluster(3, 2)
    ticks = 0
    cluster.elect(1)
    start_ms = cluster.now_ms
    while cluster.now_ms < start_ms + 10_000:
        cluster.run(1_000)
        ticks += 1
    assert ticks == 10
    for node in cluster.alive:
        assert node.core.wake_at_ms > cluster.now_ms


def test_an_observer_without_peers_sleeps_too() -> None:
    cluster = Cluster(0)
    node = cluster.add_node(1, Disk(), peers=())
    assert cluster.wire == []
    assert node.core.wake_at_ms == cluster.timing.election_timeout_ms


def test_a_long_pause_is_survived() -> None:
    """All timers are over at once: one tick sorts it out."""
    cluster, leader = led()
    cluster.lose_all()
    cluster.now_ms += 1_000_000
    for node in cluster.alive:
        cluster.tick(node.node_id)
    assert not leader.core.is_leader
    cluster.until(lambda: bool(cluster.leaders))


# -- flushes, snapshots


def test_a_flush_of_what_was_cut_meanwhile_does_not_count() -> None:
    cluster = Cluster(0, auto_flush=False)
    disk = Disk(bootstrap=voters_of(1, 2, 3), election=ElectionState(5, None, 1))
    disk.append(Batch(0, 4, 2))
    node = cluster.add_node(2, disk)
    reply = FetchReply(epoch=5, leader=voter_of(1), diverging=EpochEnd(0, 0))
    cluster.reply(2, max(node.open_requests), reply)
    assert node.core.log.version == 1
    node.core.flushed(2, 0, cluster.now_ms)
    assert node.core.log.flushed_offset == 0


def test_a_flush_beyond_the_end_is_a_bug() -> None:
    cluster, leader = led()
    with pytest.raises(InvariantViolation, match="flushed beyond"):
        leader.core.flushed(99, leader.core.log.version, cluster.now_ms)


def test_a_snapshot_holds_committed_records_of_this_log_only() -> None:
    # Q11
    cluster, leader = led()
    cluster.cut(1)
    cluster.propose("not committed")
    with pytest.raises(InvariantViolation, match="not committed"):
        leader.core.snapshot_created(SnapshotId(3, 1), cluster.now_ms)
    with pytest.raises(InvariantViolation, match="another log"):
        leader.core.snapshot_created(SnapshotId(2, 0), cluster.now_ms)


def test_the_log_moves_behind_a_snapshot_once() -> None:
    cluster, leader = led()
    effects: list[Effect] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    snapshot = cluster.snapshot(1)
    for _ in range(2):
        cluster.drop_log(1, snapshot)
    assert effects.count(DropLogBelow(snapshot)) == 1
    assert leader.core.log.start_offset == snapshot.end_offset == 2


def test_a_replica_restarts_from_its_snapshot_and_knows_it_to_be_committed() -> None:
    cluster, _ = led()
    cluster.propose("a", "b")
    cluster.settle()
    cluster.snapshot(2)
    node = cluster.restart(2)
    assert node.core.high_watermark == 4
    assert node.core.voters == voters_of(1, 2, 3)


# -- what others may look at


def test_what_a_core_says_of_itself() -> None:
    cluster, leader = led()
    follower, core = cluster.nodes[2].core, leader.core
    assert (core.is_leader, core.leader, core.leader_id) == (True, voter_of(1), 1)
    assert (follower.is_leader, follower.leader, follower.leader_id) == (False, voter_of(1), 1)
    assert core.key == key_of(1)
    assert core.now_ms == cluster.now_ms
    assert core.has_committed_epoch()
    assert not follower.has_committed_epoch()
    assert isinstance(Cluster(3).nodes[1].role, Unattached)
    assert leader.config.cluster_id == CLUSTER_ID
