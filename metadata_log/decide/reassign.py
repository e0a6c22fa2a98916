"""Partitions move to other brokers, with cancel and change of mind on the way (KIP-455).

While a partition moves, its replicas are the target followed by those that are to go. It has
arrived when all of the target is in sync; `partition_change` sees that whenever the ISR changes.
The original replicas are those that are not being added. Throttles are ordinary topic configs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kraftlog.config import Config
from kraftlog.errors import (
    InvalidReplicaAssignment,
    InvalidRequest,
    KraftError,
    NoReassignmentInProgress,
    PolicyViolation,
)
from kraftlog.types import TopicPartition
from metadata_log.decide import RECORDS_PER_REQUEST_MAX, Decision, Outcome, admin_cause, caused
from metadata_log.decide.elections import find_place
from metadata_log.decide.topics import check_brokers
from metadata_log.effective import BUILT_IN, TopicRules, rules_of
from metadata_log.image import Image, Role
from metadata_log.partition_change import Target, change, without
from metadata_log.records import PartitionChange, PartitionState


@dataclass(frozen=True, slots=True)
class Reassignment:
    partition: TopicPartition
    target: tuple[int, ...] | None
    """None: cancel."""


def reassign(
    image: Image,
    requests: tuple[Reassignment, ...],
    *,
    static: Config = BUILT_IN,
    by: str = "",
) -> Decision[tuple[Outcome[None], ...]]:
    """Begin, replace or cancel reassignments, each for itself."""
    if len(requests) > RECORDS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"{len(requests)} partitions in one request, {RECORDS_PER_REQUEST_MAX} at most"
        )
    rules = rules_of(image, static)
    records: list[PartitionChange] = []
    outcomes: list[Outcome[None]] = []
    seen: set[TopicPartition] = set()
    for request in requests:
        try:
            record = _reassign(image, request, rules, repeated=request.partition in seen)
        except KraftError as error:
            outcomes.append(Outcome(None, error))
            continue
        seen.add(request.partition)
        records += [record] if record is not None else []
        outcomes.append(Outcome(None))
    cause = admin_cause("reassign", by)
    return Decision(caused(cause, *records), tuple(outcomes))


def _reassign(
    image: Image, request: Reassignment, rules: Callable[[str], TopicRules], *, repeated: bool
) -> PartitionChange | None:
    place = find_place(image, request.partition)
    if repeated:
        raise InvalidRequest(f"{request.partition} is twice in one request")
    state = image.at(place)
    topic = rules(request.partition.topic)
    if request.target is None:
        target = _cancelled(request.partition, state, topic)
    else:
        check_brokers(image, request.target)
        target = _moved(request.partition, state, request.target, topic)
    return change(
        place,
        state,
        target,
        acceptable=image.is_active,
        min_insync_replicas=topic.min_insync_replicas,
    )


def _moved(
    partition: TopicPartition, state: PartitionState, target: tuple[int, ...], rules: TopicRules
) -> Target:
    """Replicas that an earlier wish was adding and this one does not want are dropped at once."""
    original = without(state.replicas, state.adding)
    dropped = tuple(broker for broker in state.adding if broker not in target)
    removing = without(original, target)
    return Target(
        isr=_isr_without(partition, state, dropped, rules),
        replicas=target + removing,
        adding=without(target, original),
        removing=removing,
        election=rules.election,
    )


def _cancelled(partition: TopicPartition, state: PartitionState, rules: TopicRules) -> Target:
    if not state.is_reassigning:
        raise NoReassignmentInProgress(f"{partition} is not being reassigned")
    return Target(
        isr=_isr_without(partition, state, state.adding, rules),
        replicas=without(state.replicas, state.adding),
        adding=(),
        removing=(),
        election=rules.election,
    )


def _isr_without(
    partition: TopicPartition,
    state: PartitionState,
    dropped: tuple[int, ...],
    rules: TopicRules,
) -> tuple[int, ...]:
    """The ISR without brokers that leave at once. If nobody who stays is sure to have every
    committed record, that would lose some; if fewer than min.insync.replicas are, so does one more
    failure: refused, unless the topic allows it.
    """
    isr = without(state.isr, dropped)
    sure = state.isr + state.elr or state.last_known_elr
    if rules.unclean:
        return isr
    if not without(sure, dropped):
        raise InvalidReplicaAssignment(
            f"{partition}: only {_named(sure)} is sure to have every record, and would be removed",
            hint="wait until another replica is in sync",
        )
    needed = min(rules.min_insync_replicas, len(without(state.replicas, dropped)))
    if len(isr) < needed and isr != state.isr:
        raise InvalidReplicaAssignment(
            f"{partition}: without {_named(dropped)} {len(isr)} in-sync replicas are left, and"
            f" min.insync.replicas asks for {needed}",
            hint="wait until another replica is in sync",
        )
    return isr


def _named(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))


def ongoing(
    image: Image, partitions: tuple[TopicPartition, ...] | None = None
) -> list[tuple[TopicPartition, PartitionState]]:
    """The partitions that are being reassigned, all or of these."""
    if partitions is None:
        places = list(image.places(Role.REASSIGNING))
    else:
        places = [find_place(image, partition) for partition in partitions]
    found = [
        (TopicPartition(image.topics[place.topic_id].name, place.partition), image.at(place))
        for place in places
    ]
    return [(partition, state) for partition, state in found if state.is_reassigning]
