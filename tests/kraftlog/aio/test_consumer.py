import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kraftlog.aio import AsyncConsumer
from kraftlog.errors import InvalidRequest, NotYetSupported, TimeoutError_
from kraftlog.types import TopicPartition
from tests.kraftlog.aio.test_producer import hear
from tests.kraftlog.test_consumer import fill
from tests.kraftlog.toy_cluster import Fault, ToyCluster
from tests.kraftlog.waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(main())


def consumer(
    toys: ToyCluster, *topics: str, api_timeout: str = "60s"
) -> AsyncConsumer[bytes, bytes]:
    return AsyncConsumer(
        *topics,
        bootstrap_servers=toys.bootstrap,
        offset_reset="earliest",
        fetch_max_wait="50ms",
        retry_backoff="5ms",
        api_timeout=api_timeout,
    )


def test_poll_iterate_and_batches(toys: ToyCluster) -> None:
    fill(toys, T0, 40)

    async def work() -> None:
        async with consumer(toys, "t") as c:
            seen = [record.offset for record in await c.poll("20s", max_records=3)]
            async for record in c:
                seen.append(record.offset)
                if len(seen) == 15:
                    break
            assert await c.position(T0) == 15
            async for view in c.batches(timeout="200ms"):
                seen += [record.offset for record in view.records()]
            assert seen == list(range(40))
            assert await c.lag() == 0
            assert c.assignment() == [T0, T1]

    run(work)


def test_seek_pause_resume_and_wakeup(toys: ToyCluster) -> None:
    fill(toys, T0, 20)

    async def work() -> None:
        async with consumer(toys, "t") as c:
            await c.seek(T0, "-5")
            assert (await c.poll("20s"))[0].offset == 15
            c.pause(T0)
            assert c.paused() == [T0]
            await c.seek(T0, 0)
            assert await c.poll("50ms") == []
            c.resume(T0)
            assert (await c.poll("20s"))[0].offset == 0
            await c.seek(T0, "end")
            asyncio.get_running_loop().call_later(0.05, c.wakeup)
            assert await c.poll("60s") == []
            c.wakeup()
            assert [record async for record in c] == []

    run(work)


def test_assigned_by_hand(toys: ToyCluster) -> None:
    fill(toys, T1, 10)

    async def work() -> None:
        async with consumer(toys) as c:
            with pytest.raises(InvalidRequest, match="nothing to read"):
                await c.poll("1s")
            await c.assign({T1: 8})
            assert [record.offset for record in await c.poll("20s")] == [8, 9]
            assert [info.partition for info in await c.partitions_for("t")] == [0, 1]

    run(work)


def test_errors_are_the_same() -> None:
    async def work() -> None:
        c: AsyncConsumer[bytes, bytes] = AsyncConsumer(bootstrap_servers="127.0.0.1:1")
        await c.assign([T0])
        with pytest.raises(TimeoutError_, match="no position"):
            await c.position(T0, timeout="50ms")
        for call in (c.commit, c.committed, c.on_assign):
            with pytest.raises(NotYetSupported):
                call(T0)
        await c.close()
        with pytest.raises(InvalidRequest, match="closed"):
            await c.poll()

    run(work)


def test_who_waits_while_another_task_closes_hears_of_it(toys: ToyCluster) -> None:
    async def work() -> None:
        for name in ("poll", "iterate", "position"):
            c = consumer(toys, "t", "missing", api_timeout="10m")
            calls: dict[str, Callable[[], Awaitable[object]]] = {
                "poll": lambda: c.poll("10m"),  # noqa: B023 - called now
                "iterate": lambda: anext(aiter(c)),  # noqa: B023
                "position": lambda: c.position(T1),  # noqa: B023
            }
            toys.faults[:] = [Fault("list_offsets", lose_request=True, times=-1)]
            before = len(toys.seen)
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(hear(calls[name]()))
                is_waiting = lambda: len(toys.seen) > before + 2  # noqa: B023, E731
                await asyncio.to_thread(until, is_waiting, "it waits")
                await c.close()
            assert isinstance(waiting.result(), InvalidRequest)

    run(work)
