"""The gRPC service `kraftlog.rpc.Controller`: decode, call, encode.

Errors are a field of every reply, with Kafka's number; the gRPC status speaks of transport only.
`Call` is for tools, the stream is for brokers and busy clients: many requests in a message, handled
in their order, answered in any order.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import grpc
import grpc.aio
from google.protobuf.message import Message

from kraftlog.apis import API_VERSIONS, Api, ApiTable
from kraftlog.errors import InconsistentClusterId, KraftError, NotController
from kraftlog.rpc import common_pb2, controller_pb2
from kraftlog.serving import serve_stream
from kraftlog.types import Uuid
from quorum.controller import Once
from quorum.controller_calls import Asked, Reply
from quorum.controller_wire import decode_uuid, encode_error
from quorum.core.messages import Voter

SERVICE = "kraftlog.rpc.Controller"

APIS = ApiTable(
    "a kraftlog controller",
    (
        Api(API_VERSIONS, 18),
        Api("register_broker", 62),
        Api("heartbeat", 63),
        Api("alter_partitions", 56),
        Api("allocate_producer_ids", 67),
        Api("unregister_broker", 64),
        Api("fence_broker"),
        Api("create_topics", 19),
        Api("delete_topics", 20),
        Api("create_partitions", 37),
        Api("alter_configs", 44),
        Api("elect_leaders", 43),
        Api("reassign", 45),
        Api("update_features", 57),
        Api("describe_cluster", 60),
        Api("describe_topics", 75),
        Api("describe_configs", 32),
        Api("list_reassignments", 46),
    ),
)

Request = controller_pb2.ControllerRequest
Send = Callable[[Reply], None]
Call = Callable[[Asked, Message], None]


@dataclass(frozen=True, slots=True)
class LeaderNow:
    """Who leads the quorum, as far as this node knows."""

    epoch: int
    leader: Voter | None


class ControllerService:
    def __init__(
        self,
        calls: Mapping[str, Call],
        *,
        cluster_id: Uuid,
        now_ms: Callable[[], int],
        leader: Callable[[], LeaderNow],
    ) -> None:
        self._calls = calls
        self._cluster_id = cluster_id
        self._now_ms = now_ms
        self._leader = leader

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to add to a server."""
        methods = {
            "Call": grpc.unary_unary_rpc_method_handler(
                self._call,
                request_deserializer=Request.FromString,
                response_serializer=Reply.SerializeToString,
            ),
            "Channel": grpc.stream_stream_rpc_method_handler(self._channel),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _call(self, envelope: Request, _: object) -> Reply:
        done: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def send(reply: Reply) -> None:
            if not done.done():  # the caller may have gone
                done.set_result(reply)

        self.dispatch(envelope, send)
        return await done

    async def _channel(self, _: object, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        def handle(envelope: Request, send: Callable[[bytes], None]) -> None:
            self.dispatch(envelope, lambda reply: send(reply.SerializeToString()))

        await serve_stream(context, _parse_requests, handle)

    def dispatch(self, envelope: Request, send: Send) -> None:
        """Handle one request now; its reply is sent when there is one."""
        header, kind = envelope.header, envelope.WhichOneof("request")

        def answer(result: Reply | KraftError) -> None:
            reply = self._refusal(result) if isinstance(result, KraftError) else result
            reply.correlation_id = header.correlation_id
            send(reply)

        try:
            api = APIS.check(kind, header)
            if api.name == API_VERSIONS:
                answer(Reply(api_versions=APIS.reply()))
                return
            self._check_cluster(envelope)
            asked = self._asked(envelope, answer)
            self._calls[api.name](asked, getattr(envelope, api.name))
        except KraftError as error:
            answer(error)

    def _asked(self, envelope: Request, answer: Callable[[Reply | KraftError], None]) -> Asked:
        once = None
        if envelope.HasField("request_id"):
            client = decode_uuid(envelope.request_id.client, "request_id.client")
            once = Once(client.raw, envelope.request_id.sequence)
        timeout_ms = envelope.timeout_ms
        deadline_ms = self._now_ms() + timeout_ms if timeout_ms > 0 else None
        by = envelope.header.client_id or "somebody without a client id"
        return Asked(by, once, deadline_ms, answer)

    def _check_cluster(self, envelope: Request) -> None:
        given = envelope.cluster_id
        if envelope.HasField("cluster_id") and given != self._cluster_id.raw:
            raise InconsistentClusterId(
                f"cluster id {Uuid.shown(given)}, and this is {self._cluster_id}",
                hint="this node belongs to another cluster: look at the address",
            )

    def _refusal(self, error: KraftError) -> Reply:
        """With the way to the active controller, where this one is not it."""
        message = encode_error(error)
        if isinstance(error, NotController):
            now = self._leader()
            message.leader.epoch = now.epoch
            if now.leader is not None:
                message.leader.leader.node_id = now.leader.key.node_id
                message.leader.leader.endpoint.CopyFrom(_endpoint(now.leader.endpoint))
        return Reply(error=message)


def _endpoint(address: str) -> common_pb2.Endpoint:
    host, _, port = address.rpartition(":")
    return common_pb2.Endpoint(host=host.strip("[]"), port=int(port))


def _parse_requests(message: bytes) -> Sequence[Request]:
    return controller_pb2.ControllerRequests.FromString(message).requests
