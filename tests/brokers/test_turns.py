"""Long work lets others run."""

import asyncio

from brokers.turns import Turns
from tests.brokers.aio import async_test


@async_test
async def test_others_run_between_two_turns() -> None:
    ran: list[str] = []
    asyncio.get_running_loop().call_soon(ran.append, "other")
    turns = Turns()
    await turns.share()
    assert not ran  # the turn is not over
    turns._ends_ns = 0
    assert turns.is_over
    await turns.share()
    assert ran == ["other"]
    assert not turns.is_over
