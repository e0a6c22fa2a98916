"""Chunks on their way, between two stages of a link.

A stage looks at the head, waits as long as it must, and then moves it on without a pause between
taking and giving. So a chunk is in exactly one buffer at every moment, and a stage can be cancelled
wherever it waits: nothing is lost, repeated or overtaken.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

CHUNK_BYTES = 32 << 10
CHUNKS_MAX = 4


@dataclass(slots=True)
class Chunk:
    data: bytes
    arrived: float
    """On the clock of the event loop: when it came in, or left a stage that delays."""


@dataclass(slots=True)
class Buffer:
    """One writer and one reader. `on_change` tells the reader, `on_room` the writer."""

    chunks_max: int = CHUNKS_MAX
    is_closed: bool = False
    on_change: Callable[[], None] | None = None
    on_room: Callable[[], None] | None = None
    _chunks: deque[Chunk] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def is_full(self) -> bool:
        return len(self._chunks) >= self.chunks_max

    def put(self, chunk: Chunk) -> None:
        """Never refuses: whoever writes looks first whether it is full."""
        if not self.is_closed:
            self._chunks.append(chunk)
            self._tell(self.on_change)

    def head(self) -> Chunk | None:
        return self._chunks[0] if self._chunks else None

    def pop(self) -> Chunk:
        chunk = self._chunks.popleft()
        if not self.is_full:
            self._tell(self.on_room)
        return chunk

    def replace_head(self, chunk: Chunk) -> None:
        """The rest of a chunk of which a part has gone on."""
        self._chunks[0] = chunk

    def close(self) -> None:
        """No more will come; what is in it can still be read."""
        if not self.is_closed:
            self.is_closed = True
            self._tell(self.on_change)

    def pour_into(self, other: "Buffer") -> None:
        """All of it, and its end if that has come."""
        while self._chunks:
            other.put(self._chunks.popleft())
        if self.is_closed:
            other.close()

    @staticmethod
    def _tell(callback: Callable[[], None] | None) -> None:
        if callback is not None:
            callback()

    async def first(self) -> Chunk | None:
        """The head, once there is one; None at the end."""
        while not self._chunks and not self.is_closed:
            waiter, wake = _waiter()
            self.on_change = wake
            try:
                await waiter
            finally:  # whoever reads now may have put itself there already
                self.on_change = None if self.on_change is wake else self.on_change
        return self.head()

    async def room(self) -> None:
        """Wait until it is not full."""
        while self.is_full and not self.is_closed:
            waiter, wake = _waiter()
            self.on_room = wake
            try:
                await waiter
            finally:
                self.on_room = None if self.on_room is wake else self.on_room


def _waiter() -> tuple[asyncio.Future[None], Callable[[], None]]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    return future, wake
