"""The gRPC service `kraftlog.rpc.Broker`: decode, call, encode.

Every request is begun in the order in which it arrived on its stream. What the data plane answers
later is encoded when it answers. Errors are a field of every reply; the gRPC status speaks of
transport only.

A refusal (a KraftError while a request is decoded) is an answer. Whatever the data plane raises is
not: it is a bug of ours or a broken disk, and ends the process. gRPC would turn it into a status
and go on, so it is handed to whoever ends us.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from brokers import data_wire, fetch_wire
from brokers.apis import APIS, FETCH_RANGE
from brokers.auto_topics import TopicCreator
from brokers.backend import Backend, ClusterState
from brokers.cluster import PartitionId
from brokers.exchange import Cancellable, Exchange, Spawn
from brokers.metadata_answers import NO_REFUSALS
from brokers.requests import DeleteAnswer, EndsAnswer, FetchReply, ProduceReply
from brokers.requests_table import RequestTable
from brokers.stream import BrokerStream
from brokers.wire import EMPTY_DIRECTORY, Directory, encode_error
from kraftlog import framing
from kraftlog.apis import API_VERSIONS
from kraftlog.errors import (
    ErrorCode,
    InconsistentClusterId,
    KraftError,
    NotYetSupported,
    RetriableError,
)
from kraftlog.rpc import broker_pb2
from kraftlog.serving import serve_stream
from kraftlog.types import UUID_BYTES, Uuid

SERVICE = "kraftlog.rpc.Broker"

_METADATA_FIELD = broker_pb2.BrokerReply.METADATA_FIELD_NUMBER

Envelope = broker_pb2.BrokerRequest
Begin = Callable[[], Cancellable | None]
"""Begins a request; gives what to cancel when whoever asked is gone."""


class BrokerService:
    def __init__(
        self,
        cluster_id: Uuid,
        table: RequestTable,
        *,
        spawn: Spawn,
        fail: Callable[[BaseException], None],
    ) -> None:
        """`fail` ends the process."""
        self.table = table
        self._cluster_id = cluster_id
        self._spawn = spawn
        self._fail = fail
        self.backend: Backend | None = None
        """None: this broker is not ready yet, or no longer."""
        self._prepare: dict[str, Callable[[Envelope, Exchange, BrokerStream, Backend], Begin]] = {
            "metadata": self._metadata,
            "produce": self._produce,
            "fetch": self._fetch,
            "list_offsets": self._list_offsets,
            "epoch_ends": self._epoch_ends,
            "init_producer_id": self._init_producer_id,
            "delete_records": self._delete_records,
            "ends": self._ends,
            "estimate_bytes": self._estimate_bytes,
            "describe_replicas": self._describe_replicas,
        }

    def open(self, backend: Backend) -> None:
        """Answer from now on; until then requests are put off."""
        self.backend = backend

    def close(self) -> None:
        self.backend = None

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to add to a server."""
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Call": grpc.unary_unary_rpc_method_handler(self._call),
            "Channel": grpc.stream_stream_rpc_method_handler(self._channel),
            "FetchRange": grpc.unary_stream_rpc_method_handler(self._fetch_range),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    # -- transport

    async def _channel(self, _: object, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        stream = BrokerStream(self.table, self.handle)
        try:
            await serve_stream(context, stream.parse, stream.handle, stream.written)
        finally:
            stream.abandon()

    async def _call(
        self, message: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]"
    ) -> bytes:
        try:
            envelope = Envelope.FromString(message)
        except DecodeError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no message: {error}")
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def send(reply: framing.Envelope) -> None:
            if not done.done():
                done.set_result(b"".join(reply) if isinstance(reply, tuple) else reply)

        stream = BrokerStream(self.table, self.handle)
        stream.arrive()
        stream.handle(envelope, send)
        try:
            return await done
        finally:
            stream.abandon()

    async def _fetch_range(
        self, message: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]"
    ) -> AsyncIterator[bytes]:
        try:
            request = broker_pb2.FetchRangeRequest.FromString(message)
        except DecodeError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no message: {error}")
        entry = self.table.begin(FETCH_RANGE, self.table.now())
        entry.client_id = request.header.client_id
        try:
            async for piece in self._range_pieces(request):
                yield piece.SerializeToString()
        finally:
            entry.allowed_wait = self.table.now() - entry.arrived  # as slow as its reader
            self.table.finish(entry)

    async def _range_pieces(
        self, request: broker_pb2.FetchRangeRequest
    ) -> AsyncIterator[broker_pb2.FetchRangeReply]:
        try:
            APIS.check(FETCH_RANGE.name, request.header)
            backend = self._ready()
            asked = fetch_wire.decode_range(request, backend.cluster.directory)
        except KraftError as error:
            yield broker_pb2.FetchRangeReply(error=encode_error(error, None, EMPTY_DIRECTORY))
            return
        try:
            async for piece in backend.data.fetch_range(asked):
                yield fetch_wire.encode_range_piece(piece, backend.cluster.directory)
        except (GeneratorExit, asyncio.CancelledError):
            raise  # the reader has gone
        except BaseException as broken:
            self._fail(broken)
            raise

    # -- one request

    def handle(self, envelope: Envelope, exchange: Exchange, stream: BrokerStream) -> None:
        """Begin one request; its reply is sent when there is one."""
        try:
            begin = self._judge(envelope, exchange, stream)
        except KraftError as error:
            exchange.refuse(error, self._directory())
            return
        try:
            parked = begin()
        except BaseException as broken:
            self._fail(broken)
            raise
        if exchange.is_open:
            exchange.parked = parked

    def _judge(self, envelope: Envelope, exchange: Exchange, stream: BrokerStream) -> Begin:
        """What may be refused is refused here: nothing has happened yet."""
        api = APIS.check(envelope.WhichOneof("request"), envelope.header)
        if api.name == API_VERSIONS:
            return lambda: self._api_versions(exchange)
        given = envelope.cluster_id
        if envelope.HasField("cluster_id") and given != self._cluster_id.raw:
            raise InconsistentClusterId(
                f"cluster id {Uuid.shown(given)}, and this is {self._cluster_id}",
                hint="this broker belongs to another cluster: look at the address",
            )
        return self._prepare[api.name](envelope, exchange, stream, self._ready())

    def _ready(self) -> Backend:
        if self.backend is None:
            raise RetriableError(
                "this broker is starting or stopping",
                hint="ask another one, or try again in a moment",
                code=ErrorCode.BROKER_NOT_AVAILABLE,
            )
        return self.backend

    def _directory(self) -> Directory:
        return EMPTY_DIRECTORY if self.backend is None else self.backend.cluster.directory

    def _api_versions(self, exchange: Exchange) -> None:
        exchange.answer(
            broker_pb2.BrokerReply(
                correlation_id=exchange.correlation_id, api_versions=APIS.reply()
            )
        )

    # -- metadata

    def _metadata(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        request = envelope.metadata
        image, topics = backend.cluster.image, backend.topics
        missing = backend.answers.missing(request, image) if request.allow_auto_create else []
        if missing and topics is not None:
            creator = topics
            return lambda: self._spawn(
                self._create_and_describe(request, missing, exchange, backend, creator)
            )
        if request.all_topics and not backend.answers.is_warm(image):
            return lambda: self._spawn(self._describe_all(request, exchange, backend))
        return lambda: _answer_metadata(request, exchange, backend)

    async def _create_and_describe(
        self,
        request: broker_pb2.MetadataRequest,
        missing: Sequence[str],
        exchange: Exchange,
        backend: Backend,
        creator: TopicCreator,
    ) -> None:
        refused = await creator.create(missing)
        _answer_metadata(request, exchange, backend, refused)

    async def _describe_all(
        self, request: broker_pb2.MetadataRequest, exchange: Exchange, backend: Backend
    ) -> None:
        await backend.answers.warm(backend.cluster.image)
        _answer_metadata(request, exchange, backend)

    def _init_producer_id(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        if envelope.init_producer_id.HasField("transactional_id"):
            raise NotYetSupported("transactions are not there yet", hint="leave out the id")

        def on_id(producer_id: int | KraftError) -> None:
            if isinstance(producer_id, KraftError):
                exchange.refuse(producer_id, backend.cluster.directory)
                return
            reply = exchange.begin_reply()
            reply.init_producer_id.producer_id = producer_id
            reply.init_producer_id.producer_epoch = 0
            exchange.answer(reply)

        return lambda: backend.producer_ids.take(on_id)

    # -- records

    def _produce(
        self, envelope: Envelope, exchange: Exchange, stream: BrokerStream, backend: Backend
    ) -> Begin:
        asked = data_wire.layout(envelope.produce.topics, backend.cluster.directory)
        request = data_wire.decode_produce(envelope.produce, asked)

        def encode(answered: ProduceReply) -> broker_pb2.BrokerReply:
            reply = exchange.begin_reply()
            reply.produce.SetInParent()
            data_wire.write_produce(reply.produce, asked, answered.parts, backend.cluster.directory)
            return reply

        def on_silent_done(answered: ProduceReply) -> None:
            # Who sends to the wrong broker would otherwise never learn it.
            if answered.parts or any(topic.topic_id is None for topic in asked):
                exchange.answer(encode(answered))
            else:
                exchange.stay_silent()

        if request.acks == 0:
            return lambda: backend.data.produce(request, on_silent_done)
        turn = stream.order.begin(part.partition for part in request.parts)

        def on_done(answered: ProduceReply) -> None:
            reply = encode(answered)
            stream.order.finish(turn, lambda: exchange.answer(reply))

        return lambda: backend.data.produce(request, on_done)

    def _fetch(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        request = fetch_wire.decode_fetch(envelope.fetch, backend.cluster.directory)
        exchange.entry.allowed_wait = request.max_wait_ms / 1000

        def on_done(answered: FetchReply) -> None:
            if answered.error is not None:
                exchange.refuse(answered.error, backend.cluster.directory)
                return
            envelope = fetch_wire.encode_fetch_envelope(
                answered, exchange.correlation_id, backend.cluster.directory
            )
            exchange.answer_envelope(envelope)

        return lambda: backend.data.fetch(request, on_done)

    # -- offsets

    def _list_offsets(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        directory = backend.cluster.directory
        asked = data_wire.layout(envelope.list_offsets.topics, directory)
        queries = data_wire.decode_list_offsets(envelope.list_offsets, asked)

        def begin() -> None:
            reply = exchange.begin_reply()
            reply.list_offsets.SetInParent()
            answers = backend.data.list_offsets(queries)
            data_wire.write_list_offsets(reply.list_offsets, asked, answers, directory)
            exchange.answer(reply)

        return begin

    def _epoch_ends(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        directory = backend.cluster.directory
        asked = data_wire.layout(envelope.epoch_ends.topics, directory)
        queries = data_wire.decode_epoch_ends(envelope.epoch_ends, asked)

        def begin() -> None:
            reply = exchange.begin_reply()
            reply.epoch_ends.SetInParent()
            answers = backend.data.epoch_ends(queries)
            data_wire.write_epoch_ends(reply.epoch_ends, asked, answers, directory)
            exchange.answer(reply)

        return begin

    def _ends(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        asked = data_wire.layout(envelope.ends.topics, backend.cluster.directory)
        request = data_wire.decode_ends(envelope.ends, asked)
        exchange.entry.allowed_wait = request.max_wait_ms / 1000

        def on_done(answers: Sequence[EndsAnswer]) -> None:
            reply = exchange.begin_reply()
            reply.ends.SetInParent()
            data_wire.write_ends(reply.ends, asked, answers, backend.cluster.directory)
            exchange.answer(reply)

        return lambda: backend.data.ends(request, on_done)

    def _delete_records(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        asked = data_wire.layout(envelope.delete_records.topics, backend.cluster.directory)
        request = data_wire.decode_delete_records(envelope.delete_records, asked)

        def on_done(answers: Sequence[DeleteAnswer]) -> None:
            reply = exchange.begin_reply()
            reply.delete_records.SetInParent()
            directory = backend.cluster.directory
            data_wire.write_delete_records(reply.delete_records, asked, answers, directory)
            exchange.answer(reply)

        return lambda: backend.data.delete_records(request, on_done)

    def _estimate_bytes(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        directory = backend.cluster.directory
        asked = data_wire.decode_estimates(envelope.estimate_bytes, directory)
        queries = [each.query for each in asked if each.query is not None]

        def begin() -> None:
            reply = exchange.begin_reply()
            reply.estimate_bytes.SetInParent()
            answers = backend.data.estimate_bytes(queries)
            data_wire.write_estimates(reply.estimate_bytes, asked, answers, directory)
            exchange.answer(reply)

        return begin

    # -- what is on disk

    def _describe_replicas(
        self, envelope: Envelope, exchange: Exchange, _: BrokerStream, backend: Backend
    ) -> Begin:
        request = envelope.describe_replicas
        partitions = _partitions_of(request.topics, backend.cluster) if request.topics else None
        ranges = data_wire.decode_digest_ranges(request, backend.cluster.directory)
        digest = request.digest or ranges

        async def describe() -> None:
            try:
                found = await backend.data.describe_replicas(partitions, digest=digest)
            except KraftError as error:  # a log that cannot be read is no reason to end
                exchange.refuse(error, backend.cluster.directory)
                return
            reply = exchange.begin_reply()
            reply.describe_replicas.SetInParent()
            reply.describe_replicas.replicas.extend(map(data_wire.encode_replica, found))
            exchange.answer(reply)

        return lambda: self._spawn(describe())


def _answer_metadata(
    request: broker_pb2.MetadataRequest,
    exchange: Exchange,
    backend: Backend,
    refused: Mapping[str, KraftError] = NO_REFUSALS,
) -> None:
    cluster = backend.cluster
    try:
        encoded = backend.answers.answer(request, cluster.image, cluster.controllers(), refused)
    except KraftError as error:
        exchange.refuse(error, cluster.directory)
    else:
        exchange.answer_encoded(_METADATA_FIELD, encoded)


def _partitions_of(
    topics: Sequence[broker_pb2.TopicName], cluster: ClusterState
) -> list[PartitionId]:
    """All partitions of some topics; those that do not exist have none."""
    found = []
    for asked in topics:
        raw = asked.topic_id or cluster.directory.topic_id(asked.name) or b""
        topic = cluster.image.topics.get(Uuid(raw)) if len(raw) == UUID_BYTES else None
        if topic is not None:
            found += [PartitionId(raw, number) for number in range(len(topic.partitions))]
    return found
