import asyncio
import json
from pathlib import Path

import pytest

from kraftlog import connection
from kraftlog.connection import RequestStream
from kraftlog.errors import ThrottledError
from kraftlog.resolver import FileResolver
from tests.kraftlog.streams import (
    METHOD,
    Reply,
    Request,
    Send,
    Stream,
    answer,
    ask,
    echo,
    echoed,
    parse_replies,
    serving,
    streaming,
)
from tests.loops import run, until


def test_requests_are_answered() -> None:
    async def story() -> None:
        async with serving() as server, streaming(server.address) as stream:
            replies = await asyncio.gather(
                *(stream.ask(ask(number), timeout_ms=20_000) for number in range(100))
            )
            assert [echoed(reply) for reply in replies] == list(range(100))
            assert len(server.messages) < 10  # what waits together travels together
            assert server.streams == 1

    run(story())


def test_replies_come_in_any_order() -> None:
    held: list[tuple[Request, Send]] = []

    def backwards(request: Request, send: Send) -> None:
        held.append((request, send))
        if len(held) == 5:
            for asked, reply in reversed(held):
                reply(answer(asked))

    async def story() -> None:
        order: list[int | None] = []
        async with serving(backwards) as server, streaming(server.address) as stream:
            for number in range(5):
                stream.send(
                    ask(number),
                    timeout_ms=20_000,
                    on_reply=lambda reply: order.append(echoed(reply)),
                )
            await until(lambda: len(order) == 5)
        assert order == [4, 3, 2, 1, 0]

    run(story())


def test_a_silent_request_is_over_when_it_is_written() -> None:
    heard: list[int] = []
    strays: list[Reply] = []

    def speak_up_at_the_last(request: Request, send: Send) -> None:
        heard.append(request.fetch.offset)
        send(answer(request) if request.fetch.offset == 199 else b"")  # b"": done, no reply

    async def story() -> None:
        over: list[Reply | None] = []
        async with (
            serving(speak_up_at_the_last) as server,
            streaming(server.address, on_stray=strays.append) as stream,
        ):
            for number in range(200):  # far more than may be open
                stream.send(ask(number), timeout_ms=60_000, on_reply=over.append, silent=True)
                await until(lambda: len(over) == len(heard) == number + 1)  # noqa: B023
            await until(lambda: bool(strays))
        assert over == [None] * 200
        assert [echoed(each) for each in strays] == [199]

    run(story())


def test_a_late_reply_is_dropped_and_the_others_go_on() -> None:
    late: list[Send] = []

    def hold_one(request: Request, send: Send) -> None:
        if request.fetch.offset == 1:
            late.append(lambda _: send(answer(request)))
        else:
            echo(request, send)

    async def story() -> None:
        async with serving(hold_one) as server, streaming(server.address) as stream:
            assert await stream.ask(ask(1), timeout_ms=50) is None
            late[0](b"")
            assert echoed(await stream.ask(ask(2), timeout_ms=20_000)) == 2
            assert server.streams == 1

    run(story())


def test_a_missed_deadline_reopens_the_stream_where_that_is_wanted() -> None:
    def never_the_first(request: Request, send: Send) -> None:
        if request.fetch.offset:
            echo(request, send)

    async def story() -> None:
        async with (
            serving(never_the_first) as server,
            streaming(server.address, reopen_when_late=True) as stream,
        ):
            both = (stream.ask(ask(0), timeout_ms=timeout) for timeout in (20_000, 100))
            replies = await asyncio.gather(*both)
            assert replies == [None, None]  # all that is open on it is lost with it
            assert echoed(await stream.ask(ask(7), timeout_ms=20_000)) == 7
            assert server.streams == 2

    run(story())


def test_a_server_that_is_gone_is_found_again() -> None:
    async def story() -> None:
        async with serving() as server, streaming(server.address) as stream:
            assert echoed(await stream.ask(ask(1), timeout_ms=20_000)) == 1
            await server.stop()
            assert await stream.ask(ask(2), timeout_ms=20_000) is None  # long before its deadline
            await server.start()
            answers: list[Reply | None] = []
            while not any(answers):
                answers.append(await stream.ask(ask(3), timeout_ms=20_000))
            assert echoed(answers[-1]) == 3

    run(story())


def test_a_server_that_answers_nonsense_is_one_that_does_not_answer() -> None:
    async def story() -> None:
        async with (
            serving(lambda _, send: send(b"\xff\xff\xff")) as server,
            streaming(server.address) as stream,
        ):
            assert await stream.ask(ask(1), timeout_ms=20_000) is None

    run(story())


def test_too_much_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "OPEN_REQUESTS_MAX", 3)

    async def story() -> None:
        stream = RequestStream("127.0.0.1:1", METHOD, parse=parse_replies)
        for _ in range(3):
            stream.send(ask(0), timeout_ms=1_000, on_reply=lambda _: None)
        with pytest.raises(ThrottledError, match=r"3 requests with .* to 127\.0\.0\.1:1"):
            stream.send(ask(0), timeout_ms=1_000, on_reply=lambda _: None)

    run(story())


def test_the_end_of_the_task_answers_all_that_waits() -> None:
    async def story() -> None:
        replies: list[Reply | None] = []
        async with serving(lambda *_: None) as server:
            async with streaming(server.address) as stream:
                stream.send(ask(0), timeout_ms=60_000, on_reply=replies.append)
                await until(lambda: server.messages == [1])
            assert replies == [None]

    run(story())


def test_every_dial_asks_the_resolver(tmp_path: Path) -> None:
    path = tmp_path / "map.json"

    async def story() -> None:
        async with serving() as one, serving(lambda *_: None) as other:
            path.write_text(json.dumps({"anywhere:1": other.address}))
            stream = RequestStream(
                "anywhere:1",
                METHOD,
                parse=parse_replies,
                resolve=FileResolver(str(path)),
                reopen_when_late=True,
            )
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(stream.run())
                assert await stream.ask(ask(1), timeout_ms=200) is None
                path.write_text(json.dumps({"anywhere:1": one.address}))
                assert echoed(await stream.ask(ask(2), timeout_ms=20_000)) == 2
                task.cancel()
            assert other.streams == 1

    run(story())


def outcomes(stream: Stream, *offsets: int, timeout_ms: float = 20_000) -> list[str]:
    """Send these, and note of each whether it was answered, unsent, or nobody knows."""
    heard: list[str] = []

    def note(reply: Reply | None) -> None:
        heard.append("unknown" if reply is None else "answered")

    for offset in offsets:
        stream.send(
            ask(offset),
            timeout_ms=timeout_ms,
            on_reply=note,
            on_unsent=lambda: heard.append("unsent"),
        )
    return heard


def test_what_was_never_written_is_told_apart_from_what_was() -> None:
    async def story() -> None:
        async with (
            serving(lambda _request, _send: None) as server,
            streaming(server.address) as stream,
        ):
            written = outcomes(stream, 1, timeout_ms=100)
            await until(lambda: written == ["unknown"])
            await server.stop()
            refused = outcomes(stream, 2, 3)
            await until(lambda: len(refused) == 2)
            unreachable = outcomes(stream, 4)
            await until(lambda: unreachable == ["unsent"])

    run(story())


def test_what_is_given_up_before_there_is_a_connection_is_never_written() -> None:
    async def story() -> None:
        async with serving() as server, streaming(server.address) as stream:
            await server.stop()
            for _ in range(3):
                given_up = outcomes(stream, 1, timeout_ms=1)
                await until(lambda heard=given_up: heard == ["unsent"])  # type: ignore[misc]
            await server.start()
            answers: list[Reply | None] = []
            while not any(answers):
                answers.append(await stream.ask(ask(9), timeout_ms=20_000))
            assert sum(server.messages) == len([each for each in answers if each])

    run(story())


class Swallowed(asyncio.InvalidStateError):
    """What a call may say in the place of a cancellation."""


@pytest.mark.parametrize("instead", [None, Swallowed()])
def test_a_cancellation_that_grpc_swallows_is_not_lost(instead: Exception | None) -> None:
    """It does so while a call is being set up; the stream then went on for ever."""

    async def swallow() -> bytes:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if instead is not None:
                raise instead from None
        return b"as if nothing had been"

    async def story() -> None:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(connection._unless_over(swallow()))
            await asyncio.sleep(0)
            task.cancel()
        assert task.cancelled()

    run(story())


def test_streams_end_when_they_are_told_to_whatever_their_call_does() -> None:
    async def story() -> None:
        for turns in range(40):
            stream = RequestStream("127.0.0.1:1", METHOD, parse=parse_replies)
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(stream.run())
                stream.send(ask(0), timeout_ms=60_000, on_reply=lambda _: None)
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()

    run(story())


def test_grpc_is_done_with_a_stream_that_was_closed() -> None:
    """Else its end is told to a loop that may be closed by then, by way of somebody else's."""

    def watched() -> int:
        return sum(map(connection._watches_call, asyncio.all_tasks()))

    async def story() -> None:
        async with serving(echo) as server, streaming(server.address) as other:
            assert echoed(await other.ask(ask(1), timeout_ms=40_000)) == 1
            for number in range(20):
                async with streaming(server.address) as stream:
                    reply = await stream.ask(ask(number), timeout_ms=40_000)
                    assert echoed(reply) == number
                    assert watched() == 2
                assert watched() == 1, "that of the other stream, which is not waited for"

    run(story())
