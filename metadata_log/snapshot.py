"""An image as records: what a snapshot contains, and what two nodes compare.

`load(write_records(image), image.end_offset)` is the image again, for every image there can be.
Records come in an order of their own (brokers, topics by id, ...), so that the same image is
always the same records, whatever history made it.
"""

import hashlib
from collections.abc import Iterator

from metadata_log.codec import encode
from metadata_log.image import Image, Topic
from metadata_log.records import (
    Cause,
    CausedRecord,
    CauseKind,
    ConfigRecord,
    FeatureLevel,
    PartitionRecord,
    ProducerIds,
    Record,
    RegisterBroker,
    Resource,
    TopicRecord,
)

SNAPSHOT_CAUSE = Cause(CauseKind.SNAPSHOT)


def write_records(image: Image) -> Iterator[Record]:
    """The records that make this image. An image is immutable, so they may be drawn slowly."""
    for feature in sorted(image.features):
        yield FeatureLevel(feature, image.features[feature])
    for broker in image.sorted_brokers():
        yield RegisterBroker(broker)
    for topic in image.sorted_topics():
        yield from _topic_records(topic)
    for resource in sorted(image.configs):
        yield from _config_records(image, resource)
    if image.next_producer_id:
        yield ProducerIds(-1, -1, image.next_producer_id)
    yield from image.requests


def write_values(image: Image) -> Iterator[bytes]:
    """The same as the values of a snapshot file."""
    for record in write_records(image):
        yield encode(CausedRecord(record, SNAPSHOT_CAUSE))


def digest(image: Image) -> str:
    """Equal for equal images, on every node; the offset they are at is not part of it."""
    state = hashlib.sha256()
    for value in write_values(image):
        state.update(len(value).to_bytes(4, "big"))
        state.update(value)
    return state.hexdigest()


def _topic_records(topic: Topic) -> Iterator[Record]:
    yield TopicRecord(topic.name, topic.id)
    for partition, state in enumerate(topic.partitions):
        yield PartitionRecord(topic.id, partition, state)


def _config_records(image: Image, resource: Resource) -> Iterator[Record]:
    config = image.configs[resource]
    for name in sorted(config):
        yield ConfigRecord(resource, name, config[name])
