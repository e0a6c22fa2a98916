"""The standard gRPC health service, `grpc.health.v1.Health`, for load balancers and supervisors.

Its two messages have one field each, number 1: a string and an enum. Protobuf's own wrapper types
look the same on the wire. So there is nothing to generate, and nothing that would clash with
another copy of health.proto in the same process.
"""

import asyncio
from collections.abc import AsyncIterator
from enum import IntEnum

import grpc
import grpc.aio
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

SERVICE = "grpc.health.v1.Health"


class ServingStatus(IntEnum):
    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


class Health:
    """The status of the process (name "") and of its services."""

    def __init__(self) -> None:
        self._status: dict[str, ServingStatus] = {"": ServingStatus.NOT_SERVING}
        self._changed = asyncio.Event()

    def set(self, service: str, *, serving: bool) -> None:
        status = ServingStatus.SERVING if serving else ServingStatus.NOT_SERVING
        if self._status.get(service) is not status:
            self._status[service] = status
            self._changed.set()
            self._changed = asyncio.Event()

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to add to a server."""
        check = grpc.unary_unary_rpc_method_handler(
            self.check,
            request_deserializer=StringValue.FromString,
            response_serializer=Int32Value.SerializeToString,
        )
        watch = grpc.unary_stream_rpc_method_handler(
            self.watch,
            request_deserializer=StringValue.FromString,
            response_serializer=Int32Value.SerializeToString,
        )
        return grpc.method_handlers_generic_handler(SERVICE, {"Check": check, "Watch": watch})

    async def check(
        self, request: StringValue, context: "grpc.aio.ServicerContext[StringValue, Int32Value]"
    ) -> Int32Value:
        status = self._status.get(request.value)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.value!r} here")
        return Int32Value(value=status)

    async def watch(self, request: StringValue, _: object) -> AsyncIterator[Int32Value]:
        """The status now, and whenever it changes."""
        last: ServingStatus | None = None
        while True:
            changed = self._changed
            status = self._status.get(request.value, ServingStatus.SERVICE_UNKNOWN)
            if status is not last:
                last = status
                yield Int32Value(value=status)
            await changed.wait()
