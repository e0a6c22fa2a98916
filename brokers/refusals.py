"""Why a broker refuses something about a partition: Kafka's errors with our words.

An error here is a value: it goes into the reply for its partition, and the other partitions of the
request are served all the same.
"""

from typing import NamedTuple

from brokers.cluster import NO_LEADER, Assignment
from kraftlog.errors import (
    ErrorCode,
    FencedLeaderEpoch,
    InvalidMetadataError,
    InvalidRequest,
    KraftError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderError,
    OffsetOutOfRange,
    RequestTimedOut,
    RetriableError,
    UnknownTopicOrPartition,
)


class LeaderHint(NamedTuple):
    """Who leads a partition, for a client that asked the wrong broker; -1: nobody does."""

    leader_id: int
    leader_epoch: int


class Refused(Exception):
    """Carries an error, and who leads instead, to where the reply is made."""

    def __init__(self, error: KraftError, leader: LeaderHint | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.leader = leader


def hint_of(assignment: Assignment | None) -> LeaderHint | None:
    """Where to go, as far as this broker knows."""
    if assignment is None:
        return None
    return LeaderHint(assignment.leader, assignment.leader_epoch)


def not_leader(name: object, broker_id: int, hint: LeaderHint | None) -> Refused:
    known = hint is not None and hint.leader_id not in (NO_LEADER, broker_id)
    advice = f"broker {hint.leader_id} leads it" if hint and known else "refresh the metadata"
    return Refused(NotLeaderError(f"broker {broker_id} does not lead {name}", hint=advice), hint)


def cut_off(name: object, broker_id: int) -> Refused:
    """The serving gate is closed."""
    return Refused(
        NotLeaderError(
            f"broker {broker_id} may no longer speak for {name}: neither the controller nor, as"
            " its leader, all other in-sync replicas were heard in time",
            hint="refresh the metadata from another broker, and ask the leader",
        )
    )


def fenced(name: object, broker_id: int) -> Refused:
    """The controller told us."""
    return Refused(
        NotLeaderError(
            f"broker {broker_id} is fenced, and so no longer leads {name}",
            hint="refresh the metadata from another broker and try again",
        )
    )


def unknown_partition(partition: object) -> Refused:
    return Refused(
        UnknownTopicOrPartition(
            f"no partition {partition} in this broker's metadata",
            hint="it may be new or just deleted: refresh the metadata",
        )
    )


def unknown_topic_id(partition: object) -> Refused:
    return Refused(
        InvalidMetadataError(
            f"no topic with the id of {partition} in this broker's metadata",
            hint="it may be new or just deleted: refresh the metadata",
            code=ErrorCode.UNKNOWN_TOPIC_ID,
        )
    )


def fenced_epoch(name: object, given: int, current: int, hint: LeaderHint | None) -> Refused:
    error = FencedLeaderEpoch(
        f"leader epoch {given} of {name} is over, {current} has begun",
        hint="refresh the metadata",
    )
    return Refused(error, hint)


def unknown_epoch(name: object, given: int, current: int) -> Refused:
    return Refused(
        RetriableError(
            f"leader epoch {given} of {name} is not known here yet, {current} is",
            hint="try again in a moment",
            code=ErrorCode.UNKNOWN_LEADER_EPOCH,
        )
    )


def no_epoch(name: object, replica_id: int) -> Refused:
    """What a replica has counts in one leader epoch only, so it must say which."""
    return Refused(InvalidRequest(f"broker {replica_id} fetches {name} without its leader epoch"))


def unknown_replica(name: object, replica_id: int) -> Refused:
    """Metadata races with fetches: to whoever asks we look as if we were behind, or we are."""
    return Refused(
        RetriableError(
            f"broker {replica_id} is not a replica of {name}",
            hint="try again in a moment",
            code=ErrorCode.UNKNOWN_LEADER_EPOCH,
        )
    )


def stale_replica(name: object, replica_id: int, given: int, current: int) -> Refused:
    return Refused(
        NotLeaderError(
            f"broker {replica_id} fetches {name} with broker epoch {given}, {current} has begun"
        )
    )


def out_of_range(name: object, offset: int, start: int, end: int) -> Refused:
    return Refused(
        OffsetOutOfRange(
            f"offset {offset} is outside [{start}, {end}] of {name}",
            hint="start from the earliest or the latest offset",
        )
    )


def offset_not_available(name: object, offset: int, high_watermark: int) -> Refused:
    """A new leader may for a moment know a lower high watermark than the old one told."""
    return Refused(
        RetriableError(
            f"offset {offset} of {name} is not known to be committed yet, only {high_watermark}",
            hint="try again in a moment",
            code=ErrorCode.OFFSET_NOT_AVAILABLE,
        )
    )


def not_enough_replicas(name: object, isr: int, needed: int) -> Refused:
    return Refused(
        NotEnoughReplicas(
            f"{name} has {isr} in-sync replicas, min.insync.replicas asks for {needed}",
            hint="bring brokers back, or lower min.insync.replicas",
        )
    )


def not_enough_after_append(name: object, isr: int, needed: int) -> KraftError:
    return NotEnoughReplicasAfterAppend(
        f"{name} lost in-sync replicas after the append: {isr} are left,"
        f" min.insync.replicas asks for {needed}",
        hint="the records are in the leader's log and may still be committed",
    )


def produce_timed_out(name: object, timeout_ms: int) -> KraftError:
    return RequestTimedOut(
        f"not all in-sync replicas of {name} had the records after {timeout_ms} ms",
        hint="the records are in the leader's log and may still be committed",
    )


def session_not_found(session_id: int) -> KraftError:
    return RetriableError(
        f"fetch session {session_id} is not known here",
        hint="begin a new one with a full fetch",
        code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    )


def wrong_session_epoch(session_id: int, given: int, expected: int) -> KraftError:
    return RetriableError(
        f"fetch session {session_id} is at epoch {expected}, not {given}",
        hint="begin a new one with a full fetch",
        code=ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    )


def invalid_acks(acks: int) -> KraftError:
    return InvalidRequest(
        f"acks={acks}", hint="use 0, 1 or all (-1)", code=ErrorCode.INVALID_REQUIRED_ACKS
    )
