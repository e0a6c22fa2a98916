"""Clients and brokers that are only messages to real controllers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import grpc
import grpc.aio

from kraftlog.connection import open_channel
from kraftlog.errors import ErrorCode, KraftError, WireError, from_wire
from kraftlog.rpc import common_pb2
from kraftlog.rpc import controller_pb2 as pb
from kraftlog.types import Uuid
from metadata_log.decide.features import SUPPORTED

METHOD = "/kraftlog.rpc.Controller/Call"
CALL_SECONDS = 1.0
RETRY_SECONDS = 0.02
MOVING = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class ScriptedClient:
    """Asks whoever is the active controller, again and again until it is answered."""

    def __init__(self, endpoints: Sequence[str]) -> None:
        self._endpoints = list(endpoints)
        self._channels = {endpoint: open_channel(endpoint) for endpoint in endpoints}
        self._client = Uuid.random().raw
        self._requests = 0

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def ask(
        self, request: pb.ControllerRequest, *, seconds: float = 30.0
    ) -> pb.ControllerReply:
        """The answer to a mutation that is done once, however often it was sent."""
        self._requests += 1
        request.request_id.client = self._client
        request.request_id.sequence = self._requests
        async with asyncio.timeout(seconds):
            while True:
                reply = await self.try_once(request)
                if reply is not None:
                    return reply
                self.turn()
                await asyncio.sleep(RETRY_SECONDS)

    def turn(self) -> None:
        """Ask the next one from now on."""
        self._endpoints.append(self._endpoints.pop(0))

    async def try_once(self, request: pb.ControllerRequest) -> pb.ControllerReply | None:
        """None: ask another one, or again."""
        call = self._channels[self._endpoints[0]].unary_unary(
            METHOD,
            request_serializer=pb.ControllerRequest.SerializeToString,
            response_deserializer=pb.ControllerReply.FromString,
        )
        try:
            reply: pb.ControllerReply = await call(request, timeout=CALL_SECONDS)
        except grpc.aio.AioRpcError:
            return None
        return None if reply.error.code in MOVING else reply


def raise_error(message: pb.ControllerReply | pb.NewTopicResult | pb.NamedResult) -> None:
    if message.error.code:
        raise from_wire(WireError(message.error.code, message.error.message, message.error.hint))


@dataclass
class ScriptedBroker:
    """Registers and sends heartbeats; claims to have applied all there is."""

    client: ScriptedClient
    broker_id: int
    incarnation_id: bytes = field(default_factory=lambda: Uuid.random().raw)
    epoch: int = -1
    is_fenced: bool = True

    async def register(self) -> None:
        request = pb.RegisterBrokerRequest(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            endpoint=common_pb2.Endpoint(host="127.0.0.1", port=10_000 + self.broker_id),
            log_dir_ids=[Uuid.random().raw],
            features=[
                pb.FeatureRange(name=each.name, min_level=each.min_level, max_level=each.max_level)
                for each in SUPPORTED.values()
            ],
        )
        reply = await self.client.ask(pb.ControllerRequest(register_broker=request))
        raise_error(reply)
        self.epoch = reply.register_broker.broker_epoch

    async def beat(self) -> pb.ControllerReply | None:
        request = pb.HeartbeatRequest(
            broker_id=self.broker_id, broker_epoch=self.epoch, applied_offset=2**40
        )
        reply = await self.client.try_once(pb.ControllerRequest(heartbeat=request))
        if reply is None:
            self.client.turn()
        else:
            raise_error(reply)
            self.is_fenced = reply.heartbeat.is_fenced
        return reply

    async def live(self) -> None:
        """Until cancelled."""
        while True:
            with contextlib.suppress(KraftError):
                await self.beat()
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def scripted_brokers(
    endpoints: Sequence[str], count: int
) -> AsyncIterator[list[ScriptedBroker]]:
    """Brokers that are registered, unfenced and go on beating."""
    brokers = [ScriptedBroker(ScriptedClient(endpoints), 1 + each) for each in range(count)]
    for broker in brokers:
        await broker.register()
    async with asyncio.TaskGroup() as tasks:
        living = [tasks.create_task(broker.live()) for broker in brokers]
        async with asyncio.timeout(30):
            while any(each.is_fenced for each in brokers):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)
        yield brokers
        for task in living:
            task.cancel()
    for broker in brokers:
        await broker.client.close()
