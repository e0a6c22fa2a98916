"""A stream of raft envelopes between two ends in one process: an echo server, and its client."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from kraftlog.connection import RequestStream
from kraftlog.rpc import raft_pb2
from kraftlog.serving import open_server, serve_stream

METHOD = "/test.Echo/Channel"

Request = raft_pb2.RaftRequest
Reply = raft_pb2.RaftReply
Send = Callable[[bytes], None]
Handle = Callable[[Request, Send], None]
Stream = RequestStream[Reply]


def parse_requests(message: bytes) -> Sequence[Request]:
    return raft_pb2.RaftRequests.FromString(message).requests


def parse_replies(message: bytes) -> Sequence[Reply]:
    return raft_pb2.RaftReplies.FromString(message).replies


def ask(offset: int) -> Callable[[int], bytes]:
    """A request that carries a number."""

    def encode(correlation_id: int) -> bytes:
        fetch = raft_pb2.FetchRequest(offset=offset)
        return Request(correlation_id=correlation_id, fetch=fetch).SerializeToString()

    return encode


def answer(request: Request, records: bytes = b"") -> bytes:
    """A reply that carries the same number."""
    fetch = raft_pb2.FetchReply(log_start_offset=request.fetch.offset, records=records)
    return Reply(correlation_id=request.correlation_id, fetch=fetch).SerializeToString()


def echo(request: Request, send: Send) -> None:
    send(answer(request))


def echoed(reply: Reply | None) -> int | None:
    return reply.fetch.log_start_offset if reply is not None else None


class Server:
    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.messages: list[int] = []
        """How many requests each message brought."""
        self.streams = 0
        self.address = ""
        self._server: grpc.aio.Server | None = None

    async def start(self) -> None:
        async def channel(_: object, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
            self.streams += 1
            await serve_stream(context, self._parse, self._handle)

        self._server, port = open_server(self.address or "127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        method: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(channel)
        handlers = grpc.method_handlers_generic_handler("test.Echo", {"Channel": method})
        self._server.add_generic_rpc_handlers((handlers,))
        await self._server.start()

    def _handle(self, request: Request, send: Send) -> None:
        self.handle(request, send)

    def _parse(self, message: bytes) -> Sequence[Request]:
        requests = parse_requests(message)
        self.messages.append(len(requests))
        return requests

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None


@asynccontextmanager
async def serving(handle: Handle = echo) -> AsyncIterator[Server]:
    server = Server(handle)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def streaming(
    address: str,
    *,
    reopen_when_late: bool = False,
    on_stray: Callable[[Reply], None] | None = None,
) -> AsyncIterator[Stream]:
    stream = RequestStream(
        address,
        METHOD,
        parse=parse_replies,
        reopen_when_late=reopen_when_late,
        on_stray=on_stray,
    )
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(stream.run())
        yield stream
        task.cancel()
