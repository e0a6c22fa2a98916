import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from kraftlog.admin import Admin
from kraftlog.aio import AsyncAdmin, AsyncConsumer, AsyncProducer
from kraftlog.consumer import Consumer
from kraftlog.errors import (
    InvalidRequest,
    KraftError,
    NotYetSupported,
    TimeoutError_,
    UnknownTopicOrPartition,
)
from kraftlog.producer import Producer
from kraftlog.record_batch import Record as Encoded
from kraftlog.record_batch import encode_batch
from kraftlog.records import Record, RecordMetadata
from tests.kraftlog.toy_cluster import Fault, ToyCluster
from tests.kraftlog.waiting import until


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(main())


async def hear(call: Awaitable[object]) -> KraftError | None:
    try:
        await call
    except KraftError as error:
        return error
    return None


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


def test_a_batch_that_is_encoded_already(toys: ToyCluster) -> None:
    async def work() -> None:
        batch = bytes(encode_batch([Encoded(0, 7, None, b"a"), Encoded(1, 8, None, b"b")]))
        async with AsyncProducer[bytes, bytes](toys.bootstrap) as producer:
            sent = await producer.send_batch("t", 0, batch, [7, 8])
            await producer.flush("20s")
            assert [sent.outcome(0), sent.outcome(1)] == [
                RecordMetadata("t", 0, 0, 7),
                RecordMetadata("t", 0, 1, 8),
            ]
            assert producer.is_usable
        assert not producer.is_usable

    run(work)
    assert toys.values("t") == [b"a", b"b"]


@pytest.mark.parametrize(
    ("sync", "awaited"),
    [(Producer, AsyncProducer), (Consumer, AsyncConsumer), (Admin, AsyncAdmin)],
)
def test_both_kinds_of_clients_have_the_same_names(sync: type, awaited: type) -> None:
    ours, theirs = ({name for name in dir(each) if name[0] != "_"} for each in (sync, awaited))
    assert ours == theirs


@pytest.mark.parametrize(
    "client", [Producer, AsyncProducer, Consumer, AsyncConsumer, Admin, AsyncAdmin]
)
def test_profiles_are_refused_by_name(client: type[Producer[bytes, bytes]]) -> None:
    with pytest.raises(NotYetSupported, match="from_profile needs profiles"):
        client.from_profile("local")


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


def test_after_an_error_of_our_own_nothing_is_promised(
    toys: ToyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(_now: float) -> None:
        raise ZeroDivisionError("our own bug")

    async def work() -> None:
        async with AsyncProducer[bytes, bytes](toys.bootstrap, linger=0) as producer:
            await (await producer.send("t", b"x"))
            assert producer._core is not None
            monkeypatch.setattr(producer._core.sender, "_step", break_down)
            with pytest.raises(KraftError, match="our own bug"):
                await (await producer.send("t", b"x"))
            with pytest.raises(KraftError, match="our own bug"):
                await producer.send("t", b"x")
            assert await producer.flush() == (0, 0)

    run(work)


def test_who_waits_for_a_topic_to_be_made_hears_of_the_end(toys: ToyCluster) -> None:
    async def work() -> None:
        toys.faults.append(Fault("metadata", hold=threading.Event(), creating=True, times=-1))
        producer: AsyncProducer[bytes, bytes] = AsyncProducer(toys.bootstrap, max_block="10m")
        async with asyncio.TaskGroup() as tasks:
            sent = tasks.create_task(hear(producer.send("missing")))
            is_held = lambda: any(broker.held for broker in toys.brokers.values())  # noqa: E731
            await asyncio.to_thread(until, is_held, "a broker makes it")
            await producer.close()
        assert isinstance(sent.result(), InvalidRequest)
        toys.release_held()

    run(work)


def test_who_waits_while_another_task_closes_hears_of_it(toys: ToyCluster) -> None:
    async def work() -> None:
        for name in ("send", "partitions_for"):
            producer: AsyncProducer[bytes, bytes] = AsyncProducer(
                toys.bootstrap, max_block="10m", api_timeout="10m"
            )
            before = len(toys.seen)
            async with asyncio.TaskGroup() as tasks:
                sent = tasks.create_task(hear(getattr(producer, name)("missing")))
                is_waiting = lambda: len(toys.seen) > before + 2  # noqa: B023, E731
                await asyncio.to_thread(until, is_waiting, "it waits")
                await producer.close()
            assert isinstance(sent.result(), InvalidRequest)

    run(work)
