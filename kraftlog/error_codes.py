"""The table of what can go wrong: Kafka's number and name of each error, and its kind.

The kind answers what a caller has to know, in three attributes of which at most one holds:

    retriable        nothing happened, and the same request may succeed later
    outcome_unknown  it may have happened: repeat it only if a repeat does no harm
    fatal            whoever asked (this producer, this broker incarnation) is over: start anew

Where none holds, repeating the request changes nothing: what `blame` names has to change first.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a failure means for whoever asked."""

    blame: str
    retriable: bool = False
    fatal: bool = False
    outcome_unknown: bool = False


SUCCESS = Kind(blame="nobody: there is no error")
REQUEST = Kind(blame="the request: it would be refused again")
MOVING = Kind(blame="the moment: the same request may succeed later", retriable=True)
STALE_VIEW = Kind(blame="an old view of the cluster: refresh it and ask again", retriable=True)
AMBIGUOUS = Kind(blame="unknown, and so is the outcome", outcome_unknown=True)
SERVER = Kind(blame="the server's disk; the write may or may not be there", outcome_unknown=True)
LOCAL_DISK = Kind(blame="this machine's disk or directory; nothing was written")
FATAL = Kind(blame="whoever asked, who is no longer current", fatal=True)
TRANSACTION = Kind(blame="the transaction: abort it and begin another")
DENIED = Kind(blame="missing rights")


class ErrorCode(IntEnum):
    """Kafka's numbers and names, each with its kind."""

    kind: Kind

    def __new__(cls, number: int, kind: Kind) -> Self:
        member = int.__new__(cls, number)
        member._value_ = number
        member.kind = kind
        return member

    UNKNOWN_SERVER_ERROR = (-1, AMBIGUOUS)
    NONE = (0, SUCCESS)
    OFFSET_OUT_OF_RANGE = (1, REQUEST)
    CORRUPT_MESSAGE = (2, REQUEST)
    UNKNOWN_TOPIC_OR_PARTITION = (3, STALE_VIEW)
    INVALID_FETCH_SIZE = (4, REQUEST)
    LEADER_NOT_AVAILABLE = (5, STALE_VIEW)
    NOT_LEADER_OR_FOLLOWER = (6, STALE_VIEW)
    REQUEST_TIMED_OUT = (7, AMBIGUOUS)
    BROKER_NOT_AVAILABLE = (8, MOVING)
    REPLICA_NOT_AVAILABLE = (9, STALE_VIEW)
    MESSAGE_TOO_LARGE = (10, REQUEST)
    STALE_CONTROLLER_EPOCH = (11, FATAL)
    NETWORK_EXCEPTION = (13, AMBIGUOUS)
    COORDINATOR_LOAD_IN_PROGRESS = (14, MOVING)
    COORDINATOR_NOT_AVAILABLE = (15, STALE_VIEW)
    NOT_COORDINATOR = (16, STALE_VIEW)
    INVALID_TOPIC_EXCEPTION = (17, REQUEST)
    RECORD_LIST_TOO_LARGE = (18, REQUEST)
    NOT_ENOUGH_REPLICAS = (19, MOVING)
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, AMBIGUOUS)
    INVALID_REQUIRED_ACKS = (21, REQUEST)
    TOPIC_AUTHORIZATION_FAILED = (29, DENIED)
    GROUP_AUTHORIZATION_FAILED = (30, DENIED)
    CLUSTER_AUTHORIZATION_FAILED = (31, DENIED)
    INVALID_TIMESTAMP = (32, REQUEST)
    UNSUPPORTED_VERSION = (35, REQUEST)
    TOPIC_ALREADY_EXISTS = (36, REQUEST)
    INVALID_PARTITIONS = (37, REQUEST)
    INVALID_REPLICATION_FACTOR = (38, REQUEST)
    INVALID_REPLICA_ASSIGNMENT = (39, REQUEST)
    INVALID_CONFIG = (40, REQUEST)
    NOT_CONTROLLER = (41, STALE_VIEW)
    INVALID_REQUEST = (42, REQUEST)
    POLICY_VIOLATION = (44, REQUEST)
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, FATAL)
    DUPLICATE_SEQUENCE_NUMBER = (46, REQUEST)
    INVALID_PRODUCER_EPOCH = (47, FATAL)
    CONCURRENT_TRANSACTIONS = (51, MOVING)
    TRANSACTION_COORDINATOR_FENCED = (52, FATAL)
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, DENIED)
    OPERATION_NOT_ATTEMPTED = (55, MOVING)
    KAFKA_STORAGE_ERROR = (56, SERVER)
    LOG_DIR_NOT_FOUND = (57, REQUEST)
    SASL_AUTHENTICATION_FAILED = (58, DENIED)
    REASSIGNMENT_IN_PROGRESS = (60, REQUEST)
    FETCH_SESSION_ID_NOT_FOUND = (70, MOVING)
    INVALID_FETCH_SESSION_EPOCH = (71, MOVING)
    FENCED_LEADER_EPOCH = (74, STALE_VIEW)
    UNKNOWN_LEADER_EPOCH = (75, MOVING)
    UNSUPPORTED_COMPRESSION_TYPE = (76, REQUEST)
    STALE_BROKER_EPOCH = (77, FATAL)
    OFFSET_NOT_AVAILABLE = (78, MOVING)
    PREFERRED_LEADER_NOT_AVAILABLE = (80, MOVING)
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, MOVING)
    ELECTION_NOT_NEEDED = (84, REQUEST)
    NO_REASSIGNMENT_IN_PROGRESS = (85, REQUEST)
    INVALID_RECORD = (87, REQUEST)
    THROTTLING_QUOTA_EXCEEDED = (89, MOVING)
    PRODUCER_FENCED = (90, FATAL)
    RESOURCE_NOT_FOUND = (91, REQUEST)
    INVALID_UPDATE_VERSION = (95, REQUEST)
    FEATURE_UPDATE_FAILED = (96, REQUEST)
    SNAPSHOT_NOT_FOUND = (98, REQUEST)
    POSITION_OUT_OF_RANGE = (99, REQUEST)
    UNKNOWN_TOPIC_ID = (100, STALE_VIEW)
    DUPLICATE_BROKER_REGISTRATION = (101, REQUEST)
    BROKER_ID_NOT_REGISTERED = (102, REQUEST)
    INCONSISTENT_TOPIC_ID = (103, STALE_VIEW)
    INCONSISTENT_CLUSTER_ID = (104, REQUEST)
    INELIGIBLE_REPLICA = (107, REQUEST)
    NEW_LEADER_ELECTED = (108, REQUEST)
    FENCED_MEMBER_EPOCH = (110, FATAL)
    INVALID_REGISTRATION = (119, REQUEST)
    TRANSACTION_ABORTABLE = (120, TRANSACTION)
    INVALID_VOTER_KEY = (125, REQUEST)
    DUPLICATE_VOTER = (126, REQUEST)
    VOTER_NOT_FOUND = (127, REQUEST)

    @property
    def retriable(self) -> bool:
        return self.kind.retriable

    @property
    def fatal(self) -> bool:
        return self.kind.fatal

    @property
    def outcome_unknown(self) -> bool:
        return self.kind.outcome_unknown


_BY_NUMBER = {int(code): code for code in ErrorCode}


def find_code(number: int) -> ErrorCode | None:
    """The code of a number, or None for one that only a newer server knows."""
    return _BY_NUMBER.get(number)


def code_name(number: int) -> str:
    """Kafka's name of a number, or one made up for a number that we do not know."""
    code = find_code(number)
    return code.name if code is not None else f"ERROR_{number}"
