"""The private thread on which a synchronous client runs its asynchronous core.

Waits of the caller are waits for a lock, which a signal interrupts at once: Ctrl-C is honoured in
every blocking call. The thread is a daemon, so that a program which forgets to close its client can
end; before that, `at_exit` of each thread that still runs is called. A client that is only dropped
winds down on its thread without making anybody wait (`let_go`).
"""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")

JOIN_SECONDS = 5.0

_running: "set[LoopThread]" = set()


class LoopThread:
    def __init__(self, name: str, at_exit: Callable[[], None]) -> None:
        self._at_exit = at_exit
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._ready.wait()

    def _run(self) -> None:
        _running.add(self)
        try:
            asyncio.run(self._main())
        finally:
            _running.discard(self)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        await self._stop.wait()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def run(self, work: Coroutine[object, object, T], timeout: float | None = None) -> T:
        """Run on the loop and wait for the result. An interrupt, like a timeout, cancels it."""
        if self._loop is None or not self.is_alive:
            work.close()
            raise RuntimeError("the client's thread has ended")
        try:
            self.check_caller()
        except RuntimeError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def check_caller(self) -> None:
        """RuntimeError if the caller would wait for itself."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a callback would wait for the very thread that runs it")

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call on the loop, soon. After the end nothing is called any more."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(function)
            except RuntimeError:  # closed in between
                return

    def stop(self) -> None:
        """End the loop and wait for the thread, unless this is it."""
        stop = self._stop
        if stop is not None:
            self.call_soon(stop.set)
        self.join()

    def join(self) -> None:
        if threading.current_thread() is not self._thread:
            self._thread.join(JOIN_SECONDS)

    def let_go(self, last: Coroutine[object, object, None] | None) -> None:
        """Run this, then end; nobody waits."""
        loop, stop = self._loop, self._stop
        if loop is None or stop is None or not self.is_alive:
            if last is not None:
                last.close()
        elif last is None:
            self.call_soon(stop.set)
        else:
            asyncio.run_coroutine_threadsafe(last, loop).add_done_callback(
                lambda _: self.call_soon(stop.set)
            )

    def end_at_exit(self) -> None:
        self._at_exit()
        self.join()


@atexit.register
def _end_all() -> None:
    for thread in list(_running):
        thread.end_at_exit()
