"""Requests and answers of the data plane."""

from brokers.cluster import PartitionId
from brokers.requests import (
    FetchRequest,
    IsrChange,
    IsrMember,
    ProduceReply,
    ProduceResult,
)

PARTITION = PartitionId(b"p" * 16, 0)


def test_a_fetch_without_a_word_has_no_session_and_is_a_consumers() -> None:
    request = FetchRequest()
    assert (request.session_id, request.session_epoch, request.replica) == (0, -1, None)


def test_a_change_knows_its_members() -> None:
    change = IsrChange(PARTITION, 1, 2, (IsrMember(3, 9), IsrMember(1)))
    assert change.ids == {1, 3}


def test_an_answer_has_no_error_until_it_gets_one() -> None:
    assert ProduceResult(PARTITION).error is None
    assert not ProduceReply().parts
