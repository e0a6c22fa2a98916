"""The streams of a client: opened on use, and dropped when nobody listens at their address."""

import asyncio
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from kraftlog._background import Background
from kraftlog.connection import Answer, RequestStream

R = TypeVar("R", bound=Answer)


class ClientStream(RequestStream[R]):
    @property
    def is_idle(self) -> bool:
        """Nobody waits for an answer, and nothing is still to be written."""
        return not self._open


class _Running(NamedTuple, Generic[R]):
    stream: ClientStream[R]
    task: asyncio.Task[None] | None


class Streams(Generic[R]):
    def __init__(
        self, background: Background, open_stream: Callable[[str], ClientStream[R]]
    ) -> None:
        self._background = background
        self._open_stream = open_stream
        self._running: dict[tuple[str, str], _Running[R]] = {}

    def get(self, address: str, purpose: str) -> ClientStream[R]:
        """The stream to an address for a purpose."""
        running = self._running.get((address, purpose))
        if running is None:
            stream = self._open_stream(address)
            task = self._background.start(stream.run(), f"{purpose} stream to {address}")
            running = self._running[address, purpose] = _Running(stream, task)
        return running.stream

    def keep(self, addresses: set[str]) -> None:
        """Drop those to other addresses, unless something is open on them."""
        for key in [key for key in self._running if key[0] not in addresses]:
            stream, task = self._running[key]
            if stream.is_idle:
                del self._running[key]
                if task is not None:
                    task.cancel()
