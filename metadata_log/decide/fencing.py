"""Brokers leave service and come back: fenced, unfenced, shut down, unregistered.

Each of these may touch every partition of a broker, so it is decided in steps of at most
PARTITIONS_PER_EVENT_MAX partitions (see `Decision.agenda`). Between two steps other decisions may
be made, and each step looks at the partitions as they are then.

A broker is fenced last, once it is in no ISR: at no offset of the log is a fenced broker in an ISR
(M7). It is unfenced first, and then counts for the elections that waited for it.
"""

from collections.abc import Iterable, Iterator

from kraftlog.config import Config
from kraftlog.errors import BrokerNotRegistered
from metadata_log.decide import PARTITIONS_PER_EVENT_MAX, Decision, admin_cause, caused
from metadata_log.decide.changes import changes_of, elect_again
from metadata_log.effective import BUILT_IN, TopicRules
from metadata_log.image import Image, Role
from metadata_log.partition_change import Target, without
from metadata_log.places import Agenda, Place
from metadata_log.records import (
    Broker,
    BrokerChange,
    Cause,
    CausedRecord,
    CauseKind,
    FenceCause,
    PartitionChange,
    PartitionState,
    UnregisterBroker,
)


def fence(
    image: Image,
    broker_id: int,
    fence_cause: FenceCause,
    cause: Cause,
    *,
    static: Config = BUILT_IN,
    agenda: Agenda | None = None,
) -> Decision[bool]:
    """Take a broker out of every ISR, those it leads first, and fence it with the last step.

    The response is whether this step fences it.
    """
    broker = registered(image, broker_id)
    step = _leave_isrs(image, broker_id, cause, static, agenda)
    if step.agenda is not None:
        return Decision(step.records, response=False, agenda=step.agenda)
    if broker.fence_cause is not None and fence_cause is not FenceCause.OPERATOR:
        return Decision(step.records, response=True)
    change_of_broker = BrokerChange(
        broker_id=broker_id, broker_epoch=broker.epoch, fenced=True, fence_cause=fence_cause
    )
    return Decision(step.records + caused(cause, change_of_broker), response=True)


def release(image: Image, broker_id: int, cause: Cause) -> Decision[None]:
    """Undo an operator's fencing: from now on the broker's heartbeats may unfence it."""
    broker = registered(image, broker_id)
    if broker.fence_cause is not FenceCause.OPERATOR:
        return Decision((), None)
    released = BrokerChange(
        broker_id=broker_id,
        broker_epoch=broker.epoch,
        fenced=True,
        fence_cause=FenceCause.REQUESTED,
    )
    return Decision(caused(cause, released), None)


def unfence(
    image: Image,
    broker_id: int,
    cause: Cause,
    *,
    static: Config = BUILT_IN,
    agenda: Agenda | None = None,
) -> Decision[None]:
    """Let a broker back in, then elect it, or others, where there was no leader."""
    broker = registered(image, broker_id)
    records: tuple[CausedRecord, ...] = ()
    if broker.is_fenced and agenda is not None:
        return Decision(records, None)  # fenced again meanwhile
    if broker.is_fenced:
        unfenced = BrokerChange(broker_id=broker_id, broker_epoch=broker.epoch, fenced=False)
        records = caused(cause, unfenced)
        agenda = _waiting_for(image, broker_id)
    if agenda is None:
        return Decision(records, None)
    places, rest = agenda.take(PARTITIONS_PER_EVENT_MAX)
    why = Cause(CauseKind.UNFENCED, f"broker {broker_id} came back")
    active = image.active()
    if not broker.in_controlled_shutdown:
        active |= {broker_id}
    elections = elect_again(image, places, active.__contains__, static)
    return Decision(records + caused(why, *elections), None, rest or None)


def begin_shutdown(
    image: Image, broker_id: int, *, static: Config = BUILT_IN, agenda: Agenda | None = None
) -> Decision[None]:
    """Controlled shutdown: the broker leads and joins nothing from now on, yet goes on serving
    until the others have taken over (R7).
    """
    broker = registered(image, broker_id)
    cause = Cause(CauseKind.CONTROLLED_SHUTDOWN, f"of broker {broker_id}")
    first: tuple[CausedRecord, ...] = ()
    if not broker.in_controlled_shutdown:
        begins = BrokerChange(
            broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=True
        )
        first = caused(cause, begins)
    step = _leave_isrs(image, broker_id, cause, static, agenda)
    return Decision(first + step.records, None, step.agenda)


def unregister(
    image: Image,
    broker_id: int,
    *,
    by: str = "",
    static: Config = BUILT_IN,
    agenda: Agenda | None = None,
) -> Decision[None]:
    """Forget a broker. Its id stays in the replica lists: another one may come in its place."""
    broker = registered(image, broker_id)
    cause = admin_cause(f"unregister broker {broker_id}", by)
    step = _leave_isrs(image, broker_id, cause, static, agenda)
    if step.agenda is not None:
        return step
    gone = UnregisterBroker(broker_id, broker.epoch)
    return Decision(step.records + caused(cause, gone), None)


def registered(image: Image, broker_id: int) -> Broker:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerNotRegistered(f"broker {broker_id} is not registered")
    return broker


# -- leaving


def _leave_isrs(
    image: Image, broker_id: int, cause: Cause, static: Config, agenda: Agenda | None
) -> Decision[None]:
    """One step of taking a broker out of all ISRs; with an agenda as long as it is in others."""
    in_sync = image.places(Role.ISR, broker_id)
    if agenda is None:
        agenda = Agenda.of(image.places(Role.LEADER, broker_id), in_sync)
    places, rest = agenda.take(PARTITIONS_PER_EVENT_MAX)
    changes = tuple(leave_isr(image, broker_id, places, static))
    records = caused(cause, *changes)
    if len(changes) == len(in_sync):
        return Decision(records, None)
    # Where it joined another ISR since the agenda was made, that one is left in the next round.
    return Decision(records, None, rest or Agenda.of(in_sync))


def leave_isr(
    image: Image, broker_id: int, places: Iterable[Place], static: Config
) -> Iterator[PartitionChange]:
    """A record for each of these partitions that has the broker in its ISR."""
    others = image.active() - {broker_id}

    def wish(state: PartitionState, rules: TopicRules) -> Target | None:
        if broker_id not in state.isr:
            return None
        return Target(isr=without(state.isr, (broker_id,)), election=rules.election)

    return changes_of(image, places, wish, others.__contains__, static)


# -- coming back


def _waiting_for(image: Image, broker_id: int) -> Agenda | None:
    """The partitions without a leader that have this broker among their replicas."""
    leaderless = image.places(Role.LEADERLESS)
    return Agenda.of(leaderless.common(image.places(Role.REPLICA, broker_id))) or None
