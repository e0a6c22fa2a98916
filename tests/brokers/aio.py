"""Tests that are coroutines."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

from tests.loops import run

P = ParamSpec("P")


def async_test(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test on an event loop of its own."""

    @wraps(test)
    def on_loop(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return on_loop
