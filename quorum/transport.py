"""Requests to other nodes, on one long-lived stream per peer (`kraftlog.connection`).

A peer answers each request within its time or is taken for gone: a missed deadline closes the
stream, all that was open on it counts as unanswered, and the next request opens another.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from kraftlog.connection import RequestStream
from kraftlog.errors import InvalidRequest, ThrottledError
from kraftlog.resolver import Resolve
from kraftlog.rpc import raft_pb2
from quorum.core.messages import ReplicaRequest, Reply
from quorum.wire import decode_reply, encode_request

logger = logging.getLogger(__name__)

CHANNEL_METHOD = "/kraftlog.rpc.Raft/Channel"

OnReply = Callable[[Reply | None], None]
RaftStream = RequestStream[raft_pb2.RaftReply]


def parse_replies(message: bytes) -> Sequence[raft_pb2.RaftReply]:
    return raft_pb2.RaftReplies.FromString(message).replies


class GrpcTransport:
    """One stream per endpoint. `run` belongs into a TaskGroup; what is sent earlier waits for it.

    `resolve` may send a dial elsewhere, so that drills can cut edges.
    """

    def __init__(self, resolve: Resolve = str) -> None:
        self._resolve = resolve
        self._streams: dict[str, RaftStream] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def send(
        self, endpoint: str, request: ReplicaRequest, timeout_ms: int, on_reply: OnReply
    ) -> None:
        def take(envelope: raft_pb2.RaftReply | None) -> None:
            on_reply(_decode(endpoint, envelope))

        def encode(correlation_id: int) -> bytes:
            return encode_request(correlation_id, request).SerializeToString()

        try:
            self._stream(endpoint).send(encode, timeout_ms=timeout_ms, on_reply=take)
        except ThrottledError:
            on_reply(None)

    def _stream(self, endpoint: str) -> RaftStream:
        stream = self._streams.get(endpoint)
        if stream is None:
            stream = RequestStream(
                endpoint,
                CHANNEL_METHOD,
                parse=parse_replies,
                resolve=self._resolve,
                reopen_when_late=True,
            )
            self._streams[endpoint] = stream
            self._start(stream)
        return stream

    def _start(self, stream: RaftStream) -> None:
        if self._tasks is not None:
            self._tasks.create_task(stream.run(), name=f"raft stream to {stream.address}")

    async def run(self) -> None:
        """Until cancelled. All streams end with it."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for stream in self._streams.values():
                self._start(stream)
            await asyncio.Event().wait()


def _decode(endpoint: str, envelope: raft_pb2.RaftReply | None) -> Reply | None:
    if envelope is None:
        return None
    try:
        return decode_reply(envelope)
    except InvalidRequest as error:
        logger.warning("%s answers nonsense: %s", endpoint, error)
        return None
