import asyncio
import logging

import pytest

from kraftlog._check import InvariantViolation, invariant
from kraftlog.loop_failures import end_on_broken_invariant
from tests.loops import run


def raise_it(error: Exception) -> None:
    raise error


def test_a_broken_invariant_in_a_callback_is_told_and_other_errors_are_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures: list[BaseException] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        end_on_broken_invariant(loop, failures.append)
        loop.call_soon(raise_it, ValueError("a stranger's"))
        loop.call_soon(invariant, False, "ours")
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        run(story())
    assert [type(each) for each in failures] == [InvariantViolation]
    assert len(caplog.records) == 2
