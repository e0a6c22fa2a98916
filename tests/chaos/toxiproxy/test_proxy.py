"""Toxiproxy's own tests of its proxies, against both servers."""

import socket

import pytest

from chaos.toxiproxy.wrapper import ToxiServer
from tests.chaos.toxiproxy.sockets import (
    Echo,
    Upstream,
    call,
    dial,
    is_refused,
    pair,
    read,
    sending,
)


@pytest.mark.parametrize("parts", [[b"hello"], [b"x" * (64 << 10)], [b"hello", b" world"]])
def test_messages_pass_both_ways(
    server: ToxiServer, upstream: Upstream, parts: list[bytes]
) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        for part in parts:
            with sending(client, part):
                assert read(other, len(part)) == part
            with sending(other, part):
                assert read(client, len(part)) == part


@pytest.mark.parametrize("ends", ["client", "upstream"])
def test_an_end_is_the_end_of_both(server: ToxiServer, upstream: Upstream, ends: str) -> None:
    """There is no half-close: who stops sending hears nothing more either."""
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        first, second = (client, other) if ends == "client" else (other, client)
        first.sendall(b"last words")
        first.shutdown(socket.SHUT_WR)
        assert read(second, 11) == b"last words"
        assert read(first, 1) == b""


def test_an_upstream_that_is_down_is_an_end_and_no_refusal(
    server: ToxiServer, upstream: Upstream
) -> None:
    listen = server.create("one", upstream.address)
    upstream.close()
    with dial(listen) as client:
        assert read(client, 1) == b""


def test_cut_thrice(server: ToxiServer, echo: Echo) -> None:
    listen = server.create("one", echo.address)
    for _ in range(3):
        server.cut("one")
        assert is_refused(listen)
    server.enable("one")
    server.enable("one")
    with dial(listen) as client:
        client.sendall(b"hello")
        assert read(client, 5) == b"hello"


def test_a_proxy_starts_after_a_start_that_failed(server: ToxiServer, echo: Echo) -> None:
    listen = server.create("one", echo.address)
    server.cut("one")
    host, _, port = listen.rpartition(":")
    with socket.create_server((host, int(port))):
        answer = call(server, "POST", "/proxies/one", {"enabled": True})
        assert answer.status == 500
        assert call(server, "GET", "/proxies/one").json["enabled"] is False
    server.enable("one")
    assert not is_refused(listen)


def test_another_address_drops_connections(server: ToxiServer, echo: Echo) -> None:
    listen = server.create("one", echo.address)
    with dial(listen) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"
        moved = call(server, "POST", "/proxies/one", {"listen": "127.0.0.1:0"}).json["listen"]
        assert moved not in {listen, "127.0.0.1:0"}
        assert read(client, 1) == b""
    assert is_refused(listen)
    with dial(str(moved)) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"


def test_the_same_address_by_another_name_drops_nothing(server: ToxiServer, echo: Echo) -> None:
    listen = server.create("one", echo.address)
    with dial(listen) as client:
        client.sendall(b"x")
        assert read(client, 1) == b"x"
        by_name = listen.replace("127.0.0.1", "localhost")
        answer = call(server, "POST", "/proxies/one", {"listen": by_name})
        assert answer.json["listen"] == listen
        client.sendall(b"y")
        assert read(client, 1) == b"y"


def test_toxics_come_and_go_while_it_echoes(server: ToxiServer, echo: Echo) -> None:
    with dial(server.create("one", echo.address)) as client:
        for number in range(100):
            message = f"message {number}".encode()
            toxic = server.add_toxic("one", "latency", latency=0)
            client.sendall(message)
            server.remove_toxic("one", toxic)
            assert read(client, len(message)) == message


def test_a_slow_reader_is_not_read_for(server: ToxiServer, upstream: Upstream) -> None:
    """What nobody takes stays with its sender: the proxy holds no more than its buffers."""
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(64 << 20))
        assert read(other, 1 << 20) == bytes(1 << 20)
