import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.clock import SystemClock
from kraftlog.error_codes import ErrorCode
from kraftlog.errors import (
    InvalidRecord,
    KraftError,
    NetworkError,
    NotEnoughReplicas,
    NotLeaderError,
    class_of,
)
from kraftlog.retry import Backoff, Retry, may_repeat, needs_new_view


@given(st.integers(1, 100), st.integers(0, 2**32))
def test_pauses_double_up_to_a_limit(failures: int, seed: int) -> None:
    backoff = Backoff(first_ms=50, max_ms=1_000)
    pause = backoff.pause_ms(failures, Random(seed))
    plain = min(50 * 2 ** (failures - 1), 1_000)
    assert plain * 0.8 <= pause <= plain * 1.2


@pytest.mark.parametrize("code", [code for code in ErrorCode if code != ErrorCode.NONE])
def test_a_repeat_is_allowed_by_the_kind_of_the_error(code: ErrorCode) -> None:
    error = class_of(code)("x", code=code)
    assert may_repeat(error, harmless=False) == code.retriable
    assert may_repeat(error, harmless=True) == (code.retriable or code.outcome_unknown)


def test_whom_the_view_is_asked_for_after() -> None:
    assert needs_new_view(NotLeaderError("moved"))
    assert needs_new_view(NetworkError("gone"))
    assert needs_new_view(KraftError("gone", code=ErrorCode.BROKER_NOT_AVAILABLE))
    assert not needs_new_view(NotEnoughReplicas("for now"))


def run(
    errors: list[KraftError], *, harmless: bool = False, timeout_ms: float = 10_000
) -> tuple[int, list[KraftError]]:
    """Attempts that fail with these errors, one after another, and then succeed."""
    retry = Retry(Backoff(1, 2), SystemClock(), Random(1))
    left, heard = list(errors), []
    attempts = 0

    async def attempt(remaining_ms: float) -> int:
        nonlocal attempts
        attempts += 1
        assert 0 < remaining_ms <= timeout_ms
        if left:
            raise left.pop(0)
        return attempts

    async def on_failure(error: KraftError) -> None:
        heard.append(error)

    result = asyncio.run(
        retry.run(attempt, timeout_ms=timeout_ms, harmless=harmless, on_failure=on_failure)
    )
    return result, heard


def test_it_asks_until_there_is_an_answer() -> None:
    errors: list[KraftError] = [NotLeaderError("moved"), NotEnoughReplicas("for now")]
    assert run(errors) == (3, errors)


def test_what_would_be_refused_again_is_not_asked_again() -> None:
    with pytest.raises(InvalidRecord):
        run([InvalidRecord("never")])


def test_an_unknown_outcome_is_repeated_only_where_that_is_harmless() -> None:
    assert run([NetworkError("gone")], harmless=True)[0] == 2
    with pytest.raises(NetworkError):
        run([NetworkError("gone")])


def test_when_the_time_is_over_the_last_error_is_raised() -> None:
    errors: list[KraftError] = [NotEnoughReplicas(str(number)) for number in range(10_000)]
    with pytest.raises(NotEnoughReplicas) as raised:
        run(errors, timeout_ms=50)
    assert raised.value.attempts > 1
    assert raised.value.message == str(raised.value.attempts - 1)


def test_there_is_no_attempt_after_the_time() -> None:
    """The error of one that had no time would hide that of the one that had."""
    now_ms = 0

    class Clock(SystemClock):
        def monotonic_ms(self) -> int:
            return now_ms

    async def attempt(remaining_ms: float) -> None:
        nonlocal now_ms
        assert remaining_ms > 1
        now_ms += int(remaining_ms)
        raise NotEnoughReplicas("took all the time")

    with pytest.raises(NotEnoughReplicas, match="took all the time"):
        asyncio.run(
            Retry(Backoff(1, 2), Clock(), Random(1)).run(attempt, timeout_ms=100, harmless=False)
        )
