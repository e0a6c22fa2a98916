"""Requests that wait: for other replicas, for records, for an end to move.

A parked request ends once, whoever comes first: the event, the deadline, or its caller's leaving.
All of it happens on the event loop, so nothing is ever completed under a lock (KAFKA-13254).
"""

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol, TypeVar

from kraftlog.errors import KraftError, ThrottledError

DEAD_ENTRIES_MAX = 64
"""Waiters that were given up are cleared away when so many, and most of all, are dead."""

Reply = TypeVar("Reply")


class Cancellable(Protocol):
    def cancel(self) -> None:
        """Forget the request: whoever asked is gone."""
        ...


class Parked:
    """One request that waits. `on_end` runs once, however it ends, to take back what it hung up."""

    __slots__ = ("_on_end", "_on_timeout", "_purgatory", "_timer", "kind")

    def __init__(self, purgatory: "Purgatory", kind: str) -> None:
        self.kind = kind
        self._purgatory: Purgatory | None = purgatory
        self._timer: asyncio.TimerHandle | None = None
        self._on_timeout: Callable[[], None] | None = None
        self._on_end: Callable[[], None] | None = None

    @property
    def is_over(self) -> bool:
        return self._purgatory is None

    def wait(
        self,
        timeout_ms: float,
        *,
        on_timeout: Callable[[], None],
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self._on_timeout, self._on_end = on_timeout, on_end
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self.time_out)

    def end(self) -> bool:
        """True for the one who ends it: that one answers."""
        purgatory, self._purgatory = self._purgatory, None
        if purgatory is None:
            return False
        purgatory.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._on_end is not None:
            self._on_end()
        self._on_end = None
        return True

    def time_out(self) -> None:
        on_timeout = self._on_timeout
        if self.end() and on_timeout is not None:
            on_timeout()

    def cancel(self) -> None:
        self.end()
        self._on_timeout = None


class Purgatory:
    """All parked requests of a broker. Each kind is bounded in number, so that many of one kind do
    not keep out those of another.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parked: set[Parked] = set()
        self.counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, kind: str) -> Parked:
        """ThrottledError if too many wait already."""
        count = self.counts.get(kind, 0)
        if count >= self._limit:
            raise ThrottledError(
                f"{count} requests of this kind wait already ({kind})", hint="send fewer at once"
            )
        parked = Parked(self, kind)
        self._parked.add(parked)
        self.counts[kind] = count + 1
        return parked

    def remove(self, parked: Parked) -> None:
        self._parked.discard(parked)
        self.counts[parked.kind] -= 1

    def time_out_all(self) -> None:
        """The broker stops: answer all as if their time were up."""
        for parked in list(self._parked):
            parked.time_out()


class Waiter:
    """Waits in an OffsetQueue; called once, with None or with why it waits in vain."""

    __slots__ = ("call", "queue")

    def __init__(self, queue: "OffsetQueue", call: Callable[[KraftError | None], None]) -> None:
        self.queue = queue
        self.call: Callable[[KraftError | None], None] | None = call

    def give_up(self) -> None:
        if self.call is not None:
            self.call = None
            self.queue.note_dead()


class OffsetQueue:
    """Those who wait until an offset is reached, the lowest first."""

    __slots__ = ("_dead", "_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Waiter]] = []
        self._numbers = count()
        self._dead = 0

    def __len__(self) -> int:
        return len(self._heap) - self._dead

    def add(self, offset: int, call: Callable[[KraftError | None], None]) -> Waiter:
        """Call when `release` has reached `offset`."""
        waiter = Waiter(self, call)
        heappush(self._heap, (offset, next(self._numbers), waiter))
        return waiter

    def release(self, offset: int) -> None:
        """All who wait for `offset` or less have it."""
        while self._heap and self._heap[0][0] <= offset:
            self._finish(heappop(self._heap)[2], None)

    def fail_all(self, error: KraftError) -> None:
        heap, self._heap, self._dead = self._heap, [], 0
        for _, _, waiter in sorted(heap, key=lambda entry: entry[:2]):
            call, waiter.call = waiter.call, None
            if call is not None:
                call(error)

    def _finish(self, waiter: Waiter, error: KraftError | None) -> None:
        call, waiter.call = waiter.call, None
        if call is None:
            self._dead -= 1
        else:
            call(error)

    def note_dead(self) -> None:
        self._dead += 1
        if self._dead > DEAD_ENTRIES_MAX and self._dead > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapify(self._heap)
            self._dead = 0


def wait(begin: Callable[[Callable[[Reply], None]], Cancellable | None]) -> Awaitable[Reply]:
    """Begin a request that answers by a callback, and await the answer:

    reply = await wait(lambda done: manager.produce(request, done))
    """
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def take(reply: Reply) -> None:
        if not answer.done():
            answer.set_result(reply)

    begin(take)
    return answer
