import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from quorum.core.messages import ReplicaKey
from quorum.core.state import NEVER_MS, ElectionState, Follower, Leader, Progress
from tests.quorum.core.cluster import key_of, voter_of

EPOCHS = st.integers(0, 3)
VOTES = st.sampled_from([None, key_of(1), key_of(2), key_of(2, disk=2)])
LEADERS = st.sampled_from([None, 1, 2])
STATES = st.builds(ElectionState, EPOCHS, VOTES, LEADERS)


def may_follow(old: ElectionState, new: ElectionState) -> bool:
    """Q2, Q3: what the file `quorum-state` may be overwritten with."""
    if new.epoch != old.epoch:
        return new.epoch > old.epoch
    kept_vote = old.voted_key is None or old.voted_key == new.voted_key
    return kept_vote and (old.leader_id is None or old.leader_id == new.leader_id)


@given(STATES, STATES)
def test_vote_and_leader_stay_until_the_epoch_rises(old: ElectionState, new: ElectionState) -> None:
    if may_follow(old, new):
        old.check_successor(new)
    else:
        with pytest.raises(InvariantViolation):
            old.check_successor(new)


@pytest.mark.parametrize(
    ("first", "second"),
    [(key_of(1), key_of(2)), (key_of(2), key_of(2, disk=2)), (key_of(1), None)],
)
def test_a_second_vote_is_a_bug(first: ReplicaKey, second: ReplicaKey | None) -> None:
    # Q3, also for another disk of the same node, and for a vote that is taken back
    with pytest.raises(InvariantViolation, match="second vote"):
        ElectionState(1, first).check_successor(ElectionState(1, second))


def test_a_leader_begins_with_knowing_nothing_of_the_others() -> None:
    leader = Leader(start_offset=5, check_quorum_deadline_ms=10, begin_at_ms=0)
    assert leader.parked_until_ms == NEVER_MS
    assert (leader.replicas, leader.parked, leader.heard_ms) == ({}, {}, {})
    assert Progress().end_offset == -1, "less than an empty log: it has not fetched"


def test_a_follower_has_heard_nothing_yet() -> None:
    follower = Follower(voter_of(1), fetch_deadline_ms=5, update_voter_at_ms=9)
    assert not follower.has_fetched
    assert follower.download is None
