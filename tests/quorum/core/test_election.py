"""Who gets a vote, who announces itself, who steps down (KIP-595, KIP-996)."""

from collections.abc import Callable

import pytest

from kraftlog.types import Uuid
from quorum.core.effects import Effect, SaveElection, Send, SendReply
from quorum.core.messages import (
    FetchRequest,
    Refusal,
    VoteReply,
    VoteRequest,
)
from quorum.core.state import (
    Candidate,
    ElectionState,
    Follower,
    Leader,
    Prospective,
    Unattached,
)
from tests.quorum.core.cluster import Cluster, key_of, kinds, voters_of
from tests.quorum.core.disk import Disk
from tests.quorum.core.requests import vote
from tests.quorum.core.roles import (
    LONGER,
    OURS,
    SHORTER,
    candidate,
    disk_of,
    follower,
    follower_that_fetched,
    follower_voted_for_2,
    leader,
    prospective,
    prospective_voted_for_2,
    resigned,
    unattached,
    unattached_voted_for_2,
    unattached_with_leader,
)

BEHIND, VOTED, ALIVE = Refusal.LOG_BEHIND, Refusal.ALREADY_VOTED, Refusal.LEADER_ALIVE

# How node 2 fares: with a vote and a log as long as ours, and with a shorter log; and the same
# with a pre-vote.
TABLE: list[tuple[Callable[[], Cluster], list[Refusal | None]]] = [
    (unattached, [None, BEHIND, None, BEHIND]),
    (unattached_voted_for_2, [None, None, None, BEHIND]),
    (unattached_with_leader, [ALIVE, ALIVE, None, BEHIND]),
    (prospective, [None, BEHIND, None, BEHIND]),
    (prospective_voted_for_2, [None, None, None, BEHIND]),
    (candidate, [VOTED, VOTED, None, BEHIND]),
    (follower, [ALIVE, ALIVE, None, BEHIND]),
    (follower_voted_for_2, [ALIVE, ALIVE, None, BEHIND]),
    (follower_that_fetched, [ALIVE, ALIVE, ALIVE, ALIVE]),
    (leader, [ALIVE, ALIVE, ALIVE, ALIVE]),
    (resigned, [VOTED, VOTED, None, BEHIND]),
]
CASES = [(False, OURS), (False, SHORTER), (True, OURS), (True, SHORTER)]


@pytest.mark.parametrize(
    ("make", "expected"), TABLE, ids=lambda each: getattr(each, "__name__", "")
)
def test_votes_and_pre_votes_by_role(
    make: Callable[[], Cluster], expected: list[Refusal | None]
) -> None:
    for (pre_vote, last), refusal in zip(CASES, expected, strict=True):
        cluster = make()
        before = cluster.nodes[1].disk.election
        reply = cluster.answer(1, vote(2, epoch=5, last=last, pre_vote=pre_vote, to=1))
        assert reply.refusal is refusal, (pre_vote, last)
        assert reply.epoch == 5
        after = cluster.nodes[1].disk.election
        if pre_vote or refusal:
            assert after == before, "nothing was promised"
        else:
            assert after.voted_key == key_of(2), "durable before the answer"  # Q3


@pytest.mark.parametrize(
    ("make", "expected"), TABLE, ids=lambda each: getattr(each, "__name__", "")
)
def test_somebody_else_never_gets_a_vote_that_was_given(
    make: Callable[[], Cluster], expected: list[Refusal | None]
) -> None:
    # Q3: also not another disk of the node that got it
    cluster = make()
    if cluster.nodes[1].disk.election.voted_key is None:
        return
    for rival in (key_of(3), key_of(2, disk=2)):
        reply = cluster.answer(1, vote(rival, epoch=5, last=(4, 99), to=1))
        assert reply.refusal in (VOTED, ALIVE)


@pytest.mark.parametrize("make", [each for each, _ in TABLE], ids=lambda each: each.__name__)
def test_a_higher_epoch_is_entered_whatever_comes_of_the_vote(
    make: Callable[[], Cluster],
) -> None:
    cluster = make()
    assert cluster.answer(1, vote(2, epoch=6, last=SHORTER, to=1)).refusal is BEHIND
    assert cluster.nodes[1].disk.election == ElectionState(6)
    cluster = make()
    reply = cluster.answer(1, vote(2, epoch=6, last=LONGER, to=1))
    assert (reply.refusal, reply.epoch) == (None, 6)
    assert cluster.nodes[1].disk.election == ElectionState(6, key_of(2))
    cluster.role(1, Unattached)


def test_a_candidate_need_not_be_a_voter_of_ours() -> None:
    # Our voter set may be the stale one.
    assert unattached().answer(1, vote(7, epoch=6, last=OURS, to=1)).refusal is None


def test_an_observer_grants_votes() -> None:
    cluster = Cluster(0)
    cluster.add_node(1, Disk(bootstrap=voters_of(2, 3)))
    assert cluster.answer(1, vote(2, epoch=1, to=1)).refusal is None
    assert cluster.nodes[1].disk.election.voted_key == key_of(2)


@pytest.mark.parametrize(
    "request_",
    [
        vote(2, epoch=6, last=(2, -1)),
        vote(2, epoch=6, last=(-1, 3)),
        vote(2, epoch=6, last=(6, 3)),
        vote(2, epoch=6, last=(7, 3), pre_vote=True),
    ],
)
def test_a_vote_that_makes_no_sense_changes_nothing(request_: VoteRequest) -> None:
    cluster = unattached()
    assert cluster.answer(1, request_).refusal is Refusal.INVALID_REQUEST
    assert cluster.nodes[1].disk.election == ElectionState(5)


def test_a_pre_vote_may_come_from_the_very_epoch_its_log_ends_in() -> None:
    assert unattached().answer(1, vote(2, epoch=5, last=(5, 9), pre_vote=True)).refusal is None


def test_an_older_epoch_is_stale() -> None:
    cluster = unattached()
    assert cluster.answer(1, vote(2, epoch=4, last=(3, 9))).refusal is Refusal.EPOCH_STALE


def test_every_refusal_is_remembered_with_its_reason() -> None:
    cluster = unattached()
    cluster.answer(1, vote(2, epoch=5, last=SHORTER))
    cluster.answer(1, vote(2, epoch=5, last=SHORTER, pre_vote=True))
    cluster.answer(1, vote(2, epoch=5, cluster_id=Uuid(bytes(16))))
    notes = cluster.nodes[1].core.refusals[2]
    assert [(note.request, note.refusal, note.ours) for note in notes] == [
        ("vote", Refusal.LOG_BEHIND, True),
        ("pre-vote", Refusal.LOG_BEHIND, True),
        ("vote", Refusal.WRONG_CLUSTER, True),
    ]


# -- two at once


def ask(cluster: Cluster, *node_ids: int) -> None:
    """These become prospective before any has heard of the other."""
    for node_id in node_ids:
        cluster.role(node_id, Unattached).election_deadline_ms = cluster.now_ms
        cluster.tick(node_id)
        cluster.role(node_id, Prospective)


def two_of_three(short: int | None = None) -> Cluster:
    """Nodes 1 and 2 with the log of before; `short` has less of it."""
    cluster = Cluster(0)
    for node_id in (1, 2):
        disk = disk_of(ElectionState(5))
        if node_id == short:
            disk.truncate(2)
        cluster.add_node(node_id, disk)
    return cluster


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize(("short", "winner"), [(None, 1), (1, 2), (2, 1)])
def test_of_two_that_ask_at_once_the_longer_log_then_the_lower_key_goes_on(
    order: tuple[int, int], short: int | None, winner: int
) -> None:
    cluster = two_of_three(short)
    ask(cluster, *order)
    cluster.settle()
    assert [node.node_id for node in cluster.leaders] == [winner]
    assert cluster.leader.core.epoch == 6, "no epoch was wasted on a split vote"


def test_nobody_steps_back_for_one_that_is_no_voter() -> None:
    cluster = prospective()
    cluster.answer(1, vote(7, epoch=5, last=LONGER, pre_vote=True))
    cluster.role(1, Prospective)


def test_a_rival_that_was_refused_makes_us_ask_again() -> None:
    """It heard the leader when we asked, and now it does not: what it said is void."""
    cluster = prospective()
    inflight = cluster.nodes[1].core._replica.inflight
    number = next(number for number, flight in inflight.items() if flight.endpoint == "n2")
    cluster.reply(1, number, VoteReply(epoch=5, leader=None, refusal=ALIVE))
    assert [flight.endpoint for flight in inflight.values()] == ["n3"]
    assert cluster.answer(1, vote(2, epoch=5, last=SHORTER, pre_vote=True)).refusal is BEHIND
    assert sorted(flight.endpoint for flight in inflight.values()) == ["n2", "n3"]


def test_a_rival_may_overtake_its_own_refusal_once() -> None:
    cluster = prospective()
    inflight = cluster.nodes[1].core._replica.inflight
    cluster.answer(1, vote(2, epoch=5, last=SHORTER, pre_vote=True))
    for still_asked in (True, False):
        number = next(number for number, flight in inflight.items() if flight.endpoint == "n2")
        cluster.reply(1, number, VoteReply(epoch=5, leader=None, refusal=ALIVE))
        assert ("n2" in {flight.endpoint for flight in inflight.values()}) == still_asked


# -- asking


def test_a_candidate_asks_with_what_it_has_flushed() -> None:
    """Who voted for us does so again in the same epoch, whatever our log is by then. So we must
    not have asked with records that a crash takes away: here one of them was committed.
    """
    cluster = Cluster(3, auto_flush=False)

    def flush(*node_ids: int) -> None:
        for _ in range(8):
            cluster.settle()
            for node_id in node_ids:
                cluster.finish_flush(node_id)

    cluster.until(lambda: cluster.leaders != [])
    flush(1, 2, 3)
    cluster.propose("x")
    flush(1, 2)
    assert cluster.nodes[1].core.high_watermark == 3
    assert (cluster.nodes[3].disk.flushed_offset, cluster.nodes[3].disk.end_offset) == (2, 3)
    # The leader dies, and node 3 is the first to notice.
    cluster.crash(1)
    cluster.role(2, Follower).has_fetched = False
    cluster.role(3, Follower).fetch_deadline_ms = cluster.now_ms = cluster.now_ms + 1
    cluster.tick(3)
    asked = [each.body for each in cluster.wire if isinstance(each.body, VoteRequest)]
    assert {(each.last_epoch, each.end_offset) for each in asked} == {(1, 2)}
    # All that it hears is no, so it cannot be elected without the record.
    cluster.deliver_to(2)
    cluster.crash(3)
    cluster.restart(3)
    cluster.until(lambda: any(node.core.epoch > 1 for node in cluster.leaders))
    assert cluster.leader.node_id == 2


def test_a_lost_answer_is_asked_for_again() -> None:
    cluster = Cluster(3)
    cluster.lose_all()
    ask(cluster, 1)
    cluster.lose_all()
    for request_id in list(cluster.nodes[1].open_requests):
        cluster.fail(1, request_id)
    assert cluster.wire == [], "after a pause"
    cluster.now_ms += 20
    cluster.tick(1)
    assert kinds(cluster.wire) == ["1>2 VoteRequest", "1>3 VoteRequest"]


def test_who_said_no_is_not_asked_again() -> None:
    cluster = candidate()
    inflight = cluster.nodes[1].core._replica.inflight
    refused = next(number for number, flight in inflight.items() if flight.endpoint == "n2")
    cluster.reply(1, refused, VoteReply(epoch=5, leader=None, refusal=VOTED))
    cluster.now_ms += 20
    cluster.tick(1)
    assert [flight.endpoint for flight in inflight.values()] == ["n3"]


def test_an_answer_from_another_disk_is_neither_yes_nor_no() -> None:
    cluster = candidate()
    inflight = cluster.nodes[1].core._replica.inflight
    number = next(iter(inflight))
    cluster.reply(1, number, VoteReply(epoch=5, leader=None, refusal=Refusal.WRONG_RECIPIENT))
    assert key_of(2) in cluster.role(1, Candidate).tally.unrecorded


def test_a_vote_names_its_recipient_down_to_the_disk() -> None:
    # Q14: a wiped disk cannot vote as its former self.
    cluster = Cluster(3)
    cluster.wipe(2)
    cluster.lose_all()
    ask(cluster, 1)
    cluster.settle()
    votes = [note for note in cluster.nodes[1].core.refusals[2] if note.request == "pre-vote"]
    assert {note.refusal for note in votes} == {Refusal.WRONG_RECIPIENT}
    cluster.until(lambda: cluster.leaders != [])
    assert key_of(2) not in cluster.role(cluster.leader.node_id, Leader).granted_by


def test_requests_vouch_for_the_flush_that_they_rest_on() -> None:
    cluster = Cluster(3)
    sent: list[Send] = []
    cluster.trace = lambda _, effect: sent.append(effect) if isinstance(effect, Send) else None
    cluster.elect(1)
    for each in sent:
        match each.request:
            case FetchRequest(offset=offset):
                assert each.after_flush == offset
            case VoteRequest(end_offset=end_offset):
                assert each.after_flush == end_offset
            case _:
                assert each.after_flush is None


def test_a_vote_is_on_disk_before_its_answer_is_on_the_wire() -> None:
    # Q3, nodedb 161: the order of the effects is the order of the world.
    cluster = Cluster(3)
    effects: list[Effect] = []
    cluster.trace = lambda _, effect: effects.append(effect)
    cluster.answer(2, vote(1, epoch=1, to=2))
    saved = effects.index(SaveElection(ElectionState(1, key_of(1))))
    assert saved < [type(effect) for effect in effects].index(SendReply)
