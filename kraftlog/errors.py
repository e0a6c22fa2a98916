"""What can go wrong, by name. Numbers and names are Kafka's, so that tools and people know them.

`kraftlog.error_codes` is the table: number, name and kind of each. The tree follows the kinds. A
code without a class of its own becomes the class of its kind and keeps its number; a number that
only a newer server knows becomes an AmbiguousError and keeps it too.

    KraftError
    ├── RetriableError                  nothing happened, try again
    │   ├── InvalidMetadataError        refresh the view of the cluster first
    │   │   ├── NotLeaderError
    │   │   ├── LeaderNotAvailable
    │   │   ├── NotController
    │   │   ├── UnknownTopicOrPartition
    │   │   ├── UnknownTopicId
    │   │   └── FencedLeaderEpoch
    │   ├── TimeoutError_               time ran out before anything was sent (also a TimeoutError)
    │   ├── NotEnoughReplicas
    │   ├── CoordinatorLoading
    │   ├── ThrottledError
    │   ├── PreferredLeaderNotAvailable
    │   └── EligibleLeadersNotAvailable
    ├── AmbiguousError                  outcome unknown: it may have happened
    │   ├── RequestTimedOut
    │   ├── NetworkError
    │   └── NotEnoughReplicasAfterAppend
    ├── FencedError                     someone newer has taken over
    │   ├── ProducerFenced
    │   ├── InvalidProducerEpoch
    │   └── StaleEpoch
    ├── OutOfOrderSequence              an earlier batch of this producer is missing; it is over
    ├── AbortableTxnError               abort the transaction and begin another
    ├── AuthError
    ├── StorageError                    this log or directory cannot go on
    │   ├── LogDamaged                  data that was durable is no longer readable
    │   └── LogDirLocked                another process holds the directory
    ├── CorruptRecord                   bytes that are not a valid record batch
    ├── InvalidRecord                   well-formed bytes that break a rule
    │   ├── InvalidTimestamp            one that is not what it says, or too far from now
    │   └── SerializationError          a value that its serializer refuses
    ├── RecordTooLarge
    ├── OffsetOutOfRange
    ├── DuplicateSequence
    ├── UnsupportedCompression
    ├── UnsupportedVersion
    │   └── NotYetSupported             planned, not there yet, refused by name
    ├── TopicExists
    ├── InvalidRequest
    ├── ConfigError                     (also a ValueError)
    ├── InvalidTopic
    ├── InvalidPartitions
    ├── InvalidReplicationFactor
    ├── InvalidReplicaAssignment
    ├── PolicyViolation                 more than one request may ask for
    ├── DuplicateBrokerRegistration
    ├── InvalidRegistration
    ├── BrokerNotRegistered
    ├── InconsistentClusterId
    ├── InvalidUpdateVersion            computed from a state that is no longer current
    ├── IneligibleReplica
    ├── NewLeaderElected                done, and somebody else leads now
    ├── ElectionNotNeeded
    └── NoReassignmentInProgress
"""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from kraftlog._check import invariant
from kraftlog.error_codes import (
    AMBIGUOUS,
    DENIED,
    FATAL,
    LOCAL_DISK,
    MOVING,
    REQUEST,
    SERVER,
    STALE_VIEW,
    TRANSACTION,
    Kind,
    code_name,
    find_code,
)
from kraftlog.error_codes import ErrorCode as ErrorCode  # noqa: PLC0414 - part of this module


class KraftError(Exception):
    """The root. `hint` says what to do next, `node` who refused, `attempts` how often we asked."""

    code: int = ErrorCode.UNKNOWN_SERVER_ERROR
    kind: ClassVar[Kind] = REQUEST

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        node: str | None = None,
        attempts: int = 1,
        code: int | None = None,
    ) -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.hint = hint
        self.node = node
        self.attempts = attempts
        if code is not None:
            self.code = code

    @property
    def retriable(self) -> bool:
        """Nothing happened, and the same request may succeed later."""
        return self.kind.retriable

    @property
    def fatal(self) -> bool:
        """Whoever asked is over: a new producer, member or incarnation has to take its place."""
        return self.kind.fatal

    @property
    def outcome_unknown(self) -> bool:
        """It may have happened. Ask again only where a repeat does no harm."""
        return self.kind.outcome_unknown

    @property
    def code_name(self) -> str:
        return code_name(self.code)


class RetriableError(KraftError):
    """Nothing happened; try again after a pause."""

    kind = MOVING


class InvalidMetadataError(RetriableError):
    """Nothing happened, because our view of the cluster is old; refresh it, then try again."""

    kind = STALE_VIEW


class NotLeaderError(InvalidMetadataError):
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class LeaderNotAvailable(InvalidMetadataError):
    code = ErrorCode.LEADER_NOT_AVAILABLE


class NotController(InvalidMetadataError):
    code = ErrorCode.NOT_CONTROLLER


class UnknownTopicOrPartition(InvalidMetadataError):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicId(InvalidMetadataError):
    code = ErrorCode.UNKNOWN_TOPIC_ID


class FencedLeaderEpoch(InvalidMetadataError):
    code = ErrorCode.FENCED_LEADER_EPOCH


class TimeoutError_(RetriableError, TimeoutError):  # noqa: N801 - the plain name is Python's own
    """Time ran out before anything was sent. Once something was sent it is RequestTimedOut."""

    code = ErrorCode.REQUEST_TIMED_OUT


class NotEnoughReplicas(RetriableError):
    """Fewer replicas in sync than min.insync.replicas; nothing was appended."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class CoordinatorLoading(RetriableError):
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class ThrottledError(RetriableError):
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class PreferredLeaderNotAvailable(RetriableError):
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailable(RetriableError):
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class AmbiguousError(KraftError):
    """Outcome unknown: the request may have been carried out."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR
    kind = AMBIGUOUS


class RequestTimedOut(AmbiguousError):
    code = ErrorCode.REQUEST_TIMED_OUT


class NetworkError(AmbiguousError):
    """The connection ended before the answer came."""

    code = ErrorCode.NETWORK_EXCEPTION


class NotEnoughReplicasAfterAppend(AmbiguousError):
    """Appended by the leader, not yet by enough others; it may still commit."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class FencedError(KraftError):
    """Someone newer has taken over from whoever asked."""

    kind = FATAL


class ProducerFenced(FencedError):
    code = ErrorCode.PRODUCER_FENCED


class InvalidProducerEpoch(FencedError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class StaleEpoch(FencedError):
    """A broker speaks with the epoch of an earlier registration."""

    code = ErrorCode.STALE_BROKER_EPOCH


class OutOfOrderSequence(KraftError):
    """A batch of this producer is missing before this one, so order can no longer be kept."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    kind = FATAL


class AbortableTxnError(KraftError):
    """This transaction cannot commit; after an abort the producer goes on."""

    code = ErrorCode.TRANSACTION_ABORTABLE
    kind = TRANSACTION


class AuthError(KraftError):
    """The rights, or the proof of who is asking, are missing."""

    kind = DENIED


class StorageError(KraftError):
    """This log or directory cannot go on."""

    code = ErrorCode.KAFKA_STORAGE_ERROR
    kind = SERVER


class LogDamaged(StorageError):
    """Data that was durable is no longer readable; the message says which file and offset."""

    kind = LOCAL_DISK


class LogDirLocked(StorageError):
    """Another process holds the directory."""

    kind = LOCAL_DISK


class CorruptRecord(KraftError):
    """The bytes are not a valid record batch."""

    code = ErrorCode.CORRUPT_MESSAGE


class InvalidRecord(KraftError):
    """A well-formed batch that breaks a rule."""

    code = ErrorCode.INVALID_RECORD


class InvalidTimestamp(InvalidRecord):
    """A timestamp that is not what the batch says, or further from now than its topic allows."""

    code = ErrorCode.INVALID_TIMESTAMP


class SerializationError(InvalidRecord):
    """A key or value that its serializer or deserializer refuses."""


class RecordTooLarge(KraftError):
    code = ErrorCode.MESSAGE_TOO_LARGE


class OffsetOutOfRange(KraftError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class DuplicateSequence(KraftError):
    """The batch is in the log already, too far back to say at which offset."""

    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class UnsupportedCompression(KraftError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class UnsupportedVersion(KraftError):
    code = ErrorCode.UNSUPPORTED_VERSION


class NotYetSupported(UnsupportedVersion):
    """Planned, but not there yet: refused by name, never ignored."""


class TopicExists(KraftError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidRequest(KraftError):
    code = ErrorCode.INVALID_REQUEST


class ConfigError(KraftError, ValueError):
    code = ErrorCode.INVALID_CONFIG


class InvalidTopic(KraftError):
    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidPartitions(KraftError):
    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(KraftError):
    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(KraftError):
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class PolicyViolation(KraftError):
    """The request asks for more than one request may."""

    code = ErrorCode.POLICY_VIOLATION


class DuplicateBrokerRegistration(KraftError):
    """Another process with this broker id is alive."""

    code = ErrorCode.DUPLICATE_BROKER_REGISTRATION


class InvalidRegistration(KraftError):
    code = ErrorCode.INVALID_REGISTRATION


class BrokerNotRegistered(KraftError):
    code = ErrorCode.BROKER_ID_NOT_REGISTERED


class InconsistentClusterId(KraftError):
    code = ErrorCode.INCONSISTENT_CLUSTER_ID


class InvalidUpdateVersion(KraftError):
    """The change was computed from a state, or for a version, that is not the current one."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class IneligibleReplica(KraftError):
    """A broker that is not fit to be in an ISR now."""

    code = ErrorCode.INELIGIBLE_REPLICA


class NewLeaderElected(KraftError):
    """The change was made, and with it somebody else became the leader."""

    code = ErrorCode.NEW_LEADER_ELECTED


class ElectionNotNeeded(KraftError):
    code = ErrorCode.ELECTION_NOT_NEEDED


class NoReassignmentInProgress(KraftError):
    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class WireError(NamedTuple):
    """How an error travels: three fields of every reply."""

    code: int
    text: str
    hint: str


def to_wire(error: KraftError) -> WireError:
    """The fields of a reply that carries this error."""
    return WireError(int(error.code), error.message, error.hint)


def from_wire(wire: WireError, *, node: str | None = None) -> KraftError:
    """The exception that a reply stands for; `node` is who sent it."""
    invariant(wire.code != ErrorCode.NONE, "a reply without an error has no exception", wire=wire)
    code = find_code(wire.code)
    return class_of(wire.code)(
        wire.text or code_name(wire.code),
        hint=wire.hint,
        node=node,
        code=wire.code if code is None else code,
    )


def class_of(number: int) -> type[KraftError]:
    """The class of a code: its own, else that of its kind."""
    code = find_code(number)
    if code is None:
        return AmbiguousError  # we cannot know what it means, so not whether anything happened
    return _OWN_CLASS.get(code, _CLASS_OF_KIND.get(code.kind, KraftError))


def _tree(root: type[KraftError]) -> Iterator[type[KraftError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)


def _own_classes() -> dict[ErrorCode, type[KraftError]]:
    """A code belongs to the class that declares it and is of its kind.

    The second half leaves out TimeoutError_: on the wire a timeout is always ambiguous.
    """
    owners: dict[ErrorCode, type[KraftError]] = {}
    for error_class in _tree(KraftError):
        code = find_code(error_class.code) if "code" in vars(error_class) else None
        if code is not None and code.kind is error_class.kind:
            invariant(code not in owners, "two classes for one code", code=code)
            owners[code] = error_class
    return owners


_CLASS_OF_KIND: dict[Kind, type[KraftError]] = {
    MOVING: RetriableError,
    STALE_VIEW: InvalidMetadataError,
    AMBIGUOUS: AmbiguousError,
    SERVER: StorageError,
    FATAL: FencedError,
    TRANSACTION: AbortableTxnError,
    DENIED: AuthError,
    REQUEST: KraftError,
}
_OWN_CLASS = _own_classes()
