"""The synchronous consumer: a private thread fetches ahead, the caller decodes."""

import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack

from kraftlog._closing import closed, told_if_closed
from kraftlog._consumer_core import (
    KEEP_POSITIONS,
    Assignment,
    ConsumerCore,
    Subscription,
    make_buffer,
)
from kraftlog._later import from_profile, not_yet
from kraftlog._loop_thread import LoopThread
from kraftlog.consumer_options import ConsumerArguments, ConsumerOptions, consumer_options
from kraftlog.durations import Duration, to_seconds
from kraftlog.errors import InvalidRequest, TimeoutError_
from kraftlog.fetch_buffer import FetchBuffer
from kraftlog.offsets import Offset, to_offset
from kraftlog.record_reader import OnError, RecordBatchView, RecordReader
from kraftlog.records import ConsumerRecord, PartitionInfo
from kraftlog.serializers import DeserializerChoice
from kraftlog.types import TopicPartition

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

ITERATION_SECONDS = 60.0


class Consumer(Generic[K, V]):
    """Reads records: all partitions of its topics, or those that are assigned to it.

        with Consumer("orders", bootstrap_servers="b1:19101", offset_reset="earliest") as consumer:
            for record in consumer:
                print(record.offset, record.value)

    There are no groups yet: every consumer reads everything, begins by `offset_reset` (earliest,
    latest, error, or a duration: what is not older than that), and keeps no position between runs.
    Partitions that are added later are read from their start.

    Options: offset_reset, max_poll_records, fetch_min_bytes, fetch_max_wait, fetch_max_bytes,
    max_partition_fetch_bytes, client_rack, check_crcs, on_error ("raise" or "skip": what does not
    deserialize), request_timeout, api_timeout, retry_backoff, retry_backoff_max, metadata_max_age,
    client_id, receive_buffer_bytes, and `config` with Kafka's own names.

    One thread at a time may use it; only `wakeup` may be called by others.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] = "localhost:19101",
        pattern: str | None = None,
        key_deserializer: DeserializerChoice[K] = "bytes",
        value_deserializer: DeserializerChoice[V] = "bytes",
        on_error: OnError = "raise",
        **options: Unpack[ConsumerArguments],
    ) -> None:
        self._options = consumer_options(bootstrap_servers, options)
        self._subscription = Subscription(topics, pattern, self._options.reset)
        self._engine = _Engine(self._options, self._subscription)
        self._buffer = self._engine.buffer
        self._reader: RecordReader[K, V] = RecordReader(
            self._buffer,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            on_error=on_error,
            check_crcs=self._options.check_crcs,
        )
        self._finalizer = weakref.finalize(self, self._engine.let_go)
        self._finalizer.atexit = False  # then its thread is ended instead, and waited for

    # -- reading

    def poll(
        self, timeout: Duration = "1s", max_records: int | None = None
    ) -> list[ConsumerRecord[K, V]]:
        """Records, as soon as there are any; none after the timeout or a wakeup."""
        wanted = self._options.max_poll_records if max_records is None else max_records
        read = self._reader.read
        seconds = to_seconds(timeout, "timeout")
        return self._engine.wait_for(lambda: read(wanted), seconds) or []

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Record after record, for ever; a wakeup ends it."""
        engine, reader = self._engine, self._reader
        while True:
            opened = engine.wait_for(reader.current, ITERATION_SECONDS)
            if opened is None:
                if engine.was_woken:
                    return
                continue
            for record in reader.walk(opened):
                yield record
                if engine.is_woken:
                    break

    def batches(self, *, timeout: Duration = "1s") -> Iterator[RecordBatchView]:
        """Whole batches, without an object per record; ends when none came within the timeout."""
        seconds = to_seconds(timeout, "timeout")
        while True:
            batch = self._engine.wait_for(self._reader.read_batch, seconds)
            if batch is None:
                return
            yield batch

    def wakeup(self) -> None:
        """From any thread: the call that waits now, or the next one, returns at once."""
        self._engine.wakeup()

    # -- what is read

    def assign(self, partitions: Assignment) -> None:
        """Read exactly these partitions; with a mapping, each from its offset."""
        self._reader.put_back()
        self._reader.forget_error()
        self._subscription.assign(partitions)
        self._buffer.assign(self._subscription.starts({}))
        self._engine.watch()

    def assignment(self) -> list[TopicPartition]:
        return self._buffer.assigned

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        return self._engine.run(lambda core: core.partitions_for(topic))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these until `resume`; their position stays."""
        self._reader.put_back()
        self._buffer.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._buffer.resume(partitions)

    def paused(self) -> list[TopicPartition]:
        return self._buffer.paused

    # -- positions

    def seek(self, partition: TopicPartition, offset: int | str | Offset) -> None:
        """Go on from an offset, a time ("@-1h") or an end ("start", "end", "-10")."""
        place = to_offset(offset)
        self._engine.ensure_assigned(partition)
        self._reader.put_back()
        self._reader.forget_error()
        self._buffer.seek(partition, place)

    def position(self, partition: TopicPartition, *, timeout: Duration | None = None) -> int:
        """The offset of the record that comes next."""
        self._engine.ensure_assigned(partition)
        limit = self._options.common.api_timeout_ms / 1000
        seconds = limit if timeout is None else to_seconds(timeout, "timeout")

        self._reader.note_position()
        known = self._buffer.known_position
        found = self._engine.wait_for(lambda: known(partition), seconds)
        if not found:
            raise TimeoutError_(f"no position of {partition} within {seconds:g} s")
        return found[0]

    def lag(self, partition: TopicPartition | None = None) -> int:
        """How many offsets lie between the position and the end, of one partition or of all."""
        if partition is None:
            return sum(self.lag(each) for each in self.assignment())
        position = self.position(partition)
        end = self._buffer.state(partition).high_watermark
        if end < position:
            end = self._engine.run(lambda core: core.end_offset(partition))
        return max(end - position, 0)

    # -- what comes later

    from_profile = staticmethod(from_profile)
    commit = not_yet("commit", "consumer groups", KEEP_POSITIONS)
    committed = not_yet("committed", "consumer groups", KEEP_POSITIONS)
    on_assign = not_yet("on_assign", "consumer groups")
    on_revoke = not_yet("on_revoke", "consumer groups")
    on_lost = not_yet("on_lost", "consumer groups")
    group_metadata = property(not_yet("group_metadata", "consumer groups"))

    # -- the end

    def close(self) -> None:
        self._finalizer.detach()
        self._engine.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Engine:
    """Thread and core. It does not refer to the consumer, which can so be dropped."""

    def __init__(self, options: ConsumerOptions, subscription: Subscription) -> None:
        self.options = options
        self.subscription = subscription
        self.was_woken = False
        """Whether it was a wakeup that ended the last wait."""
        self._news = threading.Event()
        self.is_woken = False
        self._is_open = True
        self._thread: LoopThread | None = None
        self._core: ConsumerCore | None = None
        self.buffer: FetchBuffer = make_buffer(options, self._tell_loop, self._news.set)

    def _tell_loop(self) -> None:
        if self._thread is not None and self._core is not None:
            self._thread.call_soon(self._core.fetcher.wake)

    def _started(self) -> tuple[LoopThread, ConsumerCore]:
        if not self._is_open:
            raise closed("consumer")
        if self._thread is None or self._core is None:
            self._thread = LoopThread(self.options.common.client_id, self._end)
            opening = ConsumerCore.open(
                self.options, self.buffer, self.subscription, self._news.set
            )
            self._core = self._thread.run(opening)
        return self._thread, self._core

    def run(self, work: Callable[[ConsumerCore], Coroutine[object, object, T]]) -> T:
        thread, core = self._started()
        with told_if_closed("consumer"):
            return thread.run(work(core))

    def watch(self) -> None:
        thread, core = self._started()
        thread.call_soon(core.watch)

    def wait_for(self, find: Callable[[], T | None], seconds: float) -> T | None:
        """What `find` finds, as soon as it finds anything; None after that time or a wakeup."""
        _, core = self._started()
        if self.subscription.is_empty:
            raise InvalidRequest("nothing to read", hint="name a topic, or assign partitions")
        deadline = time.monotonic() + seconds
        self.was_woken = False
        while True:
            self._news.clear()
            if not self._is_open:
                raise closed("consumer")
            if self.is_woken:
                self.is_woken, self.was_woken = False, True
                return None
            found = find()
            if found:
                return found
            if core.failure is not None:
                raise core.failure
            if not self._news.wait(max(deadline - time.monotonic(), 0)):
                return None

    def wakeup(self) -> None:
        self.is_woken = True
        self._news.set()

    def ensure_assigned(self, place: TopicPartition) -> None:
        if place not in self.buffer.assigned and place.topic in self.subscription.watched():
            timeout_ms = self.options.common.api_timeout_ms
            self.run(lambda core: core.ensure_topic(place.topic, timeout_ms))
        self.buffer.state(place)

    def stop(self) -> None:
        """End core and thread, and what waits for them. A second time does nothing."""
        self._end()
        self._news.set()

    def _end(self) -> None:
        """As stop, at the exit of a program: a thread that still waits ends without a word."""
        self._is_open = False
        thread, core = self._thread, self._core
        self._thread = self._core = None
        if thread is not None:
            try:
                if core is not None:
                    thread.run(core.close())
            finally:
                thread.stop()

    def let_go(self) -> None:
        """As stop, but the thread does it while nobody waits: the consumer was dropped."""
        self._is_open = False
        if self._thread is not None:
            self._thread.let_go(None if self._core is None else self._core.close())
