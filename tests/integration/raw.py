"""A client of few words for integration tests: unary calls and no retries, so that a test sees
exactly what one broker or controller answers.
"""

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

import grpc

from kraftlog.connection import CHANNEL_OPTIONS
from kraftlog.errors import ErrorCode, LeaderNotAvailable
from kraftlog.local import LocalCluster
from kraftlog.record_batch import encode_values, read_batches
from kraftlog.rpc import broker_pb2, common_pb2, controller_pb2
from tests.waiting import wait_until

TIMEOUT_SECONDS = 10.0
ACKS_ALL = -1


class Refused(Exception):
    """What a reply said instead of an answer."""

    def __init__(self, error: common_pb2.Error) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.code = error.code
        self.error = error


class RawClient:
    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self._channels: dict[int, grpc.Channel] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for channel in self._channels.values():
            channel.close()

    def _channel(self, name: str) -> grpc.Channel:
        """One per process: the next one at an address is no business of a channel that met a dead
        one, and would be refused for as long as its back-off lasts.
        """
        process = self.cluster.pid(name)
        if process not in self._channels:
            address = self.cluster.address(name)
            self._channels[process] = grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        return self._channels[process]

    def broker(self, name: str, request: broker_pb2.BrokerRequest) -> broker_pb2.BrokerReply:
        call = self._channel(name).unary_unary(
            "/kraftlog.rpc.Broker/Call",
            request_serializer=broker_pb2.BrokerRequest.SerializeToString,
            response_deserializer=broker_pb2.BrokerReply.FromString,
        )
        request.header.correlation_id = 7
        # Ready: a node that slept has lost its connections, and answers once there is a new one.
        reply = call(request, timeout=TIMEOUT_SECONDS, wait_for_ready=True)
        if reply.HasField("error"):
            raise Refused(reply.error)
        assert reply.correlation_id == 7
        return reply

    def controller(
        self, request: controller_pb2.ControllerRequest
    ) -> controller_pb2.ControllerReply:
        call = self._channel(self.cluster.controller()).unary_unary(
            "/kraftlog.rpc.Controller/Call",
            request_serializer=controller_pb2.ControllerRequest.SerializeToString,
            response_deserializer=controller_pb2.ControllerReply.FromString,
        )
        reply = call(request, timeout=TIMEOUT_SECONDS, wait_for_ready=True)
        if reply.HasField("error"):
            raise Refused(reply.error)
        return reply

    # -- topics

    def create(
        self, name: str, partitions: int = 1, *, configs: dict[str, str] | None = None
    ) -> bytes:
        """A topic on three brokers; its id. Returns when every broker knows all leaders."""
        topic = controller_pb2.NewTopic(
            name=name, partitions=partitions, replication_factor=3, configs=configs or {}
        )
        message = controller_pb2.CreateTopicsRequest(topics=[topic])
        reply = self.controller(controller_pb2.ControllerRequest(create_topics=message))
        [result] = reply.create_topics.topics
        if result.HasField("error"):
            raise Refused(result.error)
        for broker in self.running():
            wait_until(partial(self._knows, broker, name), f"{name} on {broker}")
        return bytes(result.topic_id)

    def _knows(self, broker: str, topic: str) -> bool:
        found = self.describe(broker, topic)
        return bool(found.partitions) and all(part.leader_id > 0 for part in found.partitions)

    def running(self) -> list[str]:
        """The brokers that answer."""
        cluster = self.cluster
        names = [name for name in cluster.brokers if cluster.is_running(name)]
        return [name for name in names if not cluster._process(name).is_paused]

    def describe(self, broker: str, topic: str) -> broker_pb2.TopicMetadata:
        message = broker_pb2.MetadataRequest(topics=[broker_pb2.TopicName(name=topic)])
        reply = self.broker(broker, broker_pb2.BrokerRequest(metadata=message))
        return reply.metadata.topics[0]

    # -- records

    def leads_and_holds(self, topic: str, values: Sequence[bytes], partition: int = 0) -> str:
        """Whoever leads, once it serves exactly these records."""
        topic_id = self.describe(self.running()[0], topic).topic_id
        found: list[str] = []

        def look() -> bool:
            leader = self.cluster.leader(topic, partition)
            try:
                held = self.cluster.is_running(leader) and (
                    self.fetch(leader, topic_id, partition) == list(values)
                )
            except Refused as refusal:
                if refusal.code not in HARMLESS:
                    raise
                return False
            found.append(leader)
            return held

        wait_until(look, f"{len(values)} records in {topic}-{partition}")
        return found[-1]

    def produce(
        self,
        broker: str,
        topic_id: bytes,
        values: Sequence[bytes],
        *,
        acks: int = ACKS_ALL,
        partition: int = 0,
    ) -> int:
        """The offset of the first record; Refused if the broker says no."""
        records = bytes(encode_values(values, timestamp=1_700_000_000_000))
        part = broker_pb2.ProducePartition(partition=partition, records=records)
        message = broker_pb2.ProduceRequest(
            acks=acks,
            timeout_ms=5_000,
            topics=[broker_pb2.ProduceTopic(topic_id=topic_id, partitions=[part])],
        )
        reply = self.broker(broker, broker_pb2.BrokerRequest(produce=message))
        result = reply.produce.topics[0].partitions[0]
        if result.HasField("error"):
            raise Refused(result.error)
        return result.base_offset

    def insist(self, topic: str, values: Sequence[bytes], partition: int = 0) -> int:
        """Produce with acks=all to whoever leads, again and again until it is acknowledged.

        Only for tests in which whoever leads is up: what was sent to one that dies may count twice.
        """
        topic_id = self.describe(self.running()[0], topic).topic_id
        offsets: list[int] = []

        def attempt() -> bool:
            try:
                leader = self.cluster.leader(topic, partition)
                if not self.cluster.is_running(leader):
                    return False
                offsets.append(self.produce(leader, topic_id, values, partition=partition))
            except Refused as refusal:
                if refusal.code not in HARMLESS:
                    raise
                return False
            except (grpc.RpcError, LeaderNotAvailable):
                return False
            return True

        wait_until(attempt, f"a produce to {topic}-{partition}")
        return offsets[0]

    def fetch(self, broker: str, topic_id: bytes, partition: int = 0) -> list[bytes]:
        """Everything up to the high watermark that fits into one reply. A leader that is new learns
        only from its followers' fetches how far that goes, so it is given a moment.
        """
        part = broker_pb2.FetchPartition(partition=partition, offset=0, max_bytes=1 << 20)
        message = broker_pb2.FetchDataRequest(
            max_wait_ms=4_000,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[broker_pb2.FetchTopic(topic_id=topic_id, partitions=[part])],
        )
        reply = self.broker(broker, broker_pb2.BrokerRequest(fetch=message))
        result = reply.fetch.topics[0].partitions[0]
        if result.HasField("error"):
            raise Refused(result.error)
        return [
            bytes(record.value or b"")
            for batch in read_batches(result.records)
            for record in batch.records()
        ]


HARMLESS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
