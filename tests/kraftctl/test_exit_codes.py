import pytest

from kraftctl import exit_codes
from kraftctl.exit_codes import error_of, exit_code
from kraftlog.errors import (
    ConfigError,
    KraftError,
    NetworkError,
    NotController,
    NotYetSupported,
    StaleEpoch,
    TopicExists,
    UnknownTopicOrPartition,
    WireError,
    from_wire,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), exit_codes.USAGE),
        (NotYetSupported("x"), exit_codes.USAGE),
        (NetworkError("x"), exit_codes.UNREACHABLE),
        (NotController("x"), exit_codes.UNREACHABLE),
        (UnknownTopicOrPartition("x"), exit_codes.NOT_FOUND),
        (exit_codes.NotFound("x"), exit_codes.NOT_FOUND),
        (TopicExists("x"), exit_codes.CONFLICT),
        (StaleEpoch("x"), exit_codes.CONFLICT),
        (exit_codes.Conflict("x"), exit_codes.CONFLICT),
        (exit_codes.Guarded("x"), exit_codes.REFUSED),
        (KraftError("x"), exit_codes.FAILED),
        (from_wire(WireError(8, "cannot be reached", "")), exit_codes.UNREACHABLE),
        (from_wire(WireError(127, "no voter", "")), exit_codes.NOT_FOUND),
        (from_wire(WireError(126, "voter", "")), exit_codes.CONFLICT),
        (from_wire(WireError(38, "rf", "")), exit_codes.USAGE),
    ],
)
def test_each_kind_of_error_has_its_code(error: KraftError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize("code", [1, 2, 4, 5, 6, 7])
def test_what_another_process_ended_with_is_an_error_here(code: int) -> None:
    error = error_of(code, "no", "try again")
    assert (exit_code(error), error.message, error.hint) == (code, "no", "try again")
