"""Brokers for the tests of the client: real sockets, real batches, real logs; toys otherwise.

All of them share one truth (`toy_truth`) and run on one thread of their own. Faults are queued by
the test and eaten by the requests they are meant for, in order.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

import grpc
import grpc.aio

from kraftlog.connection import MESSAGE_BYTES_MAX
from kraftlog.errors import ErrorCode, KraftError, class_of
from kraftlog.rpc import broker_pb2, common_pb2
from storage.log_config import LogConfig
from tests.kraftlog.toy_fetch import Sessions
from tests.kraftlog.toy_truth import ToyPartition, Truth, offset_at

T = TypeVar("T")

SERVER_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 100),
    ("grpc.http2.max_ping_strikes", 0),
)

Send = Callable[[broker_pb2.BrokerReply], None]


@dataclass
class Fault:
    """What happens to the next request of a kind."""

    kind: str
    refuse: ErrorCode | None = None
    """Refused, and nothing is done."""
    old_news: broker_pb2.MetadataReply | None = None
    """Answered with what was so once."""
    lose_request: bool = False
    lose_reply: bool = False
    cut: bool = False
    """The stream ends, after what the others say."""
    hold: threading.Event | None = None
    """Answered only when the test says so."""
    broker: int | None = None
    creating: bool = False
    """Only those requests for metadata that may create topics."""
    times: int = 1


@dataclass
class Broker:
    """One server, and what is open on it."""

    node_id: int
    truth: Truth
    faults: list[Fault]
    seen: list[str]
    held: list[Callable[[], None]] = field(default_factory=list)
    server: grpc.aio.Server | None = None
    streams: "set[asyncio.Queue[broker_pb2.BrokerReply | None]]" = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.truth, self.node_id)
        self.last_fetch = broker_pb2.FetchDataRequest()

    async def start(self, port: int) -> int:
        self.server = grpc.aio.server(options=SERVER_OPTIONS)
        handler = grpc.stream_stream_rpc_method_handler(
            self.channel,
            request_deserializer=broker_pb2.BrokerRequests.FromString,
            response_serializer=broker_pb2.BrokerReplies.SerializeToString,
        )
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("kraftlog.rpc.Broker", {"Channel": handler}),)
        )
        bound = self.server.add_insecure_port(f"127.0.0.1:{port}")
        await self.server.start()
        return bound

    async def stop(self) -> None:
        for stream in self.streams:
            stream.put_nowait(None)
        if self.server is not None:
            await self.server.stop(0)

    async def channel(
        self,
        requests: AsyncIterator[broker_pb2.BrokerRequests],
        call: "grpc.aio.ServicerContext[broker_pb2.BrokerRequests, broker_pb2.BrokerReplies]",
    ) -> None:
        replies: asyncio.Queue[broker_pb2.BrokerReply | None] = asyncio.Queue()
        self.streams.add(replies)

        async def read() -> None:
            async for message in requests:
                for request in message.requests:
                    self.take(request, replies)
            replies.put_nowait(None)

        try:
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(read())
                while (reply := await replies.get()) is not None:
                    await call.write(broker_pb2.BrokerReplies(replies=[reply]))
                reader.cancel()
        finally:
            self.streams.discard(replies)

    def take(
        self,
        request: broker_pb2.BrokerRequest,
        replies: "asyncio.Queue[broker_pb2.BrokerReply | None]",
    ) -> None:
        kind = request.WhichOneof("request") or ""
        self.seen.append(kind)
        fault = self._fault(kind, is_creating=request.metadata.allow_auto_create)
        correlation_id = request.header.correlation_id

        def send(reply: broker_pb2.BrokerReply) -> None:
            reply.correlation_id = correlation_id
            if fault is not None and fault.hold is not None and not fault.hold.is_set():
                self.held.append(lambda: replies.put_nowait(reply))
            elif fault is None or not fault.lose_reply:
                replies.put_nowait(reply)

        if fault is not None and fault.refuse is not None:
            send(self.refusal(request, kind, fault.refuse))
        elif fault is not None and fault.old_news is not None:
            send(broker_pb2.BrokerReply(metadata=fault.old_news))
        elif fault is None or not fault.lose_request:
            self.handle(request, kind, send)
        if fault is not None and fault.cut:
            replies.put_nowait(None)

    def _fault(self, kind: str, *, is_creating: bool) -> Fault | None:
        for fault in self.faults:
            is_meant = is_creating or not fault.creating
            if is_meant and fault.kind == kind and fault.broker in (None, self.node_id):
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
                return fault
        return None

    def refusal(
        self, request: broker_pb2.BrokerRequest, kind: str, code: ErrorCode
    ) -> broker_pb2.BrokerReply:
        """Per partition where replies are per partition, else of the whole."""
        error = class_of(code)("told to refuse", code=code)
        if kind != "produce":
            return broker_pb2.BrokerReply(error=self.truth.error(error))
        produced = broker_pb2.ProduceReply()
        for topic in request.produce.topics:
            told = produced.topics.add(topic_id=topic.topic_id)
            for part in topic.partitions:
                told.partitions.add(partition=part.partition, error=self.truth.error(error))
        return broker_pb2.BrokerReply(produce=produced)

    def handle(self, request: broker_pb2.BrokerRequest, kind: str, send: Send) -> None:
        match kind:
            case "metadata":
                send(broker_pb2.BrokerReply(metadata=self.truth.metadata(request.metadata)))
            case "produce":
                reply = self.produce(request.produce)
                parts = (part for topic in reply.topics for part in topic.partitions)
                if request.produce.acks != 0 or any(part.HasField("error") for part in parts):
                    send(broker_pb2.BrokerReply(produce=reply))
                self.sessions.wake_all()
            case "init_producer_id":
                self.truth.next_producer_id += 1
                told = broker_pb2.InitProducerIdReply(producer_id=self.truth.next_producer_id)
                send(broker_pb2.BrokerReply(init_producer_id=told))
            case "fetch":
                if not request.fetch.wake:
                    self.last_fetch = request.fetch
                self.sessions.fetch(request.fetch, send)
            case "list_offsets":
                send(broker_pb2.BrokerReply(list_offsets=self.list_offsets(request.list_offsets)))
            case "delete_records":
                send(broker_pb2.BrokerReply(delete_records=self.delete(request.delete_records)))
            case _:
                send(broker_pb2.BrokerReply(error=common_pb2.Error(code=35, message=kind)))

    def produce(self, request: broker_pb2.ProduceRequest) -> broker_pb2.ProduceReply:
        reply = broker_pb2.ProduceReply()
        for topic in request.topics:
            told = reply.topics.add(topic_id=topic.topic_id)
            for part in topic.partitions:
                each = told.partitions.add(partition=part.partition, append_time=-1)
                known: ToyPartition | None = None
                try:
                    known = self.truth.find(topic.name, topic.topic_id, part.partition)
                    self.truth.led(self.node_id, topic.name, topic.topic_id, number=part.partition)
                    each.base_offset = known.log.append_from_client(
                        bytearray(part.records), leader_epoch=known.epoch
                    ).base_offset
                except KraftError as error:
                    each.error.CopyFrom(self.truth.error(error, known))
        return reply

    def list_offsets(self, request: broker_pb2.ListOffsetsRequest) -> broker_pb2.ListOffsetsReply:
        reply = broker_pb2.ListOffsetsReply()
        for topic in request.topics:
            told = reply.topics.add(topic_id=topic.topic_id)
            for part in topic.partitions:
                each = told.partitions.add(partition=part.partition)
                try:
                    known = self.truth.led(
                        self.node_id, topic.name, topic.topic_id, number=part.partition
                    )
                    each.offset, each.timestamp = offset_at(known, part.timestamp)
                    each.leader_epoch = known.epoch
                except KraftError as error:
                    each.error.CopyFrom(self.truth.error(error))
        return reply

    def delete(self, request: broker_pb2.DeleteRecordsRequest) -> broker_pb2.DeleteRecordsReply:
        reply = broker_pb2.DeleteRecordsReply()
        for topic in request.topics:
            told = reply.topics.add(topic_id=topic.topic_id)
            for part in topic.partitions:
                each = told.partitions.add(partition=part.partition)
                try:
                    known = self.truth.led(
                        self.node_id, topic.name, topic.topic_id, number=part.partition
                    )
                    end = known.log.end_offset
                    known.log.advance_start(end if part.offset == -1 else part.offset)
                    each.log_start_offset = known.log.start_offset
                except KraftError as error:
                    each.error.CopyFrom(self.truth.error(error))
        return reply


class ToyCluster:
    def __init__(self, directory: Path, brokers: int = 1) -> None:
        self.truth = Truth(directory)
        self.faults: list[Fault] = []
        self.seen: list[str] = []
        """The kinds of all requests, in order."""
        self.brokers = {
            node_id: Broker(node_id, self.truth, self.faults, self.seen)
            for node_id in range(1, brokers + 1)
        }
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="toy brokers")

    def __enter__(self) -> Self:
        self._thread.start()
        for node_id in self.brokers:
            self.start(node_id)
        return self

    def __exit__(self, *_: object) -> None:
        for node_id in list(self.truth.running):
            self.stop(node_id)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.truth.close()

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def start(self, node_id: int) -> None:
        """Start a broker, again on the port that it had."""
        port = self.truth.ports.get(node_id, 0)
        self.truth.ports[node_id] = self.run(self.brokers[node_id].start(port))
        self.truth.running.add(node_id)

    def stop(self, node_id: int) -> None:
        self.truth.running.discard(node_id)
        self.run(self.brokers[node_id].stop())

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.truth.ports.values())

    def add_topic(self, name: str, partitions: int = 1, config: LogConfig | None = None) -> None:
        self.truth.add_topic(name, partitions, config)

    def values(self, name: str, partition: int = 0) -> list[bytes | None]:
        """All values in a log, in order."""
        from tests.storage.logs import values_of  # noqa: PLC0415  it needs no more of storage

        return values_of(self.truth.topics[name].partitions[partition].log)

    @property
    def last_fetch(self) -> broker_pb2.FetchDataRequest:
        """Of the first broker."""
        return self.brokers[1].last_fetch

    def release_held(self) -> None:
        """Send all replies that a fault holds back."""

        def release() -> None:
            for broker in self.brokers.values():
                held, broker.held[:] = list(broker.held), []
                for send in held:
                    send()

        self._loop.call_soon_threadsafe(release)
