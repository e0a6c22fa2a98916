"""Bytes that are no request, to everything that listens: it hangs up and goes on, with nothing
changed, nothing kept open and no memory kept.
"""

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import grpc
import pytest

from kraftlog.connection import MESSAGE_BYTES_MAX
from tests.bad_input.victim import Listener, Victim

CONNECT_SECONDS = 10.0
HALF_OPEN = 150
SHORT_LIVED = 300
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
LISTENERS = [
    *("c1", "b1", "b2", "b3"),
    *("c1 metrics", "b1 metrics", "b2 metrics", "b3 metrics", "toxiproxy"),
]


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    """One of HTTP/2; its length may be a lie."""
    said = len(payload) if length is None else length
    return said.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def noises() -> Iterator[tuple[str, bytes]]:
    dice = random.Random(4)
    yield "nothing", b""
    yield "NUL", bytes(100)
    yield "HTTP/1.1", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield "no end of a head", b"GET /" + b"x" * 200_000
    yield "a body that does not come", b"POST /proxies HTTP/1.1\r\nContent-Length: 99999\r\n\r\n{"
    yield "a negative length", b"POST /proxies HTTP/1.1\r\nContent-Length: -1\r\n\r\n"
    yield "a browser", b"POST /reset HTTP/1.1\r\nHost: x\r\nUser-Agent: Mozilla/5.0\r\n\r\n"
    yield "no JSON", b"POST /proxies HTTP/1.1\r\nContent-Length: 4\r\n\r\n{{{{"
    yield "half a handshake", PREFACE
    yield "TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + dice.randbytes(600)
    yield "half a frame", PREFACE + SETTINGS + b"\x00\x40\x00"
    yield "a frame of 16 MiB", PREFACE + SETTINGS + frame(0, 0, 1, b"x", 0xFFFFFF)
    yield "data of no stream", PREFACE + SETTINGS + frame(0, 0, 77, b"x" * 100)
    yield "headers of noise", PREFACE + SETTINGS + frame(1, 4, 1, dice.randbytes(500))
    yield "pings", PREFACE + SETTINGS + frame(6, 0, 0, bytes(8)) * 5_000
    opened_and_reset = (
        frame(1, 4, n, b"\x82") + frame(3, 0, n, bytes(4)) for n in range(1, 999, 2)
    )
    yield "streams that are reset", PREFACE + SETTINGS + b"".join(opened_and_reset)
    for size in (1, 100, 10_000, 1_000_000):
        yield f"{size} random bytes", dice.randbytes(size)


def connect(listener: Listener) -> socket.socket:
    host, _, port = listener.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS)


def send(listener: Listener, noise: bytes) -> bytes:
    """What it answers before it hangs up."""
    found = b""
    with connect(listener) as connection:
        try:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65_536):
                found += chunk
        except OSError:
            pass  # it hung up on us, and rightly so
    return found


def test_every_listener_is_in_the_list(victim: Victim) -> None:
    assert sorted(victim.listeners) == sorted(LISTENERS)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", LISTENERS)
def test_noise_changes_nothing(unharmed: Victim, name: str) -> None:
    for _, noise in noises():
        answer = send(unharmed.listeners[name], noise)
        assert b"Traceback" not in answer
        assert b".py" not in answer


@pytest.mark.parametrize("name", LISTENERS)
def test_connections_that_say_half_a_word_keep_nobody_from_being_served(
    unharmed: Victim, name: str
) -> None:
    """They stay open meanwhile; the fixture looks afterwards that they are closed."""
    with ExitStack() as stack:
        for _ in range(HALF_OPEN):
            stack.enter_context(connect(unharmed.listeners[name])).sendall(PREFACE[:9])
        unharmed.state()


@pytest.mark.parametrize("name", LISTENERS)
def test_connections_that_come_and_go(unharmed: Victim, name: str) -> None:
    for number in range(SHORT_LIVED):
        with connect(unharmed.listeners[name]) as connection:
            connection.sendall(PREFACE[: number % len(PREFACE)])


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LISTENERS)
def test_ten_thousand_connections_leave_nothing(unharmed: Victim, name: str) -> None:
    for _ in range(10_000):
        connect(unharmed.listeners[name]).close()


# -- gRPC that is well formed, and no call that there is

CALLS = {
    "b1": ("/kraftlog.rpc.Broker/Call", "/kraftlog.rpc.Broker/FetchRange"),
    "c1": ("/kraftlog.rpc.Controller/Call", "/kraftlog.rpc.Raft/Vote", "/kraftlog.rpc.Raft/Fetch"),
}
METHODS = [(name, method) for name, methods in CALLS.items() for method in methods]


def status_of(
    listener: Listener, method: str, message: bytes, metadata: tuple[tuple[str, str], ...] = ()
) -> grpc.StatusCode:
    """How a call ends whose message is sent as it is."""
    options = [("grpc.max_send_message_length", -1), ("grpc.max_metadata_size", 16 << 20)]
    with grpc.insecure_channel(listener.address, options=options) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
        try:
            call(message, timeout=CONNECT_SECONDS, metadata=metadata)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


@pytest.mark.parametrize("name", ["b1", "c1"])
def test_a_method_that_there_is_not(unharmed: Victim, name: str) -> None:
    for method in ("/kraftlog.rpc.Broker/Destroy", "/x/y", "/kraftlog.rpc.Nobody/Call"):
        assert status_of(unharmed.listeners[name], method, b"") is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_a_message_over_the_limit_is_not_read(unharmed: Victim, name: str, method: str) -> None:
    code = status_of(unharmed.listeners[name], method, bytes(MESSAGE_BYTES_MAX + 1))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_metadata_of_a_megabyte_is_refused(unharmed: Victim, name: str, method: str) -> None:
    huge = (("x-huge", "x" * (1 << 20)),)
    code = status_of(unharmed.listeners[name], method, b"", huge)
    assert code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_bytes_that_are_no_message(unharmed: Victim, name: str, method: str) -> None:
    dice = random.Random(7)
    for size in (1, 7, 100, 5_000, MESSAGE_BYTES_MAX - 1):
        code = status_of(unharmed.listeners[name], method, b"\xff" + dice.randbytes(size))
        assert code is not grpc.StatusCode.OK
        assert code is not grpc.StatusCode.DEADLINE_EXCEEDED
