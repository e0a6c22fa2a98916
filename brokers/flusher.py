"""Flushing the log of one partition off the loop: one flush at a time, and all who ask while it
runs share the next one.
"""

import asyncio
from collections.abc import Callable

from storage.log import Log

InExecutor = Callable[[Callable[[], int]], "asyncio.Future[int]"]


class Flusher:
    """`on_done` is called on the loop after each flush, with the error if it failed."""

    __slots__ = ("_in_executor", "_is_running", "_is_wanted", "_log", "_on_done")

    def __init__(
        self,
        log: Log,
        in_executor: InExecutor,
        on_done: Callable[[BaseException | None], None],
    ) -> None:
        self._log = log
        self._in_executor = in_executor
        self._on_done = on_done
        self._is_running = False
        self._is_wanted = False

    def request(self) -> None:
        """Flush all that is in the log by now."""
        if self._is_running:
            self._is_wanted = True
            return
        self._is_running = True
        self._in_executor(self._log.flush).add_done_callback(self._finish)

    def _finish(self, flush: "asyncio.Future[int]") -> None:
        self._is_running = False
        if flush.cancelled():
            return
        wanted, self._is_wanted = self._is_wanted, False
        error = flush.exception()
        self._on_done(error)
        if wanted and error is None:
            self.request()
