import asyncio
import gc
from functools import partial
from typing import NoReturn

import grpc
import grpc.aio
import pytest

from kraftlog import serving as module
from kraftlog.connection import open_channel
from kraftlog.errors import ConfigError
from kraftlog.rpc import raft_pb2
from kraftlog.serving import open_server, serve_stream, start_server
from tests.kraftlog.streams import (
    METHOD,
    Handle,
    Request,
    Send,
    answer,
    ask,
    echo,
    echoed,
    parse_requests,
    serving,
    streaming,
)
from tests.loops import run, until


def test_requests_of_a_stream_are_handled_in_their_order() -> None:
    seen: list[int] = []

    def note(request: Request, send: Send) -> None:
        seen.append(request.fetch.offset)
        echo(request, send)

    async def story() -> None:
        async with serving(note) as server, streaming(server.address) as stream:
            asked = (stream.ask(ask(number), timeout_ms=20_000) for number in range(500))
            await asyncio.gather(*asked)
        assert seen == list(range(500))

    run(story())


def test_a_server_stops_reading_where_too_much_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_REQUESTS_MAX", 4)
    held: list[tuple[Request, Send]] = []
    most = 0

    def hold(request: Request, send: Send) -> None:
        nonlocal most
        held.append((request, send))
        most = max(most, len(held))

    async def story() -> None:
        async with serving(hold) as server, streaming(server.address) as stream:
            replies: list[int | None] = []
            for number in range(12):
                stream.send(
                    ask(number),
                    timeout_ms=60_000,
                    on_reply=lambda reply: replies.append(echoed(reply)),
                )
                read = min(number + 1, 4)  # each in a message of its own
                await until(partial(holds, held, read))
            while len(replies) < 12:
                await until(lambda: bool(held) or len(replies) == 12)
                answer_all(held)
            assert replies == list(range(12))
            assert most < 12

    run(story())


def holds(held: list[tuple[Request, Send]], count: int) -> bool:
    return len(held) >= count


def answer_all(held: list[tuple[Request, Send]]) -> None:
    for request, send in held:
        send(answer(request))
    held.clear()


def test_large_replies_go_in_several_messages() -> None:
    block = bytes(600_000)

    async def story() -> None:
        async with (
            serving(lambda request, send: send(answer(request, block))) as server,
            streaming(server.address) as stream,
        ):
            asked = (stream.ask(ask(number), timeout_ms=20_000) for number in range(20))
            replies = await asyncio.gather(*asked)
            assert [echoed(reply) for reply in replies] == list(range(20))

    run(story())


def test_what_is_no_message_is_refused_and_the_server_goes_on() -> None:
    async def story() -> None:
        async with serving() as server:
            async with open_channel(server.address) as channel:
                call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(METHOD)()
                await call.write(b"\xff\xff\xff")
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call.read()
                assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            async with streaming(server.address) as stream:
                assert echoed(await stream.ask(ask(1), timeout_ms=20_000)) == 1

    run(story())


def test_a_message_over_the_limit_is_refused() -> None:
    async def story() -> None:
        async with serving() as server, streaming(server.address) as stream:
            huge = Request(correlation_id=1, propose={"records": [bytes(5 << 20)]})
            assert await stream.ask(lambda _: huge.SerializeToString(), timeout_ms=20_000) is None
            assert echoed(await stream.ask(ask(1), timeout_ms=20_000)) == 1

    run(story())


def test_clients_that_vanish_are_no_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    held: list[tuple[Request, Send]] = []

    async def story() -> None:
        async with serving(lambda *each: held.append(each)) as server:
            async with streaming(server.address) as stream:
                stream.send(ask(1), timeout_ms=60_000, on_reply=lambda _: None)
                await until(lambda: bool(held))
            for request, send in held:
                send(answer(request))
            async with streaming(server.address) as stream:
                server.handle = echo
                assert echoed(await stream.ask(ask(2), timeout_ms=20_000)) == 2

    run(story())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_where_nobody_can_listen_the_reason_is_said() -> None:
    for address in ("203.0.113.1:0", "nobody.invalid:9000"):
        with pytest.raises(ConfigError, match=f"cannot listen on {address}: [A-Z]"):
            open_server(address)


def test_two_servers_cannot_share_a_port() -> None:
    async def story() -> None:
        server, port = open_server("127.0.0.1:0")
        wanted = f"cannot listen on 127.0.0.1:{port}: Address already in use"
        with pytest.raises(ConfigError, match=wanted):
            open_server(f"127.0.0.1:{port}")
        await server.stop(None)

    run(story())


def test_a_start_that_is_cancelled_leaves_a_server_that_can_be_stopped() -> None:
    troubles: list[dict[str, object]] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: troubles.append(context))
        for turns in range(4):
            server, _ = open_server("127.0.0.1:0")
            async with asyncio.TaskGroup() as tasks:
                starting = tasks.create_task(start_server(server))
                for _ in range(turns):
                    await asyncio.sleep(0)
                starting.cancel()
            await server.stop(None)
            del server, starting
            gc.collect()  # a task that failed unseen says so when it goes
        assert troubles == []

    run(story())


class StoppingCall:
    """The call of a server that stops: gRPC says so to whoever reads or writes."""

    def __init__(self, *messages: bytes) -> None:
        self._messages = list(messages)

    async def read(self) -> object:
        if self._messages:
            return self._messages.pop(0)
        await asyncio.sleep(0)
        raise grpc.aio.BaseError("Server already stopped.")

    async def write(self, _message: bytes) -> None:
        raise grpc.aio.BaseError("Server already stopped.")

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise AssertionError(f"{code}: {details}")


@pytest.mark.parametrize("handle", [echo, lambda _request, _send: None])
def test_a_stream_ends_quietly_when_its_server_stops(handle: Handle) -> None:
    messages = (raft_pb2.RaftRequests(requests=[Request(correlation_id=1)]).SerializeToString(),)
    run(serve_stream(StoppingCall(*messages), parse_requests, handle))


class SlowCall(StoppingCall):
    """Of a client that says no more while a reply is on its way to it."""

    def __init__(self, *messages: bytes) -> None:
        super().__init__(*messages)
        self.writing = asyncio.Event()
        self.room = asyncio.Event()
        self.written: list[bytes] = []

    async def read(self) -> object:
        if self._messages:
            return self._messages.pop(0)
        await self.writing.wait()
        return grpc.aio.EOF

    async def write(self, message: bytes) -> None:
        self.writing.set()
        await self.room.wait()
        self.written.append(message)


def test_the_status_of_a_call_waits_for_a_write_that_is_under_way() -> None:
    """gRPC refuses to send it beside a write, and the client would never hear of the end."""

    async def story() -> None:
        two = [Request(correlation_id=1), Request(correlation_id=2)]
        call = SlowCall(
            *(raft_pb2.RaftRequests(requests=[each]).SerializeToString() for each in two)
        )
        block = bytes(900_000)  # two of them are two messages
        async with asyncio.TaskGroup() as tasks:
            served = tasks.create_task(
                serve_stream(
                    call, parse_requests, lambda request, send: send(answer(request, block))
                )
            )
            await call.writing.wait()
            for _ in range(10):
                await asyncio.sleep(0)
            assert not served.done()
            call.room.set()
        assert len(call.written) == 1

    run(story())
