"""Refusals carry Kafka's number, name the values, and say where to go."""

import pytest

from brokers import refusals
from brokers.cluster import Assignment, PartitionId
from brokers.refusals import LeaderHint, Refused
from kraftlog.errors import ErrorCode, KraftError

HINT = LeaderHint(2, 7)

CASES: list[tuple[Refused, ErrorCode]] = [
    (refusals.not_leader("t-0", 1, HINT), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (refusals.cut_off("t-0", 1), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (refusals.unknown_partition("t-9"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (refusals.unknown_topic_id("aa"), ErrorCode.UNKNOWN_TOPIC_ID),
    (refusals.fenced_epoch("t-0", 3, 4, HINT), ErrorCode.FENCED_LEADER_EPOCH),
    (refusals.unknown_epoch("t-0", 5, 4), ErrorCode.UNKNOWN_LEADER_EPOCH),
    (refusals.unknown_replica("t-0", 9), ErrorCode.UNKNOWN_LEADER_EPOCH),
    (refusals.stale_replica("t-0", 2, 3, 4), ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (refusals.out_of_range("t-0", 9, 1, 5), ErrorCode.OFFSET_OUT_OF_RANGE),
    (refusals.offset_not_available("t-0", 9, 5), ErrorCode.OFFSET_NOT_AVAILABLE),
    (refusals.not_enough_replicas("t-0", 1, 2), ErrorCode.NOT_ENOUGH_REPLICAS),
]

ERRORS: list[tuple[KraftError, ErrorCode]] = [
    (
        refusals.not_enough_after_append("t-0", 1, 2),
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ),
    (refusals.produce_timed_out("t-0", 100), ErrorCode.REQUEST_TIMED_OUT),
    (refusals.session_not_found(4), ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    (refusals.wrong_session_epoch(4, 1, 2), ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    (refusals.invalid_acks(7), ErrorCode.INVALID_REQUIRED_ACKS),
]


@pytest.mark.parametrize(("refused", "code"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_each_has_its_code(refused: Refused, code: ErrorCode) -> None:
    assert refused.error.code == code
    assert str(refused.error)


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=lambda case: getattr(case, "name", ""))
def test_each_error_has_its_code(error: KraftError, code: ErrorCode) -> None:
    assert error.code == code


def test_what_may_have_happened_is_told_apart_from_what_did_not() -> None:
    assert refusals.not_enough_replicas("t-0", 1, 2).error.retriable
    assert refusals.not_enough_after_append("t-0", 1, 2).outcome_unknown
    assert refusals.produce_timed_out("t-0", 9).outcome_unknown


def test_a_hint_names_the_leader() -> None:
    assert refusals.not_leader("t-0", 1, HINT).leader == HINT
    assert "broker 2 leads it" in refusals.not_leader("t-0", 1, HINT).error.hint
    assert "refresh" in refusals.not_leader("t-0", 1, LeaderHint(-1, 7)).error.hint
    assignment = Assignment(PartitionId(b"p" * 16, 0), "t", 2, 7, 1, (2,), (2,))
    assert refusals.hint_of(assignment) == HINT
    assert refusals.hint_of(None) is None
