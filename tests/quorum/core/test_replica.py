"""What all roles share."""

import pytest

from kraftlog._check import InvariantViolation
from kraftlog.types import Uuid
from quorum.core.config import EPOCH_LEAD_MAX, EPOCH_MAX, RaftConfig
from quorum.core.effects import Flush, LeaderChanged, SaveElection, Send
from quorum.core.log_view import NOT_IN_LOG, LogView, VotersAt
from quorum.core.messages import Batch, Refusal, ReplicaKey, SnapshotId, VoterSet
from quorum.core.replica import (
    REFUSALS_KEPT,
    REFUSED_PEERS_MAX,
    Replica,
    name_of,
)
from quorum.core.state import Candidate, ElectionState, Follower, Unattached
from quorum.core.tally import Tally
from tests.quorum.core.cluster import CLUSTER_ID, key_of, voter_of, voters_of
from tests.quorum.core.requests import begin, end, fetch, fetch_snapshot, update, vote


def make(
    node_id: int = 1,
    *,
    voters: VoterSet | None = None,
    epoch: int = 0,
    flush_always: bool = True,
    log: LogView | None = None,
) -> Replica:
    config = RaftConfig(
        cluster_id=CLUSTER_ID,
        key=key_of(node_id),
        endpoint=f"n{node_id}",
        flush_always=flush_always,
    )
    history = [VotersAt(NOT_IN_LOG, voters or voters_of(1, 2, 3))]
    view = log or LogView(voter_history=history)
    return Replica(config, view, ElectionState(epoch), lambda n: n - 1, 0)


# -- who


def test_voters_are_those_of_the_log() -> None:
    replica = make(3)
    assert (replica.is_voter, replica.other_voters) == (True, (voter_of(1), voter_of(2)))
    replica.log.append(Batch(0, 0, 1, control=voters_of(1, 2)))
    assert (replica.is_voter, replica.other_voters) == (False, (voter_of(1), voter_of(2)))


def test_what_a_snapshot_holds_is_committed() -> None:
    # Q6: also after a restart, when nobody has told us of a high watermark yet.
    log = LogView(end_offset=9, snapshots=[SnapshotId(4, 1), SnapshotId(7, 1)])
    assert make(log=log).high_watermark == 7
    assert make().high_watermark == 0


def test_a_leader_is_announced_once_per_change() -> None:
    replica = make()
    replica.set_role(Unattached(5))
    replica.set_role(Unattached(6))
    replica.save_leader(2)
    replica.set_role(Follower(voter_of(2), 5, 5))
    replica.set_role(Follower(voter_of(2), 9, 9))
    news = [each for each in replica.effects if isinstance(each, LeaderChanged)]
    assert news == [LeaderChanged(0, None), LeaderChanged(0, 2)]


# -- durable state


def test_only_a_change_of_the_election_is_written() -> None:
    replica = make()
    replica.save_election(ElectionState(1, key_of(2)))
    replica.save_election(ElectionState(1, key_of(2)))
    assert replica.effects == [SaveElection(ElectionState(1, key_of(2)))]


def test_epochs_end() -> None:
    replica = make(epoch=EPOCH_MAX)
    with pytest.raises(InvariantViolation, match="used up"):
        replica.enter_epoch(EPOCH_MAX + 1)


def test_an_epoch_is_entered_upwards_only() -> None:
    replica = make(epoch=3)
    with pytest.raises(InvariantViolation, match="old epoch"):
        replica.enter_epoch(3)


@pytest.mark.parametrize(
    ("flush_always", "voters", "must"),
    [(True, (1, 2), True), (True, (2, 3), True), (False, (1, 2), True), (False, (2, 3), False)],
)
def test_whoever_is_or_may_become_a_voter_flushes(
    flush_always: bool, voters: tuple[int, ...], must: bool
) -> None:
    # KAFKA-17332; the last case is a broker
    replica = make(voters=voters_of(*voters), flush_always=flush_always)
    replica.log.append(Batch(0, 0, 1))
    replica.flush()
    assert replica.must_flush == must
    assert replica.effects == ([Flush(1, 0)] if must else [])
    assert replica.is_durable != must


def test_what_is_durable_is_not_flushed_again() -> None:
    replica = make()
    replica.flush()
    assert replica.effects == []


# -- requests of ours


def test_a_peer_has_one_request_at_a_time() -> None:
    replica = make()
    replica.send(voter_of(2), fetch(1, epoch=0), after_flush=0)
    assert not replica.may_send_to("n2")
    assert replica.may_send_to("n3")
    assert replica.effects == [Send(1, "n2", key_of(2), fetch(1, epoch=0), 2_000, 0)]


def test_a_failed_peer_is_left_alone_for_a_moment() -> None:
    replica = make()
    replica.back_off("n2")
    assert not replica.may_send_to("n2")
    assert list(replica.retry_times()) == [20]
    replica.now_ms = 20
    assert replica.may_send_to("n2")
    assert list(replica.retry_times()) == []


def test_a_new_role_begins_with_no_requests_and_no_grudges() -> None:
    # KIP-595: late answers to the former role are dropped.
    replica = make()
    replica.send(voter_of(2), fetch(1, epoch=0))
    replica.back_off("n3")
    replica.set_role(Candidate(Tally(replica.voters), 5, 0))
    assert replica.inflight == {}
    assert replica.may_send_to("n2")
    assert replica.may_send_to("n3")


# -- refusals


def test_the_last_refusals_of_each_peer_are_kept() -> None:
    replica = make()
    for at in range(REFUSALS_KEPT + 5):
        replica.now_ms = at
        replica.note_refusal(2, "vote", Refusal.LOG_BEHIND, ours=True)
    replica.note_refusal(3, "fetch", Refusal.NOT_LEADER, ours=False)
    assert replica.votes_refused[Refusal.LOG_BEHIND] == REFUSALS_KEPT + 5
    assert replica.votes_refused[Refusal.NOT_LEADER] == 0
    assert [note.at_ms for note in replica.refusals[2]] == list(range(5, REFUSALS_KEPT + 5))
    assert [note.request for note in replica.refusals[3]] == ["fetch"]


def test_made_up_node_ids_do_not_fill_the_memory() -> None:
    replica = make()
    for peer in range(10_000):
        replica.note_refusal(peer, "vote", Refusal.WRONG_CLUSTER, ours=True)
        replica.note_refusal(2, "vote", Refusal.LOG_BEHIND, ours=True)
    assert len(replica.refusals) == REFUSED_PEERS_MAX
    assert 2 in replica.refusals, "who was heard of last is kept"


def test_requests_have_the_names_that_people_read() -> None:
    named = [
        vote(1, epoch=1),
        vote(1, epoch=1, pre_vote=True),
        begin(1, epoch=1),
        end(1, epoch=1),
        fetch(1, epoch=1),
        fetch_snapshot(1, SnapshotId(1, 1), epoch=1),
        update(1, voter_of(1), epoch=1),
    ]
    assert [name_of(each) for each in named] == [
        "vote",
        "pre-vote",
        "begin epoch",
        "end epoch",
        "fetch",
        "fetch snapshot",
        "update voter",
    ]


# -- what is checked first


def test_checks_come_in_their_order() -> None:
    # Q14, and before any state changes
    replica = make(1, epoch=5)
    other_cluster = Uuid(bytes(16))
    wrong = vote(1, epoch=EPOCH_MAX, to=key_of(1, disk=2), cluster_id=other_cluster)
    assert replica.why_not(wrong) is Refusal.WRONG_CLUSTER
    wrong = vote(1, epoch=EPOCH_MAX, to=key_of(1, disk=2))
    assert replica.why_not(wrong) is Refusal.WRONG_RECIPIENT
    assert replica.why_not(vote(1, epoch=EPOCH_MAX, to=1)) is Refusal.SAME_NODE_ID
    assert replica.why_not(vote(key_of(1, disk=2), epoch=6, to=1)) is Refusal.SAME_NODE_ID
    assert replica.why_not(vote(2, epoch=-1, to=1)) is Refusal.INVALID_REQUEST
    nobody = ReplicaKey(0, key_of(2).directory_id)
    assert replica.why_not(vote(nobody, epoch=6, to=1)) is Refusal.INVALID_REQUEST
    too_far = 5 + EPOCH_LEAD_MAX + 1
    assert replica.why_not(vote(2, epoch=too_far, to=1)) is Refusal.EPOCH_TOO_FAR_AHEAD
    assert replica.why_not(vote(2, epoch=too_far - 1, to=1)) is None
    assert replica.why_not(vote(2, epoch=6)) is None, "who only knows an address names nobody"
    assert replica.effects == []


def test_nobody_takes_us_to_the_last_epoch() -> None:
    replica = make(epoch=EPOCH_MAX - 5)
    assert replica.is_plausible(EPOCH_MAX - 1)
    assert not replica.is_plausible(EPOCH_MAX)


# -- timers


def test_times_are_drawn_from_their_ranges() -> None:
    replica = make()
    assert replica.election_timeout() == 1_999
    assert replica.pre_vote_pause() == 999
    replica.draw = lambda _: 0
    assert replica.election_timeout() == 1_000
    assert replica.pre_vote_pause() == 500
    assert replica.fetch_timeout() == 2_000


# -- who may campaign


def test_voters_may_campaign_and_so_may_one_whose_removal_is_not_committed() -> None:
    # thesis 4.2.2
    replica = make(3)
    replica.log.append(Batch(0, 0, 1, control=voters_of(1, 2, 3)))
    replica.log.append(Batch(1, 0, 1, control=voters_of(1, 2)))
    replica.high_watermark = 1
    assert (replica.is_voter, replica.may_campaign) == (False, True)
    replica.high_watermark = 2
    assert not replica.may_campaign


def test_one_whose_removal_may_not_be_committed_campaigns_after_a_restart_too() -> None:
    """The high watermark is then unknown, and at offset 0 it was no voter yet."""
    replica = make(3)
    for offset, ids in enumerate(((1, 2), (1, 2, 3), (1, 3), (1,))):
        replica.log.append(Batch(offset, 0, 1, control=voters_of(*ids)))
    replica.high_watermark = 0
    assert (replica.is_voter, replica.may_campaign) == (False, True)
    replica.log.append(Batch(4, 0, 1, control=voters_of(1, 2)))
    assert not replica.may_campaign  # each change waits for the one before it


def test_a_change_of_others_does_not_bring_back_one_that_was_removed() -> None:
    # KAFKA-17067
    replica = make(3)
    replica.log.append(Batch(0, 0, 1, control=voters_of(1, 2)))
    replica.log.append(Batch(1, 0, 1, control=voters_of(1, 2, 4)))
    replica.high_watermark = 1
    assert not replica.may_campaign
