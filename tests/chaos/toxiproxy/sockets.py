"""Plain sockets around a proxy: an upstream that does what it is told, and clients."""

import contextlib
import socket
import threading
from collections.abc import Iterator

SECONDS = 40.0


def dial(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the end comes first."""
    pieces = b""
    while len(pieces) < size:
        piece = connection.recv(size - len(pieces))
        if not piece:
            break
        pieces += piece
    return pieces


class Upstream:
    """A listener whose connections the test takes one by one."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.settimeout(SECONDS)
        self.address = "127.0.0.1:{}".format(self._listener.getsockname()[1])

    def accept(self) -> socket.socket:
        connection, _ = self._listener.accept()
        connection.settimeout(SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def close(self) -> None:
        self._listener.close()


class Echo(Upstream):
    """One that sends back what it gets, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._threads: list[threading.Thread] = []
        self._accepting = self._start(self._accept)

    def _start(self, work: "threading.Thread | object", *arguments: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)
        return thread

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._start(self._echo, self.accept())

    @staticmethod
    def _echo(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while piece := connection.recv(1 << 16):
                connection.sendall(piece)


@contextlib.contextmanager
def pair(listen: str, upstream: Upstream) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client through a proxy, and its connection at the upstream."""
    with dial(listen) as client, upstream.accept() as server:
        yield client, server
