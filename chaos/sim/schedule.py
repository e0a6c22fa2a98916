"""Virtual time: what happens when, and the clock that each node believes in."""

import heapq
from collections.abc import Callable
from random import Random

Act = Callable[[], None]

WALL_START_MS = 1_700_000_000_000
_A_MOMENT_MS = 1e-3
"""Floats round: a wake must not come just before the millisecond that it is for."""


class Schedule:
    """A heap of acts. Those of the same moment come in an order of the dice."""

    def __init__(self, dice: Random) -> None:
        self.now = 0.0
        self.events = 0
        self._dice = dice
        self._queue: list[tuple[float, float, int, Act]] = []
        self._sequence = 0

    def later(self, delay_ms: float, act: Act) -> None:
        self._sequence += 1
        at = self.now + max(0.0, delay_ms)
        heapq.heappush(self._queue, (at, self._dice.random(), self._sequence, act))

    def is_due(self, end_ms: float) -> bool:
        return bool(self._queue) and self._queue[0][0] <= end_ms

    def step(self) -> None:
        """Let the next act happen."""
        at, _, _, act = heapq.heappop(self._queue)
        self.now = at
        self.events += 1
        act()


class NodeClock:
    """A clock that runs a little fast or slow; its wall time also jumps."""

    def __init__(self, schedule: Schedule, rate: float) -> None:
        self._schedule = schedule
        self.rate = rate
        self._wall_offset_ms = WALL_START_MS

    def monotonic_ms(self) -> int:
        return int(self._schedule.now * self.rate)

    def wall_ms(self) -> int:
        return self._wall_offset_ms + self.monotonic_ms()

    def jump_wall(self, ms: int) -> None:
        self._wall_offset_ms += ms

    def delay_until(self, monotonic_ms: int) -> float:
        """How long the world has to wait until this clock shows that time."""
        return max(0.0, (monotonic_ms + _A_MOMENT_MS) / self.rate - self._schedule.now)
