"""Threads that work beside a story until it is over."""

import threading
from collections.abc import Callable, Mapping


class Threads:
    """Each work goes on until `over` is set. What one of them fails with is raised by `stop`, and
    ends the others.
    """

    def __init__(self, works: Mapping[str, Callable[[], None]]) -> None:
        self.over = threading.Event()
        self.failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), name=name, daemon=True)
            for name, work in works.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """And wait for what they do last."""
        self.over.set()
        for thread in self._threads:
            thread.join()
        self.check()

    def abandon(self, seconds: float) -> None:
        """Wait for each no longer than this."""
        self.over.set()
        for thread in self._threads:
            thread.join(seconds)

    def check(self) -> None:
        """Raise what one of them has failed with."""
        if self.failure is not None:
            raise self.failure

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again by `check`
            self.failure = error
            self.over.set()
