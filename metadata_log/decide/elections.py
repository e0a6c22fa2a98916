"""Elections that somebody asks for, and those that bring leadership back where it belongs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraftlog.config import Config
from kraftlog.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    KraftError,
    PolicyViolation,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from kraftlog.types import TopicPartition
from metadata_log.decide import (
    PARTITIONS_PER_EVENT_MAX,
    RECORDS_PER_REQUEST_MAX,
    Decision,
    Outcome,
    admin_cause,
    caused,
)
from metadata_log.decide.changes import changes_of, elect_again
from metadata_log.effective import BUILT_IN, TopicRules, rules_of
from metadata_log.election import Election
from metadata_log.image import Image, Role
from metadata_log.partition_change import Target, change
from metadata_log.places import Agenda, Place
from metadata_log.records import (
    NO_LEADER,
    Cause,
    CauseKind,
    PartitionChange,
    PartitionState,
)


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    election: Election
    """PREFERRED or UNCLEAN."""
    partitions: tuple[TopicPartition, ...] | None
    """None: all that need it."""


Elections = tuple[tuple[TopicPartition, Outcome[int]], ...]
"""The value of an outcome is the leader."""


def elect_leaders(
    image: Image,
    request: ElectLeaders,
    *,
    static: Config = BUILT_IN,
    by: str = "",
    agenda: Agenda | None = None,
) -> Decision[Elections]:
    """Elections by hand. For all partitions it goes in steps, and only those that got a leader are
    in the answer.
    """
    if request.election is Election.ONLINE:
        raise InvalidRequest("an election by hand is preferred or unclean")
    cause = admin_cause(f"{request.election.value} election", by)
    if request.partitions is None:
        return _elect_all(image, request.election, cause, static, agenda)
    if len(request.partitions) > RECORDS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"{len(request.partitions)} partitions in one request,"
            f" {RECORDS_PER_REQUEST_MAX} at most"
        )
    rules = rules_of(image, static)
    records: list[PartitionChange] = []
    outcomes: list[tuple[TopicPartition, Outcome[int]]] = []
    for partition in dict.fromkeys(request.partitions):
        try:
            place = find_place(image, partition)
            record = _elect_one(image, place, request.election, rules(partition.topic))
        except KraftError as error:
            outcomes.append((partition, Outcome(None, error)))
            continue
        records.append(record)
        outcomes.append((partition, Outcome(record.leader)))
    return Decision(caused(cause, *records), tuple(outcomes))


def find_place(image: Image, partition: TopicPartition) -> Place:
    topic = image.topic(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        raise UnknownTopicOrPartition(f"there is no partition {partition}")
    return Place(topic.id, partition.partition)


def _elect_one(
    image: Image, place: Place, election: Election, rules: TopicRules
) -> PartitionChange:
    state = image.at(place)
    where = f"{rules.name}-{place.partition}"
    if election is Election.PREFERRED and state.leader == state.replicas[0]:
        raise ElectionNotNeeded(f"{where}: the preferred leader, {state.leader}, leads already")
    if election is Election.UNCLEAN and state.leader != NO_LEADER:
        raise ElectionNotNeeded(f"{where}: broker {state.leader} leads it")
    record = change(
        place,
        state,
        Target(election=election),
        acceptable=image.is_active,
        min_insync_replicas=rules.min_insync_replicas,
    )
    if record is None or record.leader in (None, NO_LEADER):
        raise _nobody(where, election, state)
    if election is Election.PREFERRED and record.leader != state.replicas[0]:
        raise _nobody(where, election, state)
    return record


def _nobody(where: str, election: Election, state: PartitionState) -> KraftError:
    if election is Election.PREFERRED:
        return PreferredLeaderNotAvailable(
            f"{where}: broker {state.replicas[0]} is not in sync, or not there"
        )
    return EligibleLeadersNotAvailable(f"{where}: none of {state.replicas} is there")


def _elect_all(
    image: Image, election: Election, cause: Cause, static: Config, agenda: Agenda | None
) -> Decision[Elections]:
    role = Role.DISPLACED if election is Election.PREFERRED else Role.LEADERLESS
    agenda = Agenda.of(image.places(role)) if agenda is None else agenda
    places, rest = agenda.take(PARTITIONS_PER_EVENT_MAX)
    records = tuple(_with(election, image, places, static))
    outcomes = tuple(
        (
            TopicPartition(image.topics[record.topic_id].name, record.partition),
            Outcome(record.leader),
        )
        for record in records
    )
    return Decision(caused(cause, *records), outcomes, rest or None)


def _with(
    election: Election, image: Image, places: Iterable[Place], static: Config
) -> Iterator[PartitionChange]:
    """A record for each of these partitions that gets another leader by such an election."""

    def wish(_state: PartitionState, _rules: TopicRules) -> Target:
        return Target(election=election)

    return changes_of(image, places, wish, image.active().__contains__, static)


# -- without being asked


def rebalance(
    image: Image, *, static: Config = BUILT_IN, agenda: Agenda | None = None
) -> Decision[int]:
    """Lead back to the preferred leaders those partitions whose preferred leader is in sync again
    (R12). The response is how many changed.
    """
    agenda = Agenda.of(image.places(Role.DISPLACED)) if agenda is None else agenda
    places, rest = agenda.take(PARTITIONS_PER_EVENT_MAX)
    records = tuple(_with(Election.PREFERRED, image, places, static))
    cause = Cause(CauseKind.PREFERRED_REBALANCE)
    return Decision(caused(cause, *records), len(records), rest or None)


def elect_leaderless(
    image: Image, cause: Cause, *, static: Config = BUILT_IN, agenda: Agenda | None = None
) -> Decision[int]:
    """Try again where there is no leader: after unclean election was allowed, say. The response is
    how many partitions got one.
    """
    agenda = Agenda.of(image.places(Role.LEADERLESS)) if agenda is None else agenda
    places, rest = agenda.take(PARTITIONS_PER_EVENT_MAX)
    records = tuple(elect_again(image, places, image.active().__contains__, static))
    return Decision(caused(cause, *records), len(records), rest or None)
