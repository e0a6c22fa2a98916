"""Toxiproxy's own tests of its toxics, against both servers, and ours of how they cut.

How long something takes at most is nobody's promise on a busy machine. That a delay is not shorter
than it was asked to be holds on any.
"""

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.toxiproxy import toxics
from chaos.toxiproxy.bodies import Json
from chaos.toxiproxy.wrapper import ToxiServer
from tests.chaos.toxiproxy.sockets import Echo, Upstream, call, dial, pair, read, sending

STREAMS = ("upstream", "downstream")
# Timers of both servers may fire a little early by our clock.
EARLY_SECONDS = 0.005


@contextlib.contextmanager
def at_least(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began >= seconds - EARLY_SECONDS


def echoed(client: socket.socket, message: bytes) -> bytes:
    with sending(client, message):
        return read(client, len(message))


def update(server: ToxiServer, name: str, toxic: str, **fields: Json) -> None:
    assert call(server, "PATCH", f"/proxies/{name}/toxics/{toxic}", fields).status == 200


# -- latency


@pytest.mark.parametrize("streams", [["upstream"], ["downstream"], STREAMS])
def test_latency(server: ToxiServer, echo: Echo, streams: list[str]) -> None:
    with dial(server.create("one", echo.address)) as client:
        for stream in streams:
            server.add_toxic("one", "latency", stream, latency=100)
        for _ in range(2):
            with at_least(0.1 * len(streams)):
                assert echoed(client, b"hello") == b"hello"


def test_latencies_of_one_direction_add_up(server: ToxiServer, echo: Echo) -> None:
    with dial(server.create("one", echo.address)) as client:
        for name in ("first", "second"):
            server.add_toxic("one", "latency", toxic=name, latency=100)
        with at_least(0.2):
            assert echoed(client, b"hello") == b"hello"


@pytest.mark.parametrize("latency", [0, -100])
def test_no_latency(server: ToxiServer, echo: Echo, latency: int) -> None:
    with dial(server.create("one", echo.address)) as client:
        server.add_toxic("one", "latency", latency=latency)
        assert echoed(client, b"hello") == b"hello"


def test_jitter_takes_away_too(server: ToxiServer, echo: Echo) -> None:
    with dial(server.create("one", echo.address)) as client:
        server.add_toxic("one", "latency", latency=60, jitter=20)
        with at_least(5 * 0.04):
            for _ in range(5):
                assert echoed(client, b"hello") == b"hello"


def test_what_latency_holds_back_comes_when_it_is_removed(
    server: ToxiServer, upstream: Upstream
) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        toxic = server.add_toxic("one", "latency", "upstream", latency=3_600_000)
        client.sendall(b"held back")
        server.remove_toxic("one", toxic)
        assert read(other, 9) == b"held back"


def sequence(count: int) -> bytes:
    return b"".join(struct.pack(">H", number) for number in range(count))


def check_order(server: ToxiServer, upstream: Upstream, count: int) -> None:
    """Small writes while a latency comes and goes: nothing lost, repeated or overtaken."""
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        expected = sequence(count)
        with sending(other, expected):
            got = b""
            while len(got) < len(expected):
                server.add_toxic("one", "latency", toxic="lag", latency=1_000)
                server.remove_toxic("one", "lag")
                piece = client.recv(len(expected) // 8)
                assert piece
                got += piece
        assert got == expected


def test_a_latency_that_comes_and_goes_keeps_the_order(
    server: ToxiServer, upstream: Upstream
) -> None:
    check_order(server, upstream, 8_000)


@pytest.mark.soak
def test_a_latency_that_comes_and_goes_keeps_the_order_of_many(
    server: ToxiServer, upstream: Upstream
) -> None:
    for _ in range(20):
        check_order(server, upstream, 65_535)
        server.delete_all()


def race(server: ToxiServer, echo: Echo, count: int) -> None:
    listen = server.create("one", echo.address)
    for _ in range(count):
        server.add_toxic("one", "latency", toxic="lag", latency=10)
        client = dial(listen)
        client.sendall(b"x")
        client.close()
        server.remove_toxic("one", "lag")
    with dial(listen) as client:
        assert echoed(client, b"still here") == b"still here"


def test_toxics_and_connections_race(server: ToxiServer, echo: Echo) -> None:
    race(server, echo, 100)


@pytest.mark.soak
def test_toxics_and_connections_race_often(server: ToxiServer, echo: Echo) -> None:
    race(server, echo, 1_000)


# -- bandwidth


def test_bandwidth(server: ToxiServer, upstream: Upstream) -> None:
    data = random.Random(1).randbytes(240_000)
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "bandwidth", rate=1_000)
        # The first chunk of 32 KiB may be on its way before the count begins.
        with at_least(0.2), sending(other, data):
            assert read(client, len(data)) == data


def test_a_bandwidth_of_nothing_stalls_until_it_is_removed(
    server: ToxiServer, upstream: Upstream
) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        toxic = server.add_toxic("one", "bandwidth", rate=0)
        other.sendall(b"stalled")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(40.0)
        server.remove_toxic("one", toxic)
        assert read(client, 7) == b"stalled"


# -- slow_close


def test_slow_close(server: ToxiServer, upstream: Upstream) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "slow_close", delay=300)
        other.sendall(b"at once")
        assert read(client, 7) == b"at once"
        with at_least(0.3):
            other.close()
            assert read(client, 1) == b""


# -- timeout


def test_timeout_drops_data_and_closes(server: ToxiServer, upstream: Upstream) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "timeout", "upstream", timeout=200)
        client.sendall(b"into the void")
        assert read(other, 1) == b""
        assert read(client, 1) == b""


@pytest.mark.parametrize("stream", STREAMS)
def test_the_end_of_a_timeout_is_the_end_of_its_connections(
    server: ToxiServer, upstream: Upstream, stream: str
) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        toxic = server.add_toxic("one", "timeout", stream, timeout=0)
        (client if stream == "upstream" else other).sendall(b"lost")
        server.remove_toxic("one", toxic)
        assert read(client, 1) == b""
        assert read(other, 1) == b""


def test_a_timeout_goes_beside_a_latency(server: ToxiServer, upstream: Upstream) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "latency", "upstream", latency=10)
        toxic = server.add_toxic("one", "timeout", "upstream", timeout=0)
        client.sendall(b"lost")
        server.remove_toxic("one", toxic)
        assert read(other, 1) == b""
        assert list(server.toxics("one")) == ["latency_upstream"]


# -- reset_peer


@pytest.mark.parametrize("timeout", [0, 100])
@pytest.mark.parametrize("stream", STREAMS)
def test_reset_peer(server: ToxiServer, echo: Echo, stream: str, timeout: int) -> None:
    listen = server.create("one", echo.address)
    server.add_toxic("one", "reset_peer", stream, timeout=timeout)
    with dial(listen) as client, at_least(timeout / 1_000):
        client.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_older_connections_end_without_a_reset(server: ToxiServer, echo: Echo) -> None:
    with dial(server.create("one", echo.address)) as client:
        assert echoed(client, b"x") == b"x"
        server.add_toxic("one", "reset_peer", timeout=0)
        client.sendall(b"y")
        assert read(client, 1) == b""


# -- slicer


def test_slicer_changes_no_byte(server: ToxiServer, upstream: Upstream) -> None:
    data = random.Random(2).randbytes(480_000)
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "slicer", average_size=1_024, size_variation=512, delay=10)
        with sending(other, data):
            assert read(client, len(data)) == data


def test_a_slicer_is_removed_in_the_middle(server: ToxiServer, upstream: Upstream) -> None:
    data = random.Random(3).randbytes(32_000)
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        toxic = server.add_toxic("one", "slicer", average_size=64, delay=1_000)
        other.sendall(data)
        first = read(client, 100)
        server.remove_toxic("one", toxic)
        assert first + read(client, len(data) - 100) == data


@given(
    size=st.integers(1, 100_000),
    average=st.integers(1, 5_000),
    variation=st.integers(0, 4_999),
    seed=st.integers(0, 100),
)
def test_slices_are_all_of_it_and_small_enough(
    size: int, average: int, variation: int, seed: int
) -> None:
    variation %= average
    attributes = {"average_size": average, "size_variation": variation}
    pieces = list(toxics.slices(size, attributes, random.Random(seed)))
    assert sum(pieces) == size
    assert all(0 < piece <= average + variation for piece in pieces)


def test_how_many_slices() -> None:
    attributes = {"average_size": 1_024, "size_variation": 512}
    assert 240 <= len(list(toxics.slices(480_000, attributes, random.Random(1)))) <= 720
    each = {"average_size": 1, "size_variation": 0}
    assert list(toxics.slices(24, each, random.Random(1))) == [1] * 24


# -- limit_data


@pytest.mark.parametrize(("limit", "passed"), [(0, 0), (50, 50), (99, 99), (100, 100)])
def test_limit_data(server: ToxiServer, upstream: Upstream, limit: int, passed: int) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "limit_data", bytes=limit)
        other.sendall(b"x" * 100)
        assert read(client, 200) == b"x" * passed


def test_below_the_limit_nothing_happens(server: ToxiServer, upstream: Upstream) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "limit_data", bytes=1_000)
        for _ in range(9):
            other.sendall(b"x" * 100)
            assert read(client, 100) == b"x" * 100


def test_the_limit_is_of_many_chunks(server: ToxiServer, upstream: Upstream) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        server.add_toxic("one", "limit_data", bytes=100_000)
        with sending(other, bytes(200_000)):
            assert len(read(client, 200_000)) == 100_000


def test_what_has_passed_counts_after_an_update(server: ToxiServer, upstream: Upstream) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        toxic = server.add_toxic("one", "limit_data", bytes=1_000)
        other.sendall(b"x" * 60)
        assert read(client, 60) == b"x" * 60
        update(server, "one", toxic, attributes={"bytes": 100})
        other.sendall(b"y" * 60)
        assert read(client, 60) == b"y" * 40


# -- toxicity, and removal


def test_no_toxicity_has_no_effect_until_it_is_given(
    server: ToxiServer, upstream: Upstream
) -> None:
    with pair(server.create("one", upstream.address), upstream) as (client, other):
        toxic = server.add_toxic("one", "limit_data", toxicity=0, bytes=10)
        other.sendall(b"x" * 100)
        assert read(client, 100) == b"x" * 100
        update(server, "one", toxic, toxicity=1)
        other.sendall(b"y" * 100)
        assert read(client, 100) == b"y" * 10


def test_removal_returns_though_the_connection_is_broken(
    server: ToxiServer, upstream: Upstream
) -> None:
    listen = server.create("one", upstream.address)
    server.add_toxic("one", "bandwidth", "upstream", rate=1)
    client, other = dial(listen), upstream.accept()
    client.sendall(bytes(1_000))
    other.close()
    client.close()
    server.remove_toxic("one", "bandwidth_upstream")
    server.reset()
    assert server.toxics("one") == {}


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("bandwidth", {"rate": -1}),
        ("slicer", {}),
        ("slicer", {"average_size": 1, "size_variation": 5}),
        ("slicer", {"average_size": 5, "size_variation": -1}),
        ("latency", {"jitter": 2**63 - 1}),
    ],
)
def test_what_would_kill_the_real_server_is_a_problem(
    kind: str, attributes: dict[str, int]
) -> None:
    assert toxics.problem(kind, attributes)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("bandwidth", {"rate": 0}),
        ("slicer", {"average_size": 1}),
        ("latency", {"latency": -1, "jitter": 2**62 - 1}),
        ("timeout", {"timeout": 0}),
    ],
)
def test_what_is_odd_only_is_none(kind: str, attributes: dict[str, int]) -> None:
    assert toxics.problem(kind, attributes) is None
