import pytest

from brokers.refusals import LeaderHint
from brokers.wire import (
    EMPTY_DIRECTORY,
    decode_endpoint,
    decode_error,
    decode_hint,
    encode_endpoint,
    encode_error,
    unknown_topic,
)
from kraftlog.errors import ErrorCode, NotLeaderError, UnknownTopicOrPartition
from tests.brokers.views import view_of


@pytest.mark.parametrize("address", ["localhost:9092", "10.0.0.1:1", "[::1]:65535", "b-1.x:9092"])
def test_an_address_is_the_same_there_and_back(address: str) -> None:
    assert decode_endpoint(encode_endpoint(address)) == address


def test_an_ipv6_address_travels_without_brackets() -> None:
    assert encode_endpoint("[::1]:9092").host == "::1"


def test_an_error_says_what_is_wrong_what_to_do_and_where_to_go() -> None:
    error = NotLeaderError("broker 1 does not lead t-0", hint="broker 2 leads it")
    wire = encode_error(error, LeaderHint(2, 7), view_of())
    assert (wire.code, wire.message, wire.hint) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "broker 1 does not lead t-0",
        "broker 2 leads it",
    )
    assert wire.leader.epoch == 7
    assert decode_endpoint(wire.leader.leader.endpoint) == "host2:9002"
    assert decode_hint(wire) == LeaderHint(2, 7)
    back = decode_error(wire, "b1")
    assert isinstance(back, NotLeaderError)
    assert back.node == "b1"


def test_a_leader_that_nobody_knows_is_not_made_up() -> None:
    error = NotLeaderError("nobody leads")
    assert not encode_error(error, LeaderHint(-1, 7), view_of()).leader.HasField("leader")
    assert not encode_error(error, LeaderHint(9, 7), view_of()).leader.HasField("leader")
    assert decode_hint(encode_error(error, LeaderHint(-1, 7), view_of())) == LeaderHint(-1, 7)
    assert decode_hint(encode_error(error, None, EMPTY_DIRECTORY)) is None


def test_an_unknown_name_is_named() -> None:
    assert isinstance(unknown_topic("x"), UnknownTopicOrPartition)
    assert "'x'" in str(unknown_topic("x"))
    assert EMPTY_DIRECTORY.topic_id("x") is None
    assert EMPTY_DIRECTORY.endpoint(1) is None
