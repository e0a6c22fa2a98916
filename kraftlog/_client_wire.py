"""Between a client's own types and the messages of brokers. Protobuf goes no further."""

from collections.abc import Callable, Iterable, Sequence

from kraftlog.apis import API_KEYS, NO_API_KEY
from kraftlog.cluster_view import Hint, Metadata, Node, PartitionView, TopicView
from kraftlog.errors import KraftError, WireError, from_wire
from kraftlog.framing import Pieces, enclose
from kraftlog.rpc import broker_pb2, common_pb2, controller_pb2

CHANNEL_OF_BROKER = "/kraftlog.rpc.Broker/Channel"
CHANNEL_OF_CONTROLLER = "/kraftlog.rpc.Controller/Channel"

API_VERSION = 0
"""The version of every request that this client sends."""


def header(kind: str, correlation_id: int, client_id: str) -> common_pb2.RequestHeader:
    return common_pb2.RequestHeader(
        api_key=API_KEYS.get(kind, NO_API_KEY),
        api_version=API_VERSION,
        correlation_id=correlation_id,
        client_id=client_id,
    )


def broker_request(
    kind: str, message: Pieces, *, client_id: str, cluster_id: bytes
) -> Callable[[int], Pieces]:
    """What encodes a request to a broker under its correlation id."""
    field_number = broker_pb2.BrokerRequest.DESCRIPTOR.fields_by_name[kind].number

    def encode(correlation_id: int) -> Pieces:
        envelope = broker_pb2.BrokerRequest(
            header=header(kind, correlation_id, client_id), cluster_id=cluster_id or None
        )
        return envelope.SerializeToString(), *enclose(field_number, message)

    return encode


def parse_broker_replies(data: bytes) -> Iterable[broker_pb2.BrokerReply]:
    return broker_pb2.BrokerReplies.FromString(data).replies


def parse_controller_replies(data: bytes) -> Iterable[controller_pb2.ControllerReply]:
    return controller_pb2.ControllerReplies.FromString(data).replies


# -- errors and nodes


def error_of(error: common_pb2.Error, node: str) -> KraftError:
    """The exception that a reply's error stands for."""
    return from_wire(WireError(error.code, error.message, error.hint), node=node)


def endpoint_node(node_id: int, endpoint: common_pb2.Endpoint, rack: str | None = None) -> Node:
    return Node(node_id, endpoint.host, endpoint.port, rack)


def hint_of(error: common_pb2.Error) -> Hint | None:
    """Who leads instead, where the error says so."""
    if not error.HasField("leader"):
        return None
    told = error.leader
    leader = told.leader if told.HasField("leader") else None
    node = None if leader is None else endpoint_node(leader.node_id, leader.endpoint)
    return Hint(told.epoch, node)


# -- metadata


def metadata_request(
    topics: Iterable[str], *, all_topics: bool, auto_create: bool
) -> broker_pb2.MetadataRequest:
    return broker_pb2.MetadataRequest(
        topics=[broker_pb2.TopicName(name=name) for name in topics],
        all_topics=all_topics,
        allow_auto_create=auto_create,
    )


def decode_metadata(reply: broker_pb2.MetadataReply, node: str) -> Metadata:
    return Metadata(
        offset=reply.offset,
        cluster_id=reply.cluster_id,
        brokers=tuple(
            endpoint_node(b.node_id, b.endpoint, b.rack if b.HasField("rack") else None)
            for b in reply.brokers
        ),
        controllers=tuple(endpoint_node(c.node_id, c.endpoint) for c in reply.controllers),
        controller_id=reply.controller_id if reply.HasField("controller_id") else None,
        topics=tuple(_topic(topic) for topic in reply.topics if not topic.HasField("error")),
        refused={
            topic.name: error_of(topic.error, node)
            for topic in reply.topics
            if topic.HasField("error")
        },
    )


def _topic(topic: broker_pb2.TopicMetadata) -> TopicView:
    by_number = {p.partition: p for p in topic.partitions}
    partitions: Sequence[PartitionView] = [
        PartitionView(
            number,
            by_number[number].leader_id,
            by_number[number].leader_epoch,
            tuple(by_number[number].replicas),
            tuple(by_number[number].isr),
        )
        for number in sorted(by_number)
    ]
    return TopicView(topic.name, topic.topic_id, tuple(partitions))
