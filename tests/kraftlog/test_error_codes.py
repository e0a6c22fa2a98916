"""The table agrees with Kafka's, as an independent client (kio) has copied it."""

import pytest
from kio.schema.errors import ErrorCode as KioCode

from kraftlog.error_codes import SUCCESS, ErrorCode, code_name, find_code

# Kafka calls these retriable and we do not, or the other way round; each for a reason.
KAFKA_RETRIES_WE_DO_NOT = {
    ErrorCode.CORRUPT_MESSAGE,  # a second try brings the same bytes
    ErrorCode.ELECTION_NOT_NEEDED,  # the wanted leader leads already
    # These may have happened, which is what Kafka's flag cannot say.
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
WE_RETRY_KAFKA_DOES_NOT = {
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.OPERATION_NOT_ATTEMPTED,  # nothing happened, by its very name
}


@pytest.mark.parametrize("code", ErrorCode)
def test_name_and_number_are_those_of_kafka(code: ErrorCode) -> None:
    assert KioCode(int(code)).name == code.name.lower()


@pytest.mark.parametrize("code", ErrorCode)
def test_retriable_as_in_kafka_but_for_the_named_exceptions(code: ErrorCode) -> None:
    expected = KioCode(int(code)).retriable
    if code in KAFKA_RETRIES_WE_DO_NOT:
        assert expected
        expected = False
    if code in WE_RETRY_KAFKA_DOES_NOT:
        assert not expected
        expected = True
    assert code.retriable == expected


@pytest.mark.parametrize("code", ErrorCode)
def test_at_most_one_of_the_three_holds(code: ErrorCode) -> None:
    assert code.retriable + code.fatal + code.outcome_unknown <= 1
    assert code.kind.blame


def test_only_none_is_a_success() -> None:
    assert [code for code in ErrorCode if code.kind is SUCCESS] == [ErrorCode.NONE]


def test_find_code_and_name() -> None:
    assert find_code(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_name(6) == "NOT_LEADER_OR_FOLLOWER"


def test_a_number_of_the_future_has_no_code_but_a_name() -> None:
    assert find_code(30_000) is None
    assert code_name(30_000) == "ERROR_30000"
