"""Leading: appending, serving fetches, deciding what is committed, answering reads."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.errors import NotLeaderError, RecordTooLarge
from kraftlog.types import EpochEnd
from quorum.core.effects import Append, Flush
from quorum.core.messages import (
    BOOTSTRAP_SNAPSHOT,
    Batch,
    FetchReply,
    FetchSnapshotReply,
    LeaderChange,
    Proposal,
    Refusal,
    ReplicaKey,
    SnapshotId,
    Voter,
    VoteReply,
)
from quorum.core.state import ElectionState, Leader, Parked
from quorum.core.tally import majority_end
from tests.quorum.core.cluster import Cluster, key_of, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import fetch, fetch_snapshot
from tests.quorum.core.world import Node


def led() -> tuple[Cluster, Node]:
    """Node 1 of three leads epoch 1; LeaderChange at 0 and the voters at 1 are committed."""
    cluster = Cluster(3)
    return cluster, cluster.elect(1)


def alone_with_leader(
    voters: int = 3, *, epoch: int = 1, log: Sequence[Batch] = (), endpoint: str = "n1"
) -> tuple[Cluster, Node]:
    """Node 1 leads, and the test plays the others, which have nothing yet."""
    voted = ElectionState(epoch, key_of(1))
    disk = Disk(bootstrap=voters_of(*range(1, voters + 1)), election=voted)
    for batch in log:
        disk.append(batch)
    cluster = Cluster(0)
    cluster.plays_others = True
    node = cluster.add_node(1, disk, endpoint=endpoint)
    while not node.core.is_leader:
        cluster.reply(1, min(node.open_requests), VoteReply(epoch=epoch, leader=None))
    cluster.lose_all()
    return cluster, node


def committed(voters: int = 3) -> tuple[Cluster, Node]:
    """The same, and all have what the epoch began with: offsets 0 and 1."""
    cluster, node = alone_with_leader(voters)
    for node_id in range(2, voters + 1):
        fetched(cluster, node_id, 2, max_wait_ms=0)
    assert node.core.high_watermark == 2
    return cluster, node


def fetched(cluster: Cluster, node: int | ReplicaKey, offset: int, **more: int) -> int:
    """This node has flushed all below an offset, and says so."""
    request = fetch(node, epoch=cluster.nodes[1].core.epoch, offset=offset, last_epoch=1)
    return cluster.ask(1, replace(request, **more))  # type: ignore[arg-type]


# -- appending


def test_an_epoch_begins_with_its_leader_change_and_the_first_one_with_the_voters() -> None:
    _, leader = led()
    first, second = leader.disk.batches[:2]
    assert first.control == LeaderChange(key_of(1), voters_of(1, 2, 3).keys, (key_of(1), key_of(2)))
    assert second.control == voters_of(1, 2, 3)


def test_voters_that_are_in_the_log_are_not_repeated() -> None:
    cluster, _ = led()
    cluster.resign(1)
    cluster.until(lambda: cluster.leader.core.epoch == 2)
    added = [batch.control for batch in cluster.leader.disk.batches if batch.epoch == 2]
    assert [type(control) for control in added] == [LeaderChange]


def test_a_leader_that_has_moved_says_so_in_its_first_records() -> None:
    log = [Batch(0, 1, 1), Batch(1, 1, 1, control=voters_of(1, 2, 3))]
    _, leader = alone_with_leader(epoch=2, log=log, endpoint="new")
    written = [batch.control for batch in leader.disk.batches if batch.epoch == 2]
    assert written[1] == voters_of(1, 2, 3).with_voter(Voter(key_of(1), "new"))
    assert len(written) == 2


def test_proposals_are_batches_with_offsets_in_a_row() -> None:
    cluster, leader = led()
    effects: list[object] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    proposals = [Proposal(b"ab", 2), Proposal(b"c", 1)]
    first = leader.core.propose(proposals, epoch=1, now_ms=cluster.now_ms)
    appended = leader.core.take_effects()
    assert first == 2
    assert isinstance(appended[0], Append)
    assert [(b.base_offset, b.count, b.data) for b in appended[0].batches] == [
        (2, 2, b"ab"),
        (4, 1, b"c"),
    ]
    assert appended[1] == Flush(5, 0)


def test_who_does_not_lead_that_epoch_appends_nothing() -> None:
    cluster, leader = led()
    for node, epoch in ((cluster.nodes[2], 1), (leader, 0), (leader, 2)):
        end = node.disk.end_offset
        with pytest.raises(NotLeaderError, match=f"epoch {epoch}"):
            node.core.propose([Proposal(b"x", 1)], epoch=epoch, now_ms=cluster.now_ms)
        assert node.core.log.end_offset == end


def test_a_batch_that_is_too_large_is_refused_before_anything_is_appended() -> None:
    # AutoMQ 2057: in the log it would make every new leader resign.
    cluster, leader = led()
    most = leader.config.batch_bytes_max
    proposals = [Proposal(b"good", 1), Proposal(bytes(most + 1), 1)]
    with pytest.raises(RecordTooLarge, match=str(most + 1)):
        leader.core.propose(proposals, epoch=1, now_ms=cluster.now_ms)
    assert leader.core.log.end_offset == 2
    cluster.propose("x" * most)
    cluster.settle()
    assert cluster.nodes[3].core.high_watermark == 3


@pytest.mark.parametrize("proposals", [[], [Proposal(b"", 0)]])
def test_nothing_is_not_a_proposal(proposals: list[Proposal]) -> None:
    cluster, leader = led()
    with pytest.raises(InvariantViolation):
        leader.core.propose(proposals, epoch=1, now_ms=cluster.now_ms)


# -- commit


def test_a_majority_that_has_flushed_commits() -> None:
    # Q7
    cluster, leader = committed()
    cluster.propose("a")
    assert leader.core.high_watermark == 2
    fetched(cluster, 2, 3)
    assert leader.core.high_watermark == 3


def test_the_leader_counts_itself_only_up_to_its_flush() -> None:
    # thesis 10.2.1: followers may be ahead of the leader's own disk
    cluster, leader = committed()
    cluster.auto_flush = False
    cluster.propose("a")
    fetched(cluster, 2, 3)
    assert leader.core.high_watermark == 2
    fetched(cluster, 3, 3)
    assert leader.core.high_watermark == 3, "two of three, without the leader"
    cluster.propose("b")
    fetched(cluster, 2, 4)
    cluster.finish_flush(1)
    assert leader.core.high_watermark == 4


def test_a_sole_voter_commits_at_its_own_flush() -> None:
    cluster = Cluster(1, auto_flush=False)
    assert cluster.nodes[1].core.high_watermark == 0
    cluster.finish_flush(1)
    assert cluster.nodes[1].core.high_watermark == 2


def test_nothing_is_committed_before_a_record_of_this_epoch_is() -> None:
    # Q8, thesis 3.6.2; KAFKA-12619: nor when a majority has reached the very start of the epoch.
    log = [Batch(0, 1, 1), Batch(1, 1, 1, control=voters_of(1, 2, 3))]
    cluster, leader = alone_with_leader(epoch=2, log=log)
    assert cluster.role(1, Leader).start_offset == 2
    for node_id in (2, 3):
        fetched(cluster, node_id, 2, max_wait_ms=0)
    assert leader.core.high_watermark == 0
    assert not leader.core.has_committed_epoch()
    fetched(cluster, 2, 3, last_epoch=2)
    assert leader.core.high_watermark == 3


def test_the_high_watermark_never_falls() -> None:
    # Q7: also if a replica reports less than before
    cluster, leader = committed()
    cluster.propose("a")
    fetched(cluster, 2, 3)
    fetched(cluster, 2, 2)
    assert leader.core.high_watermark == 3


def test_observers_do_not_count() -> None:
    cluster, leader = committed()
    cluster.propose("a")
    for stranger in (7, 8, key_of(2, disk=2)):
        fetched(cluster, stranger, 3)
    assert leader.core.high_watermark == 2


@given(st.lists(st.tuples(st.integers(2, 5), st.integers(0, 6)), max_size=12))
def test_the_commit_rule_is_the_majority_of_what_was_reported(
    reports: list[tuple[int, int]],
) -> None:
    cluster, leader = committed(5)
    cluster.propose("a", "b", "c", "d")
    ends = dict.fromkeys(range(2, 6), 2)
    highest = 2
    for node_id, end in reports:
        fetched(cluster, node_id, end, last_epoch=1 if end else 0)
        ends[node_id] = end
        highest = max(highest, majority_end([6, *ends.values()]))
        assert leader.core.high_watermark == highest


# -- fetches


def test_followers_get_what_the_leader_has_not_flushed_yet() -> None:
    cluster, _ = committed()
    cluster.auto_flush = False
    cluster.propose("a")
    reply = cluster.answers[fetched(cluster, 2, 2)]
    assert isinstance(reply, FetchReply)
    assert [batch.data for batch in reply.batches] == [b"a"]


def test_at_least_one_batch_and_no_more_than_was_asked_for() -> None:
    cluster, _ = committed()
    cluster.propose("aaaa", "bbbb", "cccc")
    for max_bytes, batches in ((1, 1), (8, 2), (100, 3)):
        reply = cluster.answers[fetched(cluster, 2, 2, max_bytes=max_bytes)]
        assert isinstance(reply, FetchReply)
        assert len(reply.batches) == batches


def test_a_fetch_without_news_waits_and_is_answered_by_an_append() -> None:
    cluster, _ = committed()
    number = fetched(cluster, 2, 2, high_watermark=2)
    assert number not in cluster.answers
    cluster.propose("a")
    reply = cluster.answers[number]
    assert isinstance(reply, FetchReply)
    assert len(reply.batches) == 1


def test_a_fetch_without_news_is_answered_when_its_time_is_over() -> None:
    cluster, _ = committed()
    number = fetched(cluster, 2, 2, high_watermark=2)
    cluster.run(499)
    assert number not in cluster.answers
    cluster.run(1)
    reply = cluster.answers[number]
    assert isinstance(reply, FetchReply)
    assert (reply.refusal, reply.batches, reply.high_watermark) == (None, (), 2)


def test_a_fetch_may_ask_not_to_wait() -> None:
    cluster, _ = committed()
    assert fetched(cluster, 2, 2, high_watermark=2, max_wait_ms=0) in cluster.answers


def test_a_fetch_never_waits_longer_than_the_leader_allows() -> None:
    cluster, _ = committed()
    fetched(cluster, 2, 2, high_watermark=2, max_wait_ms=1 << 40)
    assert cluster.nodes[1].core.wake_at_ms <= cluster.now_ms + 500


def test_a_new_fetch_of_a_replica_takes_the_place_of_its_old_one() -> None:
    cluster, _ = committed()
    old = fetched(cluster, 2, 2, high_watermark=2)
    new = fetched(cluster, 2, 2, high_watermark=2)
    assert old in cluster.answers, "answered, so that nothing waits for ever"
    assert new not in cluster.answers
    assert len(cluster.role(1, Leader).parked) == 1


def test_a_high_watermark_is_news_for_an_idle_follower() -> None:
    # KIP-1166, KAFKA-14145
    cluster, _ = committed()
    cluster.propose("a")
    waits = fetched(cluster, 2, 3, high_watermark=2)
    reply = cluster.answers[waits]
    assert isinstance(reply, FetchReply)
    assert reply.high_watermark == 3, "it was this very fetch that committed"
    idle = fetched(cluster, 3, 3, high_watermark=3)
    assert idle not in cluster.answers


def test_a_high_watermark_over_records_that_a_replica_lacks_is_no_news() -> None:
    cluster, _ = committed()
    cluster.propose("a")
    fetched(cluster, 2, 3)
    number = fetched(cluster, 7, 3, high_watermark=3)
    assert number not in cluster.answers


def test_a_high_watermark_may_linger_for_records_to_travel_with() -> None:
    cluster, leader = committed()
    core = leader.core
    core._replica.config = replace(core._replica.config, watermark_linger_ms=5)
    cluster.propose("a")
    first = fetched(cluster, 2, 3, high_watermark=2)
    assert first not in cluster.answers
    assert core.wake_at_ms == cluster.now_ms + 5
    cluster.run(4)
    assert first not in cluster.answers
    cluster.run(1)
    assert first in cluster.answers
    second = fetched(cluster, 2, 3, high_watermark=2)
    cluster.propose("b")
    assert second in cluster.answers, "records do not linger"


def test_no_high_watermark_is_told_before_this_epoch_has_its_own() -> None:
    # A new leader does not know how far its predecessors came.
    cluster, _ = led()
    cluster.propose("a")
    cluster.settle()
    cluster.resign(1)
    cluster.until(lambda: any(n.core.epoch == 2 for n in cluster.leaders))
    replies = [p.body for p in cluster.wire if isinstance(p.body, FetchReply)]
    assert all(reply.high_watermark is None for reply in replies if reply.epoch == 2)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"epoch": 0}, Refusal.EPOCH_STALE),
        ({"epoch": 2}, Refusal.EPOCH_UNKNOWN),
        ({"offset": -1}, Refusal.INVALID_REQUEST),
        ({"last_epoch": -1}, Refusal.INVALID_REQUEST),
        ({"last_epoch": 2}, Refusal.INVALID_REQUEST),
        ({"max_wait_ms": -1}, Refusal.INVALID_REQUEST),
        ({"max_bytes": 0}, Refusal.INVALID_REQUEST),
        ({"epoch": 0, "last_epoch": 0, "offset": -5}, Refusal.INVALID_REQUEST),
    ],
    ids=str,
)
def test_a_fetch_that_cannot_be_served_says_why(change: dict[str, int], refusal: Refusal) -> None:
    cluster, leader = committed()
    request = fetch(2, epoch=1, offset=1, last_epoch=change.get("epoch", 1) and 1)
    reply = cluster.answer(1, replace(request, **change))  # type: ignore[arg-type]
    assert reply.refusal is refusal
    assert reply.leader == voter_of(1)
    assert cluster.role(1, Leader).replicas[key_of(2)].end_offset == 2, "no progress"
    assert leader.core.epoch == 1


def test_whoever_does_not_lead_names_the_leader() -> None:
    cluster, _ = led()
    reply = cluster.answer(2, fetch(3, epoch=1))
    assert (reply.refusal, reply.leader) == (Refusal.NOT_LEADER, voter_of(1))


def test_divergence_is_answered_at_once_and_is_no_progress() -> None:
    # KAFKA-15100, KAFKA-13141
    cluster, leader = committed()
    cluster.propose("a")
    heard_ms = cluster.role(1, Leader).heard_ms.copy()
    cluster.now_ms += 1
    reply = cluster.answer(1, fetch(2, epoch=1, offset=9, last_epoch=1))
    assert isinstance(reply, FetchReply)
    assert reply.diverging == EpochEnd(1, 3)
    reply = cluster.answer(1, fetch(2, epoch=1, offset=1, last_epoch=0))
    assert isinstance(reply, FetchReply)
    assert reply.diverging == EpochEnd(0, 0)
    role = cluster.role(1, Leader)
    assert role.replicas[key_of(2)].end_offset == 2
    assert role.heard_ms == heard_ms, "nor a sign of life"
    assert leader.core.high_watermark == 2


def test_most_inputs_do_not_look_at_parked_fetches() -> None:
    """A hundred observers wait; a fetch of one of them must not cost a look at all the others."""
    cluster, _ = committed()
    for node_id in range(100, 200):
        fetched(cluster, node_id, 2, high_watermark=2)

    class Untouched(dict[ReplicaKey, Parked]):
        def __iter__(self) -> Iterator[ReplicaKey]:
            raise AssertionError("looked at all of them")

        items = __iter__  # type: ignore[assignment]

    role = cluster.role(1, Leader)
    role.parked = Untouched(role.parked)
    number = fetched(cluster, 100, 2, high_watermark=2)
    assert number not in cluster.answers
    cluster.now_ms += 100
    cluster.tick(1)
    with pytest.raises(AssertionError, match="looked"):
        cluster.propose("a")


def test_observers_that_no_longer_fetch_are_forgotten() -> None:
    cluster, _ = committed(1)
    fetched(cluster, 7, 2, max_wait_ms=0)
    cluster.run(200_000)
    fetched(cluster, 8, 2, max_wait_ms=0)
    assert set(cluster.role(1, Leader).replicas) == {key_of(7), key_of(8)}
    cluster.run(102_000)
    assert set(cluster.role(1, Leader).replicas) == {key_of(8)}


def test_when_a_replica_was_last_caught_up() -> None:
    # By the rule of the ISR: it had by now what we had at its fetch before.
    cluster, _ = committed()
    t0 = cluster.now_ms
    fetched(cluster, 7, 2, max_wait_ms=0)
    progress = cluster.role(1, Leader).replicas[key_of(7)]
    assert progress.caught_up_ms == t0
    cluster.propose("a", "b")
    cluster.now_ms = t0 + 10
    fetched(cluster, 7, 2)
    cluster.propose("c")
    cluster.now_ms = t0 + 20
    fetched(cluster, 7, 3)
    assert progress.caught_up_ms == t0, "it lacks b, which was there at 10"
    fetched(cluster, 7, 4)
    assert progress.caught_up_ms == t0
    cluster.now_ms = t0 + 30
    fetched(cluster, 7, 5, max_wait_ms=0)
    assert progress.caught_up_ms == t0 + 30


# -- snapshots


def with_snapshot() -> tuple[Cluster, SnapshotId]:
    cluster, _ = committed()
    cluster.propose("a", "b")
    fetched(cluster, 2, 4)
    snapshot = cluster.snapshot(1)
    return cluster, snapshot


def test_who_asks_for_what_is_gone_is_sent_to_the_snapshot_at_once() -> None:
    cluster, snapshot = with_snapshot()
    cluster.drop_log(1, snapshot)
    for offset, last_epoch in ((0, 0), (2, 1), (4, 0)):
        reply = cluster.answer(1, fetch(3, epoch=1, offset=offset, last_epoch=last_epoch))
        assert isinstance(reply, FetchReply)
        assert reply.snapshot == snapshot
    reply = cluster.answer(1, fetch(3, epoch=1, offset=4, last_epoch=1))
    assert isinstance(reply, FetchReply)
    assert (reply.snapshot, reply.log_start_offset) == (None, 4)


def test_a_snapshot_is_served_in_chunks() -> None:
    cluster, snapshot = with_snapshot()
    whole = b""
    while True:
        reply = cluster.answer(1, fetch_snapshot(3, snapshot, epoch=1, position=len(whole)))
        assert isinstance(reply, FetchSnapshotReply)
        assert (reply.refusal, reply.position) == (None, len(whole))
        assert len(reply.data) <= 20, "as much as the leader sends at once"
        whole += reply.data
        if len(whole) == reply.size:
            break
    assert whole == cluster.nodes[1].disk.snapshots[snapshot].data


def test_a_snapshot_that_is_not_there_is_not_found() -> None:
    cluster, snapshot = with_snapshot()
    other = SnapshotId(snapshot.end_offset, snapshot.epoch + 1)
    # KIP-853: the bootstrap checkpoint holds no history, and is never served.
    for wrong in (BOOTSTRAP_SNAPSHOT, other):
        reply = cluster.answer(1, fetch_snapshot(3, wrong, epoch=1))
        assert reply.refusal is Refusal.SNAPSHOT_NOT_FOUND


@pytest.mark.parametrize("position", [-1, 1 << 40])
def test_a_position_outside_of_a_snapshot_is_out_of_range(position: int) -> None:
    cluster, snapshot = with_snapshot()
    reply = cluster.answer(1, fetch_snapshot(3, snapshot, epoch=1, position=position))
    assert reply.refusal is Refusal.POSITION_OUT_OF_RANGE


def test_a_snapshot_is_served_by_the_leader_of_that_epoch_only() -> None:
    cluster, snapshot = with_snapshot()
    for epoch, refusal in ((0, Refusal.EPOCH_STALE), (2, Refusal.EPOCH_UNKNOWN)):
        assert cluster.answer(1, fetch_snapshot(3, snapshot, epoch=epoch)).refusal is refusal
    cluster.resign(1)
    assert cluster.answer(1, fetch_snapshot(3, snapshot, epoch=1)).refusal is Refusal.NOT_LEADER
