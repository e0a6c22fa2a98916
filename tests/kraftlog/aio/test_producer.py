import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from kraftlog.aio import AsyncProducer
from kraftlog.errors import (
    InvalidRequest,
    NotYetSupported,
    TimeoutError_,
    UnknownTopicOrPartition,
)
from kraftlog.records import Record
from tests.kraftlog.toy_cluster import Fault, ToyCluster


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(main())


def test_send_and_await(toys: ToyCluster) -> None:
    async def work() -> None:
        async with AsyncProducer[str, object](
            toys.bootstrap, linger=0, key_serializer="string", value_serializer="json"
        ) as producer:
            heard: list[object] = []
            sent = await producer.send(
                "t", {"n": 1}, key="k", partition=0, on_delivery=lambda *told: heard.append(told)
            )
            metadata = await sent
            assert (metadata.partition, metadata.offset) == (0, 0)
            assert heard == [(metadata, None)]
            assert [info.leader for info in await producer.partitions_for("t")] == [1, 2]

    run(work)
    assert toys.values("t") == [b'{"n":1}']


def test_many_at_once_and_flush(toys: ToyCluster) -> None:
    async def work() -> None:
        async with AsyncProducer[bytes, bytes](toys.bootstrap, linger="10s") as producer:
            records = [Record(b"%d" % number, partition=0) for number in range(500)]
            sent = await producer.send_many("t", records)
            assert len(await producer.send_many("t", [])) == 0
            assert await producer.flush("20s") == (0, 0)
            assert (await sent[-1]).offset == 499

    run(work)
    assert len(toys.values("t")) == 500


def test_no_thread_is_needed(toys: ToyCluster) -> None:
    async def work() -> None:
        before = threading.active_count()
        async with AsyncProducer[bytes, bytes](toys.bootstrap) as producer:
            await (await producer.send("t", b"x"))
            assert threading.active_count() <= before + 1, "gRPC's own poller at most"

    run(work)


def test_a_full_buffer_waits_but_not_for_ever(toys: ToyCluster) -> None:
    hold = threading.Event()
    toys.faults.append(Fault("produce", hold=hold, times=-1))

    async def work() -> None:
        producer: AsyncProducer[bytes, bytes] = AsyncProducer(
            toys.bootstrap, buffer_bytes=2_000, linger=0, max_block="50ms"
        )
        sent = await producer.send("t", b"x" * 1_000, partition=0)
        with pytest.raises(TimeoutError_, match="no room"):
            await producer.send("t", b"x" * 1_000, partition=0)
        assert (await producer.flush("10ms")).pending == 1
        await producer.close(timeout=0)
        assert sent.exception(0) is not None
        with pytest.raises(InvalidRequest, match="closed"):
            await producer.send("t", b"x")

    run(work)


def test_many_tasks_share_one(toys: ToyCluster) -> None:
    async def work() -> None:
        async with AsyncProducer[bytes, bytes](toys.bootstrap) as producer:

            async def send(number: int) -> int:
                return (await (await producer.send("t", b"%d" % number, partition=0))).offset

            offsets = await asyncio.gather(*map(send, range(200)))
            assert sorted(offsets) == list(range(200))

    run(work)


def test_a_cancelled_task_does_not_wait_for_brokers(toys: ToyCluster) -> None:
    toys.faults.append(Fault("produce", hold=threading.Event(), times=-1))

    async def work() -> None:
        started = asyncio.Event()

        async def produce() -> None:
            async with AsyncProducer[bytes, bytes](toys.bootstrap, linger=0) as producer:
                sent = await producer.send("t", b"x")
                started.set()
                await sent

        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(produce())
            await started.wait()
            task.cancel()
        assert task.cancelled()

    run(work)


def test_errors_are_the_same(toys: ToyCluster) -> None:
    async def work() -> None:
        async with AsyncProducer[bytes, bytes](toys.bootstrap, max_block="50ms") as producer:
            with pytest.raises(UnknownTopicOrPartition):
                await producer.send("nowhere", b"x")
            with pytest.raises(NotYetSupported):
                producer.transaction()

    run(work)
