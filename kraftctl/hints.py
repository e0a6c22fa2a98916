"""The way out of an error that does not name one itself: servers and clients do not know which
commands there are.
"""

from kraftctl.exit_codes import UNREACHABLE, exit_code
from kraftlog.errors import ErrorCode, KraftError

_BY_CODE: dict[int, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "kraftctl topic ls shows what there is",
    ErrorCode.TOPIC_ALREADY_EXISTS: (
        "kraftctl topic describe shows it; to create it if missing: --if-not-exists"
    ),
    ErrorCode.INVALID_PARTITIONS: "say how many with -p, 1 or more",
    ErrorCode.INVALID_REPLICATION_FACTOR: "kraftctl node ls shows the brokers; say fewer with -r",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "kraftctl node ls shows the brokers",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "kraftctl node ls shows the brokers",
}
_OF_CLIENTS: dict[int, str] = {
    ErrorCode.OFFSET_OUT_OF_RANGE: "kraftctl topic offsets shows the ends"
}
"""Where the hint of the client is about its own settings."""


def way_out(error: KraftError, *, down: str | None) -> str:
    """What to do about an error. `down`: the local cluster that was meant, if it does not run."""
    if down is not None and exit_code(error) == UNREACHABLE:
        return f"the local cluster {down} does not run; start it: kraftctl up -d"
    return _OF_CLIENTS.get(error.code) or error.hint or _BY_CODE.get(error.code, "")
