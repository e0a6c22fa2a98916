"""Majority maths against the dumbest version of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from quorum.core.messages import ReplicaKey
from quorum.core.tally import Tally, TallyResult, majority, majority_end
from tests.quorum.core.cluster import key_of, voters_of

ENDS = st.lists(st.integers(-1, 20), min_size=1, max_size=9)


@given(st.integers(1, 50))
def test_a_majority_is_the_least_number_of_which_two_always_meet(voters: int) -> None:
    assert 2 * majority(voters) > voters
    assert 2 * (majority(voters) - 1) <= voters


def dumb_majority_end(ends: list[int]) -> int:
    reached = (end for end in range(-1, 21) if 2 * sum(each >= end for each in ends) > len(ends))
    return max(reached)


@given(ENDS)
def test_majority_end_is_the_greatest_offset_that_more_than_half_have(ends: list[int]) -> None:
    assert majority_end(ends) == dumb_majority_end(ends)


def test_an_empty_set_of_voters_decides_nothing() -> None:
    with pytest.raises(InvariantViolation):
        majority_end([])


ANSWERS = st.lists(st.tuples(st.integers(1, 7), st.booleans()), max_size=12)


def dumb_result(size: int, answers: list[tuple[int, bool]]) -> TallyResult:
    """Grants stay; of refusals the last word counts."""
    granted = {voter for voter, yes in answers if yes and voter <= size}
    refused = {voter for voter, yes in answers if not yes and voter <= size} - granted
    if 2 * len(granted) > size:
        return TallyResult.WON
    if 2 * (size - len(refused)) <= size:
        return TallyResult.LOST
    return TallyResult.OPEN


@given(st.integers(1, 5), ANSWERS)
def test_a_tally_is_a_count_of_voters(size: int, answers: list[tuple[int, bool]]) -> None:
    # Q13: 6 and 7 are never voters, and answer all the same.
    tally = Tally(voters_of(*range(1, size + 1)))
    for voter, yes in answers:
        tally.record(key_of(voter), granted=yes)
    assert tally.result is dumb_result(size, answers)
    granted = sorted({voter for voter, yes in answers if yes and voter <= size})
    assert tally.granted_by == tuple(map(key_of, granted))
    answered = {voter for voter, _ in answers}
    assert tally.unrecorded == tuple(key_of(v) for v in range(1, size + 1) if v not in answered)


def test_a_vote_of_the_same_node_with_another_disk_does_not_count() -> None:
    # Q13, KIP-853
    tally = Tally(voters_of(1, 2, 3))
    tally.record(key_of(1), granted=True)
    tally.record(key_of(2, disk=9), granted=True)
    tally.record(ReplicaKey(3, key_of(2).directory_id), granted=True)
    assert tally.result is TallyResult.OPEN
    assert tally.granted_by == (key_of(1),)


def test_a_refusal_can_be_forgotten_and_a_grant_cannot() -> None:
    tally = Tally(voters_of(1, 2, 3))
    tally.record(key_of(1), granted=True)
    tally.record(key_of(2), granted=False)
    tally.forget_refusal(key_of(1))
    tally.forget_refusal(key_of(2))
    assert tally.unrecorded == (key_of(2), key_of(3))
    assert tally.granted_by == (key_of(1),)
