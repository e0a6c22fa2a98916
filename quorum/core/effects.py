"""What the core wants done. The driver carries out the list strictly in order.

Two kinds of work make whatever follows wait until they are durable: SaveElection, and the changes
that shorten a log (TruncateLog, FinishSnapshot). A flush does not: it runs while the core goes on,
and its end is reported with `RaftCore.flushed`; nor does the check of a download. Nothing in the
list has to be held back by the driver: a request that must not leave before a flush is not in the
list before that flush is reported. It still names the flush (`Send.after_flush`), so that the
driver can check.
"""

from dataclasses import dataclass

from kraftlog.types import Buffer
from quorum.core.messages import (
    Batch,
    FetchReply,
    FetchSnapshotReply,
    Refusal,
    ReplicaKey,
    ReplicaRequest,
    Reply,
    SnapshotId,
)
from quorum.core.state import ElectionState

# -- durable state


@dataclass(frozen=True, slots=True)
class SaveElection:
    """Write epoch, vote and leader in one atomic step; nothing that follows happens before."""

    election: ElectionState


@dataclass(frozen=True, slots=True)
class Append:
    """Append to the log. No flush yet: `Flush` follows where one is wanted.

    Batches that were `fetched` are complete; our own are still to get offset, epoch and time.
    """

    batches: tuple[Batch, ...]
    fetched: bool


@dataclass(frozen=True, slots=True)
class TruncateLog:
    """Cut the log so that it ends at `end_offset`. Durable before anything that follows."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Make the log durable up to `end_offset` and report it with the same `log_version`.

    One flush at a time: requests that come while one runs become one flush after it. The version
    tells a flush of what was cut meanwhile from one of what took its place.
    """

    end_offset: int
    log_version: int


@dataclass(frozen=True, slots=True)
class DropLogBelow:
    """The log now starts where this snapshot ends; older records and snapshots may go."""

    snapshot: SnapshotId


# -- snapshots of the leader


@dataclass(frozen=True, slots=True)
class StartSnapshot:
    """Begin a new, empty download."""

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class AppendSnapshotChunk:
    snapshot: SnapshotId
    position: int
    data: Buffer


@dataclass(frozen=True, slots=True)
class CheckSnapshot:
    """The download is complete: check the file and make it durable, while the core goes on.

    It ends in `snapshot_checked`, unless DropSnapshot comes first: then nobody hears of it.
    """

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class FinishSnapshot:
    """The download is sound: the log starts anew at its end.

    The next thing that the core hears is `snapshot_loaded`.
    """

    snapshot: SnapshotId


@dataclass(frozen=True, slots=True)
class DropSnapshot:
    """The download will not be finished."""

    snapshot: SnapshotId


# -- messages


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request. The answer comes back under `request_id`, and to this core only.

    `after_flush` is the end of the log that the request vouches for, already flushed.
    """

    request_id: int
    endpoint: str
    peer: ReplicaKey | None
    request: ReplicaRequest
    timeout_ms: int
    after_flush: int | None = None


@dataclass(frozen=True, slots=True)
class SendReply:
    """Answer the request that came in under `token`."""

    token: int
    reply: Reply


@dataclass(frozen=True, slots=True)
class SendRecords:
    """Answer a fetch with the log from `offset` on.

    At most `max_bytes`, at least one batch, nothing at or past `end_offset`.
    """

    token: int
    reply: FetchReply
    offset: int
    end_offset: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class SendSnapshotChunk:
    """Answer with the bytes of a snapshot from `reply.position` on, at most `max_bytes`."""

    token: int
    reply: FetchSnapshotReply
    max_bytes: int


# -- news for the state machine


@dataclass(frozen=True, slots=True)
class Committed:
    """All below `high_watermark` is decided. Never goes down.

    Proposals whose last offset is below it are done.
    """

    high_watermark: int


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Who leads the epoch, once per change; None: not known."""

    epoch: int
    leader_id: int | None


@dataclass(frozen=True, slots=True)
class LeadershipGained:
    """We lead. The state machine is told once it has consumed all up to and with `start_offset`."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """We led. Proposals that are not committed yet fail as *outcome unknown*."""

    epoch: int


@dataclass(frozen=True, slots=True)
class ReadReady:
    """These reads may be answered from any state that has consumed all below `end_offset`."""

    tokens: tuple[int, ...]
    end_offset: int


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """Not the leader, or no longer."""

    tokens: tuple[int, ...]
    refusal: Refusal


Effect = (
    SaveElection
    | Append
    | TruncateLog
    | Flush
    | DropLogBelow
    | StartSnapshot
    | AppendSnapshotChunk
    | CheckSnapshot
    | FinishSnapshot
    | DropSnapshot
    | Send
    | SendReply
    | SendRecords
    | SendSnapshotChunk
    | Committed
    | LeaderChanged
    | LeadershipGained
    | LeadershipLost
    | ReadReady
    | ReadFailed
)
