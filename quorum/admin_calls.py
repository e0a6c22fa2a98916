"""What administrators ask of the controller: topics, configs, elections, moves, features."""

from collections.abc import Iterable, Sequence

from kraftlog.config import Config
from kraftlog.errors import InvalidRequest
from kraftlog.rpc import controller_pb2
from kraftlog.types import TopicPartition, Uuid
from metadata_log.decide import Decision, Draw, Outcome
from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.decide.elections import ElectLeaders, elect_leaders
from metadata_log.decide.features import (
    SUPPORTED,
    FeatureUpdate,
    UpdateFeatures,
    update_features,
)
from metadata_log.decide.fencing import fence, release, unregister
from metadata_log.decide.reassign import Reassignment, reassign
from metadata_log.decide.topics import (
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    NewPartitions,
    NewTopic,
    TopicRef,
    create_partitions,
    create_topics,
    delete_topics,
)
from metadata_log.election import Election
from metadata_log.image import Image
from metadata_log.places import Agenda
from metadata_log.records import Cause, CauseKind, FenceCause
from quorum.broker_watch import BrokerWatch
from quorum.controller import Controller
from quorum.controller_calls import Asked, Calls, Reply
from quorum.controller_wire import (
    decode_assignments,
    decode_resource,
    decode_uuid,
    encode_resource,
    named_results,
    optional_error,
    partition_name,
)

Elected = tuple[tuple[TopicPartition, Outcome[int]], ...]


class AdminCalls(Calls):
    def __init__(
        self, controller: Controller, watch: BrokerWatch, static: Config, draw: Draw
    ) -> None:
        super().__init__(controller)
        self._watch = watch
        self._static = static
        self._draw = draw

    # -- topics

    def create_topics(self, asked: Asked, request: controller_pb2.CreateTopicsRequest) -> None:
        wanted = CreateTopics(tuple(map(_decode_topic, request.topics)), request.validate_only)

        def decide(image: Image, _: Agenda | None) -> Decision[tuple[Outcome[CreatedTopic], ...]]:
            return create_topics(image, wanted, draw=self._draw, static=self._static, by=asked.by)

        def encode(outcomes: tuple[Outcome[CreatedTopic], ...]) -> Reply:
            names = [topic.name for topic in wanted.topics]
            return Reply(create_topics=_encode_created(names, outcomes))

        self.submit(asked, "create topics", decide, encode, keep=not request.validate_only)

    def delete_topics(self, asked: Asked, request: controller_pb2.DeleteTopicsRequest) -> None:
        wanted = tuple(map(decode_topic_ref, request.topics))

        def decide(image: Image, _: Agenda | None) -> Decision[tuple[Outcome[Uuid], ...]]:
            return delete_topics(image, wanted, by=asked.by)

        def encode(outcomes: tuple[Outcome[Uuid], ...]) -> Reply:
            names = [ref.name or str(ref.topic_id) for ref in wanted]
            results = named_results(names, (each.error for each in outcomes))
            return Reply(delete_topics=controller_pb2.DeleteTopicsReply(topics=results))

        self.submit(asked, "delete topics", decide, encode)

    def create_partitions(
        self, asked: Asked, request: controller_pb2.CreatePartitionsRequest
    ) -> None:
        wanted = CreatePartitions(
            tuple(
                NewPartitions(each.topic, each.count, decode_assignments(each.assignments))
                for each in request.topics
            ),
            request.validate_only,
        )

        def decide(image: Image, _: Agenda | None) -> Decision[tuple[Outcome[int], ...]]:
            return create_partitions(image, wanted, draw=self._draw, by=asked.by)

        def encode(outcomes: tuple[Outcome[int], ...]) -> Reply:
            names = [each.topic for each in wanted.topics]
            results = named_results(names, (each.error for each in outcomes))
            return Reply(create_partitions=controller_pb2.CreatePartitionsReply(topics=results))

        self.submit(asked, "create partitions", decide, encode, keep=not request.validate_only)

    # -- configs and features

    def alter_configs(self, asked: Asked, request: controller_pb2.AlterConfigsRequest) -> None:
        wanted = AlterConfigs(
            tuple(map(_decode_resource_changes, request.resources)), request.validate_only
        )

        def decide(image: Image, _: Agenda | None) -> Decision[tuple[Outcome[None], ...]]:
            return alter_configs(image, wanted, static=self._static, by=asked.by)

        def encode(outcomes: tuple[Outcome[None], ...]) -> Reply:
            results = [
                controller_pb2.ResourceResult(
                    resource=encode_resource(changes.resource), error=optional_error(outcome.error)
                )
                for changes, outcome in zip(wanted.resources, outcomes, strict=True)
            ]
            return Reply(alter_configs=controller_pb2.AlterConfigsReply(resources=results))

        def then(_: tuple[Outcome[None], ...]) -> None:
            # It may now be allowed to elect where nobody was in sync.
            self._watch.elect_leaderless("configs changed")

        self.submit(
            asked, "alter configs", decide, encode, then=then, keep=not request.validate_only
        )

    def update_features(self, asked: Asked, request: controller_pb2.UpdateFeaturesRequest) -> None:
        wanted = UpdateFeatures(
            tuple(
                FeatureUpdate(
                    each.name, each.level, allow_downgrade=each.allow_downgrade, unsafe=each.unsafe
                )
                for each in request.updates
            ),
            request.validate_only,
        )

        def decide(image: Image, _: Agenda | None) -> Decision[tuple[Outcome[None], ...]]:
            return update_features(image, wanted, supported=SUPPORTED, by=asked.by)

        def encode(outcomes: tuple[Outcome[None], ...]) -> Reply:
            names = [each.name for each in wanted.updates]
            results = named_results(names, (each.error for each in outcomes))
            return Reply(update_features=controller_pb2.UpdateFeaturesReply(features=results))

        self.submit(asked, "update features", decide, encode, keep=not request.validate_only)

    # -- elections and moves

    def elect_leaders(self, asked: Asked, request: controller_pb2.ElectLeadersRequest) -> None:
        is_unclean = request.type == controller_pb2.ELECTION_TYPE_UNCLEAN
        wanted = ElectLeaders(
            Election.UNCLEAN if is_unclean else Election.PREFERRED,
            _decode_partitions(request.partitions) or None,
        )
        results: list[controller_pb2.PartitionResult] = []

        def decide(image: Image, agenda: Agenda | None) -> Decision[Elected]:
            decision = elect_leaders(image, wanted, static=self._static, by=asked.by, agenda=agenda)
            for partition, outcome in decision.response:
                results.append(_partition_result(partition, outcome))
            return decision

        def encode(_: Elected) -> Reply:
            return Reply(elect_leaders=controller_pb2.ElectLeadersReply(partitions=results))

        self.submit(asked, "elect leaders", decide, encode)

    def reassign(self, asked: Asked, request: controller_pb2.ReassignRequest) -> None:
        wanted = tuple(
            Reassignment(
                TopicPartition(each.partition.topic, each.partition.partition),
                tuple(each.target.broker_ids) if each.HasField("target") else None,
            )
            for each in request.partitions
        )

        def decide(image: Image, _: Agenda | None) -> Decision[tuple[Outcome[None], ...]]:
            return reassign(image, wanted, static=self._static, by=asked.by)

        def encode(outcomes: tuple[Outcome[None], ...]) -> Reply:
            results = [
                _partition_result(each.partition, outcome)
                for each, outcome in zip(wanted, outcomes, strict=True)
            ]
            return Reply(reassign=controller_pb2.ReassignReply(partitions=results))

        self.submit(asked, "reassign", decide, encode)

    # -- brokers

    def unregister_broker(
        self, asked: Asked, request: controller_pb2.UnregisterBrokerRequest
    ) -> None:
        broker_id = request.broker_id

        def decide(image: Image, agenda: Agenda | None) -> Decision[None]:
            return unregister(image, broker_id, by=asked.by, static=self._static, agenda=agenda)

        self.submit(
            asked,
            "unregister",
            decide,
            lambda _: Reply(unregister_broker=controller_pb2.UnregisterBrokerReply()),
            then=lambda _: self._watch.unregistered(broker_id),
        )

    def fence_broker(self, asked: Asked, request: controller_pb2.FenceBrokerRequest) -> None:
        broker_id, verb = request.broker_id, "fence" if request.fenced else "unfence"
        cause = Cause(CauseKind.ADMIN_REQUEST, f"{verb} broker {broker_id} by {asked.by}")

        def decide(image: Image, agenda: Agenda | None) -> Decision[bool | None]:
            if not request.fenced:
                return release(image, broker_id, cause)
            return fence(
                image, broker_id, FenceCause.OPERATOR, cause, static=self._static, agenda=agenda
            )

        self.submit(
            asked, verb, decide, lambda _: Reply(fence_broker=controller_pb2.FenceBrokerReply())
        )


# -- decoding


def _decode_topic(topic: controller_pb2.NewTopic) -> NewTopic:
    factor = topic.replication_factor if topic.HasField("replication_factor") else None
    return NewTopic(
        name=topic.name,
        partitions=topic.partitions if topic.HasField("partitions") else None,
        replication_factor=factor,
        assignments=decode_assignments(topic.assignments),
        configs=dict(topic.configs),
    )


def decode_topic_ref(topic: controller_pb2.TopicRef) -> TopicRef:
    if topic.topic_id:
        return TopicRef(decode_uuid(topic.topic_id, "topic_id"), topic.name)
    if not topic.name:
        raise InvalidRequest("a topic with neither id nor name", hint="give one of the two")
    return TopicRef(None, topic.name)


def _decode_resource_changes(changes: controller_pb2.ResourceChanges) -> ResourceChanges:
    return ResourceChanges(
        decode_resource(changes.resource),
        tuple(
            ConfigChange(each.name, _decode_operation(each.operation), each.value)
            for each in changes.changes
        ),
    )


_OPERATIONS = (Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT)


def _decode_operation(number: int) -> Operation:
    if not 0 <= number < len(_OPERATIONS):
        raise InvalidRequest(
            f"config operation {number}", hint="set 0, delete 1, append 2, subtract 3"
        )
    return _OPERATIONS[number]


def _decode_partitions(
    partitions: Iterable[controller_pb2.TopicPartition],
) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, each.partition) for each in partitions)


# -- encoding


def _encode_created(
    names: Sequence[str], outcomes: Sequence[Outcome[CreatedTopic]]
) -> controller_pb2.CreateTopicsReply:
    results = []
    for name, outcome in zip(names, outcomes, strict=True):
        result = controller_pb2.NewTopicResult(name=name, error=optional_error(outcome.error))
        created = outcome.value
        if created is not None:
            result.topic_id = created.topic_id.raw if created.topic_id is not None else b""
            result.partitions = created.partitions
            result.replication_factor = created.replication_factor
        results.append(result)
    return controller_pb2.CreateTopicsReply(topics=results)


def _partition_result(
    partition: TopicPartition, outcome: Outcome[object]
) -> controller_pb2.PartitionResult:
    return controller_pb2.PartitionResult(
        partition=partition_name(partition.topic, partition.partition),
        error=optional_error(outcome.error),
    )
