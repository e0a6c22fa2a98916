"""The synchronous producer: callers fill batches themselves, a private thread sends them."""

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack

from kraftlog._closing import closed, told_if_closed
from kraftlog._intake import Intake, check_topic
from kraftlog._later import from_profile, not_yet
from kraftlog._loop_thread import LoopThread
from kraftlog._producer_core import (
    ProducerCore,
    flush_async,
    flush_result,
    make_accumulator,
    no_room,
)
from kraftlog.accumulator import Accumulator, BufferFull, TopicWanted
from kraftlog.delivery import Deliveries, Delivery, DeliveryFuture, FlushResult, OnDelivery
from kraftlog.durations import Duration, limit_seconds, to_seconds
from kraftlog.partition_choice import PartitionerChoice
from kraftlog.producer_options import ProducerArguments, ProducerOptions, producer_options
from kraftlog.records import HeadersLike, PartitionInfo, Record, Timestamp
from kraftlog.serializers import SerializerChoice

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

CLOSE_TIMEOUT = "30s"
INTERRUPTED_CLOSE_SECONDS = 1.0
EXIT_FLUSH_SECONDS = 2.0


class Producer(Generic[K, V]):
    """Sends records, in batches, in the background; each `send` returns what will become of it.

        with Producer("b1:19101") as producer:
            producer.send("orders", b"...", key=b"42").result()

    Options beside the serializers and the partitioner: acks ("all", 0, 1), enable_idempotence,
    linger, batch_bytes, buffer_bytes, max_block, compression, delivery_timeout, request_timeout,
    max_in_flight, max_request_bytes, retries, retry_backoff, retry_backoff_max, metadata_max_age,
    client_id, receive_buffer_bytes, and `config` with Kafka's own names. It may be used by many
    threads. Callbacks run on the producer's thread and must not block.

    Without idempotence (acks 0 or 1) a batch that was refused and sent again can come behind the
    one after it; max_in_flight=1 keeps the order.
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
        self._engine = _Engine(self._options, partitioner)
        self._accumulator = self._engine.accumulator
        self._intake: Intake[K, V] = Intake(self._accumulator, key_serializer, value_serializer)
        self._offer = self._intake.offer
        self._finalizer = weakref.finalize(self, self._engine.let_go)
        self._finalizer.atexit = False  # then its thread is ended instead, and waited for

    def send(
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
        """Put a record into the next batch of its partition. Waits, up to max_block, only if the
        topic is not known yet or the buffer is full.
        """
        if self._engine.is_open:
            try:
                return self._offer(
                    topic,
                    value,
                    key,
                    headers=headers,
                    partition=partition,
                    timestamp=timestamp,
                    on_delivery=on_delivery,
                )
            except (TopicWanted, BufferFull):
                pass  # and now with patience
        offer = partial(
            self._offer,
            topic,
            value,
            key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
            on_delivery=on_delivery,
        )
        return self._engine.persist(topic, offer)

    def send_many(
        self, topic: str, records: Iterable[Record[K, V] | V]
    ) -> Sequence[DeliveryFuture]:
        """Send many at once, several times faster than one by one. What is no Record is a value."""
        engine, accumulator = self._engine, self._accumulator
        columns = self._intake.columns(topic, records)
        if not columns.values:
            return ()
        groups = engine.persist(topic, lambda: accumulator.group(topic, columns))
        engine.persist(topic, lambda: accumulator.extend(topic, groups))
        return Deliveries(len(columns.values), [(group.inputs, group.runs) for group in groups])

    def send_batch(
        self, topic: str, partition: int, encoded: bytes | bytearray, timestamps: list[int]
    ) -> Delivery:
        """Send a record batch that is encoded already (`kraftlog.arrow.encode_arrow_batch`): its
        records never become objects. One timestamp per record, as in the batch.
        """
        accumulator = self._accumulator
        return self._engine.persist(
            topic, lambda: accumulator.append_encoded(topic, partition, encoded, timestamps)
        )

    def flush(self, timeout: Duration | None = None) -> FlushResult:
        """Send all that waits and wait for the answers, without a timeout for as long as it takes
        (delivery_timeout bounds it).
        """
        return self._engine.flush(limit_seconds(timeout, "timeout"))

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Waits for metadata as long as max_block allows."""
        check_topic(topic)
        return self._engine.partitions_for(topic)

    @property
    def is_usable(self) -> bool:
        """False once it is closed, or an error of its own has ended it."""
        return self._engine.is_usable

    from_profile = staticmethod(from_profile)
    transaction = not_yet("transaction", "transactions", "send without one for now")

    def close(self, *, timeout: Duration = CLOSE_TIMEOUT) -> None:
        """Flush, then end. What has no answer within the timeout fails."""
        seconds = to_seconds(timeout, "timeout")
        self._finalizer.detach()
        self._engine.stop(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Who interrupts a program does not want to wait for brokers that may be gone.
        is_interrupt = error is not None and not isinstance(error, Exception)
        self.close(timeout=INTERRUPTED_CLOSE_SECONDS if is_interrupt else CLOSE_TIMEOUT)


class _Engine:
    """Thread and core. It does not refer to the producer, which can so be dropped."""

    def __init__(self, options: ProducerOptions, partitioner: PartitionerChoice) -> None:
        self.options = options
        self.accumulator: Accumulator = make_accumulator(options, partitioner, self._wake)
        self.is_open = True
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._core: ProducerCore | None = None

    def _wake(self) -> None:
        if self._thread is not None and self._core is not None:
            self._thread.call_soon(self._core.sender.wake)

    def _started(self) -> tuple[LoopThread, ProducerCore]:
        """The thread begins with the first send, not before."""
        with self._lock:
            if not self.is_open:
                raise closed("producer")
            if self._thread is None or self._core is None:
                name = self.options.common.client_id
                self._thread = LoopThread(name, lambda: self.stop(EXIT_FLUSH_SECONDS))
                self._core = self._thread.run(ProducerCore.open(self.options, self.accumulator))
            return self._thread, self._core

    @property
    def is_usable(self) -> bool:
        core, thread = self._core, self._thread
        if core is None or thread is None:
            return self.is_open
        return self.is_open and thread.is_alive and core.sender.failure is None

    def persist(self, topic: str, offer: Callable[[], T]) -> T:
        """Offer until it is taken, waiting for metadata or room as long as max_block allows."""
        check_topic(topic)
        thread, core = self._started()
        deadline = time.monotonic() + self.options.max_block_ms / 1000
        while True:
            if core.sender.failure is not None:
                raise core.sender.failure
            room = threading.Event()
            remaining = deadline - time.monotonic()
            try:
                self.accumulator.when_room(room.set)
                return offer()
            except TopicWanted:
                with told_if_closed("producer"):
                    thread.run(core.ensure_topic(topic, max(remaining, 0) * 1000))
            except BufferFull:
                if not room.wait(max(remaining, 0)):
                    raise no_room(self.options, self.accumulator.buffered_bytes) from None

    def flush(self, seconds: float | None) -> FlushResult:
        if self._thread is not None:
            self._thread.check_caller()
        deadline = None if seconds is None else time.monotonic() + seconds
        deliveries = self.accumulator.start_flush()
        try:
            for delivery in deliveries:
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                if not delivery.wait(left):
                    break
        finally:
            self.accumulator.end_flush()
        return flush_result(deliveries)

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        thread, core = self._started()
        with told_if_closed("producer"):
            return thread.run(core.partitions_for(topic))

    def stop(self, flush_seconds: float) -> None:
        """Flush for so long, then end core and thread. A second time does nothing."""
        with self._lock:
            self.is_open, was_open = False, self.is_open
        if not was_open or self._thread is None:
            return
        try:
            if self._core is not None:
                self.flush(flush_seconds)
        finally:
            if self._core is not None:
                self._thread.run(self._core.close())
            self._thread.stop()

    def let_go(self) -> None:
        """As stop, but the thread does it while nobody waits: the producer was dropped."""
        with self._lock:
            self.is_open, was_open = False, self.is_open
        if was_open and self._thread is not None:
            core = self._core
            last = None if core is None else _flush_and_close(self.accumulator, core)
            self._thread.let_go(last)


async def _flush_and_close(accumulator: Accumulator, core: ProducerCore) -> None:
    await flush_async(accumulator, EXIT_FLUSH_SECONDS)
    await core.close()
