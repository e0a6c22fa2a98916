"""Between a record and the bytes of the log: `MetadataRecord` of records.proto.

A type or a version that we do not know is `UnknownRecord`: to go on without it would make this
node's image differ from the others'. What a reader may meet is only what a writer wrote, since the
log checks its bytes; still, every value is looked at before it becomes one of ours.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from google.protobuf.message import DecodeError

from kraftlog.errors import StorageError
from kraftlog.rpc import records_pb2 as pb
from kraftlog.types import Uuid
from metadata_log.records import (
    UNKNOWN_OFFSET,
    Broker,
    BrokerChange,
    Cause,
    CausedRecord,
    CauseKind,
    ConfigRecord,
    FeatureLevel,
    FeatureRange,
    FenceCause,
    Listener,
    NoOp,
    PartitionChange,
    PartitionRecord,
    PartitionState,
    ProducerIds,
    Record,
    Recovery,
    RegisterBroker,
    RemoveTopic,
    RequestDone,
    Resource,
    ResourceType,
    TopicRecord,
    UnregisterBroker,
)

VERSION = 0
"""Of all records: none has changed its meaning yet."""

INTERNED_MAX = 1 << 16
CAUSES_MAX = 1 << 10

Unsettled = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], Recovery]
"""The last fields of a PartitionState, as nearly every partition has them: empty."""
UNSETTLED = 5
SETTLED: Unsettled = ((), (), (), (), Recovery.RECOVERED)

_T = TypeVar("_T")


class UnknownRecord(StorageError):
    """A record of the metadata log that this version of the program cannot read."""


def encode(caused: CausedRecord) -> bytes:
    """The value under which a record goes into the log."""
    # A message is its fields one after the other, so a part that many records share is made once.
    return _head(caused.cause) + _to_message(caused.record).SerializeToString()


@lru_cache(CAUSES_MAX)
def _head(cause: Cause) -> bytes:
    """The fields that come before the record itself."""
    of_cause = pb.RecordCause(kind=cause.kind, text=cause.text)
    return pb.MetadataRecord(version=VERSION, cause=of_cause).SerializeToString()


def decode(value: bytes) -> CausedRecord:
    """A record and its cause, or UnknownRecord."""
    message = _parse(value)
    return CausedRecord(_from_message(message), _cause(message.cause))


def decode_record(value: bytes) -> Record:
    """A record without its cause, for those who only replay."""
    return _from_message(_parse(value))


def _parse(value: bytes) -> pb.MetadataRecord:
    try:
        message = pb.MetadataRecord.FromString(value)
    except DecodeError as error:
        raise UnknownRecord(f"{len(value)} bytes are no metadata record: {error}") from None
    if message.version != VERSION:
        raise UnknownRecord(
            f"a metadata record has version {message.version}, and {VERSION} is the last we know",
            hint="a newer version of this program wrote it: upgrade this node too",
        )
    return message


def _cause(message: pb.RecordCause) -> Cause:
    return Cause(_member(CauseKind, message.kind), message.text)


# -- to protobuf


def _to_message(record: Record) -> pb.MetadataRecord:  # noqa: C901 - one case per record
    match record:
        case PartitionRecord():
            return _partition(record)
        case PartitionChange():
            return _partition_change(record)
        case TopicRecord(name, topic_id):
            return pb.MetadataRecord(topic=pb.TopicRecord(name=name, topic_id=topic_id.raw))
        case RemoveTopic(topic_id):
            return pb.MetadataRecord(remove_topic=pb.RemoveTopicRecord(topic_id=topic_id.raw))
        case RegisterBroker(broker):
            return pb.MetadataRecord(register_broker=_register_broker(broker))
        case BrokerChange():
            return pb.MetadataRecord(broker_change=_broker_change(record))
        case UnregisterBroker(broker_id, epoch):
            gone = pb.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)
            return pb.MetadataRecord(unregister_broker=gone)
        case ConfigRecord(resource, name, text):
            config = pb.ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=text
            )
            return pb.MetadataRecord(config=config)
        case FeatureLevel(name, level):
            return pb.MetadataRecord(feature_level=pb.FeatureLevelRecord(name=name, level=level))
        case ProducerIds(broker_id, epoch, next_id):
            ids = pb.ProducerIdsRecord(
                broker_id=broker_id, broker_epoch=epoch, next_producer_id=next_id
            )
            return pb.MetadataRecord(producer_ids=ids)
        case RequestDone(client_id, request_id, result):
            done = pb.RequestDoneRecord(client_id=client_id, request_id=request_id, result=result)
            return pb.MetadataRecord(request_done=done)
        case NoOp():
            return pb.MetadataRecord(no_op=pb.NoOpMetadataRecord())


# Of partitions there are many: their fields are set one by one, which takes half the time.


def _partition(record: PartitionRecord) -> pb.MetadataRecord:
    state = record.state
    message = pb.MetadataRecord()
    body = message.partition
    body.topic_id = record.topic_id.raw
    body.partition = record.partition
    body.replicas.extend(state.replicas)
    if state.isr != state.replicas:
        _set(body.isr, state.isr)
    body.leader = state.leader
    body.leader_epoch = state.leader_epoch
    body.partition_epoch = state.partition_epoch
    if state[UNSETTLED:] != SETTLED:
        body.unsettled.elr.extend(state.elr)
        body.unsettled.last_known_elr.extend(state.last_known_elr)
        body.unsettled.adding.extend(state.adding)
        body.unsettled.removing.extend(state.removing)
        body.unsettled.recovery = state.recovery
    return message


def _partition_change(record: PartitionChange) -> pb.MetadataRecord:
    message = pb.MetadataRecord()
    body = message.partition_change
    body.topic_id = record.topic_id.raw
    body.partition = record.partition
    if record.leader is not None:
        body.leader = record.leader
    if record.isr is not None:
        _set(body.isr, record.isr)
    if record.elr is not None:
        _set(body.elr, record.elr)
    if record.last_known_elr is not None:
        _set(body.last_known_elr, record.last_known_elr)
    _set_assignment(body, record)
    if record.recovery is not None:
        body.recovery = record.recovery
    return message


def _set_assignment(body: pb.PartitionChangeRecord, record: PartitionChange) -> None:
    if record.replicas is not None:
        _set(body.replicas, record.replicas)
    if record.adding is not None:
        _set(body.adding, record.adding)
    if record.removing is not None:
        _set(body.removing, record.removing)


def _set(message: pb.BrokerIds, brokers: tuple[int, ...]) -> None:
    message.SetInParent()  # an empty list is something else than none
    message.ids.extend(brokers)


def _register_broker(broker: Broker) -> pb.RegisterBrokerRecord:
    return pb.RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id.raw,
        broker_epoch=broker.epoch,
        listeners=[
            pb.ListenerRecord(name=each.name, host=each.host, port=each.port)
            for each in broker.listeners
        ],
        log_dirs=[directory.raw for directory in broker.log_dirs],
        features=[
            pb.FeatureRangeRecord(
                name=each.name, min_level=each.min_level, max_level=each.max_level
            )
            for each in broker.features
        ],
        rack=broker.rack,
        fence_cause=broker.fence_cause,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        fenced_at=None if broker.fenced_at == UNKNOWN_OFFSET else broker.fenced_at,
    )


def _broker_change(record: BrokerChange) -> pb.BrokerChangeRecord:
    message = pb.BrokerChangeRecord(
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        fence_cause=record.fence_cause,
    )
    if record.fenced is not None:
        message.fenced = record.fenced
    if record.in_controlled_shutdown is not None:
        message.in_controlled_shutdown = record.in_controlled_shutdown
    return message


# -- from protobuf


def _from_message(message: pb.MetadataRecord) -> Record:
    kind = message.WhichOneof("record")
    if kind is None:
        raise UnknownRecord(
            "a metadata record is of a type that we do not know",
            hint="a newer version of this program wrote it: upgrade this node too",
        )
    return _READERS[kind](message)


@lru_cache(INTERNED_MAX)
def _uuid(raw: bytes) -> Uuid:
    """One object for all records that name the same topic: smaller images, quicker look-ups."""
    try:
        return Uuid(raw)
    except ValueError as error:
        raise UnknownRecord(f"a metadata record holds a wrong id: {error}") from None


@lru_cache(INTERNED_MAX)
def _interned(brokers: tuple[int, ...]) -> tuple[int, ...]:
    """One object for all partitions with the same brokers."""
    return brokers


def _member(kind: Callable[[int], _T], number: int) -> _T:
    try:
        return kind(number)
    except ValueError as error:
        raise UnknownRecord(f"a metadata record holds a value we do not know: {error}") from None


def _read_partition(message: pb.MetadataRecord) -> PartitionRecord:
    body = message.partition
    replicas = _interned(tuple(body.replicas))
    state = PartitionState(
        replicas,
        _interned(tuple(body.isr.ids)) if body.HasField("isr") else replicas,
        body.leader,
        body.leader_epoch,
        body.partition_epoch,
        *(_read_unsettled(body.unsettled) if body.HasField("unsettled") else SETTLED),
    )
    return PartitionRecord(_uuid(body.topic_id), body.partition, state)


def _read_unsettled(message: pb.UnsettledRecord) -> Unsettled:
    return (
        _interned(tuple(message.elr)),
        _interned(tuple(message.last_known_elr)),
        _interned(tuple(message.adding)),
        _interned(tuple(message.removing)),
        _member(Recovery, message.recovery),
    )


def _read_partition_change(message: pb.MetadataRecord) -> PartitionChange:
    body = message.partition_change

    def ids(name: str) -> tuple[int, ...] | None:
        return _interned(tuple(getattr(body, name).ids)) if body.HasField(name) else None

    return PartitionChange(
        topic_id=_uuid(body.topic_id),
        partition=body.partition,
        leader=body.leader if body.HasField("leader") else None,
        isr=ids("isr"),
        replicas=ids("replicas"),
        adding=ids("adding"),
        removing=ids("removing"),
        elr=ids("elr"),
        last_known_elr=ids("last_known_elr"),
        recovery=_member(Recovery, body.recovery) if body.HasField("recovery") else None,
    )


def _read_topic(message: pb.MetadataRecord) -> TopicRecord:
    return TopicRecord(message.topic.name, _uuid(message.topic.topic_id))


def _read_remove_topic(message: pb.MetadataRecord) -> RemoveTopic:
    return RemoveTopic(_uuid(message.remove_topic.topic_id))


def _read_register_broker(message: pb.MetadataRecord) -> RegisterBroker:
    body = message.register_broker
    cause = _member(FenceCause, body.fence_cause) if body.HasField("fence_cause") else None
    broker = Broker(
        id=body.broker_id,
        incarnation_id=_uuid(body.incarnation_id),
        epoch=body.broker_epoch,
        listeners=tuple(Listener(each.name, each.host, each.port) for each in body.listeners),
        log_dirs=tuple(map(_uuid, body.log_dirs)),
        features=tuple(
            FeatureRange(each.name, each.min_level, each.max_level) for each in body.features
        ),
        rack=body.rack if body.HasField("rack") else None,
        fence_cause=cause,
        in_controlled_shutdown=body.in_controlled_shutdown,
        fenced_at=body.fenced_at if body.HasField("fenced_at") else UNKNOWN_OFFSET,
    )
    return RegisterBroker(broker)


def _read_broker_change(message: pb.MetadataRecord) -> BrokerChange:
    body = message.broker_change
    cause = _member(FenceCause, body.fence_cause) if body.HasField("fence_cause") else None
    stops = body.in_controlled_shutdown if body.HasField("in_controlled_shutdown") else None
    return BrokerChange(
        broker_id=body.broker_id,
        broker_epoch=body.broker_epoch,
        fenced=body.fenced if body.HasField("fenced") else None,
        fence_cause=cause,
        in_controlled_shutdown=stops,
    )


def _read_unregister_broker(message: pb.MetadataRecord) -> UnregisterBroker:
    body = message.unregister_broker
    return UnregisterBroker(body.broker_id, body.broker_epoch)


def _read_config(message: pb.MetadataRecord) -> ConfigRecord:
    body = message.config
    resource = Resource(_member(ResourceType, body.resource_type), body.resource_name)
    return ConfigRecord(resource, body.name, body.value if body.HasField("value") else None)


def _read_feature_level(message: pb.MetadataRecord) -> FeatureLevel:
    return FeatureLevel(message.feature_level.name, message.feature_level.level)


def _read_producer_ids(message: pb.MetadataRecord) -> ProducerIds:
    body = message.producer_ids
    return ProducerIds(body.broker_id, body.broker_epoch, body.next_producer_id)


def _read_request_done(message: pb.MetadataRecord) -> RequestDone:
    body = message.request_done
    return RequestDone(body.client_id, body.request_id, body.result)


def _read_no_op(_message: pb.MetadataRecord) -> NoOp:
    return NoOp()


_READERS: dict[str, Callable[[pb.MetadataRecord], Record]] = {
    "partition": _read_partition,
    "partition_change": _read_partition_change,
    "topic": _read_topic,
    "remove_topic": _read_remove_topic,
    "register_broker": _read_register_broker,
    "broker_change": _read_broker_change,
    "unregister_broker": _read_unregister_broker,
    "config": _read_config,
    "feature_level": _read_feature_level,
    "producer_ids": _read_producer_ids,
    "request_done": _read_request_done,
    "no_op": _read_no_op,
}
