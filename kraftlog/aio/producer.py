"""The asynchronous producer: the same accumulator and core, on the caller's own loop."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack

from kraftlog._closing import closed
from kraftlog._intake import Intake, check_topic
from kraftlog._later import from_profile, not_yet
from kraftlog._producer_core import ProducerCore, flush_async, make_accumulator, no_room
from kraftlog.accumulator import BufferFull, TopicWanted
from kraftlog.delivery import Deliveries, Delivery, DeliveryFuture, FlushResult, OnDelivery
from kraftlog.durations import Duration, limit_seconds, to_seconds
from kraftlog.partition_choice import PartitionerChoice
from kraftlog.producer_options import ProducerArguments, producer_options
from kraftlog.records import HeadersLike, PartitionInfo, Record, Timestamp
from kraftlog.serializers import SerializerChoice

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

CLOSE_TIMEOUT = "30s"


class AsyncProducer(Generic[K, V]):
    """As `kraftlog.Producer`; `await` what may wait, and the futures themselves.

    async with AsyncProducer("b1:19101") as producer:
        sent = await producer.send("orders", b"...", key=b"42")
        print((await sent).offset)
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = "localhost:19101",
        *,
        partitioner: PartitionerChoice = "murmur2",
        key_serializer: SerializerChoice[K] = "bytes",
        value_serializer: SerializerChoice[V] = "bytes",
        **options: Unpack[ProducerArguments],
    ) -> None:
        self._options = producer_options(bootstrap_servers, options)
        self._accumulator = make_accumulator(self._options, partitioner, self._wake)
        self._intake: Intake[K, V] = Intake(self._accumulator, key_serializer, value_serializer)
        self._opening = asyncio.Lock()
        self._core: ProducerCore | None = None
        self._is_open = True

    def _wake(self) -> None:
        if self._core is not None:
            self._core.sender.wake()

    async def _started(self) -> ProducerCore:
        async with self._opening:
            if not self._is_open:
                raise closed("producer")
            if self._core is None:
                self._core = await ProducerCore.open(self._options, self._accumulator)
            return self._core

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        headers: HeadersLike = (),
        partition: int | None = None,
        timestamp: Timestamp | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        """Put a record into the next batch of its partition; await the result for its offset."""
        offer = partial(
            self._intake.offer,
            topic,
            value,
            key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
            on_delivery=on_delivery,
        )
        if self._is_open:
            try:
                return offer()
            except (TopicWanted, BufferFull):
                pass  # and now with patience
        return await self._persist(topic, offer)

    async def send_many(
        self, topic: str, records: Iterable[Record[K, V] | V]
    ) -> Sequence[DeliveryFuture]:
        """Send many at once, several times faster than one by one. What is no Record is a value."""
        accumulator = self._accumulator
        columns = self._intake.columns(topic, records)
        if not columns.values:
            return ()
        groups = await self._persist(topic, lambda: accumulator.group(topic, columns))
        await self._persist(topic, lambda: accumulator.extend(topic, groups))
        return Deliveries(len(columns.values), [(group.inputs, group.runs) for group in groups])

    async def send_batch(
        self, topic: str, partition: int, encoded: bytes | bytearray, timestamps: list[int]
    ) -> Delivery:
        """Send a record batch that is encoded already (`kraftlog.arrow.encode_arrow_batch`): its
        records never become objects. One timestamp per record, as in the batch.
        """
        accumulator = self._accumulator
        return await self._persist(
            topic, lambda: accumulator.append_encoded(topic, partition, encoded, timestamps)
        )

    async def _persist(self, topic: str, offer: Callable[[], T]) -> T:
        """Offer until it is taken, waiting for metadata or room as long as max_block allows."""
        check_topic(topic)
        core = await self._started()
        deadline = time.monotonic() + self._options.max_block_ms / 1000
        while True:
            if core.sender.failure is not None:
                raise core.sender.failure
            remaining = max(deadline - time.monotonic(), 0)
            room = asyncio.Event()
            try:
                self._accumulator.when_room(room.set)
                return offer()
            except TopicWanted:
                await core.ensure_topic(topic, remaining * 1000)
            except BufferFull:
                await self._wait_for(room, remaining)

    async def _wait_for(self, room: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await room.wait()
        except TimeoutError:
            raise no_room(self._options, self._accumulator.buffered_bytes) from None

    async def flush(self, timeout: Duration | None = None) -> FlushResult:
        """Send all that waits and wait for the answers."""
        return await flush_async(self._accumulator, limit_seconds(timeout, "timeout"))

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        check_topic(topic)
        return await (await self._started()).partitions_for(topic)

    @property
    def is_usable(self) -> bool:
        """False once it is closed, or an error of its own has ended it."""
        return self._is_open and (self._core is None or self._core.sender.failure is None)

    from_profile = staticmethod(from_profile)
    transaction = not_yet("transaction", "transactions", "send without one for now")

    async def close(self, *, timeout: Duration = CLOSE_TIMEOUT) -> None:
        """Flush, then end. What has no answer within the timeout fails."""
        seconds = to_seconds(timeout, "timeout")
        async with self._opening:
            was_open, self._is_open = self._is_open, False
        if was_open and self._core is not None:
            try:
                await flush_async(self._accumulator, seconds)
            finally:
                await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A task that is cancelled must not wait for brokers that may be gone.
        is_cancelled = error is not None and not isinstance(error, Exception)
        await self.close(timeout=0 if is_cancelled else CLOSE_TIMEOUT)
