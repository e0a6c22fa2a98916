"""Heartbeats: what a broker is, what it wants, and so what becomes of it.

    is                     and                                           becomes
    FENCED                 wants to shut down                            SHUTDOWN_NOW
    FENCED                 wants to serve, and has applied the record
                           that fenced it, its registration or another   UNFENCED
    FENCED                 otherwise, or fenced by an operator           FENCED
    UNFENCED               wants to be fenced                            FENCED
    UNFENCED               wants to be fenced and to shut down           SHUTDOWN_NOW
    UNFENCED               wants to shut down, and leads something       CONTROLLED_SHUTDOWN
    UNFENCED               wants to shut down, and leads nothing         SHUTDOWN_NOW
    CONTROLLED_SHUTDOWN    leads nothing, and every active broker has
                           learned who does                              SHUTDOWN_NOW
    CONTROLLED_SHUTDOWN    otherwise                                     CONTROLLED_SHUTDOWN

Nearly all heartbeats change nothing and cost next to nothing.
"""

from dataclasses import dataclass
from enum import Enum

from kraftlog.config import Config
from metadata_log.decide import Decision
from metadata_log.decide.brokers import check_epoch
from metadata_log.decide.fencing import begin_shutdown, fence, unfence
from metadata_log.effective import BUILT_IN
from metadata_log.image import Image, Role
from metadata_log.places import Agenda
from metadata_log.records import Broker, Cause, CausedRecord, CauseKind, FenceCause


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    broker_id: int
    broker_epoch: int
    applied_offset: int
    """All metadata below is applied by the broker, not merely fetched. Exclusive."""
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    is_caught_up: bool
    """It has applied the record that fenced it, which is its registration after a start."""
    is_fenced: bool
    should_shut_down: bool
    has_moved: bool
    """In a controlled shutdown: it is in no ISR any more. The caller notes, once, the offset at
    which this was so first (KAFKA-14292)."""


def current_state(broker: Broker) -> BrokerState:
    if broker.is_fenced:
        return BrokerState.FENCED
    if broker.in_controlled_shutdown:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def next_state(
    image: Image, request: Heartbeat, *, shutdown_offset: int | None, active_offset: int
) -> BrokerState:
    """The table above. StaleEpoch if it is not the current incarnation that speaks.

    `shutdown_offset`: the end of the batch that took the broker out of its last ISR, as the caller
    noted it. `active_offset`: what all active brokers have applied.
    """
    broker = check_epoch(image, request.broker_id, request.broker_epoch)
    leads = len(image.places(Role.LEADER, broker.id)) > 0
    match current_state(broker):
        case BrokerState.FENCED:
            return _from_fenced(broker, request)
        case BrokerState.UNFENCED:
            return _from_unfenced(request, leads=leads)
        case _:
            known = shutdown_offset is not None and shutdown_offset <= active_offset
            done = known and not leads
            return BrokerState.SHUTDOWN_NOW if done else BrokerState.CONTROLLED_SHUTDOWN


def _from_fenced(broker: Broker, request: Heartbeat) -> BrokerState:
    if request.want_shut_down:
        return BrokerState.SHUTDOWN_NOW
    held = request.want_fence or broker.fence_cause is FenceCause.OPERATOR
    return BrokerState.FENCED if held or not _knows(broker, request) else BrokerState.UNFENCED


def _from_unfenced(request: Heartbeat, *, leads: bool) -> BrokerState:
    if request.want_fence:
        return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
    if request.want_shut_down:
        return BrokerState.CONTROLLED_SHUTDOWN if leads else BrokerState.SHUTDOWN_NOW
    return BrokerState.UNFENCED


def _knows(broker: Broker, request: Heartbeat) -> bool:
    """It has applied the record that fenced it."""
    return request.applied_offset > broker.fenced_at


def heartbeat(
    image: Image,
    request: Heartbeat,
    *,
    shutdown_offset: int | None = None,
    active_offset: int = 0,
    static: Config = BUILT_IN,
    agenda: Agenda | None = None,
) -> Decision[HeartbeatReply]:
    """What a heartbeat brings about. With an agenda, decide the same heartbeat again with it."""
    after = next_state(image, request, shutdown_offset=shutdown_offset, active_offset=active_offset)
    broker = image.brokers[request.broker_id]
    step = _step(image, broker, after, static, agenda)
    gone = after in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW) and step.agenda is None
    moving = after is BrokerState.CONTROLLED_SHUTDOWN
    reply = HeartbeatReply(
        is_caught_up=_knows(broker, request),
        is_fenced=gone or (broker.is_fenced and after is not BrokerState.UNFENCED),
        should_shut_down=after is BrokerState.SHUTDOWN_NOW and step.agenda is None,
        has_moved=moving and step.agenda is None,
    )
    return Decision(step.records, reply, step.agenda)


@dataclass(frozen=True, slots=True)
class _Step:
    records: tuple[CausedRecord, ...]
    agenda: Agenda | None


def _step(
    image: Image, broker: Broker, after: BrokerState, static: Config, agenda: Agenda | None
) -> _Step:
    decision: Decision[bool] | Decision[None] = Decision((), None)
    asked = Cause(CauseKind.HEARTBEAT, f"broker {broker.id} asked for it")
    match after:
        case BrokerState.UNFENCED if broker.is_fenced or agenda is not None:
            caught_up = Cause(CauseKind.HEARTBEAT, f"broker {broker.id} has caught up")
            decision = unfence(image, broker.id, caught_up, static=static, agenda=agenda)
        case BrokerState.FENCED if not broker.is_fenced:
            why = FenceCause.REQUESTED
            decision = fence(image, broker.id, why, asked, static=static, agenda=agenda)
        case BrokerState.SHUTDOWN_NOW if not broker.is_fenced:
            why = FenceCause.SHUTDOWN
            decision = fence(image, broker.id, why, asked, static=static, agenda=agenda)
        case BrokerState.CONTROLLED_SHUTDOWN:
            decision = begin_shutdown(image, broker.id, static=static, agenda=agenda)
        case _:
            pass  # it is what it should be
    return _Step(decision.records, decision.agenda)
