"""What anybody may ask of the controller's committed image. Linearizable (ARCHITECTURE 15)."""

from collections.abc import Iterable, Iterator

from kraftlog.config import Config
from kraftlog.errors import KraftError, UnknownTopicOrPartition
from kraftlog.rpc import common_pb2, controller_pb2
from kraftlog.types import TopicPartition, Uuid
from metadata_log.decide.reassign import ongoing
from metadata_log.described import describe_configs
from metadata_log.image import Image, Role, Topic
from metadata_log.records import Broker
from quorum.admin_calls import decode_topic_ref
from quorum.broker_watch import BrokerWatch
from quorum.controller import Controller
from quorum.controller_calls import Asked, Calls, Reply
from quorum.controller_wire import (
    decode_resource,
    encode_error,
    encode_resource,
    encode_topic,
    partition_name,
)


class ReadCalls(Calls):
    def __init__(
        self,
        controller: Controller,
        watch: BrokerWatch,
        static: Config,
        *,
        cluster_id: Uuid,
        node_id: int,
    ) -> None:
        super().__init__(controller)
        self._watch = watch
        self._static = static
        self._cluster_id = cluster_id
        self._node_id = node_id

    def describe_cluster(self, asked: Asked, _: controller_pb2.DescribeClusterRequest) -> None:
        self.read(asked, lambda image: Reply(describe_cluster=self._cluster(image)))

    def _cluster(self, image: Image) -> controller_pb2.DescribeClusterReply:
        return controller_pb2.DescribeClusterReply(
            cluster_id=self._cluster_id.raw,
            controller_id=self._node_id,
            epoch=self.controller.epoch or 0,
            brokers=[self._broker(image, broker) for broker in image.sorted_brokers()],
            topics=len(image.topics),
            partitions=image.partition_count,
            features=dict(image.features.items()),
        )

    def _broker(self, image: Image, broker: Broker) -> controller_pb2.BrokerState:
        session = self._watch.sessions.find(broker.id)
        cause = broker.fence_cause.name.lower().replace("_", " ") if broker.fence_cause else ""
        listener = broker.listeners[0]
        state = controller_pb2.BrokerState(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            incarnation_id=broker.incarnation_id.raw,
            endpoint=common_pb2.Endpoint(host=listener.host, port=listener.port),
            rack=broker.rack,
            fenced=broker.is_fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            fence_cause=cause,
            leaders=len(image.places(Role.LEADER, broker.id)),
            replicas=len(image.places(Role.REPLICA, broker.id)),
        )
        if session is not None and session.heard_ms >= 0:
            state.heartbeat_ago_ms = self.controller.ledger.now_ms() - session.heard_ms
            state.applied_offset = session.applied_offset
        return state

    def describe_topics(self, asked: Asked, request: controller_pb2.DescribeTopicsRequest) -> None:
        def encode(image: Image) -> Reply:
            topics = list(_topics(image, request.topics))
            return Reply(describe_topics=controller_pb2.DescribeTopicsReply(topics=topics))

        self.read(asked, encode)

    def describe_configs(
        self, asked: Asked, request: controller_pb2.DescribeConfigsRequest
    ) -> None:
        def encode(image: Image) -> Reply:
            resources = [self._configs(image, each) for each in request.resources]
            return Reply(describe_configs=controller_pb2.DescribeConfigsReply(resources=resources))

        self.read(asked, encode)

    def _configs(
        self, image: Image, wanted: controller_pb2.ConfigResource
    ) -> controller_pb2.ResourceConfigs:
        try:
            resource = decode_resource(wanted)
            entries = describe_configs(image, resource, static=self._static)
        except KraftError as error:
            return controller_pb2.ResourceConfigs(resource=wanted, error=encode_error(error))
        return controller_pb2.ResourceConfigs(
            resource=encode_resource(resource),
            entries=[
                controller_pb2.ConfigEntry(name=each.name, value=each.value, source=each.source)
                for each in entries
            ],
        )

    def list_reassignments(
        self, asked: Asked, request: controller_pb2.ListReassignmentsRequest
    ) -> None:
        wanted = tuple(TopicPartition(each.topic, each.partition) for each in request.partitions)

        def encode(image: Image) -> Reply:
            partitions = [
                controller_pb2.OngoingReassignment(
                    partition=partition_name(each.topic, each.partition),
                    replicas=state.replicas,
                    adding=state.adding,
                    removing=state.removing,
                )
                for each, state in ongoing(image, wanted or None)
            ]
            reply = controller_pb2.ListReassignmentsReply(partitions=partitions)
            return Reply(list_reassignments=reply)

        self.read(asked, encode)


def _topics(
    image: Image, wanted: Iterable[controller_pb2.TopicRef]
) -> Iterator[controller_pb2.TopicState]:
    refs = list(wanted)
    if not refs:
        for topic in sorted(image.topics.values(), key=lambda each: each.name):
            yield encode_topic(image, topic)
    for ref in refs:
        found = _find(image, ref)
        if found is not None:
            yield encode_topic(image, found)
            continue
        error = UnknownTopicOrPartition(f"there is no topic {ref.name or ref.topic_id.hex()}")
        yield controller_pb2.TopicState(
            name=ref.name, topic_id=ref.topic_id, error=encode_error(error)
        )


def _find(image: Image, ref: controller_pb2.TopicRef) -> Topic | None:
    decoded = decode_topic_ref(ref)
    if decoded.topic_id is not None:
        return image.topics.get(decoded.topic_id)
    return image.topic(decoded.name or "")
