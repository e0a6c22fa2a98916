import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from brokers.producer_ids import WAITING_MAX, ProducerIds
from kraftlog.errors import CoordinatorLoading, KraftError, NotController, ThrottledError
from tests.loops import run, until


class Blocks:
    """A controller that hands out blocks of ten."""

    def __init__(self) -> None:
        self.given = 0
        self.refuses = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def allocate(self) -> range:
        await self.gate.wait()
        if self.refuses:
            raise NotController("not me")
        self.given += 1
        return range(self.given * 10, self.given * 10 + 10)


@asynccontextmanager
async def producer_ids() -> AsyncIterator[tuple[ProducerIds, Blocks]]:
    blocks = Blocks()
    ids = ProducerIds(blocks.allocate)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(ids.run())
        yield ids, blocks
        running.cancel()


def test_no_id_twice_and_the_next_block_comes_before_it_is_needed() -> None:  # R34
    async def story() -> None:
        async with producer_ids() as (ids, blocks):
            got: list[int | KraftError] = []
            ids.take(got.append)
            await until(lambda: len(got) == 1, "an id")
            assert blocks.given == 1
            for _ in range(7):
                ids.take(got.append)
            assert blocks.given == 1
            ids.take(got.append)  # the ninth of ten
            await until(lambda: blocks.given == 2, "the next block")
            for _ in range(5):
                ids.take(got.append)
            assert got == [*range(10, 20), *range(20, 24)]  # nobody had to wait

    run(story())


def test_a_burst_waits_for_as_many_blocks_as_it_needs() -> None:
    async def story() -> None:
        async with producer_ids() as (ids, blocks):
            got: list[int | KraftError] = []
            for _ in range(35):
                ids.take(got.append)
            await until(lambda: len(got) == 35, "all ids")
            assert sorted(got, key=str) == [*range(10, 45)]
            assert blocks.given <= 5

    run(story())


def test_without_a_controller_who_waits_is_told_to_come_again() -> None:
    async def story() -> None:
        async with producer_ids() as (ids, blocks):
            blocks.refuses = True
            got: list[int | KraftError] = []
            ids.take(got.append)
            await until(lambda: bool(got), "a refusal")
            assert isinstance(got[0], CoordinatorLoading)
            assert got[0].retriable
            blocks.refuses = False
            ids.take(got.append)
            await until(lambda: len(got) == 2, "an id")
            assert got[1] == 10

    run(story())


def test_who_waits_is_bounded() -> None:
    async def story() -> None:
        async with producer_ids() as (ids, blocks):
            blocks.gate.clear()
            got: list[int | KraftError] = []
            for _ in range(WAITING_MAX + 1):
                ids.take(got.append)
            assert [type(each) for each in got] == [ThrottledError]

    run(story())
