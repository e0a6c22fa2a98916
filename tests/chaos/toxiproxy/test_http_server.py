"""Requests that are none, on a connection of their own: an answer or an end, and it goes on."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.toxiproxy.wrapper import ToxiServer
from tests.chaos.toxiproxy.sockets import call, dial, read


@pytest.fixture(scope="module")
def embedded() -> Iterator[ToxiServer]:
    with ToxiServer.start("embedded") as server:
        yield server


def say(server: ToxiServer, *pieces: bytes) -> bytes:
    with dial(server.address) as client:
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(1)
        return read(client, 1 << 20)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"GET /version SPDY/3\r\n\r\n", b"400"),
        (b"GET /version HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"POST /reset HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST /reset HTTP/1.1\r\nContent-Length: 1e9\r\n\r\n", b"400"),
        (b"POST /proxies HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", b"413"),
        (b"POST /reset HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"POST /reset HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n", b"413"),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"431"),
    ],
)
def test_what_is_no_request(embedded: ToxiServer, words: bytes, status: bytes) -> None:
    assert say(embedded, words).startswith(b"HTTP/1.1 " + status)
    assert call(embedded, "GET", "/version").status == 200


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_any_bytes(embedded: ToxiServer, words: bytes) -> None:
    answer = say(embedded, words)
    assert not answer or answer.startswith(b"HTTP/1.1 4")


def test_requests_one_after_the_other_on_one_connection(embedded: ToxiServer) -> None:
    ask = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
    chunked = b"POST /reset HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    answer = say(embedded, ask[:10], ask[10:] + chunked, ask)
    assert [answer.count(b" 200 OK"), answer.count(b" 204 No Content")] == [2, 1]


def test_a_client_that_wants_to_close(embedded: ToxiServer) -> None:
    ask = b"GET /version HTTP/1.1\r\nConnection: close\r\n\r\n"
    answer = say(embedded, ask + ask)
    assert answer.count(b" 200 OK") == 1
