"""Controllers for the tests of the admin: who is active is said by the test, answers are canned.

What a real controller decides is not repeated here. What matters to a client is: that any of them
can be asked and says who is active, and that a request with an id is carried out once.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Self, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from kraftlog.errors import ErrorCode
from kraftlog.rpc import common_pb2, controller_pb2, raft_pb2

T = TypeVar("T")
M = TypeVar("M", bound=Message)
Answer = Callable[[controller_pb2.ControllerRequest], controller_pb2.ControllerReply]

CLUSTER_ID = b"c" * 16
DIRECTORY_ID = b"d" * 16


class ToyController:
    def __init__(self, node_id: int, quorum: "ToyQuorum") -> None:
        self.node_id = node_id
        self.quorum = quorum
        self.port = 0
        self.server: grpc.aio.Server | None = None

    async def start(self) -> None:
        self.server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
        channel = grpc.stream_stream_rpc_method_handler(
            self.channel,
            request_deserializer=controller_pb2.ControllerRequests.FromString,
            response_serializer=controller_pb2.ControllerReplies.SerializeToString,
        )
        handlers = grpc.method_handlers_generic_handler(
            "kraftlog.rpc.Controller", {"Channel": channel}
        )
        raft = grpc.method_handlers_generic_handler(
            "kraftlog.rpc.Raft",
            {
                "DescribeQuorum": _unary(self.describe, raft_pb2.DescribeQuorumRequest),
                "AddVoter": _unary(self.add_voter, raft_pb2.AddVoterRequest),
                "RemoveVoter": _unary(self.remove_voter, raft_pb2.RemoveVoterRequest),
            },
        )
        self.server.add_generic_rpc_handlers((handlers, raft))
        self.port = self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self.server.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def channel(
        self,
        requests: AsyncIterator[controller_pb2.ControllerRequests],
        call: "grpc.aio.ServicerContext[controller_pb2.ControllerRequests, "
        "controller_pb2.ControllerReplies]",
    ) -> None:
        async for message in requests:
            for request in message.requests:
                reply = self.answer(request)
                if reply is not None:
                    reply.correlation_id = request.header.correlation_id
                    await call.write(controller_pb2.ControllerReplies(replies=[reply]))

    def answer(
        self, request: controller_pb2.ControllerRequest
    ) -> controller_pb2.ControllerReply | None:
        quorum = self.quorum
        kind = request.WhichOneof("request") or ""
        quorum.asked.append((self.node_id, kind))
        if self.node_id != quorum.active:
            return controller_pb2.ControllerReply(error=quorum.not_controller())
        once = (request.request_id.client, request.request_id.sequence)
        known = quorum.done.get(once) if request.HasField("request_id") else None
        if known is None:
            quorum.carried_out.append(request)
            known = quorum.answers[kind](request)
            quorum.done[once] = known
        if quorum.replies_to_lose:
            quorum.replies_to_lose -= 1
            return None
        return known

    async def describe(
        self, _request: raft_pb2.DescribeQuorumRequest, _: object
    ) -> raft_pb2.DescribeQuorumReply:
        quorum = self.quorum
        leader = quorum.controllers[quorum.active]
        key = common_pb2.VoterKey(node_id=self.node_id, directory_id=DIRECTORY_ID)
        header = raft_pb2.ReplyHeader(epoch=7)
        header.leader.key.node_id = quorum.active
        header.leader.key.directory_id = DIRECTORY_ID
        header.leader.endpoint = leader.address
        return raft_pb2.DescribeQuorumReply(
            header=header,
            node=key,
            role="leader" if self.node_id == quorum.active else "follower",
            cluster_id=CLUSTER_ID,
            end_offset=9,
            high_watermark=8,
            voters=[raft_pb2.ReplicaState(key=key, endpoint=self.address, end_offset=9)],
        )

    async def add_voter(
        self, request: raft_pb2.AddVoterRequest, _: object
    ) -> raft_pb2.AddVoterReply:
        self.quorum.voter_changes.append(request)
        return raft_pb2.AddVoterReply(header=self._header(request.cluster_id))

    async def remove_voter(
        self, request: raft_pb2.RemoveVoterRequest, _: object
    ) -> raft_pb2.RemoveVoterReply:
        self.quorum.voter_changes.append(request)
        return raft_pb2.RemoveVoterReply(header=self._header(request.cluster_id))

    def _header(self, cluster_id: bytes) -> raft_pb2.ReplyHeader:
        header = raft_pb2.ReplyHeader(epoch=7)
        if cluster_id != CLUSTER_ID or self.node_id != self.quorum.active:
            header.refusal = "not leader"
        elif self.quorum.refuse_voters is not None:
            header.error.code = self.quorum.refuse_voters
        return header


def _unary(
    handle: Callable[[M, object], Coroutine[object, object, Message]], request_type: type[M]
) -> "grpc.RpcMethodHandler[M, Message]":
    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request_type.FromString,
        response_serializer=lambda reply: reply.SerializeToString(),
    )


class ToyQuorum:
    def __init__(self, controllers: int = 3) -> None:
        self.controllers = {
            node_id: ToyController(node_id, self) for node_id in range(101, 101 + controllers)
        }
        self.active = 101
        self.hints = True
        self.asked: list[tuple[int, str]] = []
        self.carried_out: list[controller_pb2.ControllerRequest] = []
        self.done: dict[tuple[bytes, int], controller_pb2.ControllerReply] = {}
        self.answers: dict[str, Answer] = {}
        self.replies_to_lose = 0
        self.voter_changes: list[object] = []
        self.refuse_voters: ErrorCode | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="toy controllers")

    def not_controller(self) -> common_pb2.Error:
        error = common_pb2.Error(code=ErrorCode.NOT_CONTROLLER, message="another one is active")
        if self.hints:
            error.leader.epoch = 7
            error.leader.leader.node_id = self.active
            error.leader.leader.endpoint.host = "127.0.0.1"
            error.leader.leader.endpoint.port = self.controllers[self.active].port
        return error

    @property
    def addresses(self) -> str:
        return ",".join(controller.address for controller in self.controllers.values())

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def stop(self, node_id: int) -> None:
        server = self.controllers[node_id].server
        if server is not None:
            self.run(server.stop(0))

    def __enter__(self) -> Self:
        self._thread.start()
        for controller in self.controllers.values():
            self.run(controller.start())
        return self

    def __exit__(self, *_: object) -> None:
        for node_id in self.controllers:
            self.stop(node_id)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
