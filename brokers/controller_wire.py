"""What a broker asks of the active controller, as messages of controller.proto."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brokers.auto_topics import Created
from brokers.cluster import PartitionId
from brokers.controller_link import ControllerLink
from brokers.requests import IsrChange, IsrResult
from brokers.wire import decode_error, encode_endpoint
from kraftlog.rpc import controller_pb2
from kraftlog.types import Uuid

# Kafka's numbers of the requests.
REGISTER_KEY = 62
HEARTBEAT_KEY = 63
ALTER_PARTITIONS_KEY = 56
ALLOCATE_PRODUCER_IDS_KEY = 67
CREATE_TOPICS_KEY = 19

HAND_OUT_ID = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a broker says of itself when it registers."""

    broker_id: int | None
    """None: to be handed out."""
    incarnation_id: Uuid
    endpoint: str
    rack: str | None
    log_dir_ids: tuple[Uuid, ...]
    previous_epoch: int | None
    """That of a clean stop; None: the last one was unclean."""
    features: Mapping[str, tuple[int, int]]
    """The levels that this broker can work with."""


@dataclass(frozen=True, slots=True)
class Registered:
    broker_id: int
    broker_epoch: int
    offset: int
    """All below is committed, the registration included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    broker_id: int
    broker_epoch: int
    applied_offset: int
    want_fence: bool
    want_shut_down: bool


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool


async def register(
    link: ControllerLink, registration: Registration, *, timeout_ms: int
) -> Registered:
    message = controller_pb2.RegisterBrokerRequest(
        broker_id=registration.broker_id or HAND_OUT_ID,
        incarnation_id=registration.incarnation_id.raw,
        endpoint=encode_endpoint(registration.endpoint),
        rack=registration.rack,
        log_dir_ids=[each.raw for each in registration.log_dir_ids],
        previous_broker_epoch=registration.previous_epoch,
        features=[
            controller_pb2.FeatureRange(name=name, min_level=low, max_level=high)
            for name, (low, high) in sorted(registration.features.items())
        ],
    )
    request = controller_pb2.ControllerRequest(register_broker=message)
    reply = await link.ask(request, api_key=REGISTER_KEY, timeout_ms=timeout_ms)
    told = reply.register_broker
    return Registered(told.broker_id, told.broker_epoch, max(reply.offset, told.broker_epoch + 1))


async def send_heartbeat(
    link: ControllerLink, beat: Heartbeat, *, timeout_ms: int
) -> HeartbeatAnswer:
    message = controller_pb2.HeartbeatRequest(
        broker_id=beat.broker_id,
        broker_epoch=beat.broker_epoch,
        applied_offset=beat.applied_offset,
        want_fence=beat.want_fence,
        want_shut_down=beat.want_shut_down,
    )
    request = controller_pb2.ControllerRequest(heartbeat=message)
    reply = await link.ask(request, api_key=HEARTBEAT_KEY, timeout_ms=timeout_ms)
    told = reply.heartbeat
    return HeartbeatAnswer(told.is_caught_up, told.is_fenced, told.should_shut_down)


async def allocate_producer_ids(
    link: ControllerLink, broker_id: int, broker_epoch: int, *, timeout_ms: int
) -> range:
    message = controller_pb2.AllocateProducerIdsRequest(
        broker_id=broker_id, broker_epoch=broker_epoch
    )
    request = controller_pb2.ControllerRequest(allocate_producer_ids=message)
    reply = await link.ask(request, api_key=ALLOCATE_PRODUCER_IDS_KEY, timeout_ms=timeout_ms)
    told = reply.allocate_producer_ids
    return range(told.first_id, told.first_id + told.count)


async def create_topics(link: ControllerLink, names: Sequence[str], *, timeout_ms: int) -> Created:
    """With the number of partitions and replicas that the controller has for defaults."""
    message = controller_pb2.CreateTopicsRequest(
        topics=[controller_pb2.NewTopic(name=name) for name in names]
    )
    request = controller_pb2.ControllerRequest(create_topics=message)
    reply = await link.ask(request, api_key=CREATE_TOPICS_KEY, timeout_ms=timeout_ms)
    errors = {
        each.name: decode_error(each.error, "controller")
        for each in reply.create_topics.topics
        if each.HasField("error")
    }
    return Created(reply.offset, errors)


async def alter_partitions(
    link: ControllerLink,
    changes: Sequence[IsrChange],
    *,
    broker_id: int,
    broker_epoch: int,
    timeout_ms: int,
) -> list[IsrResult]:
    message = controller_pb2.AlterPartitionsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    for change in changes:
        asked = message.changes.add(
            topic_id=change.partition.topic_id,
            partition=change.partition.partition,
            leader_epoch=change.leader_epoch,
            partition_epoch=change.partition_epoch,
            recovering=change.recovering,
        )
        for member in change.isr:
            asked.isr.add(broker_id=member.broker_id, broker_epoch=member.broker_epoch)
    request = controller_pb2.ControllerRequest(alter_partitions=message)
    reply = await link.ask(request, api_key=ALTER_PARTITIONS_KEY, timeout_ms=timeout_ms)
    return [_decode_isr_result(result) for result in reply.alter_partitions.results]


def _decode_isr_result(result: controller_pb2.IsrResult) -> IsrResult:
    return IsrResult(
        PartitionId(result.topic_id, result.partition),
        leader=result.leader_id,
        leader_epoch=result.leader_epoch,
        partition_epoch=result.partition_epoch,
        isr=tuple(result.isr),
        recovering=result.recovering,
        error=decode_error(result.error, "controller") if result.HasField("error") else None,
    )
