import asyncio

from kraftlog.loop_lag import LAG_PERIOD_SECONDS, LoopLag
from kraftlog.metrics import Registry
from tests.loops import run, until


def test_a_loop_that_was_held_up_is_noticed() -> None:
    registry = Registry()

    async def hold_up() -> None:
        lag = LoopLag(registry)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(lag.run())
            await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            over = loop.time() + 2 * LAG_PERIOD_SECONDS
            while loop.time() < over:
                pass  # a step that is far too long
            await until(lambda: "kraftlog_loop_lag_seconds_count 0" not in registry.text())
            watching.cancel()

    run(hold_up())
    longest = next(
        line for line in registry.text().splitlines() if line.startswith("kraftlog_loop_lag_max")
    )
    assert float(longest.split()[1]) >= LAG_PERIOD_SECONDS / 2
