"""Time as an argument: timers are monotonic, the wall clock only stamps."""

import time
from typing import Protocol


class Clock(Protocol):
    def monotonic_ms(self) -> int:
        """Milliseconds that only grow: for timers, deadlines and intervals."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the epoch: for timestamps that people and files see."""
        ...


class SystemClock:
    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that moves only when told to, for tests and the simulator."""

    def __init__(self, monotonic_ms: int = 0, wall_ms: int = 1_700_000_000_000) -> None:
        self._monotonic_ms = monotonic_ms
        self._wall_ms = wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def advance(self, ms: int) -> None:
        self._monotonic_ms += ms
        self._wall_ms += ms

    def jump_wall(self, ms: int) -> None:
        """Move the wall clock alone, as an operator or NTP does."""
        self._wall_ms += ms
