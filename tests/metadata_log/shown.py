"""Records and what they change, as text that a person reads."""

from collections.abc import Iterator, Sequence

from kraftlog.types import Uuid
from metadata_log.delta import diff
from metadata_log.image import Image
from metadata_log.records import (
    Broker,
    BrokerChange,
    CausedRecord,
    ConfigRecord,
    FeatureLevel,
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
    TopicRecord,
    UnregisterBroker,
)

CHANGE_FIELDS = (
    "leader",
    "isr",
    "elr",
    "last_known_elr",
    "replicas",
    "adding",
    "removing",
)


def ids(brokers: Sequence[int]) -> str:
    return "[" + " ".join(map(str, brokers)) + "]"


def record_lines(before: Image, after: Image, records: Sequence[CausedRecord]) -> list[str]:
    offset = after.end_offset - len(records)
    names = {topic.id: topic.name for image in (before, after) for topic in image.topics.values()}
    lines = []
    for number, each in enumerate(records, offset):
        lines.append(f"@{number} {_record(each.record, names)}  | {each.cause}")
    return lines


def _record(record: Record, names: dict[Uuid, str]) -> str:  # noqa: C901 - one case per record
    match record:
        case RegisterBroker(broker):
            return f"RegisterBroker {broker.id} epoch={broker.epoch} {broker_text(broker)}"
        case BrokerChange():
            fenced = "" if record.fenced is None else f" fenced={record.fenced}"
            why = f" cause={record.fence_cause.name}" if record.fence_cause else ""
            stops = " in_controlled_shutdown" if record.in_controlled_shutdown else ""
            return f"BrokerChange {record.broker_id}{fenced}{why}{stops}"
        case UnregisterBroker(broker_id):
            return f"UnregisterBroker {broker_id}"
        case TopicRecord(name):
            return f"Topic {name}"
        case PartitionRecord(topic_id, number, state):
            return f"Partition {names[topic_id]}-{number} {state_text(state)}"
        case PartitionChange():
            return f"PartitionChange {names[record.topic_id]}-{record.partition} {_change(record)}"
        case RemoveTopic(topic_id):
            return f"RemoveTopic {names[topic_id]}"
        case ConfigRecord(resource, name, value):
            return f"Config {resource} {name}={'(removed)' if value is None else value}"
        case FeatureLevel(name, level):
            return f"FeatureLevel {name} {level}"
        case ProducerIds(broker_id, _, next_id):
            return f"ProducerIds for {broker_id}, next {next_id}"
        case RequestDone(client, number, result):
            return f"RequestDone {client.decode()} {number} {result.decode()}"
        case NoOp():
            return "NoOp"


def _change(record: PartitionChange) -> str:
    parts = []
    for name in CHANGE_FIELDS:
        value = getattr(record, name)
        if isinstance(value, int):
            parts.append(f"{name}={value}")
        elif value is not None:
            parts.append(f"{name}={ids(value)}")
    if record.recovery is not None:
        parts.append(record.recovery.name)
    return " ".join(parts)


def state_text(state: PartitionState) -> str:
    parts = [f"leader={state.leader} isr={ids(state.isr)}"]
    parts += [f"elr={ids(state.elr)}"] if state.elr else []
    parts += [f"last={ids(state.last_known_elr)}"] if state.last_known_elr else []
    parts += [f"replicas={ids(state.replicas)}"]
    parts += [f"adding={ids(state.adding)}"] if state.adding else []
    parts += [f"removing={ids(state.removing)}"] if state.removing else []
    parts += ["RECOVERING"] if state.recovery is Recovery.RECOVERING else []
    return " ".join([*parts, f"epochs={state.leader_epoch}/{state.partition_epoch}"])


def broker_text(broker: Broker) -> str:
    state = f"fenced ({broker.fence_cause.name})" if broker.fence_cause else "unfenced"
    rack = f" rack={broker.rack}" if broker.rack else ""
    return state + (" shutting down" if broker.in_controlled_shutdown else "") + rack


def image_lines(before: Image, after: Image) -> Iterator[str]:
    """What is different now."""
    delta = diff(before, after)
    for broker_id in sorted(delta.brokers):
        yield f"  broker {broker_id}: {broker_text(after.brokers[broker_id])}"
    for broker_id in sorted(delta.removed_brokers):
        yield f"  broker {broker_id}: gone"
    for topic in delta.removed_topics.values():
        yield f"  {topic.name}: gone"
    for topic_id in sorted(delta.topics):
        topic = after.topics[topic_id]
        for number in sorted(delta.topics[topic_id]):
            yield f"  {topic.name}-{number}: {state_text(topic.partitions[number])}"
    for resource in sorted(delta.configs):
        values = ", ".join(f"{k}={v}" for k, v in sorted(after.config(resource).items()))
        yield f"  {resource}: {values or 'nothing set'}"
    if delta.features_changed:
        yield f"  features: {', '.join(f'{k}={v}' for k, v in sorted(after.features.items()))}"
