"""What a call is told whose client is closed already, or by another thread while it waits."""

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from kraftlog.errors import InvalidRequest


def closed(client: str) -> InvalidRequest:
    return InvalidRequest(f"the {client} is closed", hint="make a new one")


@contextmanager
def told_if_closed(client: str) -> Iterator[None]:
    """For waits on a loop, which ends with its client and then cancels what it still had to do."""
    try:
        yield
    except CancelledError:
        raise closed(client) from None
