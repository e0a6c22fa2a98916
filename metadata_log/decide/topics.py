"""Topics are created, deleted, and given more partitions.

Each topic of a request is judged for itself, and one that is refused does not keep the others from
being created. The request as a whole is refused if it is too large to be one batch.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kraftlog import config_keys as keys
from kraftlog.config import Config
from kraftlog.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    KraftError,
    PolicyViolation,
    TopicExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kraftlog.types import Uuid
from metadata_log.config_check import check_topic_config
from metadata_log.decide import (
    RECORDS_PER_REQUEST_MAX,
    Decision,
    Draw,
    Outcome,
    admin_cause,
    caused,
)
from metadata_log.effective import BUILT_IN
from metadata_log.image import Image, Topic, fold
from metadata_log.placement import UsableBroker, place
from metadata_log.records import (
    ConfigRecord,
    PartitionRecord,
    PartitionState,
    Record,
    RemoveTopic,
    Resource,
    ResourceType,
    TopicRecord,
)

TOPIC_NAME_CHARS_MAX = 249
PARTITIONS_PER_REQUEST_MAX = 10_000
SHOWN_CHARS_MAX = 60

_LEGAL = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)

Assignments = tuple[tuple[int, ...], ...]
"""The brokers of each partition, the preferred leader first."""


# -- creating


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    name: str
    partitions: int | None = None
    """None: num.partitions, or as many as there are assignments."""
    replication_factor: int | None = None
    """None: default.replication.factor, or that of the assignments."""
    assignments: Assignments = ()
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopics:
    topics: tuple[NewTopic, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    name: str
    topic_id: Uuid | None
    """None if it was only looked at."""
    partitions: int
    replication_factor: int


def create_topics(
    image: Image,
    request: CreateTopics,
    *,
    draw: Draw,
    static: Config = BUILT_IN,
    by: str = "",
) -> Decision[tuple[Outcome[CreatedTopic], ...]]:
    """Topics with their configs and partitions (R22)."""
    _refuse_repeats([topic.name for topic in request.topics])
    _refuse_too_many(
        len(topic.assignments) or topic.partitions or static[keys.NUM_PARTITIONS]
        for topic in request.topics
    )
    records: list[Record] = []
    outcomes: list[Outcome[CreatedTopic]] = []
    earlier: dict[str, str] = {}
    for topic in request.topics:
        try:
            _check_name(image, topic.name, earlier)
            made = _create(image, topic, draw, static)
        except KraftError as error:
            outcomes.append(Outcome(None, error))
            continue
        earlier[fold(topic.name)] = topic.name
        records += made.records
        topic_id = None if request.validate_only else made.topic_id
        created = CreatedTopic(topic.name, topic_id, made.partitions, made.replication_factor)
        outcomes.append(Outcome(created))
    _refuse_too_large(len(records))
    cause = admin_cause("create topics", by)
    kept = () if request.validate_only else caused(cause, *records)
    return Decision(kept, tuple(outcomes))


@dataclass(frozen=True, slots=True)
class _Made:
    topic_id: Uuid
    records: list[Record]
    partitions: int
    replication_factor: int


def _create(image: Image, topic: NewTopic, draw: Draw, static: Config) -> _Made:
    if topic.configs:
        check_topic_config(topic.configs)
    by_hand = topic.assignments != ()
    replicas = _by_hand(image, topic) if by_hand else _place(image, topic, draw, static)
    topic_id = draw.uuid()
    resource = Resource(ResourceType.TOPIC, topic.name)
    records: list[Record] = [TopicRecord(topic.name, topic_id)]
    records += [ConfigRecord(resource, name, topic.configs[name]) for name in sorted(topic.configs)]
    records += _partitions(image, topic_id, replicas)
    return _Made(topic_id, records, len(replicas), len(replicas[0]))


def _place(image: Image, topic: NewTopic, draw: Draw, static: Config) -> Sequence[tuple[int, ...]]:
    partitions = static[keys.NUM_PARTITIONS] if topic.partitions is None else topic.partitions
    if partitions < 1:
        raise InvalidPartitions(f"a topic cannot have {partitions} partitions")
    replication_factor = topic.replication_factor
    if replication_factor is None:
        replication_factor = static[keys.DEFAULT_REPLICATION_FACTOR]
    return place(_usable(image), partitions, replication_factor, draw)


def _usable(image: Image) -> list[UsableBroker]:
    return [
        UsableBroker(broker.id, broker.rack, broker.is_fenced)
        for broker in image.sorted_brokers()
        if not broker.in_controlled_shutdown
    ]


def _partitions(
    image: Image, topic_id: Uuid, replicas: Iterable[tuple[int, ...]], first: int = 0
) -> Iterator[Record]:
    """New partitions. Only brokers that are there now are in sync (KAFKA-13083)."""
    active = {broker.id for broker in image.brokers.values() if broker.is_active}
    for partition, brokers in enumerate(replicas, first):
        isr = brokers
        if not active.issuperset(brokers):
            isr = tuple(broker for broker in brokers if broker in active)
        yield PartitionRecord(topic_id, partition, PartitionState(brokers, isr, isr[0]))


# -- by hand


def _by_hand(image: Image, topic: NewTopic) -> Sequence[tuple[int, ...]]:
    if topic.replication_factor is not None:
        raise InvalidReplicationFactor(
            f"{topic.name}: either a replication factor or assignments, not both"
        )
    if topic.partitions is not None:
        raise InvalidPartitions(f"{topic.name}: either a number of partitions or assignments")
    check_assignments(image, topic.assignments, len(topic.assignments[0]))
    return topic.assignments


def check_assignments(image: Image, assignments: Assignments, replication_factor: int) -> None:
    """InvalidReplicaAssignment unless partitions can be placed like this."""
    for partition, brokers in enumerate(assignments):
        check_brokers(image, brokers)
        if len(brokers) != replication_factor:
            raise InvalidReplicaAssignment(
                f"assignment {partition} has {len(brokers)} replicas, others {replication_factor}"
            )
        if not any(image.is_active(broker) for broker in brokers):
            raise InvalidReplicaAssignment(
                f"assignment {partition} has no broker that could lead: {_listed(brokers)} are"
                " all fenced or shutting down"
            )


def check_brokers(image: Image, brokers: tuple[int, ...]) -> None:
    """InvalidReplicaAssignment unless these are registered brokers, each once."""
    if not brokers:
        raise InvalidReplicaAssignment("a partition has at least one replica")
    if len(set(brokers)) < len(brokers):
        raise InvalidReplicaAssignment(f"a broker twice: {_listed(brokers)}")
    for broker in brokers:
        if broker not in image.brokers:
            raise InvalidReplicaAssignment(f"broker {broker} is not registered")


# -- more partitions


@dataclass(frozen=True, slots=True)
class NewPartitions:
    topic: str
    count: int
    """The new total."""
    assignments: Assignments = ()
    """Of the new partitions only."""


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    topics: tuple[NewPartitions, ...]
    validate_only: bool = False


def create_partitions(
    image: Image,
    request: CreatePartitions,
    *,
    draw: Draw,
    by: str = "",
) -> Decision[tuple[Outcome[int], ...]]:
    """More partitions, with as many replicas as those that are there. The value is the total."""
    _refuse_repeats([topic.topic for topic in request.topics])
    _refuse_too_many(_growth(image, topic) for topic in request.topics)
    records: list[Record] = []
    outcomes: list[Outcome[int]] = []
    for wanted in request.topics:
        try:
            records += _grow(image, wanted, draw)
        except KraftError as error:
            outcomes.append(Outcome(None, error))
            continue
        outcomes.append(Outcome(wanted.count))
    _refuse_too_large(len(records))
    cause = admin_cause("create partitions", by)
    kept = () if request.validate_only else caused(cause, *records)
    return Decision(kept, tuple(outcomes))


def _growth(image: Image, wanted: NewPartitions) -> int:
    topic = image.topic(wanted.topic)
    return wanted.count - len(topic.partitions) if topic is not None else 0


def _grow(image: Image, wanted: NewPartitions, draw: Draw) -> Iterator[Record]:
    topic = named_topic(image, wanted.topic)
    present = len(topic.partitions)
    if wanted.count <= present:
        raise InvalidPartitions(
            f"{wanted.topic} has {present} partitions already", hint="their number only grows"
        )
    first = topic.partitions[0]
    replication_factor = len(first.replicas) - len(first.removing)
    added = wanted.count - present
    if not wanted.assignments:
        replicas = place(_usable(image), added, replication_factor, draw)
        return _partitions(image, topic.id, replicas, first=present)
    if len(wanted.assignments) != added:
        raise InvalidReplicaAssignment(
            f"{added} new partitions, and {len(wanted.assignments)} assignments"
        )
    check_assignments(image, wanted.assignments, replication_factor)
    return _partitions(image, topic.id, wanted.assignments, first=present)


# -- deleting


@dataclass(frozen=True, slots=True)
class TopicRef:
    """A topic by its id, or else by its name."""

    topic_id: Uuid | None = None
    name: str = ""


def delete_topics(
    image: Image, topics: tuple[TopicRef, ...], *, by: str = ""
) -> Decision[tuple[Outcome[Uuid], ...]]:
    """Topics with all that is theirs. The value is the id of what was deleted."""
    records: list[Record] = []
    outcomes: list[Outcome[Uuid]] = []
    gone: set[Uuid] = set()
    for ref in topics:
        try:
            topic = find_topic(image, ref)
            if topic.id in gone:
                raise InvalidRequest(f"topic {topic.name} is named twice")
        except KraftError as error:
            outcomes.append(Outcome(None, error))
            continue
        gone.add(topic.id)
        records.append(RemoveTopic(topic.id))
        outcomes.append(Outcome(topic.id))
    _refuse_too_large(len(records))
    cause = admin_cause("delete topics", by)
    return Decision(caused(cause, *records), tuple(outcomes))


# -- names and sizes


def find_topic(image: Image, ref: TopicRef) -> Topic:
    if ref.topic_id is None:
        return named_topic(image, ref.name)
    topic = image.topics.get(ref.topic_id)
    if topic is None:
        raise UnknownTopicId(f"there is no topic with id {ref.topic_id}")
    return topic


def named_topic(image: Image, name: str) -> Topic:
    topic = image.topic(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {_shown(name)}")
    return topic


def _check_name(image: Image, name: str, earlier: Mapping[str, str]) -> None:
    if name in (".", "..") or len(name) > TOPIC_NAME_CHARS_MAX or not _LEGAL.fullmatch(name):
        raise InvalidTopic(
            f"{_shown(name)} is no topic name",
            hint=f"1 to {TOPIC_NAME_CHARS_MAX} of letters, digits, '.', '_' and '-'",
        )
    other = image.colliding(name) or earlier.get(fold(name))
    if other is not None:
        raise InvalidTopic(f"{name} collides with topic {other}: metrics cannot tell '.' from '_'")
    if image.topic(name) is not None:
        raise TopicExists(f"topic {name} exists")


def _shown(name: str) -> str:
    return repr(name if len(name) <= SHOWN_CHARS_MAX else name[:SHOWN_CHARS_MAX] + "…")


def _listed(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


def _refuse_repeats(names: Sequence[str]) -> None:
    """Of two wishes for one topic nobody knows which is meant."""
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InvalidRequest(f"topic {_shown(twice)} is named twice in one request")


def _refuse_too_many(partitions: Iterable[int]) -> None:
    count = sum(max(0, each) for each in partitions)
    if count > PARTITIONS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"{count} partitions in one request, and {PARTITIONS_PER_REQUEST_MAX} are allowed",
            hint="ask for fewer at a time",
        )


def _refuse_too_large(records: int) -> None:
    if records > RECORDS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"the request makes {records} records, and one batch holds {RECORDS_PER_REQUEST_MAX}",
            hint="ask for less at a time",
        )
