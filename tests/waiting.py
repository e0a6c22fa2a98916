"""Waiting for a condition in tests that have no event loop."""

import threading
import time
from collections.abc import Callable

SECONDS = 40.0
POLL_SECONDS = 0.02

_never = threading.Event()


def wait_until(condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Wait for something to come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        _never.wait(POLL_SECONDS)
