"""Controllers that answer by script, over real gRPC."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc

from brokers.controller_link import CALL_METHOD, ControllerFinder, ControllerLink
from kraftlog.errors import ErrorCode
from kraftlog.rpc import controller_pb2
from kraftlog.serving import open_server

Request = controller_pb2.ControllerRequest
Reply = controller_pb2.ControllerReply


class ScriptedController:
    """Keeps what it was asked, and answers with what `script` returns."""

    def __init__(self, script: Callable[[Request], Reply]) -> None:
        self.script = script
        self.asked: list[Request] = []
        self.address = ""

    async def call(self, request: Request, _: object) -> Reply:
        self.asked.append(request)
        reply = self.script(request)
        reply.correlation_id = request.header.correlation_id
        return reply


@asynccontextmanager
async def scripted(script: Callable[[Request], Reply]) -> AsyncIterator[ScriptedController]:
    controller = ScriptedController(script)
    server, port = open_server("127.0.0.1:0")
    handler = grpc.unary_unary_rpc_method_handler(
        controller.call,
        request_deserializer=Request.FromString,
        response_serializer=Reply.SerializeToString,
    )
    service, _, method = CALL_METHOD.strip("/").partition("/")
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: handler}),)
    )
    await server.start()
    controller.address = f"127.0.0.1:{port}"
    try:
        yield controller
    finally:
        await server.stop(None)


@asynccontextmanager
async def linked(*addresses: str) -> AsyncIterator[ControllerLink]:
    link = ControllerLink(ControllerFinder(addresses), cluster_id=b"c" * 16, client_id="broker 1")
    try:
        yield link
    finally:
        await link.close()


def not_controller(address: str | None = None, epoch: int = 3) -> Reply:
    """The refusal of one that is not active; it may know who is."""
    reply = Reply()
    reply.error.code = ErrorCode.NOT_CONTROLLER
    reply.error.message = "not me"
    reply.error.leader.epoch = epoch
    if address is not None:
        host, _, port = address.rpartition(":")
        reply.error.leader.leader.node_id = 101
        reply.error.leader.leader.endpoint.host = host
        reply.error.leader.leader.endpoint.port = int(port)
    return reply
