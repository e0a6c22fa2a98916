"""All metadata at one offset: immutable, so that an old one can be kept, compared and gone back to.

An image is made by `replay` and by nothing else. It stands on persistent maps: two images share
everything that did not change between them. Beside the state itself it carries indexes, so that
what concerns one broker is found without looking at all partitions; they are derived, and a
snapshot does not contain them.
"""

from __future__ import annotations  # rpds' maps are generic for type checkers only

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from rpds import HashTrieMap

from kraftlog.types import Uuid
from metadata_log.places import NO_PLACES, Place, Places
from metadata_log.records import Broker, PartitionState, Resource, ResourceType
from metadata_log.requests import NO_REQUESTS, Requests
from metadata_log.vector import Vector

CLUSTER = 0
"""Stands where an index has a broker id; broker ids begin at 1."""


class Role(IntEnum):
    """What an index is about: the partitions in which a broker has this role."""

    REPLICA = 0
    ISR = 1
    ELR = 2
    LEADER = 3
    # Of the whole cluster.
    LEADERLESS = 4
    DISPLACED = 5
    """It has a leader, which is not the preferred one."""
    REASSIGNING = 6


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: Uuid
    partitions: Vector[PartitionState]


@dataclass(frozen=True, slots=True)
class Image:
    """The state after all records below `end_offset`."""

    end_offset: int
    brokers: HashTrieMap[int, Broker]
    topics: HashTrieMap[Uuid, Topic]
    configs: HashTrieMap[Resource, HashTrieMap[str, str]]
    features: HashTrieMap[str, int]
    next_producer_id: int
    requests: Requests
    # Derived.
    ids_by_name: HashTrieMap[str, Uuid]
    """By `fold(name)`: of names that collide there is only one."""
    index: HashTrieMap[int, Places]
    partition_count: int

    def topic(self, name: str) -> Topic | None:
        topic_id = self.ids_by_name.get(fold(name))
        topic = self.topics[topic_id] if topic_id is not None else None
        return topic if topic is not None and topic.name == name else None

    def colliding(self, name: str) -> str | None:
        """The topic whose name differs from this one in nothing but `.` and `_`."""
        topic_id = self.ids_by_name.get(fold(name))
        other = self.topics[topic_id].name if topic_id is not None else name
        return other if other != name else None

    def partition(self, topic_id: Uuid, partition: int) -> PartitionState | None:
        topic = self.topics.get(topic_id)
        if topic is None or not 0 <= partition < len(topic.partitions):
            return None
        return topic.partitions[partition]

    def at(self, place: Place) -> PartitionState:
        """The partition at a place that an index of this image named."""
        return self.topics[place.topic_id].partitions[place.partition]

    def places(self, role: Role, broker_id: int = CLUSTER) -> Places:
        """The partitions in which a broker has a role; without a broker, a role of the cluster."""
        return self.index.get(index_key(role, broker_id), NO_PLACES)

    def brokers_with(self, role: Role) -> list[int]:
        """The brokers that have this role in any partition, registered or not."""
        return sorted(key >> 3 for key in self.index if key & 7 == role)

    def config(self, resource: Resource) -> HashTrieMap[str, str]:
        """What is set for a resource itself."""
        return self.configs.get(resource, NO_CONFIG)

    def topic_config(self, name: str) -> HashTrieMap[str, str]:
        return self.config(Resource(ResourceType.TOPIC, name))

    def is_active(self, broker_id: int) -> bool:
        """Registered, not fenced, not shutting down: fit to be in an ISR and to lead."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def active(self) -> frozenset[int]:
        """All brokers for which `is_active` holds; quicker where many partitions ask."""
        return frozenset(each.id for each in self.brokers.values() if each.is_active)

    def sorted_brokers(self) -> list[Broker]:
        return [self.brokers[broker_id] for broker_id in sorted(self.brokers)]

    def sorted_topics(self) -> Iterator[Topic]:
        """By id; a persistent map has no order of its own."""
        for topic_id in sorted(self.topics, key=_raw):
            yield self.topics[topic_id]


NO_CONFIG: HashTrieMap[str, str] = HashTrieMap()

EMPTY = Image(
    end_offset=0,
    brokers=HashTrieMap(),
    topics=HashTrieMap(),
    configs=HashTrieMap(),
    features=HashTrieMap(),
    next_producer_id=0,
    requests=NO_REQUESTS,
    ids_by_name=HashTrieMap(),
    index=HashTrieMap(),
    partition_count=0,
)


def fold(name: str) -> str:
    """Names that fold to the same text collide: metrics write both `.` and `_` as `_`."""
    return name.replace(".", "_")


def index_key(role: Role, broker_id: int) -> int:
    return broker_id << 3 | role


def _raw(topic_id: Uuid) -> bytes:
    return topic_id.raw
