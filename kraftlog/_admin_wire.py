"""Between an administrator's types and the messages of controllers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from kraftlog._client_wire import error_of, header
from kraftlog.admin_types import (
    Append,
    BrokerDescription,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    ConfigValue,
    CreatedTopic,
    NewTopic,
    OngoingReassignment,
    PartitionDescription,
    QuorumDescription,
    Refused,
    ReplicaDescription,
    ReplicaProgress,
    Subtract,
    TopicDescription,
    Voter,
)
from kraftlog.errors import KraftError
from kraftlog.rpc import broker_pb2, common_pb2, controller_pb2, raft_pb2
from kraftlog.types import TopicPartition, Uuid

T = TypeVar("T")

_KINDS = {
    "topic": controller_pb2.RESOURCE_TYPE_TOPIC,
    "broker": controller_pb2.RESOURCE_TYPE_BROKER,
}


def controller_request(
    kind: str,
    message: Message,
    *,
    client_id: str,
    timeout_ms: float,
    request_id: tuple[bytes, int] | None,
) -> Callable[[int], bytes]:
    """What encodes a request to a controller under its correlation id."""

    def encode(correlation_id: int) -> bytes:
        envelope = controller_pb2.ControllerRequest(
            header=header(kind, correlation_id, client_id), timeout_ms=max(int(timeout_ms), 1)
        )
        if request_id is not None:
            envelope.request_id.client, envelope.request_id.sequence = request_id
        getattr(envelope, kind).CopyFrom(message)
        return envelope.SerializeToString()

    return encode


# -- topics


def encode_new_topic(topic: NewTopic) -> controller_pb2.NewTopic:
    return controller_pb2.NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=encode_assignments(topic.assignments),
        configs=dict(topic.configs),
    )


def encode_assignments(assignments: Iterable[Sequence[int]]) -> list[controller_pb2.Replicas]:
    return [controller_pb2.Replicas(broker_ids=brokers) for brokers in assignments]


def encode_topic_ref(topic: str | Uuid) -> controller_pb2.TopicRef:
    if isinstance(topic, Uuid):
        return controller_pb2.TopicRef(topic_id=topic.raw)
    return controller_pb2.TopicRef(name=topic)


def decode_created(
    reply: controller_pb2.CreateTopicsReply, node: str
) -> dict[str, CreatedTopic | KraftError]:
    return {
        topic.name: error_of(topic.error, node)
        if topic.HasField("error")
        else CreatedTopic(
            topic.name,
            # A request that only asks whether it would be accepted gets no id.
            Uuid(topic.topic_id) if topic.topic_id else Uuid(bytes(16)),
            topic.partitions,
            topic.replication_factor,
        )
        for topic in reply.topics
    }


def decode_named(
    results: Iterable[controller_pb2.NamedResult], node: str
) -> dict[str, KraftError | None]:
    return {
        each.name: error_of(each.error, node) if each.HasField("error") else None
        for each in results
    }


def decode_topic(topic: controller_pb2.TopicState) -> TopicDescription:
    return TopicDescription(
        topic.name,
        Uuid(topic.topic_id),
        tuple(_partition(each) for each in topic.partitions),
        dict(topic.configs),
    )


def _partition(each: controller_pb2.PartitionState) -> PartitionDescription:
    return PartitionDescription(
        each.partition,
        each.leader_id,
        each.leader_epoch,
        each.partition_epoch,
        tuple(each.replicas),
        tuple(each.isr),
        tuple(each.elr),
        tuple(each.last_known_elr),
        tuple(each.adding),
        tuple(each.removing),
        each.recovering,
    )


# -- partitions


def encode_place(place: TopicPartition) -> controller_pb2.TopicPartition:
    return controller_pb2.TopicPartition(topic=place.topic, partition=place.partition)


def _place(place: controller_pb2.TopicPartition) -> TopicPartition:
    return TopicPartition(place.topic, place.partition)


def decode_places(
    results: Iterable[controller_pb2.PartitionResult], node: str
) -> dict[TopicPartition, KraftError | None]:
    return {
        _place(each.partition): error_of(each.error, node) if each.HasField("error") else None
        for each in results
    }


def encode_target(
    place: TopicPartition, target: Sequence[int] | None
) -> controller_pb2.Reassignment:
    replicas = None if target is None else controller_pb2.Replicas(broker_ids=target)
    return controller_pb2.Reassignment(partition=encode_place(place), target=replicas)


def decode_reassignments(
    reply: controller_pb2.ListReassignmentsReply,
) -> dict[TopicPartition, OngoingReassignment]:
    return {
        _place(each.partition): OngoingReassignment(
            tuple(each.replicas), tuple(each.adding), tuple(each.removing)
        )
        for each in reply.partitions
    }


def encode_ranges(
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> list[broker_pb2.OffsetRange]:
    return [
        broker_pb2.OffsetRange(
            name=place.topic, partition=place.partition, from_offset=start, to_offset=end
        )
        for place, (start, end) in ranges.items()
    ]


def decode_replica(each: broker_pb2.ReplicaDescription) -> ReplicaDescription:
    return ReplicaDescription(
        each.topic,
        Uuid(each.topic_id),
        each.partition,
        each.log_dir,
        each.size_bytes,
        each.log_start_offset,
        each.high_watermark,
        each.end_offset,
        each.leader_epoch,
        each.is_leader,
        each.digest if each.HasField("digest") else None,
    )


# -- configs


def encode_resource(resource: ConfigResource) -> controller_pb2.ConfigResource:
    return controller_pb2.ConfigResource(type=_KINDS[resource.kind], name=resource.name)


def decode_resource(resource: controller_pb2.ConfigResource) -> ConfigResource:
    is_topic = resource.type == controller_pb2.RESOURCE_TYPE_TOPIC
    return ConfigResource("topic" if is_topic else "broker", resource.name)


def encode_changes(
    resource: ConfigResource, changes: Mapping[str, ConfigValue]
) -> controller_pb2.ResourceChanges:
    return controller_pb2.ResourceChanges(
        resource=encode_resource(resource),
        changes=[_change(name, value) for name, value in changes.items()],
    )


def _change(name: str, value: ConfigValue) -> controller_pb2.ConfigChange:
    match value:
        case None:
            operation = controller_pb2.CONFIG_OPERATION_DELETE
            return controller_pb2.ConfigChange(name=name, operation=operation)
        case Append(text):
            operation = controller_pb2.CONFIG_OPERATION_APPEND
        case Subtract(text):
            operation = controller_pb2.CONFIG_OPERATION_SUBTRACT
        case text:
            operation = controller_pb2.CONFIG_OPERATION_SET
    return controller_pb2.ConfigChange(name=name, operation=operation, value=str(text))


def decode_entries(configs: controller_pb2.ResourceConfigs) -> dict[str, ConfigEntry]:
    return {
        entry.name: ConfigEntry(entry.name, entry.value, entry.source) for entry in configs.entries
    }


# -- the cluster


def decode_cluster(reply: controller_pb2.DescribeClusterReply, offset: int) -> ClusterDescription:
    return ClusterDescription(
        Uuid(reply.cluster_id),
        reply.controller_id,
        reply.epoch,
        tuple(_broker(each) for each in reply.brokers),
        reply.topics,
        reply.partitions,
        dict(reply.features),
        offset,
    )


def _broker(each: controller_pb2.BrokerState) -> BrokerDescription:
    return BrokerDescription(
        each.broker_id,
        each.broker_epoch,
        Uuid(each.incarnation_id),
        each.endpoint.host,
        each.endpoint.port,
        each.rack if each.HasField("rack") else None,
        each.fenced,
        each.in_controlled_shutdown,
        each.fence_cause,
        each.heartbeat_ago_ms if each.HasField("heartbeat_ago_ms") else None,
        each.applied_offset,
        each.leaders,
        each.replicas,
    )


# -- the quorum


def encode_voter(voter: Voter) -> raft_pb2.Voter:
    return raft_pb2.Voter(key=encode_voter_key(voter), endpoint=voter.endpoint)


def encode_voter_key(voter: Voter) -> common_pb2.VoterKey:
    return common_pb2.VoterKey(node_id=voter.node_id, directory_id=voter.directory_id.raw)


def _voter(key: common_pb2.VoterKey, endpoint: str = "") -> Voter:
    return Voter(key.node_id, Uuid(key.directory_id), endpoint)


def decode_quorum(reply: raft_pb2.DescribeQuorumReply) -> QuorumDescription:
    told = reply.header
    has_leader = told.HasField("leader")
    return QuorumDescription(
        cluster_id=Uuid(reply.cluster_id) if reply.cluster_id else None,
        node=_voter(reply.node),
        role=reply.role,
        epoch=told.epoch,
        leader=_voter(told.leader.key, told.leader.endpoint) if has_leader else None,
        high_watermark=reply.high_watermark,
        applied_offset=reply.applied_offset,
        end_offset=reply.end_offset,
        log_start_offset=reply.log_start_offset,
        voters=tuple(_progress(each) for each in reply.voters),
        observers=tuple(_progress(each) for each in reply.observers),
        refusals=tuple(
            Refused(each.node_id, each.ago_ms, each.epoch, each.request, each.refusal, each.ours)
            for each in reply.refusals
        ),
        voted=_voter(reply.voted) if reply.HasField("voted") else None,
        leaderless_ms=reply.leaderless_ms if reply.HasField("leaderless_ms") else None,
        led_epoch=reply.led_epoch,
        election_timeout_ms=reply.election_timeout_ms,
    )


def _progress(each: raft_pb2.ReplicaState) -> ReplicaProgress:
    return ReplicaProgress(
        _voter(each.key, each.endpoint),
        each.end_offset,
        each.last_fetch_ago_ms if each.HasField("last_fetch_ago_ms") else None,
        each.caught_up_ago_ms if each.HasField("caught_up_ago_ms") else None,
        each.heard_ago_ms if each.HasField("heard_ago_ms") else None,
    )
