"""Tests of what runs on an event loop: one loop per test, and waiting for conditions."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")

SECONDS = 60.0
POLL_SECONDS = 0.005


def run(work: Coroutine[None, None, T]) -> T:
    """Run a test's coroutine to its end, which must come."""

    async def bounded() -> T:
        async with asyncio.timeout(SECONDS):
            return await work

    return asyncio.run(bounded())


async def until(holds: Callable[[], bool], what: str = "it") -> None:
    """Wait for a condition."""
    try:
        async with asyncio.timeout(SECONDS / 2):
            while not holds():  # noqa: ASYNC110 - whatever it is, it tells nobody
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise AssertionError(f"{what} did not come") from None
