"""A byte rate for work in the background, kept by pauses."""

import math
import threading
import time
from collections.abc import Callable

from kraftlog.clock import Clock, SystemClock
from kraftlog.errors import ConfigError

BURST_MS = 100
"""Idle time counts for this much at most: after a rest work may begin quickly, but not run away."""


class Throttle:
    """Whoever works tells what it did, and is held up until the rate allows it. Several threads may
    share one.
    """

    def __init__(
        self,
        bytes_per_second: float = math.inf,
        *,
        clock: Clock | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        """`pause` waits so many seconds; one that can be woken, like Event.wait, makes a stop
        quick.
        """
        if not bytes_per_second > 0:
            raise ConfigError(
                f"log.cleaner.io.max.bytes.per.second={bytes_per_second} is not above 0"
            )
        self._bytes_per_ms = bytes_per_second / 1_000
        self._clock = clock or SystemClock()
        self._pause = pause
        self._lock = threading.Lock()
        self._paid_until_ms = -math.inf

    def spend(self, count: int) -> None:
        """`count` bytes were read or written: wait until they are paid for."""
        with self._lock:
            now = self._clock.monotonic_ms()
            begin = max(self._paid_until_ms, now - BURST_MS)
            self._paid_until_ms = begin + count / self._bytes_per_ms
            debt_ms = self._paid_until_ms - now
        if debt_ms > 0:
            self._pause(debt_ms / 1_000)
