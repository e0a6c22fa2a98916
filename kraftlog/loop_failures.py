"""What a callback of the event loop raises: asyncio logs it and goes on, whatever it was."""

import asyncio
from collections.abc import Callable

from kraftlog._check import InvariantViolation


def end_on_broken_invariant(
    loop: asyncio.AbstractEventLoop, fail: Callable[[BaseException], None]
) -> None:
    """A rule of ours that is broken ends the process, wherever on the loop that is found."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        loop.default_exception_handler(context)
        error = context.get("exception")
        if isinstance(error, InvariantViolation):
            fail(error)

    loop.set_exception_handler(handle)
