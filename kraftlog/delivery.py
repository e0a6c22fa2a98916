"""What becomes of records that were sent: one promise per batch, one light future per record.

A `DeliveryFuture` is a batch's promise and a place in it; nothing else exists per record. Promises
are kept by the thread of the loop and awaited by any other.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple, TypeAlias, overload

from kraftlog.durations import Duration, limit_seconds
from kraftlog.errors import KraftError
from kraftlog.logs import client_logger
from kraftlog.records import RecordMetadata
from kraftlog.types import NO_TIMESTAMP

logger = client_logger(__name__)

OnDelivery = Callable[[RecordMetadata | None, KraftError | None], None]

NO_OFFSET = -1

Slice: TypeAlias = "slice[int | None, int | None, int | None]"

# Held for a few instructions each time, so one lock serves all promises of a process.
_lock = threading.Lock()


class _Part(NamedTuple):
    """The fate of the records first to end of a batch; more than one only if it was split."""

    first: int
    end: int
    base_offset: int
    append_time: int
    error: KraftError | None


class Delivery:
    """The promise of one batch. It is kept once; what comes later is ignored."""

    __slots__ = ("_callbacks", "_event", "_left", "_parts", "partition", "timestamps", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.timestamps: list[int] = []
        """Of its records; the number of records is the number of timestamps."""
        self._left: int | None = None
        self._parts: list[_Part] = []
        self._event: threading.Event | None = None
        self._callbacks: list[Callable[[], None]] | None = None

    @property
    def is_done(self) -> bool:
        return self._left == 0

    @property
    def failed_records(self) -> int:
        return sum(part.end - part.first for part in self._parts if part.error is not None)

    @property
    def error(self) -> KraftError | None:
        """Why some of its records are not in the log, once all is done."""
        return next((part.error for part in self._parts if part.error is not None), None)

    def keep(self, base_offset: int, append_time: int = NO_TIMESTAMP) -> None:
        """All records are in the log."""
        self.settle(0, len(self.timestamps), base_offset=base_offset, append_time=append_time)

    def fail(self, error: KraftError) -> None:
        """All records that have no answer yet get this one."""
        self.settle(0, len(self.timestamps), error=error)

    def settle(
        self,
        first: int,
        end: int,
        *,
        base_offset: int = NO_OFFSET,
        append_time: int = NO_TIMESTAMP,
        error: KraftError | None = None,
    ) -> None:
        """The records first to end have an answer."""
        with _lock:
            if self._left == 0:
                return
            if self._left is None:
                self._left = len(self.timestamps)
            self._parts.append(_Part(first, end, base_offset, append_time, error))
            self._left = max(self._left - (end - first), 0)
            if self._left:
                return
            event, callbacks = self._event, self._callbacks
            self._callbacks = None
        if event is not None:
            event.set()
        for callback in callbacks or ():
            _run_callback(callback)

    def wait(self, seconds: float | None) -> bool:
        """Whether it is done after so long. An interrupt ends the wait at once."""
        with _lock:
            if self._left == 0:
                return True
            if self._event is None:
                self._event = threading.Event()
            event = self._event
        return event.wait(seconds)

    def when_done(self, callback: Callable[[], None]) -> None:
        """Called once, by whoever keeps the promise, or now if that is past."""
        with _lock:
            if self._left != 0:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        _run_callback(callback)

    def outcome(self, index: int) -> RecordMetadata | KraftError:
        """The answer for one record, once all is done."""
        # The first that covers it: a batch that expired may be answered later all the same.
        part = next(part for part in self._parts if part.first <= index < part.end)
        if part.error is not None:
            return part.error
        offset = part.base_offset
        return RecordMetadata(
            self.topic,
            self.partition,
            offset + index - part.first if offset != NO_OFFSET else NO_OFFSET,
            self.timestamps[index] if part.append_time == NO_TIMESTAMP else part.append_time,
        )


def _run_callback(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:
        logger.exception("a callback of a delivery failed")


class DeliveryFuture:
    """What becomes of one record. Wait for it with `result()`, or with `await`."""

    __slots__ = ("_delivery", "_index")

    def __init__(self, delivery: Delivery, index: int) -> None:
        self._delivery = delivery
        self._index = index

    def done(self) -> bool:
        return self._delivery.is_done

    def result(self, timeout: Duration | None = None) -> RecordMetadata:
        """Where the record is, or the error why it is not. TimeoutError: no answer yet, and the
        producer goes on trying.
        """
        outcome = self._wait(timeout)
        if isinstance(outcome, KraftError):
            raise outcome
        return outcome

    def exception(self, timeout: Duration | None = None) -> KraftError | None:
        """The error, or None if the record is in the log."""
        outcome = self._wait(timeout)
        return outcome if isinstance(outcome, KraftError) else None

    def _wait(self, timeout: Duration | None) -> RecordMetadata | KraftError:
        delivery = self._delivery
        if not delivery.is_done and not delivery.wait(limit_seconds(timeout, "timeout")):
            raise TimeoutError(f"no answer within {timeout} for a record to {delivery.topic}")
        return delivery.outcome(self._index)

    def add_done_callback(self, callback: "Callable[[DeliveryFuture], None]") -> None:
        """Called once with this future, by the producer's own thread; it must not block."""
        self._delivery.when_done(lambda: callback(self))

    def report_to(self, on_delivery: OnDelivery) -> None:
        def report() -> None:
            outcome = self._delivery.outcome(self._index)
            if isinstance(outcome, KraftError):
                on_delivery(None, outcome)
            else:
                on_delivery(outcome, None)

        self._delivery.when_done(report)

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        if not self._delivery.is_done:
            yield from wait_done(self._delivery).__await__()
        return self.result()

    def __repr__(self) -> str:
        state = "pending"
        if self.done():
            state = repr(self._delivery.outcome(self._index))
        return f"<DeliveryFuture {self._delivery.topic}-{self._delivery.partition} {state}>"


async def wait_done(delivery: Delivery) -> None:
    """Until the promise is kept, by this thread or another."""
    loop = asyncio.get_running_loop()
    kept = loop.create_future()

    def set_kept() -> None:
        if not kept.done():
            kept.set_result(None)

    def tell_loop() -> None:
        loop.call_soon_threadsafe(set_kept)

    delivery.when_done(tell_loop)
    await kept


class Run(NamedTuple):
    """Records that lie side by side in one batch: its promise, the place of the first, how many."""

    delivery: Delivery
    first: int
    rows: int


class Deliveries(Sequence[DeliveryFuture]):
    """The futures of `send_many`, in the order of its records; each is made when it is asked for.

    The records of a group have their places in the input, and lie in its runs one after another.
    """

    __slots__ = ("_count", "_groups", "_places")

    def __init__(self, count: int, groups: Sequence[tuple[Sequence[int], Sequence[Run]]]) -> None:
        self._count = count
        self._groups = groups
        self._places: list[tuple[Delivery, int]] = []

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> DeliveryFuture: ...
    @overload
    def __getitem__(self, index: Slice) -> list[DeliveryFuture]: ...
    def __getitem__(self, index: "int | Slice") -> DeliveryFuture | list[DeliveryFuture]:
        if isinstance(index, slice):
            return [self._future(place) for place in range(self._count)[index]]
        return self._future(range(self._count)[index])

    def _future(self, place: int) -> DeliveryFuture:
        if not self._places:
            located = sorted(
                (at, found)
                for inputs, runs in self._groups
                for at, found in zip(inputs, _places_of(runs), strict=True)
            )
            self._places = [found for _, found in located]
        return DeliveryFuture(*self._places[place])

    def results(self, timeout: Duration | None = None) -> list[RecordMetadata]:
        """Where all of them are; the first error is raised."""
        limit = limit_seconds(timeout, "timeout")
        deadline = None if limit is None else time.monotonic() + limit
        for _, runs in self._groups:
            for run in runs:
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                if not run.delivery.wait(left):
                    raise TimeoutError(f"no answer within {timeout} for {self._count} records")
        return [future.result() for future in self]


def _places_of(runs: Sequence[Run]) -> Iterator[tuple[Delivery, int]]:
    for delivery, first, rows in runs:
        for index in range(first, first + rows):
            yield delivery, index


class FlushResult(NamedTuple):
    """How many records still had no answer when the time was over, and how many have failed."""

    pending: int
    failed: int

    def raise_if_incomplete(self) -> None:
        if self.pending:
            raise TimeoutError(f"{self.pending} records have no answer yet")
