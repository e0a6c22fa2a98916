"""Ids for idempotent producers, handed out from blocks that the controller gives (KIP-185).

The next block is asked for when nine tenths of the present one are used up, so that a producer
waits for the controller only if producers come faster than blocks. An id is never handed out twice:
what is left of a block when the process ends is lost.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from kraftlog.errors import CoordinatorLoading, KraftError, ThrottledError

logger = logging.getLogger(__name__)

Allocate = Callable[[], Awaitable[range]]
"""Asks the controller for a block."""
OnId = Callable[[int | KraftError], None]

USED_BEFORE_PREFETCH = 0.9
WAITING_MAX = 10_000
RETRY_SECONDS = 0.1


class ProducerIds:
    """`run` belongs into a TaskGroup."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._block = range(0)
        self._used = 0
        self._next: range | None = None
        self._wanted = asyncio.Event()
        self._waiting: deque[OnId] = deque()

    def take(self, on_id: OnId) -> None:
        """`on_id` is called once: now if there is an id, else when a block has come or failed."""
        if len(self._waiting) >= WAITING_MAX:
            on_id(ThrottledError(f"{WAITING_MAX} producers wait for an id", hint="try again"))
            return
        self._waiting.append(on_id)
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting:
            if self._used == len(self._block) and self._next is not None:
                self._block, self._used, self._next = self._next, 0, None
            if self._used == len(self._block):
                break
            self._used += 1
            self._waiting.popleft()(self._block[self._used - 1])
        if self._next is None and self._used >= len(self._block) * USED_BEFORE_PREFETCH:
            self._wanted.set()

    async def run(self) -> None:
        """Fetch blocks as they are needed, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if self._next is not None:
                continue
            try:
                self._next = await self._allocate()
            except KraftError as error:
                logger.warning("no producer ids from the controller: %s", error)
                self._refuse(error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._hand_out()

    def _refuse(self, error: KraftError) -> None:
        """Whoever waits asks again, of this broker or another one."""
        while self._waiting:
            self._waiting.popleft()(
                CoordinatorLoading(
                    f"no block of producer ids yet: {error.message}", hint="try again in a moment"
                )
            )
