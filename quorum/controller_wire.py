"""Between the messages of `controller.proto` and what `metadata_log` judges and answers."""

from collections.abc import Iterable, Sequence

from kraftlog.errors import InvalidRequest, KraftError, to_wire
from kraftlog.rpc import common_pb2, controller_pb2
from kraftlog.types import Uuid
from metadata_log.image import Image, Topic
from metadata_log.records import Listener, PartitionState, Recovery, Resource, ResourceType

LISTENER = "BROKER"
"""A broker has one address, for clients and brokers alike."""

UUID_BYTES = 16


# -- small things


def decode_uuid(raw: bytes, what: str) -> Uuid:
    if len(raw) != UUID_BYTES:
        raise InvalidRequest(f"{what} has {len(raw)} bytes", hint=f"it has {UUID_BYTES}")
    return Uuid(raw)


def encode_error(error: KraftError) -> common_pb2.Error:
    code, text, hint = to_wire(error)
    return common_pb2.Error(code=code, message=text, hint=hint)


def optional_error(error: KraftError | None) -> common_pb2.Error | None:
    return None if error is None else encode_error(error)


def decode_listener(endpoint: common_pb2.Endpoint) -> Listener:
    return Listener(LISTENER, endpoint.host, endpoint.port)


def decode_resource(resource: controller_pb2.ConfigResource) -> Resource:
    try:
        kind = ResourceType(resource.type)
    except ValueError:
        raise InvalidRequest(
            f"resource type {resource.type} has no configs", hint="topic is 2, broker is 4"
        ) from None
    return Resource(kind, resource.name)


def encode_resource(resource: Resource) -> controller_pb2.ConfigResource:
    name = f"RESOURCE_TYPE_{resource.type.name}"
    return controller_pb2.ConfigResource(type=name, name=resource.name)


def decode_assignments(
    assignments: Iterable[controller_pb2.Replicas],
) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(replicas.broker_ids) for replicas in assignments)


def partition_name(topic: str, partition: int) -> controller_pb2.TopicPartition:
    return controller_pb2.TopicPartition(topic=topic, partition=partition)


# -- what an image holds


def encode_partition(partition: int, state: PartitionState) -> controller_pb2.PartitionState:
    return controller_pb2.PartitionState(
        partition=partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        isr=state.isr,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
        adding=state.adding,
        removing=state.removing,
        recovering=state.recovery is Recovery.RECOVERING,
    )


def encode_topic(image: Image, topic: Topic) -> controller_pb2.TopicState:
    return controller_pb2.TopicState(
        name=topic.name,
        topic_id=topic.id.raw,
        partitions=[
            encode_partition(number, state) for number, state in enumerate(topic.partitions)
        ],
        configs=dict(image.topic_config(topic.name).items()),
    )


def named_results(
    names: Sequence[str], errors: Iterable[KraftError | None]
) -> list[controller_pb2.NamedResult]:
    return [
        controller_pb2.NamedResult(name=name, error=optional_error(error))
        for name, error in zip(names, errors, strict=True)
    ]
