"""Waiting for a condition, with a deadline."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEADLINE_SECONDS = 30.0


def until(holds: Callable[[], bool], what: str) -> None:
    """Return as soon as it holds; fail if it does not within the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS} s: {what}"
        pause.wait(0.005)


@contextmanager
def meanwhile(call: Callable[[], object]) -> Iterator[list[object]]:
    """Have another thread call; behind the block stands what came of it, the error too."""
    heard: list[object] = []

    def work() -> None:
        try:
            heard.append(call())
        except Exception as error:  # noqa: BLE001  it is what is looked at
            heard.append(error)

    caller = threading.Thread(target=work, name="caller", daemon=True)
    caller.start()
    yield heard
    caller.join(DEADLINE_SECONDS)
    assert not caller.is_alive(), f"not within {DEADLINE_SECONDS} s: the call's end"
