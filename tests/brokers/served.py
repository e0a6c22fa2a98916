"""The gRPC service of one broker, over a real data plane, for tests that speak its protocol."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
import grpc.aio

from brokers.auto_topics import Created, TopicCreator
from brokers.backend import DataPlane
from brokers.metadata_answers import Controllers, MetadataAnswers
from brokers.metadata_view import ImageView
from brokers.producer_ids import ProducerIds
from brokers.requests_table import RequestTable
from brokers.service import BrokerService
from kraftlog.connection import RequestStream, open_channel
from kraftlog.rpc import broker_pb2 as pb
from kraftlog.serving import open_server
from kraftlog.types import Uuid
from metadata_log.image import Image
from tests.brokers.images import image_of, topic
from tests.brokers.views import view_of

CLUSTER_ID = Uuid(b"c" * 16)
TIMEOUT_MS = 20_000


@dataclass
class State:
    """`brokers.backend.ClusterState` that a test can change."""

    view: ImageView

    @property
    def image(self) -> Image:
        return self.view.image

    @property
    def directory(self) -> ImageView:
        return self.view

    def controllers(self) -> Controllers:
        return Controllers(((101, "c1:9093"),), 101, 5)


@dataclass
class Backend:
    data: DataPlane
    cluster: State
    answers: MetadataAnswers
    producer_ids: ProducerIds
    topics: TopicCreator | None


@dataclass
class Served:
    """A service that listens, and what it was told to fail with."""

    address: str
    service: BrokerService
    backend: Backend
    channel: grpc.aio.Channel
    tasks: asyncio.TaskGroup
    failures: list[BaseException] = field(default_factory=list)
    created: list[str] = field(default_factory=list)

    async def call(self, request: pb.BrokerRequest) -> pb.BrokerReply:
        """The unary form."""
        call: grpc.aio.UnaryUnaryMultiCallable[pb.BrokerRequest, pb.BrokerReply] = (
            self.channel.unary_unary(
                "/kraftlog.rpc.Broker/Call",
                request_serializer=pb.BrokerRequest.SerializeToString,
                response_deserializer=pb.BrokerReply.FromString,
            )
        )
        return await call(request, timeout=TIMEOUT_MS / 1000)

    @asynccontextmanager
    async def stream(self) -> AsyncIterator["Client"]:
        stream: RequestStream[pb.BrokerReply] = RequestStream(
            self.address, "/kraftlog.rpc.Broker/Channel", parse=_replies
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(stream.run())
            yield Client(stream)
            running.cancel()


def _replies(message: bytes) -> Sequence[pb.BrokerReply]:
    return pb.BrokerReplies.FromString(message).replies


@dataclass
class Client:
    """One stream. `replies` are in the order in which they came."""

    stream: RequestStream[pb.BrokerReply]
    replies: list[pb.BrokerReply] = field(default_factory=list)

    def send(self, request: pb.BrokerRequest) -> None:
        def encode(correlation_id: int) -> bytes:
            request.header.correlation_id = correlation_id
            return request.SerializeToString()

        def take(reply: pb.BrokerReply | None) -> None:
            if reply is not None:
                self.replies.append(reply)

        self.stream.send(encode, timeout_ms=TIMEOUT_MS, on_reply=take)


@asynccontextmanager
async def served(data: DataPlane, *, auto_create: bool = True) -> AsyncIterator[Served]:
    """A broker's service over a data plane; it knows the topic "t" with two partitions."""
    async with asyncio.TaskGroup() as tasks:
        failures: list[BaseException] = []

        def spawn(work: Coroutine[None, None, None]) -> None:
            tasks.create_task(work)

        service = BrokerService(CLUSTER_ID, RequestTable(60_000), spawn=spawn, fail=failures.append)
        server, port = open_server("127.0.0.1:0")
        server.add_generic_rpc_handlers((service.handlers(),))
        await server.start()
        address = f"127.0.0.1:{port}"
        channel = open_channel(address)
        backend, created, background = _backend(data, auto_create=auto_create)
        running = tasks.create_task(background())
        service.open(backend)
        try:
            yield Served(address, service, backend, channel, tasks, failures, created)
        finally:
            running.cancel()
            await channel.close()
            await server.stop(None)


Background = Callable[[], Coroutine[None, None, None]]


def _backend(data: DataPlane, *, auto_create: bool) -> tuple[Backend, list[str], Background]:
    state = State(view_of(topic("t", [1, 2, 3], [1, 2, 3])))
    created: list[str] = []

    async def allocate() -> range:
        return range(100, 110)

    async def create(names: Sequence[str]) -> Created:
        created.extend(names)
        records = [record for name in names for record in topic(name, [1])]
        state.view = ImageView(image_of(records, before=state.image), state.view.book)
        return Created(state.image.end_offset)

    async def wait_applied(_offset: int) -> None:
        return None

    ids = ProducerIds(allocate)
    topics = TopicCreator(create, wait_applied) if auto_create else None
    answers = MetadataAnswers(CLUSTER_ID.raw)
    return Backend(data, state, answers, ids, topics), created, ids.run
