"""Requests to the active controller, wherever it is.

Who is active is told by the metadata log, which this broker follows, and by every controller that
is asked and is not the one. Whoever knows the higher epoch is believed. A controller that does not
answer is left alone until all others had their turn.

Calls are unary: few, small, and each with a deadline of its own. Heartbeats have a link, and so a
connection, of their own: nothing else may delay them.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
import grpc.aio

from brokers.wire import decode_endpoint
from kraftlog.connection import open_channel
from kraftlog.errors import (
    KraftError,
    NetworkError,
    NotController,
    RequestTimedOut,
    WireError,
    from_wire,
)
from kraftlog.resolver import Resolve
from kraftlog.rpc import common_pb2, controller_pb2

logger = logging.getLogger(__name__)

CALL_METHOD = "/kraftlog.rpc.Controller/Call"


@dataclass(frozen=True, slots=True)
class Active:
    """The active controller of an epoch."""

    epoch: int
    endpoint: str


class ControllerFinder:
    """Which controller to ask next. One for all links of a broker."""

    def __init__(
        self,
        peers: Sequence[str],
        *,
        active: Callable[[], Active | None] = lambda: None,
        voters: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`peers` are addresses that may be controllers. `active` and `voters` tell what the
        metadata log says.
        """
        self._peers = tuple(peers)
        self._read_active = active
        self._read_voters = voters
        self._told: Active | None = None
        self._newest_epoch = -1
        self._avoided: set[str] = set()

    def choose(self) -> str:
        options = self._options()
        for endpoint in options:
            if endpoint not in self._avoided:
                return endpoint
        self._avoided.clear()
        return options[0]

    def _options(self) -> list[str]:
        """The newest active controller first, then everybody."""
        known = [each for each in (self._read_active(), self._told) if each is not None]
        known.sort(key=lambda each: each.epoch, reverse=True)
        if known and known[0].epoch > self._newest_epoch:
            self._newest_epoch = known[0].epoch
            self._avoided.discard(known[0].endpoint)
        first = [known[0].endpoint] if known else []
        return list(dict.fromkeys((*first, *self._read_voters(), *self._peers)))

    def redirect(self, asked: str, told: Active | None) -> None:
        """The one that was asked is not active, and said who is."""
        self._avoided.add(asked)
        if told is not None and (self._told is None or told.epoch >= self._told.epoch):
            self._told = told
            self._avoided.discard(told.endpoint)

    def avoid(self, endpoint: str) -> None:
        """It does not answer."""
        self._avoided.add(endpoint)


class ControllerLink:
    """One connection at a time to whoever is active. Each call is one attempt."""

    def __init__(
        self,
        finder: ControllerFinder,
        *,
        cluster_id: bytes,
        client_id: str,
        resolve: Resolve = str,
    ) -> None:
        self._finder = finder
        self._cluster_id = cluster_id
        self._client_id = client_id
        self._resolve = resolve
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._correlation_id = 0

    async def ask(
        self, request: controller_pb2.ControllerRequest, *, api_key: int, timeout_ms: int
    ) -> controller_pb2.ControllerReply:
        """Send once, to whoever seems active. The reply's error is raised.

        NotController: the next attempt goes to another one. AmbiguousError: it may have happened.
        """
        endpoint = self._finder.choose()
        self._correlation_id += 1
        request.header.CopyFrom(
            common_pb2.RequestHeader(
                api_key=api_key, correlation_id=self._correlation_id, client_id=self._client_id
            )
        )
        request.cluster_id = self._cluster_id
        request.timeout_ms = timeout_ms
        reply = await self._call(endpoint, request, timeout_ms)
        if reply.HasField("error"):
            raise self._refusal(endpoint, reply.error)
        return reply

    async def _call(
        self, endpoint: str, request: controller_pb2.ControllerRequest, timeout_ms: int
    ) -> controller_pb2.ControllerReply:
        call: grpc.aio.UnaryUnaryMultiCallable[
            controller_pb2.ControllerRequest, controller_pb2.ControllerReply
        ] = self._channel(endpoint).unary_unary(
            CALL_METHOD,
            request_serializer=controller_pb2.ControllerRequest.SerializeToString,
            response_deserializer=controller_pb2.ControllerReply.FromString,
        )
        try:
            return await call(request, timeout=timeout_ms / 1000)
        except grpc.aio.AioRpcError as error:
            self._finder.avoid(endpoint)
            raise _transport_error(endpoint, error, timeout_ms) from None

    def _channel(self, endpoint: str) -> grpc.aio.Channel:
        """By where the address leads now: a drill may change that."""
        target = self._resolve(endpoint)
        channel = self._channels.get(target)
        if channel is None:
            channel = self._channels[target] = open_channel(target)
        return channel

    def _refusal(self, endpoint: str, error: common_pb2.Error) -> KraftError:
        refusal = from_wire(WireError(error.code, error.message, error.hint), node=endpoint)
        if isinstance(refusal, NotController):
            self._finder.redirect(endpoint, _told(error))
        return refusal

    async def close(self) -> None:
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()


def _told(error: common_pb2.Error) -> Active | None:
    if not error.HasField("leader") or not error.leader.HasField("leader"):
        return None
    return Active(error.leader.epoch, decode_endpoint(error.leader.leader.endpoint))


def _transport_error(endpoint: str, error: grpc.aio.AioRpcError, timeout_ms: int) -> KraftError:
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return RequestTimedOut(
            f"controller {endpoint} did not answer in {timeout_ms} ms", node=endpoint
        )
    return NetworkError(
        f"controller {endpoint} cannot be asked: {error.details() or error.code().name}",
        node=endpoint,
    )
