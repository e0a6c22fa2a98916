"""Proposals on a stream: any number at once, in few messages (ARCHITECTURE 9)."""

import asyncio
from collections.abc import Sequence
from functools import partial

from kraftlog.connection import RequestStream
from kraftlog.errors import KraftError, LeaderNotAvailable, NetworkError
from kraftlog.resolver import Resolve
from kraftlog.rpc import raft_pb2
from kraftlog.types import Uuid
from quorum.client import raise_refusal
from quorum.transport import CHANNEL_METHOD, parse_replies

TIMEOUT_MS = 5_000

_Answer = asyncio.Future[raft_pb2.RaftReply]


class Proposer:
    """A stream to one controller. `run` belongs into a TaskGroup.

    An AmbiguousError (RequestTimedOut, NetworkError) says that the records may be committed or not.
    Any other says that they are not: NotLeaderError, and what its reply knew of the leader is in
    `leader`; LeaderNotAvailable, where nothing could be sent.
    """

    def __init__(self, address: str, cluster_id: Uuid, *, resolve: Resolve = str) -> None:
        self.leader: str | None = None
        self._address = address
        self._cluster_id = cluster_id.raw
        self._stream = RequestStream(address, CHANNEL_METHOD, parse=parse_replies, resolve=resolve)

    async def run(self) -> None:
        await self._stream.run()

    async def propose(
        self, values: Sequence[bytes], *, epoch: int | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> int:
        """Append these together; returns the offset of the first, once it is committed."""
        request = raft_pb2.ProposeRequest(cluster_id=self._cluster_id, records=values, epoch=epoch)
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._stream.send(
            partial(_encode, request),
            timeout_ms=timeout_ms,
            on_reply=partial(self._take, answer),
            on_unsent=partial(self._give_up, answer),
        )
        reply = (await answer).propose
        if reply.header.HasField("leader"):
            self.leader = reply.header.leader.endpoint
        raise_refusal(reply.header, self._address)
        return reply.base_offset

    def _take(self, answer: _Answer, reply: raft_pb2.RaftReply | None) -> None:
        if answer.done():
            return  # whoever asked has given up
        if reply is not None:
            answer.set_result(reply)
        else:
            text = f"no answer from {self._address}: the records may be committed or not"
            answer.set_exception(NetworkError(text, node=self._address))

    def _give_up(self, answer: _Answer) -> None:
        if not answer.done():
            error: KraftError = LeaderNotAvailable(
                f"{self._address} cannot be reached; nothing was sent",
                hint="ask another controller",
                node=self._address,
            )
            answer.set_exception(error)


def _encode(request: raft_pb2.ProposeRequest, correlation_id: int) -> bytes:
    return raft_pb2.RaftRequest(correlation_id=correlation_id, propose=request).SerializeToString()
