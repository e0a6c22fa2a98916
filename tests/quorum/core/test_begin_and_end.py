"""A leader announces itself (BeginQuorumEpoch) and steps down (EndQuorumEpoch)."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from quorum.core.effects import Send
from quorum.core.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    Refusal,
    ReplicaKey,
)
from quorum.core.state import ElectionState, Follower, Prospective, Resigned, Unattached
from tests.quorum.core.cluster import Cluster, key_of, voter_of
from tests.quorum.core.requests import begin, end
from tests.quorum.core.roles import (
    candidate,
    follower,
    follower_that_fetched,
    leader,
    prospective,
    resigned,
    unattached,
    unattached_voted_for_2,
)

# -- a leader announces itself


@pytest.mark.parametrize(
    "make", [unattached, unattached_voted_for_2, prospective, candidate], ids=lambda f: f.__name__
)
def test_a_leader_that_announces_itself_is_followed(make: Callable[[], Cluster]) -> None:
    cluster = make()
    voted = cluster.nodes[1].disk.election.voted_key
    assert cluster.answer(1, begin(3, epoch=5)).refusal is None
    assert cluster.role(1, Follower).leader == voter_of(3)
    assert cluster.nodes[1].disk.election == ElectionState(5, voted, 3), "the vote stays"


@pytest.mark.parametrize("make", [leader, resigned, follower], ids=lambda f: f.__name__)
@pytest.mark.parametrize("sender", [key_of(2), key_of(3, disk=2)])
def test_a_second_leader_in_one_epoch_is_not_believed(
    make: Callable[[], Cluster], sender: ReplicaKey
) -> None:
    # Q1
    cluster = make()
    before = cluster.nodes[1].disk.election
    assert cluster.answer(1, begin(sender, epoch=5)).refusal is Refusal.OTHER_LEADER
    assert cluster.nodes[1].disk.election == before


def test_an_old_leader_hears_of_the_new_epoch() -> None:
    reply = follower().answer(1, begin(2, epoch=4))
    assert (reply.refusal, reply.epoch, reply.leader) == (Refusal.EPOCH_STALE, 5, voter_of(3))


def test_an_announcement_is_no_sign_of_life() -> None:
    # Only fetches are: it does not reset the timer.
    cluster = follower()
    deadline_ms = cluster.role(1, Follower).fetch_deadline_ms
    cluster.now_ms = 700
    cluster.answer(1, begin(3, epoch=5, endpoint="elsewhere"))
    role = cluster.role(1, Follower)
    assert role.fetch_deadline_ms == deadline_ms
    assert not role.has_fetched
    assert role.leader.endpoint == "elsewhere", "it has moved"


def test_a_leader_announces_itself_to_the_other_voters_again_and_again() -> None:
    cluster = Cluster(3, 1)
    cluster.elect(1)
    begun: list[tuple[int, str]] = []

    def note(_: object, effect: object) -> None:
        if isinstance(effect, Send) and isinstance(effect.request, BeginQuorumEpochRequest):
            begun.append((cluster.now_ms - since, effect.endpoint))

    since = cluster.now_ms
    cluster.trace = note
    cluster.run(3_000)
    period = cluster.timing.begin_period_ms
    times = sorted({at for at, _ in begun})
    assert [later - at for at, later in pairwise(times)] == [period, period]
    assert {endpoint for _, endpoint in begun} == {"n2", "n3"}


# -- a leader steps down


def test_the_first_successor_campaigns_at_once() -> None:
    cluster = follower_that_fetched()
    assert cluster.answer(1, end(3, 1, 2, epoch=5)).refusal is None
    assert cluster.role(1, Prospective).leader is None, "there is nobody to go back to"


@pytest.mark.parametrize(
    ("successors", "backoff_ms"),
    [
        ((2, 1), 500),
        ((2, 3, 1), 500),
        ((2, 3, 4, 1), 500),
        ((2, 1, 3, 4), 125),
        ((2, 3, 1, 4), 250),
        ((2, 3), 1_000),
        ((), 1_000),
    ],
)
def test_the_others_wait_for_their_turn(successors: tuple[int, ...], backoff_ms: int) -> None:
    # (max >> (n - 1)) << (position - 1); who is not named waits longest
    cluster = follower_that_fetched()
    cluster.answer(1, end(3, *successors, epoch=5))
    role = cluster.role(1, Follower)
    assert role.fetch_deadline_ms == cluster.now_ms + backoff_ms
    assert not role.has_fetched, "it grants pre-votes from now on"


def test_who_knows_no_leader_waits_for_its_turn_too_and_not_longer_than_before() -> None:
    cluster = unattached()
    before = cluster.role(1, Unattached).election_deadline_ms
    cluster.answer(1, end(3, 2, 1, epoch=5))
    assert cluster.role(1, Unattached).election_deadline_ms == cluster.now_ms + 500
    cluster = unattached()
    cluster.role(1, Unattached).election_deadline_ms = 3
    cluster.answer(1, end(3, 2, 1, epoch=5))
    assert cluster.role(1, Unattached).election_deadline_ms == 3 < before


@pytest.mark.parametrize("sender", [key_of(2), key_of(3, disk=2)])
def test_only_the_leader_can_end_its_epoch(sender: ReplicaKey) -> None:
    cluster = follower_that_fetched()
    assert cluster.answer(1, end(sender, 1, epoch=5)).refusal is Refusal.OTHER_LEADER
    assert cluster.role(1, Follower).has_fetched


def test_the_end_of_an_older_epoch_is_stale_and_of_a_newer_one_is_news() -> None:
    cluster = follower()
    assert cluster.answer(1, end(3, 1, epoch=4)).refusal is Refusal.EPOCH_STALE
    assert cluster.answer(1, end(2, 1, epoch=7)).refusal is None
    cluster.role(1, Unattached)
    assert cluster.nodes[1].disk.election == ElectionState(7)


def test_a_leader_that_said_it_is_gone_does_not_come_back_in_its_epoch() -> None:
    """Not by an announcement that was late, nor by somebody who has not heard."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.answer(2, end(1, 3, epoch=1))
    deadline_ms = cluster.role(2, Follower).fetch_deadline_ms
    assert cluster.answer(2, begin(1, epoch=1)).refusal is None
    assert cluster.role(2, Follower).fetch_deadline_ms == deadline_ms
    cluster.lose_all()
    cluster.cut(2)
    cluster.until(lambda: isinstance(cluster.nodes[2].role, Unattached))
    assert cluster.answer(2, begin(1, epoch=1)).refusal is None
    cluster.role(2, Unattached)


def test_a_graceful_resignation_elects_the_first_successor_without_delay() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.propose("a")
    cluster.settle()
    at_ms = cluster.now_ms
    cluster.resign(1)
    cluster.settle()
    assert cluster.leader.node_id == 2
    assert cluster.leader.core.epoch == 2
    assert cluster.now_ms == at_ms


def test_an_heir_campaigns_before_those_with_as_much_of_the_log() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.settle()
    cluster.act(1, lambda core: core.resign(cluster.now_ms, cluster.nodes[3].config.key))
    cluster.settle()
    assert cluster.leader.node_id == 3


def test_end_epoch_goes_to_voters_that_have_not_heard() -> None:
    cluster = Cluster(3, 1)
    cluster.elect(1)
    cluster.resign(1)
    sent = [p.target for p in cluster.wire if isinstance(p.body, EndQuorumEpochRequest)]
    assert sent == [2, 3]
    assert isinstance(cluster.nodes[1].role, Resigned)
