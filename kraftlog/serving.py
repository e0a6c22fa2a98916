"""The server's end of a stream of requests (`kraftlog.connection` has the client's).

Requests of a stream are handled in their order and answered in any; the writer sends all replies
that are ready in one message. Where too much of a stream is unanswered the server stops reading
from it, and the sender is slowed down by the transport itself.
"""

import asyncio
import contextlib
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NoReturn, Protocol, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from kraftlog.connection import MESSAGE_BYTES_MAX
from kraftlog.errors import ConfigError
from kraftlog.framing import Envelope, frame, take_message

logger = logging.getLogger(__name__)

OPEN_REQUESTS_MAX = 64
OPEN_BYTES_MAX = 16 << 20

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # Clients ping once a second to notice a dead peer; by default that is met with a GOAWAY.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 250),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.max_concurrent_streams", 1_000),
    # Else a second process could listen on the same port and get half of the connections.
    ("grpc.so_reuseport", 0),
)

E = TypeVar("E")

SendReply = Callable[[Envelope], None]
"""Takes the encoded envelope of a reply. To be called once per request; with an empty one if the
sender wants no reply.
"""
Handle = Callable[[E, SendReply], None]
Parse = Callable[[bytes], Sequence[E]]


class ServerCall(Protocol):
    """What a handler needs of gRPC's context of a call."""

    async def read(self) -> object: ...

    async def write(self, message: bytes, /) -> None: ...

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn: ...


_Place = tuple[int, int, int, str, tuple[str | int | bytes, ...]]
"""What getaddrinfo gives."""


def check_can_listen(address: str) -> None:
    """ConfigError where nobody can listen, with the reason: gRPC does not give it."""
    host, _, port = address.rpartition(":")
    try:
        places = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        failures = [each for each in map(_try_to_bind, places) if each]
        if len(failures) == len(places):  # one of several is enough
            raise failures[0]
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address}: {error.strerror or error}",
            hint="another process may have the port: stop it, or choose another",
        ) from None


def _try_to_bind(place: _Place) -> OSError | None:
    family, kind, protocol, _, name = place
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(name)
        except OSError as error:
            return error
    return None


def open_server(address: str) -> tuple[grpc.aio.Server, int]:
    """A server that is bound but not started, and its port, which the system chose if it was 0."""
    check_can_listen(address)
    server = grpc.aio.server(options=SERVER_OPTIONS)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise ConfigError(
            f"cannot listen on {address}: {error}",
            hint="another process may have the port: stop it, or choose another",
        ) from None
    return server, port


async def start_server(server: grpc.aio.Server) -> None:
    """Let it serve. A start that is cancelled halfway breaks the stop that follows, and a stop
    beside it can end the process: whoever cancels waits until it is over.
    """
    is_over = asyncio.Event()

    async def start() -> None:
        try:
            await server.start()
        finally:
            is_over.set()

    try:
        await asyncio.shield(start())
    finally:
        await is_over.wait()


def _nobody_counts(_replies: int) -> None:
    pass


async def serve_stream(
    call: ServerCall,
    parse: Parse[E],
    handle: Handle[E],
    on_written: Callable[[int], None] = _nobody_counts,
) -> None:
    """Serve one stream to its end. `on_written` hears how many more replies were written; they are
    written in the order in which they were given.
    """
    stream = _ServedStream(call, parse, handle, on_written)
    # No task of this group may fail: Python 3.11 then takes its parent for cancelled.
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stream.write())
        nonsense = await stream.read()
        stream.end_writing()
    if nonsense is not None:
        await call.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no message: {nonsense}")


class _ServedStream(Generic[E]):
    def __init__(
        self,
        call: ServerCall,
        parse: Parse[E],
        handle: Handle[E],
        on_written: Callable[[int], None],
    ) -> None:
        self._call = call
        self._parse = parse
        self._handle = handle
        self._on_written = on_written
        self._replies: deque[bytes] = deque()
        self._answered: deque[_Received] = deque()
        """Which message each of these replies belongs to."""
        self._ready = asyncio.Event()
        self._room = asyncio.Event()
        self._open = 0
        self._open_bytes = 0
        self._is_over = False

    async def read(self) -> DecodeError | None:
        """To the end of the stream, or to what is no message."""
        while isinstance(message := await self._next_message(), bytes):
            try:
                envelopes = self._parse(message)
            except DecodeError as error:
                return error
            if not envelopes:
                continue
            received = _Received(self, len(message), len(envelopes))
            for envelope in envelopes:
                self._handle(envelope, received.reply)
            while self._is_full():
                self._room.clear()
                await self._room.wait()
        return None

    async def _next_message(self) -> object:
        """None where the server has stopped: that ends a stream, too, and gRPC raises it."""
        with contextlib.suppress(grpc.aio.BaseError):
            return await self._call.read()
        return None

    def _is_full(self) -> bool:
        return self._open >= OPEN_REQUESTS_MAX or self._open_bytes >= OPEN_BYTES_MAX

    def count(self, requests: int, size: int) -> None:
        """More is open, or less."""
        self._open += requests
        self._open_bytes += size
        if requests < 0:
            self._room.set()

    def queue(self, envelope: Envelope, received: "_Received") -> None:
        self._replies.append(frame(envelope))
        self._answered.append(received)
        self._ready.set()

    async def write(self) -> None:
        """Until `end_writing`, or until client or server is gone: the reader hears of that too."""
        with contextlib.suppress(grpc.aio.BaseError):
            while not self._is_over:
                await self._ready.wait()
                self._ready.clear()
                await self._write_replies()

    def end_writing(self) -> None:
        """Nobody reads what is not written yet. A write that is under way comes to its end: until
        then gRPC cannot send the status of the call.
        """
        self._is_over = True
        self._ready.set()

    async def _write_replies(self) -> None:
        while self._replies and not self._is_over:
            queued = len(self._replies)
            message = take_message(self._replies)
            taken = queued - len(self._replies)
            await self._call.write(message)
            for _ in range(taken):
                self._answered.popleft().settle()
            self._on_written(taken)


class _Received:
    """A message of requests. Its bytes count as open until the last of them is answered, and that
    is when its reply is written: who does not read replies is not read from either.
    """

    __slots__ = ("_open", "_size", "_stream")

    def __init__(self, stream: "_ServedStream[E]", size: int, requests: int) -> None:
        self._stream = stream
        self._size = size
        self._open = requests
        stream.count(requests, size)

    def reply(self, envelope: Envelope) -> None:
        if envelope:
            self._stream.queue(envelope, self)
        else:
            self.settle()

    def settle(self) -> None:
        self._open -= 1
        self._stream.count(-1, 0 if self._open else -self._size)
