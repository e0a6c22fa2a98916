"""Finding the active controller and asking it, whoever it is at the moment.

Brokers' metadata names the controllers and which of them is active; without brokers the addresses
that an administrator gave are tried in turn. A controller that is not active says who is. Requests
that change something carry an id, so that one whose answer was lost can be sent again: the
controller, also the next one, answers a repeat with the first result.
"""

import asyncio
import os
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from kraftlog._admin_wire import controller_request
from kraftlog._background import Background
from kraftlog._client_wire import (
    CHANNEL_OF_CONTROLLER,
    error_of,
    hint_of,
    parse_controller_replies,
)
from kraftlog._streams import ClientStream, Streams
from kraftlog.client_config import CommonOptions
from kraftlog.cluster_client import ClusterClient, no_answer, not_reached
from kraftlog.connection import open_channel
from kraftlog.errors import KraftError, LeaderNotAvailable, NotController
from kraftlog.resolver import resolver
from kraftlog.retry import Retry
from kraftlog.rpc import controller_pb2

REDIRECTS_MAX = 3

ControllerStream: TypeAlias = ClientStream[controller_pb2.ControllerReply]
M = TypeVar("M", bound=Message)


class ControllerClient:
    def __init__(
        self,
        cluster: ClusterClient | None,
        background: Background,
        *,
        addresses: Sequence[str],
        options: CommonOptions,
        retry: Retry,
    ) -> None:
        """`cluster` is None where there are addresses of controllers and no brokers are asked."""
        self._cluster = cluster
        self._addresses = tuple(addresses)
        self._options = options
        self._retry = retry
        self._resolve = resolver(os.environ)
        self._streams = Streams(background, self._open_stream)
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._calls: Counter[str] = Counter()
        """Those that are open on a channel."""
        self._active = ""
        self._client = secrets.token_bytes(16)
        self._sequences = count(1)

    # -- asking

    async def ask(
        self, kind: str, message: Message, *, timeout_ms: float, changes: bool
    ) -> controller_pb2.ControllerReply:
        """The active controller's answer. `changes`: the request is to be carried out once."""
        request_id = (self._client, next(self._sequences)) if changes else None

        async def once(remaining_ms: float) -> controller_pb2.ControllerReply:
            return await self._follow(kind, message, remaining_ms, request_id)

        return await self._retry.run(
            once, timeout_ms=timeout_ms, harmless=True, on_failure=self._look_again
        )

    async def _look_again(self, error: KraftError) -> None:
        """Who is active has to be found out anew."""
        self._active = ""
        if self._cluster is not None:
            await self._cluster.refresh_after(error)
        self._streams.keep(self._known_addresses())

    def _known_addresses(self) -> set[str]:
        """Where controllers listen, as far as we know; others are left alone."""
        view = {} if self._cluster is None else self._cluster.view.controllers
        return {*self._addresses, self._active, *(node.address for node in view.values())}

    async def _follow(
        self, kind: str, message: Message, remaining_ms: float, request_id: tuple[bytes, int] | None
    ) -> controller_pb2.ControllerReply:
        """Ask, and ask where we are sent to, a few times."""
        redirects = 0
        timeout_ms = min(remaining_ms, self._options.request_timeout_ms)
        while True:
            address = await self._find_active(remaining_ms)
            encode = controller_request(
                kind,
                message,
                client_id=self._options.client_id,
                timeout_ms=timeout_ms,
                request_id=request_id,
            )
            reply = await self._send(address, kind, encode, timeout_ms)
            if not reply.HasField("error"):
                self._active = address
                return reply
            error = error_of(reply.error, address)
            hint = hint_of(reply.error)
            redirects += 1
            is_sent_on = isinstance(error, NotController) and hint and hint.leader
            if not is_sent_on or redirects > REDIRECTS_MAX or hint is None or hint.leader is None:
                raise error
            self._active = hint.leader.address

    async def _send(
        self, address: str, kind: str, encode: Callable[[int], bytes], timeout_ms: float
    ) -> controller_pb2.ControllerReply:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[controller_pb2.ControllerReply] = loop.create_future()

        def take(reply: controller_pb2.ControllerReply | None) -> None:
            if answer.done():
                return
            if reply is None:
                answer.set_exception(no_answer(kind, address))
            else:
                answer.set_result(reply)

        def unsent() -> None:
            if not answer.done():
                answer.set_exception(not_reached(address))

        stream = self._streams.get(address, "controller")
        stream.send(encode, timeout_ms=timeout_ms, on_reply=take, on_unsent=unsent)
        return await answer

    def _open_stream(self, address: str) -> ControllerStream:
        return ClientStream(
            address,
            CHANNEL_OF_CONTROLLER,
            parse=parse_controller_replies,
            resolve=self._resolve,
        )

    # -- who is active

    async def _find_active(self, remaining_ms: float) -> str:
        if self._active:
            return self._active
        candidates = await self.controllers(remaining_ms)
        if not candidates:
            raise LeaderNotAvailable(
                "no controller is known", hint="are the brokers connected to a quorum?"
            )
        if self._cluster is not None:
            view = self._cluster.view
            active = view.controllers.get(view.controller_id or 0)
            if active is not None:
                return active.address
        # Each time another: who is not active knows, most of the time, who is.
        self._addresses = (*self._addresses[1:], *self._addresses[:1])
        return candidates[0]

    async def controllers(self, timeout_ms: float) -> list[str]:
        """The addresses of all controllers that we know of."""
        if self._cluster is None:
            return list(self._addresses)
        if not self._cluster.view.controllers:
            await self._cluster.refresh(timeout_ms=timeout_ms)
            if self._cluster.last_failure is not None:
                raise self._cluster.last_failure
        return [node.address for node in self._cluster.view.controllers.values()]

    # -- the quorum's own calls

    async def call_raft(
        self, address: str, method: str, request: Message, reply_type: type[M], timeout_ms: float
    ) -> M:
        """A unary call of the quorum's service."""
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = open_channel(address, self._resolve)
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"/kraftlog.rpc.Raft/{method}"
        )
        self._calls[address] += 1
        try:
            data = await call(request.SerializeToString(), timeout=timeout_ms / 1000)
        except grpc.aio.AioRpcError as error:
            raise no_answer(method, address) from error
        finally:
            self._calls[address] -= 1
            await self._drop_channels()
        return reply_type.FromString(data)

    async def _drop_channels(self) -> None:
        """Those that lead to nobody any more."""
        known = self._known_addresses()
        unused = [a for a in self._channels if a not in known and not self._calls[a]]
        for address in unused:
            await self._channels.pop(address).close()

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()
