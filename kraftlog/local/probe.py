"""Looking at the nodes of a local cluster from outside: do they answer, and what do they say?"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import grpc
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from kraftlog.connection import CHANNEL_OPTIONS
from kraftlog.health import SERVICE as HEALTH_SERVICE
from kraftlog.health import ServingStatus
from kraftlog.rpc import broker_pb2
from kraftlog.types import TopicPartition

TIMEOUT_SECONDS = 1.0
CONNECT_SECONDS = 0.2

BROKER_SERVICE = "kraftlog.rpc.Broker"
CONTROLLER_SERVICE = "kraftlog.rpc.Raft"


@dataclass(frozen=True, slots=True)
class PartitionNow:
    leader_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """The cluster as one broker sees it."""

    brokers: frozenset[int]
    """Those that are not fenced."""
    controller_id: int | None
    partitions: Mapping[TopicPartition, PartitionNow]

    def leaderless(self) -> list[TopicPartition]:
        return [name for name, now in self.partitions.items() if now.leader_id not in self.brokers]

    def leads(self, topic: str) -> bool:
        """Whether the topic is known, and somebody leads each of its partitions."""
        known = {name for name in self.partitions if name.topic == topic}
        return bool(known) and known.isdisjoint(self.leaderless())

    def out_of_sync(self) -> list[TopicPartition]:
        """Partitions with a replica that is up and not in sync."""
        return [
            name
            for name, now in self.partitions.items()
            if self.brokers.intersection(now.replicas) - set(now.isr)
        ]


class Probe:
    """Asks with unary calls, each on a connection that is kept."""

    def __init__(self) -> None:
        self._channels: dict[str, grpc.Channel] = {}

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
        self._channels.clear()

    def is_serving(self, address: str, service: str) -> bool:
        """Whether the node at an address answers, and says that this service is up."""
        if not self._is_listening(address):
            return False
        check = self._channel(address).unary_unary(
            f"/{HEALTH_SERVICE}/Check",
            request_serializer=StringValue.SerializeToString,
            response_deserializer=Int32Value.FromString,
        )
        try:
            status = check(StringValue(value=service), timeout=TIMEOUT_SECONDS)
        except grpc.RpcError:
            return False
        return bool(status.value == ServingStatus.SERVING)

    def look(self, address: str) -> ClusterNow | None:
        """The cluster as the broker at this address sees it; None if it does not answer."""
        call = self._channel(address).unary_unary(
            f"/{BROKER_SERVICE}/Call",
            request_serializer=broker_pb2.BrokerRequest.SerializeToString,
            response_deserializer=broker_pb2.BrokerReply.FromString,
        )
        request = broker_pb2.BrokerRequest(metadata=broker_pb2.MetadataRequest(all_topics=True))
        try:
            reply = call(request, timeout=TIMEOUT_SECONDS)
        except grpc.RpcError:
            return None
        return None if reply.HasField("error") else _decode(reply.metadata)

    def _is_listening(self, address: str) -> bool:
        """A channel that was refused once waits before it dials again; a socket does not."""
        if address in self._channels:
            return True
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        except OSError:
            return False
        return True

    def _channel(self, address: str) -> grpc.Channel:
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = grpc.insecure_channel(
                address, options=CHANNEL_OPTIONS
            )
        return channel


def _decode(metadata: broker_pb2.MetadataReply) -> ClusterNow:
    return ClusterNow(
        frozenset(broker.node_id for broker in metadata.brokers),
        metadata.controller_id if metadata.HasField("controller_id") else None,
        {
            TopicPartition(topic.name, each.partition): PartitionNow(
                each.leader_id, tuple(each.replicas), tuple(each.isr)
            )
            for topic in metadata.topics
            for each in topic.partitions
        },
    )
