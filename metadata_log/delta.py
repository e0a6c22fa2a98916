"""What changed between two images, for those who act on changes.

A broker applies committed records with `advance`: the delta then costs as much as the change. When
it has loaded a snapshot instead, `diff` compares: what is not in the new image is removed, though
no record said so (KAFKA-14894).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kraftlog.types import Uuid
from metadata_log.image import Image, Topic
from metadata_log.maps import differ
from metadata_log.records import Record, Resource, ResourceType
from metadata_log.replay import Draft


@dataclass(frozen=True, slots=True)
class Delta:
    """The way from one image to another."""

    before: Image
    after: Image
    topics: Mapping[Uuid, frozenset[int]]
    """Topics that are new or changed, and their partitions that are new or changed."""
    removed_topics: Mapping[Uuid, Topic]
    """As they were."""
    brokers: frozenset[int]
    """Registered anew, or changed."""
    removed_brokers: frozenset[int]
    configs: frozenset[Resource]
    """Of which something changed, removals included; of brokers also what was said again."""
    features_changed: bool

    @property
    def is_empty(self) -> bool:
        """Nothing that anybody acts on has changed, though the offset may have."""
        topics = self.topics or self.removed_topics
        brokers = self.brokers or self.removed_brokers
        return not (topics or brokers or self.configs or self.features_changed)


def advance(image: Image, records: Iterable[Record], base_offset: int) -> tuple[Image, Delta]:
    """Replay records, and tell what they changed."""
    draft = Draft(image)
    for offset, record in enumerate(records, base_offset):
        draft.apply(record, offset)
    after = draft.finish()
    known = draft.touched_brokers
    delta = Delta(
        image,
        after,
        {topic_id: frozenset(topic.changed) for topic_id, topic in draft.topics.items()},
        {
            topic_id: image.topics[topic_id]
            for topic_id in draft.removed
            if topic_id in image.topics
        },
        frozenset(each for each in known if _differs(image, after, each)),
        frozenset(each for each in known if each not in after.brokers and each in image.brokers),
        frozenset(each for each in draft.touched_configs if _told(image, after, each)),
        differ(image.features, after.features),
    )
    return after, delta


def diff(before: Image, after: Image) -> Delta:
    """Compare two images, whatever their histories. What they share is skipped."""
    topics: dict[Uuid, frozenset[int]] = {}
    for topic_id, topic in after.topics.items():
        known = before.topics.get(topic_id)
        if known is None:
            topics[topic_id] = frozenset(range(len(topic.partitions)))
        elif known is not topic:
            changed = frozenset(topic.partitions.differing(known.partitions))
            topics |= {topic_id: changed} if changed else {}
    removed = {
        topic_id: topic for topic_id, topic in before.topics.items() if topic_id not in after.topics
    }
    resources = {*before.configs, *after.configs}
    return Delta(
        before,
        after,
        topics,
        removed,
        frozenset(each for each in after.brokers if _differs(before, after, each)),
        frozenset(each for each in before.brokers if each not in after.brokers),
        frozenset(each for each in resources if differ(before.config(each), after.config(each))),
        differ(before.features, after.features),
    )


def _told(before: Image, after: Image, resource: Resource) -> bool:
    """A broker that is told what it knows is to read again what the value names: a file, say."""
    again = resource.type is ResourceType.BROKER
    return again or differ(before.config(resource), after.config(resource))


def _differs(before: Image, after: Image, broker_id: int) -> bool:
    new = after.brokers.get(broker_id)
    return new is not None and new != before.brokers.get(broker_id)
