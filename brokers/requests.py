"""What is asked of a broker's data plane and what it answers, free of any wire format.

Requests are judged partition by partition: each answer has an error of its own, or none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from brokers.cluster import PartitionId
from brokers.refusals import LeaderHint
from kraftlog.errors import KraftError
from kraftlog.types import NO_TIMESTAMP, Buffer, EpochEnd

NO_OFFSET = -1
ACKS_ALL = -1

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3

NO_SESSION = 0
NEW_SESSION_EPOCH = 0
SESSIONLESS_EPOCH = -1

# -- produce


@dataclass(frozen=True, slots=True)
class ProducePart:
    partition: PartitionId
    records: Buffer


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    acks: int
    timeout_ms: int
    parts: Sequence[ProducePart]


@dataclass(slots=True)
class ProduceResult:
    partition: PartitionId
    base_offset: int = NO_OFFSET
    append_time: int = NO_TIMESTAMP
    log_start_offset: int = NO_OFFSET
    error: KraftError | None = None
    leader: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class ProduceReply:
    """In the order of the request; empty for acks=0, unless something was refused."""

    parts: Sequence[ProduceResult] = ()


# -- fetch


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """The broker that replicates, as it is registered."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class FetchPart:
    partition: PartitionId
    offset: int
    leader_epoch: int | None = None
    last_fetched_epoch: int | None = None
    log_start_offset: int = NO_OFFSET
    max_bytes: int = 1 << 20
    high_watermark: int = NO_OFFSET
    """What the replica knows; a higher one is news."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    replica: ReplicaIdentity | None = None
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 << 20
    session_id: int = NO_SESSION
    session_epoch: int = SESSIONLESS_EPOCH
    parts: Sequence[FetchPart] = ()
    forgotten: Sequence[PartitionId] = ()
    rack: str = ""
    wake: bool = False
    """Only answer at once the fetch of this session that is parked; this one gets an empty reply.
    So a replica that has more to ask for need not wait until its parked fetch returns.
    """


@dataclass(slots=True)
class FetchResult:
    partition: PartitionId
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    end_offset: int = NO_OFFSET
    """The end of the leader's log; replicas need it where their offset is out of range."""
    records: bytes = b""
    diverging: EpochEnd | None = None
    preferred_replica: int | None = None
    error: KraftError | None = None
    leader: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class FetchReply:
    session_id: int = NO_SESSION
    parts: Sequence[FetchResult] = ()
    error: KraftError | None = None
    """Why the request as a whole was refused: its session is not known."""


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """Records of one partition with from_offset <= offset < to_offset, in whole batches."""

    partition: PartitionId
    from_offset: int
    to_offset: int
    leader_epoch: int | None = None
    message_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class RangePiece:
    records: bytes = b""
    next_offset: int = NO_OFFSET
    high_watermark: int = NO_OFFSET
    error: KraftError | None = None
    leader: LeaderHint | None = None


# -- offsets


@dataclass(frozen=True, slots=True)
class OffsetQuery:
    """`timestamp` in milliseconds, or LATEST_TIMESTAMP, EARLIEST_TIMESTAMP, MAX_TIMESTAMP."""

    partition: PartitionId
    timestamp: int
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetAnswer:
    partition: PartitionId
    offset: int = NO_OFFSET
    timestamp: int = NO_TIMESTAMP
    leader_epoch: int = -1
    error: KraftError | None = None
    leader: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class EpochQuery:
    partition: PartitionId
    leader_epoch: int
    current_leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class EpochAnswer:
    partition: PartitionId
    end: EpochEnd | None = None
    error: KraftError | None = None
    leader: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class EndsPart:
    partition: PartitionId
    known_end: int = NO_OFFSET
    """The answer waits for an end above it; -1: for none."""


@dataclass(frozen=True, slots=True)
class EndsRequest:
    parts: Sequence[EndsPart]
    max_wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class EndsAnswer:
    partition: PartitionId
    log_start_offset: int = NO_OFFSET
    high_watermark: int = NO_OFFSET
    leader_epoch: int = -1
    error: KraftError | None = None
    leader: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class DeletePart:
    """All below `offset` goes; -1: all below the high watermark."""

    partition: PartitionId
    offset: int


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    parts: Sequence[DeletePart]
    timeout_ms: int


@dataclass(slots=True)
class DeleteAnswer:
    partition: PartitionId
    log_start_offset: int = NO_OFFSET
    error: KraftError | None = None
    leader: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class RangeQuery:
    partition: PartitionId
    from_offset: int
    to_offset: int


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    bytes: int = 0
    error: KraftError | None = None
    leader: LeaderHint | None = None


DigestOf = bool | Mapping[PartitionId, tuple[int, int]]
"""Of nothing, of all that is committed, or of these offsets, the second one exclusive."""


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """What this broker has of a partition, whether it leads it or not."""

    partition: PartitionId
    topic: str
    log_dir: str
    size_bytes: int
    log_start_offset: int
    high_watermark: int
    end_offset: int
    leader_epoch: int
    is_leader: bool
    digest: int | None = None


# -- changes of the ISR


@dataclass(frozen=True, slots=True)
class IsrMember:
    """A member and the broker epoch whose fetches the leader saw; None: not known."""

    broker_id: int
    broker_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class IsrChange:
    """What a leader asks of the controller. The two epochs are those that it was computed from."""

    partition: PartitionId
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    recovering: bool = False

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(member.broker_id for member in self.isr)


@dataclass(frozen=True, slots=True)
class IsrResult:
    """The partition after the change; with an error only the error counts."""

    partition: PartitionId
    leader: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = field(default=())
    recovering: bool = False
    error: KraftError | None = None
