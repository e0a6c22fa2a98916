"""Configs are set, removed, and added to.

Changes are judged by what they lead to: all configs of the resource as they would be then, taken
together. One that is wrong refuses all changes of that resource, and none of another one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from kraftlog import config_keys as keys
from kraftlog.config import Config
from kraftlog.config_keys import Scope, shorten
from kraftlog.errors import (
    ConfigError,
    InvalidRequest,
    KraftError,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from metadata_log.config_check import check_broker_config, check_topic_config, members
from metadata_log.decide import RECORDS_PER_REQUEST_MAX, Decision, Outcome, admin_cause, caused
from metadata_log.decide.changes import changes_of
from metadata_log.effective import ALL_BROKERS, BUILT_IN, TopicRules
from metadata_log.image import Image, Role
from metadata_log.partition_change import AS_IT_IS, Target
from metadata_log.places import Agenda, Places
from metadata_log.records import (
    ConfigRecord,
    PartitionState,
    Record,
    Resource,
    ResourceType,
)
from metadata_log.replay import replay_all

MIN_ISR = keys.MIN_INSYNC_REPLICAS.names[Scope.BROKER]


class Operation(Enum):
    SET = "set"
    DELETE = "delete"
    APPEND = "append"
    SUBTRACT = "subtract"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    name: str
    operation: Operation
    value: str = ""


@dataclass(frozen=True, slots=True)
class ResourceChanges:
    resource: Resource
    changes: tuple[ConfigChange, ...]


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    resources: tuple[ResourceChanges, ...]
    validate_only: bool = False


def alter_configs(
    image: Image, request: AlterConfigs, *, static: Config = BUILT_IN, by: str = ""
) -> Decision[tuple[Outcome[None], ...]]:
    """Incremental changes of configs."""
    named = [each.resource for each in request.resources]
    if len(set(named)) < len(named):
        raise InvalidRequest("a resource is named twice in one request")
    records: list[Record] = []
    outcomes: list[Outcome[None]] = []
    for each in request.resources:
        try:
            records += _alter(image, each)
        except KraftError as error:
            outcomes.append(Outcome(None, error))
            continue
        outcomes.append(Outcome(None))
    records += _fewer_eligible(image, records, static)
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"the request makes {len(records)} records, one batch holds {RECORDS_PER_REQUEST_MAX}",
            hint="ask for less at a time",
        )
    cause = admin_cause("alter configs", by)
    kept = () if request.validate_only else caused(cause, *records)
    return Decision(kept, tuple(outcomes))


def _alter(image: Image, request: ResourceChanges) -> list[Record]:
    resource = request.resource
    _check_resource(image, resource)
    names = [each.name for each in request.changes]
    if len(set(names)) < len(names):
        raise InvalidRequest(f"a config of {resource} is named twice")
    before = image.config(resource)
    after = dict(before)
    for each in request.changes:
        _apply(resource, after, each)
    if resource.type is ResourceType.TOPIC:
        check_topic_config(after)
    else:
        check_broker_config(after, of_one=resource != ALL_BROKERS)
        _check_min_isr(before, after)
    # A broker is told again what it knows: that makes it read again what a value names.
    told = set(names) if resource.type is ResourceType.BROKER else set()
    return [
        ConfigRecord(resource, name, after.get(name))
        for name in sorted(names)
        if before.get(name) != after.get(name) or (name in told and name in after)
    ]


def _check_resource(image: Image, resource: Resource) -> None:
    if resource.type is ResourceType.TOPIC:
        if image.topic(resource.name) is None:
            raise UnknownTopicOrPartition(f"there is no topic {shorten(resource.name)}")
    elif resource.name and not _is_broker(image, resource.name):
        raise InvalidRequest(
            f"{shorten(resource.name)} is the id of no registered broker",
            hint="an empty name means all brokers",
        )


def _is_broker(image: Image, name: str) -> bool:
    return any(str(broker_id) == name for broker_id in image.brokers)


def _apply(resource: Resource, values: dict[str, str], change: ConfigChange) -> None:
    match change.operation:
        case Operation.SET:
            values[change.name] = change.value
        case Operation.DELETE:
            values.pop(change.name, None)
        case Operation.APPEND | Operation.SUBTRACT:
            values[change.name] = _edited(resource, values, change)


def _edited(resource: Resource, values: Mapping[str, str], change: ConfigChange) -> str:
    """A list with more, or fewer, members."""
    scope = Scope.TOPIC if resource.type is ResourceType.TOPIC else Scope.BROKER
    present = members(scope, change.name, values.get(change.name))
    if present is None:
        raise ConfigError(
            f"{shorten(change.name)} is no list: {change.operation.value} does not fit",
            hint="set it",
        )
    given = [part.strip() for part in change.value.split(",") if part.strip()]
    if change.operation is Operation.APPEND:
        return ",".join(dict.fromkeys(present + given))
    return ",".join(part for part in present if part not in given)


def _check_min_isr(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Controller and every leader must agree on it, so it is never left to their own configs."""
    if MIN_ISR in before and MIN_ISR not in after:
        raise ConfigError(f"{MIN_ISR} has to have a value", hint="set another one")


# -- what a lower minimum costs


def _fewer_eligible(image: Image, records: list[Record], static: Config) -> Iterator[Record]:
    """With a lower minimum the replicas in sync may be enough to move the high watermark, and then
    those that were eligible are no longer sure to have everything. They leave the ELR in the same
    batch, before any leader can act on the new minimum.
    """
    touched = [each for each in records if isinstance(each, ConfigRecord) and each.name == MIN_ISR]
    if not touched:
        return
    after = replay_all(image, records, image.end_offset)
    brokers = image.brokers_with(Role.ELR)
    agenda = Agenda.of(*(_eligible(image, broker, touched) for broker in brokers))
    places, _ = agenda.take(len(agenda))

    def wish(_state: PartitionState, _rules: TopicRules) -> Target:
        return AS_IT_IS

    yield from changes_of(after, places, wish, after.is_active, static)


def _eligible(image: Image, broker_id: int, touched: list[ConfigRecord]) -> Places:
    """Where a broker is eligible, in topics whose minimum may have changed."""
    places = image.places(Role.ELR, broker_id)
    if any(each.resource.type is ResourceType.BROKER for each in touched):
        return places
    topics = [image.topic(each.resource.name) for each in touched]
    return places.of_topics(topic.id for topic in topics if topic is not None)
