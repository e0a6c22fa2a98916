"""How late an event loop is: what shows that a step on it took too long."""

import asyncio
import time

from kraftlog.metrics import Histogram, Registry

LAG_PERIOD_SECONDS = 0.1


class LoopLag:
    """How much later than asked for the loop runs a timer: the longest step of any task."""

    def __init__(self, registry: Registry) -> None:
        self._lag: Histogram = registry.histogram(
            "kraftlog_loop_lag_seconds", "How late the event loop was, asked ten times a second."
        )
        self._longest = 0.0
        registry.gauge(
            "kraftlog_loop_lag_max_seconds", "The latest that it was so far.", lambda: self._longest
        )

    async def run(self) -> None:
        while True:
            due = time.monotonic() + LAG_PERIOD_SECONDS
            await asyncio.sleep(LAG_PERIOD_SECONDS)
            late = max(0.0, time.monotonic() - due)
            self._longest = max(self._longest, late)
            self._lag.observe(late)
