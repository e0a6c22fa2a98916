import inspect
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog import errors
from kraftlog._check import InvariantViolation
from kraftlog.error_codes import find_code
from kraftlog.errors import (
    AmbiguousError,
    AuthError,
    ConfigError,
    ErrorCode,
    FencedError,
    InvalidMetadataError,
    KraftError,
    LogDamaged,
    NotEnoughReplicas,
    NotLeaderError,
    NotYetSupported,
    OutOfOrderSequence,
    RequestTimedOut,
    RetriableError,
    StorageError,
    TimeoutError_,
    WireError,
    class_of,
    from_wire,
    to_wire,
)

FAILURES = [code for code in ErrorCode if code is not ErrorCode.NONE]
CLASSES = [
    member
    for _, member in inspect.getmembers(errors, inspect.isclass)
    if issubclass(member, KraftError)
]


def drawn_tree() -> dict[str, str]:
    """Child -> parent, as the module's docstring draws it."""
    drawn: dict[str, str] = {}
    above: dict[int, str] = {0: "KraftError"}
    for line in (errors.__doc__ or "").splitlines():
        branch = re.match(r"^ {4}([│ ]*[├└]── )(\w+)", line)
        if branch:
            depth = len(branch[1]) // 4
            drawn[branch[2]] = above[depth - 1]
            above[depth] = branch[2]
    return drawn


def real_tree(root: type[KraftError] = KraftError) -> dict[str, str]:
    real: dict[str, str] = {}
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            real[child.__name__] = root.__name__
            real |= real_tree(child)
    return real


def test_the_drawn_tree_is_the_real_tree_in_the_same_order() -> None:
    assert list(drawn_tree().items()) == list(real_tree().items())


@pytest.mark.parametrize("code", FAILURES)
def test_every_code_travels_there_and_back(code: ErrorCode) -> None:
    error = from_wire(WireError(code, "what happened", "what to do"), node="b2")
    assert error.code is code
    assert error.code_name == code.name
    assert error.node == "b2"
    assert to_wire(error) == WireError(code, "what happened", "what to do")
    assert type(from_wire(to_wire(error))) is type(error)


@pytest.mark.parametrize("code", FAILURES)
def test_the_exception_says_what_its_code_says(code: ErrorCode) -> None:
    error = from_wire(WireError(code, "", ""))
    assert error.retriable == code.retriable
    assert error.fatal == code.fatal
    assert error.outcome_unknown == code.outcome_unknown


@pytest.mark.parametrize("code", FAILURES)
def test_the_families_are_the_three_attributes(code: ErrorCode) -> None:
    assert issubclass(class_of(code), RetriableError) == code.retriable
    assert issubclass(class_of(code), AmbiguousError | StorageError) == code.outcome_unknown
    assert issubclass(class_of(code), FencedError | OutOfOrderSequence) == code.fatal


@pytest.mark.parametrize("error_class", CLASSES)
def test_what_the_receiver_sees_is_the_class_that_was_raised_or_one_above(
    error_class: type[KraftError],
) -> None:
    raised = error_class("x")
    received = from_wire(to_wire(raised))
    if raised.code == ErrorCode.UNKNOWN_SERVER_ERROR or error_class is TimeoutError_:
        assert type(received) in {AmbiguousError, RequestTimedOut}
    else:
        assert isinstance(raised, type(received))


@given(st.integers(min_value=-(2**15), max_value=2**15 - 1), st.text(), st.text())
def test_any_number_is_kept_and_an_unknown_one_is_ambiguous(
    code: int, text: str, hint: str
) -> None:
    if code == ErrorCode.NONE:
        return
    error = from_wire(WireError(code, text, hint))
    assert to_wire(error) == WireError(code, text or error.code_name, hint)
    if find_code(code) is None:
        assert type(error) is AmbiguousError
        assert error.outcome_unknown
        assert not error.retriable
        assert error.code_name == f"ERROR_{code}"


def test_a_code_without_a_class_becomes_the_class_of_its_kind() -> None:
    assert class_of(ErrorCode.INVALID_REQUIRED_ACKS) is KraftError
    assert class_of(ErrorCode.INCONSISTENT_TOPIC_ID) is InvalidMetadataError
    assert class_of(ErrorCode.TOPIC_AUTHORIZATION_FAILED) is AuthError


def test_a_reply_without_an_error_is_no_exception() -> None:
    with pytest.raises(InvariantViolation, match="no exception"):
        from_wire(WireError(ErrorCode.NONE, "", ""))


def test_a_timeout_is_harmless_before_sending_and_ambiguous_after() -> None:
    assert TimeoutError_("max.block.ms passed").retriable
    assert isinstance(TimeoutError_("max.block.ms passed"), TimeoutError)
    assert class_of(TimeoutError_.code) is RequestTimedOut
    assert RequestTimedOut("no reply in 30 s").outcome_unknown


def test_text_shows_the_hint_and_message_does_not() -> None:
    error = NotLeaderError("b1 does not lead orders-0", hint="b2 does")
    assert str(error) == "b1 does not lead orders-0 (b2 does)"
    assert error.message == "b1 does not lead orders-0"
    assert str(NotEnoughReplicas("1 of 2")) == "1 of 2"
    assert NotEnoughReplicas("1 of 2").attempts == 1


def test_damage_here_is_certain_and_a_storage_error_of_a_server_is_not() -> None:
    assert not LogDamaged("x").outcome_unknown
    assert StorageError("x").outcome_unknown


def test_a_wrong_configuration_is_a_value_error() -> None:
    assert isinstance(ConfigError("x"), ValueError)
    assert NotYetSupported("x").code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("error_class", CLASSES)
def test_errors_cross_process_boundaries(error_class: type[KraftError]) -> None:
    error = error_class("m", hint="h", node="b1", attempts=3, code=30_000)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is error_class
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
