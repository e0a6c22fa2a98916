"""What the exit code of every command means. Scripts rely on it.

0    ok
1    the operation failed
2    usage: a flag, a key or a value that makes no sense
3    unhealthy, or a verdict that failed
4    nobody answered, or not in time
5    not found
6    conflict: it exists already, is fenced, or somebody was faster
7    refused by a safety guard; the hint names the flag that overrides it
130  interrupted
"""

from kraftlog.errors import (
    ConfigError,
    ErrorCode,
    FencedError,
    KraftError,
    LeaderNotAvailable,
    LogDirLocked,
    NetworkError,
    NotController,
    NotYetSupported,
    RequestTimedOut,
    TimeoutError_,
    TopicExists,
    UnknownTopicOrPartition,
)

OK = 0
FAILED = 1
USAGE = 2
UNHEALTHY = 3
UNREACHABLE = 4
NOT_FOUND = 5
CONFLICT = 6
REFUSED = 7
INTERRUPTED = 130

_NOT_FOUND = {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.BROKER_ID_NOT_REGISTERED,
    ErrorCode.VOTER_NOT_FOUND,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
}
_CONFLICT = {
    ErrorCode.DUPLICATE_VOTER,
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.INCONSISTENT_CLUSTER_ID,
}
_USAGE = {
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.INVALID_PARTITIONS,
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.OFFSET_OUT_OF_RANGE,
}


class NotFound(KraftError):
    """There is nothing of that name."""


class Conflict(KraftError):
    """It is there already, or in the way."""


class Guarded(KraftError):
    """Something that could do harm, and was not asked for clearly enough."""


def error_of(code: int, message: str, hint: str = "") -> KraftError:
    """What another process of ours has ended with, as an error here."""
    kinds: dict[int, type[KraftError]] = {
        USAGE: ConfigError,
        UNREACHABLE: TimeoutError_,
        NOT_FOUND: NotFound,
        CONFLICT: Conflict,
        REFUSED: Guarded,
    }
    return kinds.get(code, KraftError)(message, hint=hint)


def exit_code(error: KraftError) -> int:
    match error:
        case Guarded():
            return REFUSED
        case ConfigError() | NotYetSupported():
            return USAGE
        case NetworkError() | RequestTimedOut() | TimeoutError_():
            return UNREACHABLE
        case LeaderNotAvailable() | NotController():  # to the end: nobody leads
            return UNREACHABLE
        case NotFound() | UnknownTopicOrPartition():
            return NOT_FOUND
        case Conflict() | TopicExists() | FencedError() | LogDirLocked():
            return CONFLICT
        case _:
            return _by_code(error.code)


def _by_code(code: int) -> int:
    if code == ErrorCode.BROKER_NOT_AVAILABLE:
        return UNREACHABLE
    if code in _NOT_FOUND:
        return NOT_FOUND
    if code in _CONFLICT:
        return CONFLICT
    return USAGE if code in _USAGE else FAILED
