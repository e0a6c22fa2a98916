"""What a client knows of the cluster: who leads which partition, and where everybody listens.

Every broker tells; some tell old news. A partition's leader epoch only grows, and so does the
offset of the metadata log from which a broker speaks: what is older than what we know is left out.
A leader that an error names is taken over at once, without asking for metadata again.

Topics are immutable and replaced as a whole, so that other threads read without a lock. Only the
thread of the loop changes the view.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kraftlog.errors import KraftError, LeaderNotAvailable, UnknownTopicOrPartition
from kraftlog.types import TopicPartition

NO_LEADER = -1

Leadership = tuple[int, int]
"""Who leads a partition, and in which epoch."""
NO_LEADERSHIP: Leadership = (NO_LEADER, -1)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker or controller, and where it listens."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PartitionView:
    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: bytes
    partitions: tuple[PartitionView, ...]
    """Partition n is at place n."""

    @property
    def available(self) -> tuple[int, ...]:
        """The partitions that have a leader."""
        return tuple(p.partition for p in self.partitions if p.leader_id != NO_LEADER)


@dataclass(frozen=True, slots=True)
class Hint:
    """Who leads a partition, as an error says."""

    leader_epoch: int
    leader: Node | None


@dataclass(frozen=True, slots=True)
class Metadata:
    """One broker's answer. `refused` are the topics that it would not describe; where it is
    complete, what it does not name does not exist.
    """

    offset: int
    cluster_id: bytes = b""
    brokers: tuple[Node, ...] = ()
    controllers: tuple[Node, ...] = ()
    controller_id: int | None = None
    topics: tuple[TopicView, ...] = ()
    refused: Mapping[str, KraftError] = field(default_factory=dict)
    is_complete: bool = False


class ClusterView:
    def __init__(self) -> None:
        self.cluster_id = b""
        self.offset = -1
        self.brokers: Mapping[int, Node] = {}
        self.controllers: Mapping[int, Node] = {}
        self.controller_id: int | None = None
        self.topics: dict[str, TopicView] = {}
        self.refused: dict[str, KraftError] = {}
        self._names: dict[bytes, str] = {}

    # -- looking

    def topic(self, name: str) -> TopicView:
        """A topic, or why it is not there."""
        found = self.topics.get(name)
        if found is not None:
            return found
        refused = self.refused.get(name)
        raise refused if refused is not None else _unknown(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def partition(self, place: TopicPartition) -> PartitionView:
        partitions = self.topic(place.topic).partitions
        if not 0 <= place.partition < len(partitions):
            raise _unknown(f"{place} (the topic has {len(partitions)} partitions)")
        return partitions[place.partition]

    def leader(self, place: TopicPartition) -> tuple[Node, int]:
        """Who leads a partition and in which epoch, or LeaderNotAvailable."""
        known = self.partition(place)
        node = self.brokers.get(known.leader_id)
        if node is None:
            raise LeaderNotAvailable(
                f"{place} has no leader that is up (epoch {known.leader_epoch})",
                hint="one of its in-sync replicas has to come back",
            )
        return node, known.leader_epoch

    def leadership(self, topic: str, partition: int) -> Leadership:
        """The leader where one is known, else NO_LEADER, and the epoch; for the hot path, so it
        never raises.
        """
        found = self.topics.get(topic)
        if found is None or partition >= len(found.partitions):
            return NO_LEADERSHIP
        known = found.partitions[partition]
        is_up = known.leader_id in self.brokers
        return known.leader_id if is_up else NO_LEADER, known.leader_epoch

    def leader_id(self, topic: str, partition: int) -> int:
        return self.leadership(topic, partition)[0]

    def has_moved(self, topic: str, partition: int, before: Leadership) -> bool:
        """Whether another leader is known by now, or the same one in a later epoch."""
        now = self.leadership(topic, partition)
        return now[0] != NO_LEADER and now != before

    # -- learning

    def learn(self, metadata: Metadata) -> None:
        """Take over what is not older than what is known."""
        is_newest = metadata.offset >= self.offset
        if is_newest:
            self.offset = metadata.offset
            self.cluster_id = metadata.cluster_id or self.cluster_id
            self.brokers = {node.node_id: node for node in metadata.brokers}
            self.controllers = {node.node_id: node for node in metadata.controllers}
            self.controller_id = metadata.controller_id
            if metadata.is_complete:
                named = {topic.name for topic in metadata.topics}
                self._forget({name: _unknown(name) for name in self.topics.keys() - named})
            self._forget(metadata.refused)
        for topic in metadata.topics:
            self._learn_topic(topic, is_newest=is_newest)

    def _forget(self, refused: Mapping[str, KraftError]) -> None:
        for name, error in refused.items():
            self.refused[name] = error
            gone = self.topics.pop(name, None)
            if gone is not None:
                self._names.pop(gone.topic_id, None)

    def _learn_topic(self, told: TopicView, *, is_newest: bool) -> None:
        known = self.topics.get(told.name)
        if known is not None and known.topic_id == told.topic_id:
            told = _newer(known, told)
        elif known is not None and not is_newest:
            return  # a topic of this name that was deleted since
        elif known is not None:
            self._names.pop(known.topic_id, None)
        self.topics[told.name] = told
        self._names[told.topic_id] = told.name
        self.refused.pop(told.name, None)

    def learn_leader(self, place: TopicPartition, hint: Hint) -> bool:
        """Take over what an error said; whether that was news with which to try again."""
        topic = self.topics.get(place.topic)
        if topic is None or place.partition >= len(topic.partitions) or hint.leader is None:
            return False
        known = topic.partitions[place.partition]
        is_new = hint.leader_epoch > known.leader_epoch or (
            hint.leader_epoch == known.leader_epoch and known.leader_id != hint.leader.node_id
        )
        if not is_new:
            return False
        node = hint.leader
        self.brokers = {**self.brokers, node.node_id: node}
        moved = replace(known, leader_id=node.node_id, leader_epoch=hint.leader_epoch)
        partitions = [*topic.partitions]
        partitions[place.partition] = moved
        self.topics[place.topic] = replace(topic, partitions=tuple(partitions))
        return True

    def learn_controller(self, node: Node) -> None:
        self.controllers = {**self.controllers, node.node_id: node}
        self.controller_id = node.node_id


def _newer(known: TopicView, told: TopicView) -> TopicView:
    """Of each partition whichever has the higher leader epoch; partitions never become fewer."""
    partitions = tuple(
        _newer_partition(known.partitions, partition) for partition in told.partitions
    )
    return replace(told, partitions=partitions + known.partitions[len(partitions) :])


def _newer_partition(known: Sequence[PartitionView], told: PartitionView) -> PartitionView:
    before = known[told.partition] if told.partition < len(known) else told
    return before if before.leader_epoch > told.leader_epoch else told


def _unknown(what: str) -> UnknownTopicOrPartition:
    return UnknownTopicOrPartition(
        f"no topic or partition {what}", hint="create it, or look for a misspelt name"
    )
