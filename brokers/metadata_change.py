"""What a change of the metadata means for one broker.

Several deltas may come while an earlier one is being applied. They are gathered here and handed on
as one: the data plane wants the newest state and which partitions it differs in, not every step.
"""

import asyncio
from collections.abc import Iterator

from brokers.cluster import Assignment, ClusterChange, PartitionId
from brokers.metadata_view import assignment_of
from kraftlog.types import Uuid
from metadata_log.delta import Delta
from metadata_log.image import Image, Role, Topic
from metadata_log.places import bits
from metadata_log.records import Resource, ResourceType

SLICE_PARTITIONS = 1_000


class Gathered:
    """Everything that was touched since the last change was handed on."""

    def __init__(self) -> None:
        self.topics: dict[Uuid, set[int]] = {}
        self.removed_topics: dict[Uuid, Topic] = {}
        self.brokers: set[int] = set()
        self.configs: set[Resource] = set()
        self.has_news = False
        """Something was committed, though perhaps nothing that anybody acts on."""

    def add(self, delta: Delta) -> None:
        self.has_news = True
        for topic_id, partitions in delta.topics.items():
            self.topics.setdefault(topic_id, set()).update(partitions)
        for topic_id, topic in delta.removed_topics.items():
            self.topics.pop(topic_id, None)
            self.removed_topics[topic_id] = topic
        self.brokers |= delta.brokers | delta.removed_brokers
        self.configs |= delta.configs


async def cluster_change(
    gathered: Gathered, before: Image, after: Image, broker_id: int
) -> ClusterChange:
    """What differs for this broker between two images, as far as it was touched."""
    removed = [
        PartitionId(topic_id.raw, partition)
        for topic_id in gathered.removed_topics
        for partition in bits(before.places(Role.REPLICA, broker_id).mask(topic_id))
    ]
    changed: list[Assignment] = []
    for number, (topic_id, partition) in enumerate(_touched(gathered), start=1):
        place = PartitionId(topic_id.raw, partition)
        topic = after.topics.get(topic_id)
        state = None if topic is None else topic.partitions[partition]
        if topic is not None and state is not None and broker_id in state.replicas:
            changed.append(assignment_of(place, topic.name, state))
        elif _had(before, topic_id, partition, broker_id):
            removed.append(place)
        if number % SLICE_PARTITIONS == 0:
            await asyncio.sleep(0)
    return ClusterChange(removed, changed, gathered.brokers, _configured(gathered, after))


def _touched(gathered: Gathered) -> Iterator[tuple[Uuid, int]]:
    for topic_id, partitions in gathered.topics.items():
        for partition in sorted(partitions):
            yield topic_id, partition


def _had(image: Image, topic_id: Uuid, partition: int, broker_id: int) -> bool:
    state = image.partition(topic_id, partition)
    return state is not None and broker_id in state.replicas


def _configured(gathered: Gathered, after: Image) -> set[str]:
    """Topics whose settings may differ; with a default of brokers that is every topic."""
    if any(each.type is ResourceType.BROKER for each in gathered.configs):
        return {topic.name for topic in after.topics.values()}
    return {each.name for each in gathered.configs if each.type is ResourceType.TOPIC}
