"""Long work on the event loop, in turns: after a few milliseconds others have theirs."""

import asyncio
import time

TURN_NS = 4_000_000
"""How long one turn may take. No step of a server is to take longer than 20 ms; this leaves room
for a slow machine.
"""


class Turns:
    """Call `share` between any two pieces of work: it lets others run when the turn is over.

    What was true before may not be true after it.
    """

    __slots__ = ("_ends_ns",)

    def __init__(self) -> None:
        self._ends_ns = time.monotonic_ns() + TURN_NS

    @property
    def is_over(self) -> bool:
        return time.monotonic_ns() >= self._ends_ns

    async def share(self) -> None:
        if self.is_over:
            await asyncio.sleep(0)
            self.restart()

    def restart(self) -> None:
        self._ends_ns = time.monotonic_ns() + TURN_NS
