"""Images of metadata for tests: brokers and topics in a few words."""

from collections.abc import Iterable, Mapping, Sequence

from kraftlog.types import Uuid
from metadata_log.image import EMPTY, Image
from metadata_log.records import (
    Broker,
    BrokerChange,
    ConfigRecord,
    Listener,
    PartitionRecord,
    PartitionState,
    Record,
    RegisterBroker,
    Resource,
    ResourceType,
    TopicRecord,
)
from metadata_log.replay import replay_all


def uuid(name: str) -> Uuid:
    """The id of a topic with this name."""
    return Uuid(name.encode().ljust(16, b".")[:16])


def registered(broker_id: int, *, rack: str | None = None, fenced: bool = False) -> list[Record]:
    broker = Broker(
        id=broker_id,
        incarnation_id=uuid(f"incarnation {broker_id}"),
        epoch=10 * broker_id,
        listeners=(Listener("BROKER", f"host{broker_id}", 9000 + broker_id),),
        log_dirs=(uuid(f"log dir {broker_id}"),),
        rack=rack,
    )
    if fenced:
        return [RegisterBroker(broker)]
    change = BrokerChange(broker_id=broker_id, broker_epoch=10 * broker_id, fenced=False)
    return [RegisterBroker(broker), change]


def topic(name: str, *replicas: Sequence[int]) -> list[Record]:
    """A topic with one partition for each of these lists of replicas, the first of which leads."""
    states = [
        PartitionRecord(uuid(name), number, PartitionState(tuple(ids), tuple(ids), ids[0]))
        for number, ids in enumerate(replicas)
    ]
    return [TopicRecord(name, uuid(name)), *states]


def topic_config(name: str, values: Mapping[str, str]) -> list[Record]:
    resource = Resource(ResourceType.TOPIC, name)
    return [ConfigRecord(resource, key, value) for key, value in values.items()]


def broker_config(values: Mapping[str, str]) -> list[Record]:
    resource = Resource(ResourceType.BROKER, "")
    return [ConfigRecord(resource, key, value) for key, value in values.items()]


def image_of(*parts: Iterable[Record], before: Image = EMPTY) -> Image:
    records = [record for part in parts for record in part]
    return replay_all(before, records, before.end_offset)
