"""Waiting for a condition, with a deadline."""

import threading
import time
from collections.abc import Callable

DEADLINE_SECONDS = 30.0


def until(holds: Callable[[], bool], what: str) -> None:
    """Return as soon as it holds; fail if it does not within the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS} s: {what}"
        pause.wait(0.005)
