import select
import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from kraftlog.local.ways import Ways
from tests.waiting import wait_until

EDGE = ("c1", "c2")
SILENCE_SECONDS = 0.1


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(1024):
            self.request.sendall(data)


@pytest.fixture
def echo() -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def ways() -> Iterator[Ways]:
    made = Ways()
    yield made
    made.close()
    assert not any(each.name == "kraftlog-ways" for each in threading.enumerate())


def dialled(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), 20)


def is_silent(connection: socket.socket) -> bool:
    return not select.select([connection], [], [], SILENCE_SECONDS)[0]


def has_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(10) == b""
    except ConnectionResetError:
        return True


def test_what_is_sent_over_a_closed_way_comes_later(ways: Ways, echo: str) -> None:
    address = ways.add(EDGE, echo)
    assert ways.add(EDGE, echo) == address
    with dialled(address) as old:
        old.sendall(b"one")
        assert old.recv(10) == b"one"
        ways.shut([EDGE])
        old.sendall(b"two")
        with dialled(address) as new:
            new.sendall(b"three")
            assert is_silent(old)
            assert is_silent(new)
            ways.open_all()
            assert (old.recv(10), new.recv(10)) == (b"two", b"three")


def test_one_way_is_closed_and_not_the_other(ways: Ways, echo: str) -> None:
    there, back = ways.add(EDGE, echo), ways.add(("c2", "c1"), echo)
    ways.shut([EDGE])
    with dialled(there) as closed, dialled(back) as passable:
        closed.sendall(b"x")
        passable.sendall(b"y")
        assert passable.recv(10) == b"y"
        assert is_silent(closed)


def test_the_end_of_one_side_is_told_to_the_other(ways: Ways, echo: str) -> None:
    with dialled(ways.add(EDGE, echo)) as connection:
        connection.sendall(b"last")
        connection.shutdown(socket.SHUT_WR)
        assert (connection.recv(10), connection.recv(10)) == (b"last", b"")


def test_where_nobody_listens_a_connection_ends(ways: Ways) -> None:
    with dialled(ways.add(EDGE, "127.0.0.1:1")) as connection:
        wait_until(lambda: connection.recv(10) == b"", "its end")


def test_what_is_open_at_the_end_is_closed(echo: str) -> None:
    """Connections under way, one that waits, and one that nobody has carried yet."""
    ways = Ways()
    address = ways.add(EDGE, echo)
    with dialled(address) as used, dialled(address) as idle:
        used.sendall(b"one")
        assert used.recv(10) == b"one"
        ways.shut([EDGE])
        with dialled(address) as late:
            ways.close()
            for connection in (used, idle, late):
                assert has_ended(connection)
