"""The asynchronous consumer: the same buffer, reader and core, on the caller's own loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar, Unpack

from kraftlog._closing import closed
from kraftlog._consumer_core import (
    KEEP_POSITIONS,
    Assignment,
    ConsumerCore,
    Subscription,
    make_buffer,
)
from kraftlog._later import from_profile, not_yet
from kraftlog.consumer_options import ConsumerArguments, consumer_options
from kraftlog.durations import Duration, to_seconds
from kraftlog.errors import InvalidRequest, TimeoutError_
from kraftlog.offsets import Offset, to_offset
from kraftlog.record_reader import OnError, RecordBatchView, RecordReader
from kraftlog.records import ConsumerRecord, PartitionInfo
from kraftlog.serializers import DeserializerChoice
from kraftlog.types import TopicPartition

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

ITERATION_SECONDS = 60.0


class AsyncConsumer(Generic[K, V]):
    """As `kraftlog.Consumer`; `await` what may wait, `async for` what iterates.

    async with AsyncConsumer("orders", offset_reset="earliest") as consumer:
        async for record in consumer:
            print(record.offset, record.value)
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
        self._news = asyncio.Event()
        self._buffer = make_buffer(self._options, self._tell_fetcher, self._news.set)
        self._reader: RecordReader[K, V] = RecordReader(
            self._buffer,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            on_error=on_error,
            check_crcs=self._options.check_crcs,
        )
        self._opening = asyncio.Lock()
        self._core: ConsumerCore | None = None
        self._is_open = True
        self._is_woken = False
        self._was_woken = False

    def _tell_fetcher(self) -> None:
        if self._core is not None:
            self._core.fetcher.wake()

    async def _started(self) -> ConsumerCore:
        async with self._opening:
            if not self._is_open:
                raise closed("consumer")
            if self._core is None:
                self._core = await ConsumerCore.open(
                    self._options, self._buffer, self._subscription, self._news.set
                )
            return self._core

    async def _wait_for(self, find: Callable[[], T | None], seconds: float) -> T | None:
        """What `find` finds, as soon as it finds anything; None after that time or a wakeup."""
        core = await self._started()
        if self._subscription.is_empty:
            raise InvalidRequest("nothing to read", hint="name a topic, or assign partitions")
        self._was_woken = False
        try:
            async with asyncio.timeout(seconds):
                return await self._find_in(core, find)
        except TimeoutError:
            return None

    async def _find_in(self, core: ConsumerCore, find: Callable[[], T | None]) -> T | None:
        while True:
            self._news.clear()
            if not self._is_open:
                raise closed("consumer")
            if self._is_woken:
                self._is_woken, self._was_woken = False, True
                return None
            found = find()
            if found:
                return found
            if core.failure is not None:
                raise core.failure
            await self._news.wait()

    # -- reading

    async def poll(
        self,
        timeout: Duration = "1s",
        max_records: int | None = None,
    ) -> list[ConsumerRecord[K, V]]:
        """Records, as soon as there are any; none after the timeout or a wakeup."""
        wanted = self._options.max_poll_records if max_records is None else max_records
        read = self._reader.read
        seconds = to_seconds(timeout, "timeout")
        return await self._wait_for(lambda: read(wanted), seconds) or []

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Record after record, for ever; a wakeup ends it."""
        while True:
            opened = await self._wait_for(self._reader.current, ITERATION_SECONDS)
            if opened is None:
                if self._was_woken:
                    return
                continue
            for record in self._reader.walk(opened):
                yield record
                if self._is_woken:
                    break

    async def batches(
        self,
        *,
        timeout: Duration = "1s",
    ) -> AsyncIterator[RecordBatchView]:
        """Whole batches, without an object per record; ends when none came within the timeout."""
        seconds = to_seconds(timeout, "timeout")
        while (batch := await self._wait_for(self._reader.read_batch, seconds)) is not None:
            yield batch

    def wakeup(self) -> None:
        """The call that waits now, or the next one, returns at once."""
        self._is_woken = True
        self._news.set()

    # -- what is read

    async def assign(self, partitions: Assignment) -> None:
        """Read exactly these partitions; with a mapping, each from its offset."""
        self._reader.put_back()
        self._reader.forget_error()
        self._subscription.assign(partitions)
        self._buffer.assign(self._subscription.starts({}))
        (await self._started()).watch()

    def assignment(self) -> list[TopicPartition]:
        return self._buffer.assigned

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        return await (await self._started()).partitions_for(topic)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these until `resume`; their position stays."""
        self._reader.put_back()
        self._buffer.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._buffer.resume(partitions)

    def paused(self) -> list[TopicPartition]:
        return self._buffer.paused

    # -- positions

    async def seek(self, partition: TopicPartition, offset: int | str | Offset) -> None:
        """Go on from an offset, a time ("@-1h") or an end ("start", "end", "-10")."""
        place = to_offset(offset)
        await self._ensure_assigned(partition)
        self._reader.put_back()
        self._reader.forget_error()
        self._buffer.seek(partition, place)

    async def _ensure_assigned(self, place: TopicPartition) -> None:
        if place not in self._buffer.assigned and place.topic in self._subscription.watched():
            core = await self._started()
            await core.ensure_topic(place.topic, self._options.common.api_timeout_ms)
        self._buffer.state(place)

    async def position(
        self,
        partition: TopicPartition,
        *,
        timeout: Duration | None = None,
    ) -> int:
        """The offset of the record that comes next."""
        await self._ensure_assigned(partition)
        limit = self._options.common.api_timeout_ms / 1000
        seconds = limit if timeout is None else to_seconds(timeout, "timeout")
        self._reader.note_position()
        found = await self._wait_for(lambda: self._buffer.known_position(partition), seconds)
        if not found:
            raise TimeoutError_(f"no position of {partition} within {seconds:g} s")
        return found[0]

    async def lag(self, partition: TopicPartition | None = None) -> int:
        """How many offsets lie between the position and the end, of one partition or of all."""
        if partition is None:
            return sum([await self.lag(each) for each in self.assignment()])
        position = await self.position(partition)
        end = self._buffer.state(partition).high_watermark
        if end < position:
            end = await (await self._started()).end_offset(partition)
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

    async def close(self) -> None:
        async with self._opening:
            self._is_open = False
            core, self._core = self._core, None
        self._news.set()
        if core is not None:
            await core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
