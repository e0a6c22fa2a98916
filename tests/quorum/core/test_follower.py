"""Following: finding the leader, pulling its log, cutting our own where the two part."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.types import EpochEnd
from quorum.core.effects import (
    Append,
    Flush,
    Send,
    TruncateLog,
)
from quorum.core.messages import (
    Batch,
    FetchReply,
    FetchRequest,
    Refusal,
    VoteReply,
)
from quorum.core.state import ElectionState, Follower, Prospective
from tests.quorum.core.cluster import Cluster, key_of, voter_of, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import begin
from tests.quorum.core.world import Node


def lone_follower(*epochs: int, epoch: int = 5, flush: bool = True) -> Cluster:
    """Node 2 with these records follows node 1 in epoch 5; node 1 is played by the test."""
    disk = Disk(bootstrap=voters_of(1, 2, 3), election=ElectionState(epoch, None, 1))
    for offset, each in enumerate(epochs):
        disk.append(Batch(offset, each, 1))
    cluster = Cluster(0, auto_flush=flush)
    cluster.add_node(2, disk)
    return cluster


def asked(cluster: Cluster, node_id: int = 2) -> FetchRequest:
    """The fetch that is on its way."""
    fetches = [p.body for p in cluster.wire if p.source == node_id]
    assert isinstance(fetches[-1], FetchRequest)
    return fetches[-1]


def answer(cluster: Cluster, reply: FetchReply, node_id: int = 2) -> None:
    cluster.reply(node_id, max(cluster.nodes[node_id].open_requests), reply)


def good(**content: object) -> FetchReply:
    return replace(FetchReply(epoch=5, leader=voter_of(1)), **content)  # type: ignore[arg-type]


# -- asking


def test_a_fetch_says_where_the_log_ends_and_in_which_epoch() -> None:
    cluster = lone_follower(1, 2, 2)
    request = asked(cluster)
    assert (request.offset, request.last_epoch, request.epoch) == (3, 2, 5)
    assert (request.recipient, request.max_wait_ms) == (key_of(1), 500)


def test_one_fetch_at_a_time() -> None:
    cluster = lone_follower()
    cluster.run(400)
    assert len(cluster.nodes[2].open_requests) == 1


def test_nothing_is_promised_before_it_is_flushed() -> None:
    # The offset of a fetch is the acknowledgement.
    cluster = lone_follower(flush=False)
    cluster.lose_all()
    answer(cluster, good(batches=(Batch(0, 5, 2),)))
    assert cluster.wire == []
    cluster.finish_flush(2)
    assert asked(cluster).offset == 2


def test_a_broker_does_not_flush_and_promises_nothing() -> None:
    cluster = Cluster(0, auto_flush=False)
    disk = Disk(bootstrap=voters_of(1), election=ElectionState(5, None, 1))
    cluster.add_node(2, disk, flush_always=False)
    effects: list[object] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    answer(cluster, good(batches=(Batch(0, 5, 2),)))
    assert asked(cluster).offset == 2
    assert not [each for each in effects if isinstance(each, Flush)]
    sent = [each for each in effects if isinstance(each, Send)]
    assert sent[-1].after_flush is None


def test_a_broker_that_becomes_a_voter_flushes_first() -> None:
    # KAFKA-17332
    cluster = Cluster(0, auto_flush=False)
    disk = Disk(bootstrap=voters_of(1), election=ElectionState(5, None, 1))
    cluster.add_node(2, disk, flush_always=False)
    cluster.lose_all()
    answer(cluster, good(batches=(Batch(0, 5, 1), Batch(1, 5, 1, control=voters_of(1, 2)))))
    assert cluster.wire == []
    cluster.finish_flush(2)
    assert asked(cluster).offset == 2


def test_a_voter_that_hears_nothing_asks_for_pre_votes() -> None:
    cluster = lone_follower()
    cluster.run(1_999)
    cluster.role(2, Follower)
    cluster.run(1)
    cluster.role(2, Prospective)


def test_every_good_answer_starts_the_time_anew() -> None:
    cluster = lone_follower()
    cluster.now_ms = 1_500
    answer(cluster, good())
    role = cluster.role(2, Follower)
    assert (role.fetch_deadline_ms, role.has_fetched) == (3_500, True)


# -- finding a leader


def test_who_knows_no_leader_asks_its_peers_one_after_the_other() -> None:
    # KAFKA-17030: also a voter, whose set of voters may be stale.
    cluster = Cluster(0)
    disk = Disk(bootstrap=voters_of(1, 2, 3))
    node = cluster.add_node(1, disk, peers=("n1", "n7"))
    assert [each.endpoint for each in inflight(node)] == ["n2"]
    assert len(cluster.wire) == 1
    tried = set()
    for _ in range(3):
        tried |= {each.endpoint for each in inflight(node)}
        cluster.fail(1, max(node.open_requests))
    assert tried == {"n2", "n3", "n7"}, "never itself"


def inflight(node: Node) -> list[Send]:
    flights = node.core._replica.inflight.items()
    return [Send(n, each.endpoint, each.peer, each.request, 0) for n, each in flights]


def test_an_observer_finds_the_leader_through_any_peer() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    node = cluster.add_node(4, Disk(), peers=("n3",))
    cluster.settle()
    assert cluster.role(4, Follower).leader == voter_of(1)
    assert node.core.voters == voters_of(1, 2, 3)


def test_an_observer_whose_leader_is_silent_asks_around_at_once() -> None:
    """Nobody announces a new leader to observers."""
    cluster = Cluster(3, 1)
    cluster.elect(1)
    cluster.crash(1)
    number = max(cluster.nodes[4].open_requests)
    cluster.fail(4, number)
    assert {p.target for p in cluster.wire if p.source == 4} <= {2, 3}
    assert cluster.wire, "it does not wait for its fetch timeout"
    cluster.role(4, Follower)
    cluster.until(lambda: any(node.core.epoch == 2 for node in cluster.leaders))
    at_ms = cluster.now_ms
    cluster.until(lambda: cluster.nodes[4].core.epoch == 2)
    assert cluster.now_ms - at_ms <= 2 * cluster.timing.retry_backoff_ms


def test_a_voter_keeps_to_its_leader_until_its_time_is_over() -> None:
    cluster = lone_follower()
    cluster.fail(2, max(cluster.nodes[2].open_requests))
    cluster.run(500)
    assert {each.endpoint for each in inflight(cluster.nodes[2])} <= {"n1"}


def test_a_leader_that_says_it_leads_no_more_is_not_waited_for() -> None:
    cluster = lone_follower()
    cluster.role(2, Follower).has_fetched = True
    answer(cluster, good(refusal=Refusal.NOT_LEADER, leader=None))
    role = cluster.role(2, Follower)
    assert role.fetch_deadline_ms <= cluster.now_ms + cluster.timing.election_timeout_ms
    assert not role.has_fetched, "and we grant pre-votes"
    cluster.lose_all()
    cluster.run(20)
    assert cluster.wire == [], "nor asked again in this epoch"


def test_what_a_leader_sent_before_it_resigned_is_no_sign_of_life() -> None:
    cluster = lone_follower()
    cluster.nodes[2].core._replica.resigned_epoch = 5
    deadline_ms = cluster.role(2, Follower).fetch_deadline_ms
    cluster.now_ms = 100
    answer(cluster, good(batches=(Batch(0, 5, 1),)))
    role = cluster.role(2, Follower)
    assert (role.fetch_deadline_ms, role.has_fetched) == (deadline_ms, False)
    assert cluster.nodes[2].disk.end_offset == 1, "its records are as good as ever"


# -- records


def test_records_are_appended_flushed_and_acknowledged_by_the_next_fetch() -> None:
    cluster = lone_follower(1)
    effects: list[object] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    batches = (Batch(1, 5, 2, b"ab"), Batch(3, 5, 1, b"c"))
    answer(cluster, good(batches=batches, high_watermark=3))
    assert effects[0] == Append(batches, fetched=True)
    assert effects[1] == Flush(4, 0)
    assert asked(cluster).offset == 4
    assert cluster.nodes[2].core.high_watermark == 3


def test_the_high_watermark_is_capped_by_what_we_have_and_never_falls() -> None:
    cluster = lone_follower(1, 1)
    for told, known in ((9, 2), (1, 2), (None, 2)):
        answer(cluster, good(high_watermark=told))
        assert cluster.nodes[2].core.high_watermark == known


@pytest.mark.parametrize(
    ("batches", "end"),
    [
        ((Batch(2, 5, 1),), 1),
        ((Batch(0, 5, 1),), 1),
        ((Batch(1, 5, 0),), 1),
        ((Batch(1, 6, 1),), 1),
        ((Batch(1, 0, 1),), 1),
        ((Batch(1, 5, 1), Batch(2, 4, 1)), 2),
        ((Batch(1, 5, 1), Batch(3, 5, 1), Batch(4, 5, 1)), 2),
    ],
    ids=["hole", "again", "empty", "newer epoch", "older epoch", "falling epoch", "hole later"],
)
def test_records_are_taken_up_to_the_first_that_cannot_be_next(
    batches: tuple[Batch, ...], end: int
) -> None:
    # KAFKA-18723
    cluster = lone_follower(1)
    cluster.now_ms = 100
    deadline_ms = cluster.role(2, Follower).fetch_deadline_ms
    answer(cluster, good(batches=batches))
    assert cluster.nodes[2].disk.end_offset == end
    assert cluster.role(2, Follower).fetch_deadline_ms == deadline_ms, "nonsense is no sign of life"
    assert inflight(cluster.nodes[2]) == [], "and it is not asked for again at once"


def test_an_answer_to_what_we_no_longer_ask_is_ignored() -> None:
    """The leader moves, so two fetches are on their way, and both are answered."""
    cluster = lone_follower(1, 2, 2)
    first = max(cluster.nodes[2].open_requests)
    cluster.answer(2, begin(1, epoch=5, endpoint="moved"))
    second = max(cluster.nodes[2].open_requests)
    assert first != second
    for number in (first, second):
        cluster.reply(2, number, good(diverging=EpochEnd(1, 1)))
    assert cluster.nodes[2].disk.end_offset == 1


# -- divergence


@pytest.mark.parametrize(
    ("ours", "theirs", "end"),
    [
        ((1, 1, 2, 2), EpochEnd(1, 1), 1),  # we have the epoch, they have less of it
        ((1, 1, 2, 2), EpochEnd(1, 9), 2),  # they have more of it
        ((1, 1, 3, 3), EpochEnd(2, 9), 2),  # we do not have it: the end of the one before
        ((3, 3), EpochEnd(2, 1), 0),  # nor any before
        ((1, 2), EpochEnd(0, 0), 0),
        ((4, 4, 4), EpochEnd(4, 1), 1),
    ],
)
def test_a_diverging_log_is_cut_where_the_epochs_part(
    ours: tuple[int, ...], theirs: EpochEnd, end: int
) -> None:
    # P11
    cluster = lone_follower(*ours)
    effects: list[object] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    answer(cluster, good(diverging=theirs, high_watermark=len(ours)))
    assert effects[0] == TruncateLog(end)
    assert asked(cluster).offset == end
    assert cluster.nodes[2].core.high_watermark == 0, "KAFKA-14704: not from an answer like this"


@pytest.mark.parametrize("theirs", [EpochEnd(1, 1), EpochEnd(2, 1), EpochEnd(1, 0)])
def test_committed_records_are_never_cut(theirs: EpochEnd) -> None:
    # Q6: better no replica than one that takes back what was decided.
    cluster = lone_follower(1, 1, 3)
    answer(cluster, good(high_watermark=2))
    with pytest.raises(InvariantViolation, match="contradicts committed"):
        answer(cluster, good(diverging=theirs))


def test_a_divergence_that_cuts_nothing_is_nonsense() -> None:
    cluster = lone_follower(1, 1)
    answer(cluster, good(diverging=EpochEnd(1, 2)))
    assert cluster.nodes[2].disk.end_offset == 2
    assert not cluster.role(2, Follower).has_fetched


@st.composite
def two_histories(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """A leader's log and another one, as Raft makes them."""
    logs: list[list[int]] = [[]]
    for epoch in range(1, draw(st.integers(1, 5)) + 1):
        base = draw(st.sampled_from(logs))
        kept = draw(st.integers(0, len(base)))
        logs.append(base[:kept] + [epoch] * draw(st.integers(1, 4)))
    other = draw(st.sampled_from(logs))
    return draw(st.sampled_from(logs[1:])), other[: draw(st.integers(0, len(other)))]


@given(two_histories())
def test_any_two_logs_become_one_and_keep_all_that_they_shared(
    logs: tuple[list[int], list[int]],
) -> None:
    # P11, thesis 3.5: the leader's log wins, one epoch per answer at most.
    theirs, ours = logs
    epoch = max([*theirs, *ours]) + 1
    cluster = Cluster(0)
    for node_id, log in ((1, theirs), (2, ours)):
        voted = ElectionState(epoch, key_of(1)) if node_id == 1 else ElectionState(epoch)
        disk = Disk(bootstrap=voters_of(1, 2), election=voted)
        for offset, each in enumerate(log):
            disk.append(Batch(offset, each, 1))
        cluster.add_node(node_id, disk)
    cuts: list[int] = []
    cluster.trace = lambda _, e: cuts.append(e.end_offset) if isinstance(e, TruncateLog) else None
    # Node 2 may have the better log and votes all the same: what matters here comes after.
    number = max(cluster.nodes[1].open_requests)
    cluster.reply(1, number, VoteReply(epoch=epoch, leader=None))
    cluster.until(lambda: cluster.nodes[2].core.high_watermark == cluster.nodes[1].disk.end_offset)
    assert cluster.nodes[1].disk.batches == cluster.nodes[2].disk.batches
    shared = next((at for at, each in enumerate(ours) if theirs[at : at + 1] != [each]), len(ours))
    assert all(cut >= shared for cut in cuts)
    assert len(cuts) <= len(set(ours))
