"""Plain sockets around a proxy: an upstream that does what it is told, and clients."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Self

from chaos.toxiproxy.bodies import Json
from chaos.toxiproxy.wrapper import ToxiServer

SECONDS = 40.0


def dial(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the end comes first."""
    pieces = bytearray()
    while len(pieces) < size:
        piece = connection.recv(size - len(pieces))
        if not piece:
            break
        pieces += piece
    return bytes(pieces)


def is_refused(address: str) -> bool:
    try:
        dial(address).close()
    except ConnectionRefusedError:
        return True
    return False


class Upstream:
    """A listener whose connections the test takes one by one."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.settimeout(SECONDS)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> socket.socket:
        connection, _ = self._listener.accept()
        connection.settimeout(SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes whoever accepts
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Echo(Upstream):
    """One that sends back what it gets, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        _start(self._accept_all)

    def _accept_all(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self.accept()
                _start(partial(_echo, connection))


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _echo(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while piece := connection.recv(1 << 16):
            connection.sendall(piece)


@contextlib.contextmanager
def sending(connection: socket.socket, data: bytes) -> Iterator[None]:
    """In a thread, so that the test can read; a connection that breaks is the test's business."""

    def send() -> None:
        with contextlib.suppress(OSError):
            connection.sendall(data)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    yield
    thread.join(SECONDS)


@contextlib.contextmanager
def pair(listen: str, upstream: Upstream) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client through a proxy, and its connection at the upstream."""
    with dial(listen) as client, upstream.accept() as server:
        yield client, server


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> dict[str, Json]:
        found: dict[str, Json] = json.loads(self.text)
        return found


def call(
    server: ToxiServer, method: str, path: str, body: "Json | bytes" = b"", **headers: str
) -> Answer:
    """One call of the HTTP API, with nothing between."""
    connection = http.client.HTTPConnection(server.address, timeout=SECONDS)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body=data or None, headers=named)
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode(), dict(answer.getheaders()))
    finally:
        connection.close()
