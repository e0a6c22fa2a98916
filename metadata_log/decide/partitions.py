"""AlterPartition: a leader tells who is in sync with it.

The leader computed its wish from a state that may be old by now. So the wish names the epochs that
it was computed from, and is checked in a fixed order: a leader that is ahead of this controller
must not be told that it is behind (KAFKA-14154), and a broker joins an ISR only in the incarnation
that the leader saw (KIP-841, KIP-903).
"""

from dataclasses import dataclass

from kraftlog.config import Config
from kraftlog.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KraftError,
    NewLeaderElected,
    NotController,
    PolicyViolation,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kraftlog.types import Uuid
from metadata_log.decide import RECORDS_PER_REQUEST_MAX, Decision, Outcome, caused
from metadata_log.decide.brokers import check_epoch
from metadata_log.effective import BUILT_IN, TopicRules, rules_of
from metadata_log.image import Image
from metadata_log.partition_change import Target, change
from metadata_log.places import Place
from metadata_log.records import Cause, CauseKind, PartitionChange, PartitionState, Recovery
from metadata_log.replay import merge


@dataclass(frozen=True, slots=True)
class IsrMember:
    broker_id: int
    broker_epoch: int | None = None
    """Of the incarnation that the leader saw fetching; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    topic_id: Uuid
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    recovery: Recovery = Recovery.RECOVERED


@dataclass(frozen=True, slots=True)
class AlterPartitions:
    broker_id: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]


def alter_partitions(
    image: Image, request: AlterPartitions, *, static: Config = BUILT_IN
) -> Decision[tuple[Outcome[PartitionState], ...]]:
    """New ISRs. The value of an outcome is the partition as it is then; NEW_LEADER_ELECTED comes
    with a value, since the change was made.
    """
    check_epoch(image, request.broker_id, request.broker_epoch)
    if len(request.changes) > RECORDS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"{len(request.changes)} partitions in one request, {RECORDS_PER_REQUEST_MAX} at most"
        )
    rules = rules_of(image, static)
    records: list[PartitionChange] = []
    outcomes: list[Outcome[PartitionState]] = []
    seen: set[Place] = set()
    for wish in request.changes:
        place = Place(wish.topic_id, wish.partition)
        try:
            state = _check(image, request.broker_id, wish, repeated=place in seen)
        except KraftError as error:
            outcomes.append(Outcome(None, error))
            continue
        seen.add(place)
        record = _change(image, place, state, wish, rules(image.topics[place.topic_id].name))
        after = state
        if record is not None:
            records.append(record)
            after = merge(state, record)
        outcomes.append(Outcome(after, _if_moved(after, request.broker_id)))
    cause = Cause(CauseKind.ALTER_PARTITION, f"by broker {request.broker_id}")
    return Decision(caused(cause, *records), tuple(outcomes))


def _change(
    image: Image, place: Place, state: PartitionState, wish: IsrChange, rules: TopicRules
) -> PartitionChange | None:
    target = Target(
        isr=_in_replica_order(state, wish),
        recovery=wish.recovery,
        election=rules.election,
    )
    return change(
        place,
        state,
        target,
        acceptable=image.is_active,
        min_insync_replicas=rules.min_insync_replicas,
    )


def _in_replica_order(state: PartitionState, wish: IsrChange) -> tuple[int, ...]:
    """The same set is the same ISR, in whatever order the leader counts it."""
    members = {member.broker_id for member in wish.isr}
    if members == set(state.isr):
        return state.isr
    return tuple(replica for replica in state.replicas if replica in members)


def _if_moved(after: PartitionState, sender: int) -> KraftError | None:
    """Completing a reassignment may have ended the sender's leadership."""
    if after.leader == sender:
        return None
    return NewLeaderElected(f"broker {after.leader} leads from leader epoch {after.leader_epoch}")


# -- the order in which a wish is checked; the request's broker epoch came first


def _check(image: Image, sender: int, wish: IsrChange, *, repeated: bool) -> PartitionState:
    topic = image.topics.get(wish.topic_id)
    if topic is None:
        raise UnknownTopicId(f"there is no topic with id {wish.topic_id}")
    where = f"{topic.name}-{wish.partition}"
    state = image.partition(wish.topic_id, wish.partition)
    if state is None:
        raise UnknownTopicOrPartition(f"there is no partition {where}")
    if repeated:
        raise InvalidRequest(f"{where} is twice in one request")
    _check_epochs(where, sender, wish, state)
    _check_isr(where, wish, state)
    _check_recovery(where, wish, state)
    for member in wish.isr:
        _check_member(image, where, member)
    return state


def _check_epochs(where: str, sender: int, wish: IsrChange, state: PartitionState) -> None:
    if wish.leader_epoch > state.leader_epoch or wish.partition_epoch > state.partition_epoch:
        raise NotController(
            f"{where}: the broker knows leader epoch {wish.leader_epoch} and partition epoch"
            f" {wish.partition_epoch}, this controller only {state.leader_epoch} and"
            f" {state.partition_epoch}"
        )
    if wish.leader_epoch < state.leader_epoch:
        raise FencedLeaderEpoch(
            f"{where}: leader epoch {wish.leader_epoch} is over, {state.leader_epoch} is current"
        )
    if sender != state.leader:
        raise InvalidRequest(f"{where}: broker {sender} does not lead it, {state.leader} does")
    if wish.partition_epoch < state.partition_epoch:
        raise InvalidUpdateVersion(
            f"{where}: computed from partition epoch {wish.partition_epoch},"
            f" {state.partition_epoch} is current"
        )


def _check_isr(where: str, wish: IsrChange, state: PartitionState) -> None:
    members = [member.broker_id for member in wish.isr]
    if len(set(members)) < len(members) or not set(members) <= set(state.replicas):
        raise InvalidRequest(f"{where}: ISR {members} is no subset of replicas {state.replicas}")
    if state.leader not in members:
        raise InvalidRequest(f"{where}: ISR {members} lacks the leader {state.leader}")


def _check_recovery(where: str, wish: IsrChange, state: PartitionState) -> None:
    if wish.recovery is not Recovery.RECOVERING:
        return
    if len(wish.isr) > 1:
        raise InvalidRequest(f"{where}: nobody joins a leader that is still recovering")
    if state.recovery is Recovery.RECOVERED:
        raise InvalidRequest(f"{where}: it has recovered, and does not go back")


def _check_member(image: Image, where: str, member: IsrMember) -> None:
    broker = image.brokers.get(member.broker_id)
    if broker is None:
        raise IneligibleReplica(f"{where}: broker {member.broker_id} is not registered")
    if not broker.is_active:
        why = "fenced" if broker.is_fenced else "shutting down"
        raise IneligibleReplica(f"{where}: broker {member.broker_id} is {why}")
    if member.broker_epoch not in (None, broker.epoch):
        raise IneligibleReplica(
            f"{where}: broker {member.broker_id} was in sync with broker epoch"
            f" {member.broker_epoch}, and {broker.epoch} is current"
        )
