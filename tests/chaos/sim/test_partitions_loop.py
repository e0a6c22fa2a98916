"""The event loop on virtual time."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from chaos.sim.partitions_loop import SimLoop
from chaos.sim.schedule import NodeClock, Schedule


class Always:
    def beside(self, work: Callable[[], None]) -> None:
        work()


def made() -> tuple[Schedule, SimLoop]:
    schedule = Schedule(Random(1))
    return schedule, SimLoop(schedule, NodeClock(schedule, 1.0), Random(1), Always())


def run(schedule: Schedule, ms: float) -> None:
    while schedule.is_due(ms):
        schedule.step()


def test_tasks_sleep_and_wake_in_virtual_time() -> None:
    schedule, loop = made()
    woken: list[float] = []

    async def sleep() -> None:
        await asyncio.sleep(1.5)
        woken.append(loop.time())
        async with asyncio.timeout(0.25):
            await asyncio.Event().wait()

    task = loop.begin(sleep())
    run(schedule, 5_000)
    assert woken == [pytest.approx(1.5, abs=0.01)]
    assert isinstance(task.exception(), TimeoutError)


def test_an_executor_is_a_delay() -> None:
    schedule, loop = made()
    done = loop.run_in_executor(None, lambda: 7)
    failed = loop.run_in_executor(None, lambda: 1 // 0)
    run(schedule, 10)
    assert done.result() == 7
    assert isinstance(failed.exception(), ZeroDivisionError)


def test_a_dead_loop_does_nothing_and_is_taken_apart_quietly() -> None:
    schedule, loop = made()
    began: list[str] = []

    async def live() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(100))
            began.append("life")
            await asyncio.sleep(0.1)
            began.append("too late")

    task = loop.begin(live())
    run(schedule, 1)
    loop.stop()
    run(schedule, 1_000)
    loop.take_apart(task)
    assert began == ["life"]
    assert task.cancelled()


def test_what_fails_in_a_callback_is_raised_in_its_turn() -> None:
    schedule, loop = made()
    loop.call_soon(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run(schedule, 1)
