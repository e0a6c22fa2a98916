"""The fold: image and record to image. Nothing else makes an image.

Controllers and brokers run the same function on the same records, so that at one offset their
images are the same (M5). A committed record that cannot be applied means that the log and this
program do not agree: `UnappliableRecord`, on which a controller ends and a broker complains. The
image that was there is untouched by it.

`replay` applies one record; `replay_all` many, as one step. Both go through a `Draft`, which
collects the changes of a step in ordinary dicts and makes one new image of them at the end.
"""

from __future__ import annotations  # rpds' maps are generic for type checkers only

from collections.abc import Generator, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from rpds import HashTrieMap

from kraftlog._check import invariant
from kraftlog.errors import StorageError
from kraftlog.types import Uuid
from metadata_log.image import CLUSTER, EMPTY, NO_CONFIG, Image, Role, Topic, fold, index_key
from metadata_log.maps import with_changes
from metadata_log.places import NO_PLACES, Places
from metadata_log.records import (
    METADATA_VERSION,
    NO_LEADER,
    UNKNOWN_OFFSET,
    Broker,
    BrokerChange,
    ConfigRecord,
    FeatureLevel,
    NoOp,
    PartitionChange,
    PartitionRecord,
    PartitionState,
    ProducerIds,
    Record,
    RegisterBroker,
    RemoveTopic,
    RequestDone,
    Resource,
    ResourceType,
    TopicRecord,
    UnregisterBroker,
)
from metadata_log.vector import Vector

INDEX_KEYS_CACHED = 1 << 16
RECORDS_AT_ONCE = 512
"""What is loaded in one go: a few milliseconds on the loop."""


class UnappliableRecord(StorageError):
    """A committed metadata record that does not fit the state it was committed to."""


def replay(image: Image, record: Record, offset: int) -> Image:
    """The image after this record, which stands at this offset of the log."""
    draft = Draft(image)
    draft.apply(record, offset)
    return draft.finish()


def replay_all(image: Image, records: Iterable[Record], base_offset: int) -> Image:
    """The image after all of these records, the first of which stands at `base_offset`."""
    draft = Draft(image)
    for offset, record in enumerate(records, base_offset):
        draft.apply(record, offset)
    return draft.finish()


def load(records: Iterable[Record], end_offset: int) -> Image:
    """The image that a snapshot stands for: its records, and the end of the log it replaces."""
    return replace(replay_all(EMPTY, records, 0), end_offset=end_offset)


def load_by_pieces(records: Iterable[Record], end_offset: int) -> Generator[None, None, Image]:
    """The same, returned after many turns: between two of them the loop does other work."""
    image, offset, rest = EMPTY, 0, iter(records)
    while piece := tuple(islice(rest, RECORDS_AT_ONCE)):
        image = replay_all(image, piece, offset)
        offset += len(piece)
        yield
    return replace(image, end_offset=end_offset)


class _TopicDraft:
    """A topic on its way: the partitions that differ from those in the image."""

    __slots__ = ("changed", "count", "marks", "name", "partitions")

    def __init__(self, name: str, partitions: Vector[PartitionState]) -> None:
        self.name = name
        self.partitions = partitions
        self.changed: dict[int, PartitionState] = {}
        self.count = len(partitions)
        self.marks: dict[frozenset[int], int] = {}
        """Sets of index keys, and the partitions that go into or out of those indexes. What goes
        out and in again cancels out."""

    def get(self, partition: int) -> PartitionState | None:
        state = self.changed.get(partition)
        if state is None and 0 <= partition < len(self.partitions):
            state = self.partitions[partition]
        return state

    def add(self, partition: int, new: PartitionState) -> None:
        self.changed[partition] = new
        self.count += 1
        self._mark(1 << partition, new)

    def change(self, partition: int, old: PartitionState, new: PartitionState) -> None:
        self.changed[partition] = new
        self._mark(1 << partition, old)
        self._mark(1 << partition, new)

    def clear(self) -> None:
        """Take every partition out of the indexes."""
        for partition in range(self.count):
            old = self.get(partition)
            invariant(old is not None, "a gap between partitions", topic=self.name)
            if old is not None:
                self._mark(1 << partition, old)

    def _mark(self, bit: int, state: PartitionState) -> None:
        moving = bool(state.adding or state.removing)
        keys = index_keys(state.replicas, state.isr, state.leader, state.elr, moving)
        self.marks[keys] = self.marks.get(keys, 0) ^ bit


@lru_cache(INDEX_KEYS_CACHED)
def index_keys(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int,
    elr: tuple[int, ...],
    moving: bool,
) -> frozenset[int]:
    """The indexes of the image that such a partition is in."""
    keys = [index_key(Role.REPLICA, broker) for broker in replicas]
    keys += [index_key(Role.ISR, broker) for broker in isr]
    keys += [index_key(Role.ELR, broker) for broker in elr]
    if leader == NO_LEADER:
        keys.append(index_key(Role.LEADERLESS, CLUSTER))
    else:
        keys.append(index_key(Role.LEADER, leader))
        if leader != replicas[0]:
            keys.append(index_key(Role.DISPLACED, CLUSTER))
    if moving:
        keys.append(index_key(Role.REASSIGNING, CLUSTER))
    return frozenset(keys)


class Draft:
    """The changes of one step. What has not changed is looked up in the image it began from."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.end_offset = image.end_offset
        self.brokers = image.brokers
        self.configs = image.configs
        self.features = image.features
        self.next_producer_id = image.next_producer_id
        self.requests = image.requests
        self.topics: dict[Uuid, _TopicDraft] = {}
        self.removed: dict[Uuid, _TopicDraft] = {}
        self.names: dict[str, Uuid | None] = {}
        self.touched_brokers: set[int] = set()
        self.touched_configs: set[Resource] = set()

    def apply(self, record: Record, offset: int) -> None:  # noqa: C901, PLR0912 - a case each
        if offset < self.end_offset:
            raise UnappliableRecord(f"offset {offset} comes after {self.end_offset - 1}")
        match record:
            case PartitionRecord():
                self._add_partition(record, offset)
            case PartitionChange():
                self._change_partition(record, offset)
            case TopicRecord():
                self._add_topic(record, offset)
            case RemoveTopic():
                self._remove_topic(record, offset)
            case RegisterBroker():
                self._register(record.broker, offset)
            case BrokerChange():
                self._change_broker(record, offset)
            case UnregisterBroker():
                self._registered(record.broker_id, record.broker_epoch, offset)
                self.brokers = self.brokers.remove(record.broker_id)
                self.touched_brokers.add(record.broker_id)
            case ConfigRecord():
                self._configure(record)
            case FeatureLevel():
                self._finalize(record, offset)
            case ProducerIds():
                self._allocate(record, offset)
            case RequestDone():
                self.requests = self.requests.remembered(record)
            case NoOp():
                pass
        self.end_offset = offset + 1

    def finish(self) -> Image:
        """The new image."""
        topics, count = self.image.topics, self.image.partition_count
        for topic_id, removed in self.removed.items():
            topics = topics.discard(topic_id)
            count -= len(removed.partitions)
        for topic_id, draft in self.topics.items():
            partitions = draft.partitions.changed(draft.changed)
            topics = topics.insert(topic_id, Topic(draft.name, topic_id, partitions))
            count += len(partitions) - len(draft.partitions)
        return Image(
            end_offset=self.end_offset,
            brokers=self.brokers,
            topics=topics,
            configs=self.configs,
            features=self.features,
            next_producer_id=self.next_producer_id,
            requests=self.requests,
            ids_by_name=with_changes(self.image.ids_by_name, self.names),
            index=self._new_index(),
            partition_count=count,
        )

    def _new_index(self) -> HashTrieMap[int, Places]:
        changes: dict[int, dict[Uuid, int]] = {}
        for drafts in (self.removed, self.topics):
            for topic_id, draft in drafts.items():
                _spread(draft.marks, topic_id, changes)
        index = self.image.index
        for key, of_index in changes.items():
            places = index.get(key, NO_PLACES).toggled(of_index)
            index = index.insert(key, places) if places else index.discard(key)
        return index

    # -- topics and partitions

    def _topic(self, topic_id: Uuid, record: Record, offset: int) -> _TopicDraft:
        draft = self.topics.get(topic_id)
        if draft is None:
            topic = self.image.topics.get(topic_id) if topic_id not in self.removed else None
            if topic is None:
                raise _unappliable(record, offset, "there is no such topic")
            draft = self.topics[topic_id] = _TopicDraft(topic.name, topic.partitions)
        return draft

    def _add_topic(self, record: TopicRecord, offset: int) -> None:
        folded = fold(record.name)
        taken = self.names[folded] if folded in self.names else self.image.ids_by_name.get(folded)
        if taken is not None:
            raise _unappliable(record, offset, f"its name is that of topic {taken}, or collides")
        known = record.topic_id in self.image.topics and record.topic_id not in self.removed
        if known or record.topic_id in self.topics:
            raise _unappliable(record, offset, "its id is taken")
        self.names[folded] = record.topic_id
        self.topics[record.topic_id] = _TopicDraft(record.name, Vector())

    def _remove_topic(self, record: RemoveTopic, offset: int) -> None:
        draft = self._topic(record.topic_id, record, offset)
        draft.clear()
        del self.topics[record.topic_id]
        self.removed[record.topic_id] = draft
        self.names[fold(draft.name)] = None
        resource = Resource(ResourceType.TOPIC, draft.name)
        if resource in self.configs:
            self.configs = self.configs.discard(resource)
            self.touched_configs.add(resource)

    def _add_partition(self, record: PartitionRecord, offset: int) -> None:
        topic = self._topic(record.topic_id, record, offset)
        if record.partition != topic.count:
            raise _unappliable(record, offset, f"the next partition is {topic.count}")
        if not record.state.replicas:
            raise _unappliable(record, offset, "it has no replicas")
        topic.add(record.partition, record.state)

    def _change_partition(self, record: PartitionChange, offset: int) -> None:
        topic = self._topic(record.topic_id, record, offset)
        old = topic.get(record.partition)
        if old is None:
            raise _unappliable(record, offset, "there is no such partition")
        topic.change(record.partition, old, merge(old, record))

    # -- brokers

    def _registered(self, broker_id: int, epoch: int, offset: int) -> Broker:
        broker = self.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            known = "not registered" if broker is None else f"registered with epoch {broker.epoch}"
            raise UnappliableRecord(
                f"the record at offset {offset} is about broker {broker_id} with epoch {epoch},"
                f" which is {known}"
            )
        return broker

    def _register(self, broker: Broker, offset: int) -> None:
        before = self.brokers.get(broker.id)
        if before is not None and before.incarnation_id != broker.incarnation_id:
            rises = broker.epoch > before.epoch
        else:
            rises = before is None or broker.epoch == before.epoch
        if not rises:
            raise _unappliable(RegisterBroker(broker), offset, "its epoch does not rise (M6)")
        if broker.fenced_at == UNKNOWN_OFFSET:
            broker = replace(broker, fenced_at=offset)
        self.brokers = self.brokers.insert(broker.id, broker)
        self.touched_brokers.add(broker.id)

    def _change_broker(self, record: BrokerChange, offset: int) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch, offset)
        if record.fenced is not None and record.fenced != (record.fence_cause is not None):
            raise _unappliable(record, offset, "fenced has a cause, unfenced has none")
        if record.fenced is not None:
            fenced_at = offset if record.fenced else broker.fenced_at
            broker = replace(broker, fence_cause=record.fence_cause, fenced_at=fenced_at)
        if record.in_controlled_shutdown is not None:
            broker = replace(broker, in_controlled_shutdown=record.in_controlled_shutdown)
        self.brokers = self.brokers.insert(broker.id, broker)
        self.touched_brokers.add(broker.id)

    # -- the rest

    def _configure(self, record: ConfigRecord) -> None:
        self.touched_configs.add(record.resource)
        config = self.configs.get(record.resource, NO_CONFIG)
        if record.value is None:
            config = config.discard(record.name)
        else:
            config = config.insert(record.name, record.value)
        if config:
            self.configs = self.configs.insert(record.resource, config)
        else:
            self.configs = self.configs.discard(record.resource)

    def _finalize(self, record: FeatureLevel, offset: int) -> None:
        if record.level < 0 or (record.level == 0 and record.name == METADATA_VERSION):
            raise _unappliable(record, offset, "a feature has no such level")
        if record.level == 0:
            self.features = self.features.discard(record.name)
        else:
            self.features = self.features.insert(record.name, record.level)

    def _allocate(self, record: ProducerIds, offset: int) -> None:
        if record.next_producer_id <= self.next_producer_id:
            raise _unappliable(record, offset, f"ids below {self.next_producer_id} are taken")
        self.next_producer_id = record.next_producer_id


def _spread(
    marks: dict[frozenset[int], int], topic_id: Uuid, changes: dict[int, dict[Uuid, int]]
) -> None:
    """From "these partitions in all those indexes" to "in this index these partitions"."""
    toggles: dict[int, int] = {}
    for keys, mask in marks.items():
        for key in keys:
            toggles[key] = toggles.get(key, 0) ^ mask
    for key, mask in toggles.items():
        if mask:
            of_index = changes.setdefault(key, {})
            of_index[topic_id] = of_index.get(topic_id, 0) ^ mask


def merge(old: PartitionState, change: PartitionChange) -> PartitionState:
    """A partition after a change, by Kafka's rule for the two epochs."""
    return PartitionState(
        replicas=old.replicas if change.replicas is None else change.replicas,
        isr=old.isr if change.isr is None else change.isr,
        leader=old.leader if change.leader is None else change.leader,
        leader_epoch=old.leader_epoch + (change.leader is not None),
        partition_epoch=old.partition_epoch + 1,
        elr=old.elr if change.elr is None else change.elr,
        last_known_elr=(
            old.last_known_elr if change.last_known_elr is None else change.last_known_elr
        ),
        adding=old.adding if change.adding is None else change.adding,
        removing=old.removing if change.removing is None else change.removing,
        recovery=old.recovery if change.recovery is None else change.recovery,
    )


def _unappliable(record: Record, offset: int, why: str) -> UnappliableRecord:
    return UnappliableRecord(
        f"the metadata record at offset {offset} cannot be applied: {why}: {record}"
    )
