"""The gRPC service `kraftlog.rpc.Raft`: decode, hand to the node, encode.

Errors are a field of every reply; the gRPC status speaks of transport only. The unary calls are
for tools, the stream is for replicas and busy clients: many requests in a message, handled in
their order, answered in any order.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import grpc
import grpc.aio
from google.protobuf.message import Message

from kraftlog.errors import (
    AmbiguousError,
    ErrorCode,
    InvalidRequest,
    KraftError,
    NotLeaderError,
    RecordTooLarge,
    ThrottledError,
)
from kraftlog.rpc import common_pb2, raft_pb2
from kraftlog.serving import serve_stream
from kraftlog.types import Buffer, Uuid
from quorum.batches import encode_voter
from quorum.core.messages import Refusal, Reply
from quorum.description import describe
from quorum.node import RaftNode
from quorum.operator_calls import OperatorReply, begin_step_down, read_log
from quorum.wire import decode_request, encode_reply

logger = logging.getLogger(__name__)

SERVICE = "kraftlog.rpc.Raft"

SendReply = Callable[[bytes], None]
"""Takes the encoded envelope of a reply."""

_UNARY = (
    ("Vote", "vote"),
    ("BeginQuorumEpoch", "begin_quorum_epoch"),
    ("EndQuorumEpoch", "end_quorum_epoch"),
    ("Fetch", "fetch"),
    ("FetchSnapshot", "fetch_snapshot"),
    ("AddVoter", "add_voter"),
    ("RemoveVoter", "remove_voter"),
    ("UpdateVoter", "update_voter"),
    ("Propose", "propose"),
    ("DescribeQuorum", "describe_quorum"),
    ("StepDown", "step_down"),
    ("ReadLog", "read_log"),
)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _parse_requests(message: bytes) -> Sequence[raft_pb2.RaftRequest]:
    return raft_pb2.RaftRequests.FromString(message).requests


class RaftService:
    def __init__(self, node: RaftNode, cluster_id: Uuid, *, takes_proposals: bool) -> None:
        self._node = node
        self._cluster_id = cluster_id
        self._takes_proposals = takes_proposals

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to add to a server."""
        methods = {name: self._unary(name, field) for name, field in _UNARY}
        methods["Channel"] = grpc.stream_stream_rpc_method_handler(self._channel)
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def _unary(self, name: str, field: str) -> "grpc.RpcMethodHandler[Message, Message]":
        request_type: type[Message] = getattr(raft_pb2, f"{name}Request")

        async def call(request: Message, _: object) -> Message:
            envelope = raft_pb2.RaftRequest(correlation_id=1)
            getattr(envelope, field).CopyFrom(request)
            reply: Message = getattr(await self._answer(envelope), field)
            return reply

        return grpc.unary_unary_rpc_method_handler(
            call,
            request_deserializer=request_type.FromString,
            response_serializer=_serialize,
        )

    async def _answer(self, envelope: raft_pb2.RaftRequest) -> raft_pb2.RaftReply:
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def send(reply: bytes) -> None:
            if not done.done():
                done.set_result(reply)

        self.dispatch(envelope, send)
        return raft_pb2.RaftReply.FromString(await done)

    async def _channel(self, _: object, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        await serve_stream(context, _parse_requests, self.dispatch)

    def dispatch(self, envelope: raft_pb2.RaftRequest, send: SendReply) -> None:
        """Handle one request now; its reply is sent when there is one."""
        kind = envelope.WhichOneof("request") or ""
        try:
            if kind == "propose":
                self._propose(envelope, send)
            elif kind == "describe_quorum":
                send(self._describe(envelope))
            elif kind == "step_down":
                self._check_cluster(envelope.step_down.cluster_id)
                begin_step_down(self._node, envelope.step_down)
                send(self._accept(envelope.correlation_id, kind, raft_pb2.StepDownReply()))
            elif kind == "read_log":
                send(self._read_log(envelope))
            else:
                on_reply = partial(_send_reply, send, envelope.correlation_id)
                self._node.handle_request(decode_request(envelope), on_reply)
        except KraftError as error:
            send(self._refuse(envelope.correlation_id, kind, error))

    def _propose(self, envelope: raft_pb2.RaftRequest, send: SendReply) -> None:
        request = envelope.propose
        self._check_cluster(request.cluster_id)
        if not self._takes_proposals:
            raise InvalidRequest(
                "this quorum keeps the metadata of a cluster, and only its controller writes that",
                hint="ask the Controller service; a quorum with --state journal takes any record",
            )
        values = list(request.records)
        if not values:
            raise InvalidRequest("a proposal without records", hint="send at least one")
        epoch = request.epoch if request.HasField("epoch") else None
        on_done = partial(self._send_outcome, send, envelope.correlation_id)
        self._node.propose(values, on_done, epoch=epoch)

    def _send_outcome(self, send: SendReply, correlation_id: int, result: int | KraftError) -> None:
        if isinstance(result, int):
            done = raft_pb2.ProposeReply(base_offset=result)
            reply = raft_pb2.RaftReply(correlation_id=correlation_id, propose=done)
            send(reply.SerializeToString())
        else:
            send(self._refuse(correlation_id, "propose", result))

    def _describe(self, envelope: raft_pb2.RaftRequest) -> bytes:
        asked = envelope.describe_quorum.cluster_id
        if asked:
            self._check_cluster(asked)
        description = describe(self._node, self._cluster_id)
        description.header.CopyFrom(self._header())
        return raft_pb2.RaftReply(
            correlation_id=envelope.correlation_id, describe_quorum=description
        ).SerializeToString()

    def _read_log(self, envelope: raft_pb2.RaftRequest) -> bytes:
        request = envelope.read_log
        if request.cluster_id:
            self._check_cluster(request.cluster_id)
        return self._accept(envelope.correlation_id, "read_log", read_log(self._node, request))

    def _accept(self, correlation_id: int, kind: str, message: OperatorReply) -> bytes:
        message.header.CopyFrom(self._header())
        reply = raft_pb2.RaftReply(correlation_id=correlation_id)
        getattr(reply, kind).CopyFrom(message)
        return reply.SerializeToString()

    # -- refusals

    def _check_cluster(self, cluster_id: bytes) -> None:
        if cluster_id != self._cluster_id.raw:
            raise InvalidRequest(
                f"cluster id {Uuid.shown(cluster_id)}, and this is {self._cluster_id}",
                hint="use the cluster id that `form` printed",
                code=ErrorCode.INCONSISTENT_CLUSTER_ID,
            )

    def _header(self) -> raft_pb2.ReplyHeader:
        core = self._node.core
        leader = core.leader
        return raft_pb2.ReplyHeader(
            epoch=core.epoch, leader=encode_voter(leader) if leader else None
        )

    def _refuse(self, correlation_id: int, kind: str, error: KraftError) -> bytes:
        header = self._header()
        header.refusal = _refusal_of(error).text
        header.error.CopyFrom(
            common_pb2.Error(code=error.code, message=error.message, hint=error.hint)
        )
        reply = raft_pb2.RaftReply(correlation_id=correlation_id)
        getattr(reply, kind or "describe_quorum").header.CopyFrom(header)
        return reply.SerializeToString()


def _send_reply(send: SendReply, correlation_id: int, reply: Reply, records: Buffer) -> None:
    send(encode_reply(correlation_id, reply, records).SerializeToString())


def _refusal_of(error: KraftError) -> Refusal:
    match error:
        case NotLeaderError():
            return Refusal.NOT_LEADER
        case AmbiguousError():
            return Refusal.LEADERSHIP_LOST
        case ThrottledError():
            return Refusal.BUSY
        case RecordTooLarge():
            return Refusal.BATCH_TOO_LARGE
        case KraftError(code=ErrorCode.INCONSISTENT_CLUSTER_ID):
            return Refusal.WRONG_CLUSTER
        case KraftError(code=ErrorCode.VOTER_NOT_FOUND):
            return Refusal.VOTER_NOT_FOUND
        case KraftError(code=ErrorCode.SNAPSHOT_NOT_FOUND):
            return Refusal.SNAPSHOT_NOT_FOUND
        case _:
            return Refusal.INVALID_REQUEST
