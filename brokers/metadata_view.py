"""An image of the metadata, as the data plane and the service look at it."""

from brokers.cluster import Assignment, BrokerInfo, PartitionId
from brokers.settings import TopicSettings
from brokers.topic_settings import SettingsBook
from kraftlog.types import UUID_BYTES, Uuid
from metadata_log.image import Image
from metadata_log.records import Broker, PartitionState, Recovery


class ImageView:
    """Immutable, like the image: `brokers.cluster.ClusterView` and `brokers.wire.Directory`."""

    def __init__(self, image: Image, book: SettingsBook) -> None:
        self.image = image
        self.book = book
        self._brokers: dict[int, BrokerInfo | None] = {}

    def assignment(self, partition: PartitionId) -> Assignment | None:
        raw = partition.topic_id
        topic = self.image.topics.get(Uuid(raw)) if len(raw) == UUID_BYTES else None
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            return None
        return assignment_of(partition, topic.name, topic.partitions[partition.partition])

    def broker(self, broker_id: int) -> BrokerInfo | None:
        if broker_id not in self._brokers:
            found = self.image.brokers.get(broker_id)
            self._brokers[broker_id] = None if found is None else _broker_info(found)
        return self._brokers[broker_id]

    def topic_settings(self, topic: str) -> TopicSettings:
        return self.book.settings(self.image, topic)

    def topic_id(self, name: str) -> bytes | None:
        topic = self.image.topic(name)
        return None if topic is None else topic.id.raw

    def endpoint(self, broker_id: int) -> str | None:
        found = self.broker(broker_id)
        return None if found is None else found.endpoint or None


def assignment_of(partition: PartitionId, topic: str, state: PartitionState) -> Assignment:
    return Assignment(
        partition,
        topic,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.replicas,
        state.isr,
        state.elr,
        state.adding,
        state.removing,
        state.recovery is Recovery.RECOVERING,
    )


def _broker_info(broker: Broker) -> BrokerInfo:
    return BrokerInfo(
        broker.id,
        broker.epoch,
        broker.is_fenced,
        broker.in_controlled_shutdown,
        broker.rack,
        _endpoint(broker),
    )


def _endpoint(broker: Broker) -> str:
    if not broker.listeners:
        return ""
    first = broker.listeners[0]
    host = f"[{first.host}]" if ":" in first.host else first.host
    return f"{host}:{first.port}"
