"""What replicas say to each other. Plain values: the wire format is somebody else's business.

Every request carries the cluster id, the key of its sender and, where the sender knows it, the key
of its recipient. Every reply carries the answerer's epoch, the leader it knows of, and a `refusal`
that says why not (None: accepted).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from kraftlog.errors import ErrorCode
from kraftlog.types import Buffer, EpochEnd, Uuid

# -- who


@dataclass(frozen=True, slots=True, order=True)
class ReplicaKey:
    """A replica is a node *and* its disk: a wiped disk is another replica (KIP-853)."""

    node_id: int
    directory_id: Uuid

    def __str__(self) -> str:
        return f"{self.node_id}:{self.directory_id}"


@dataclass(frozen=True, slots=True, order=True)
class Voter:
    """A replica and where to reach it."""

    key: ReplicaKey
    endpoint: str


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Who elects and who counts for a commit. As a control record it holds the full set."""

    voters: tuple[Voter, ...] = ()
    keys: tuple[ReplicaKey, ...] = field(init=False, repr=False, compare=False)
    _members: frozenset[ReplicaKey] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = [voter.key.node_id for voter in self.voters]
        if ids != sorted(set(ids)):
            raise ValueError(f"voters are sorted and each has its own id, not {ids}")
        # Asked for at every fetch.
        keys = tuple(voter.key for voter in self.voters)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "_members", frozenset(keys))

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "VoterSet":
        return cls(tuple(sorted(voters)))

    def __contains__(self, key: ReplicaKey) -> bool:
        return key in self._members

    def __len__(self) -> int:
        return len(self.voters)

    def find(self, node_id: int) -> Voter | None:
        """The voter with this node id, whatever its disk."""
        return next((voter for voter in self.voters if voter.key.node_id == node_id), None)

    def find_key(self, key: ReplicaKey) -> Voter | None:
        return next((voter for voter in self.voters if voter.key == key), None)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """This set and one more; a voter with the same node id is replaced."""
        others = (old for old in self.voters if old.key.node_id != voter.key.node_id)
        return VoterSet.of((*others, voter))

    def without(self, key: ReplicaKey) -> "VoterSet":
        return VoterSet(tuple(voter for voter in self.voters if voter.key != key))


# -- what is in the log


@dataclass(frozen=True, slots=True, order=True)
class SnapshotId:
    """A snapshot holds all below `end_offset`; `epoch` is that of the last record it holds."""

    end_offset: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.end_offset}-{self.epoch}"


# Written by `form`: it holds the first voters and no history, so it is never served to others.
BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """The first record of every epoch. Once it is committed, so is all before it (thesis 3.6.2)."""

    leader: ReplicaKey
    voters: tuple[ReplicaKey, ...]
    granted_by: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class NoOp:
    """Says nothing. A linearizable read waits until one written after its arrival is committed."""


Control = LeaderChange | VoterSet | NoOp


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that live and die together: opaque data, or one control record of ours.

    `data` is the batch as the log holds it. Of a control record that we are about to write it is
    empty: the store encodes it.
    """

    base_offset: int
    epoch: int
    count: int
    data: Buffer = b""
    control: Control | None = None

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count


@dataclass(frozen=True, slots=True)
class Proposal:
    """Data for one batch: opaque bytes and the number of records in them."""

    data: Buffer
    count: int


# -- why not


class Refusal(Enum):
    """Why a request was not granted. `quorum why` shows these words."""

    LOG_BEHIND = ("log behind", ErrorCode.NONE)
    ALREADY_VOTED = ("already voted", ErrorCode.NONE)
    OTHER_LEADER = ("another leader in this epoch", ErrorCode.INVALID_REQUEST)
    LEADER_ALIVE = ("leader alive", ErrorCode.NONE)
    EPOCH_STALE = ("epoch stale", ErrorCode.FENCED_LEADER_EPOCH)
    EPOCH_UNKNOWN = ("epoch unknown", ErrorCode.UNKNOWN_LEADER_EPOCH)
    EPOCH_TOO_FAR_AHEAD = ("epoch too far ahead", ErrorCode.INVALID_REQUEST)
    WRONG_CLUSTER = ("wrong cluster", ErrorCode.INCONSISTENT_CLUSTER_ID)
    WRONG_RECIPIENT = ("wrong recipient", ErrorCode.INVALID_VOTER_KEY)
    SAME_NODE_ID = ("same node id", ErrorCode.INVALID_REQUEST)
    INVALID_REQUEST = ("invalid request", ErrorCode.INVALID_REQUEST)
    NOT_LEADER = ("not leader", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    LEADERSHIP_LOST = ("leadership lost, outcome unknown", ErrorCode.REQUEST_TIMED_OUT)
    BUSY = ("busy", ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    BATCH_TOO_LARGE = ("batch too large", ErrorCode.MESSAGE_TOO_LARGE)
    SNAPSHOT_NOT_FOUND = ("snapshot not found", ErrorCode.SNAPSHOT_NOT_FOUND)
    SNAPSHOT_DAMAGED = ("snapshot damaged", ErrorCode.CORRUPT_MESSAGE)
    POSITION_OUT_OF_RANGE = ("position out of range", ErrorCode.POSITION_OUT_OF_RANGE)
    CHANGE_PENDING = ("another change is pending", ErrorCode.REQUEST_TIMED_OUT)
    EPOCH_NOT_COMMITTED = ("epoch not committed yet", ErrorCode.REQUEST_TIMED_OUT)
    NOT_CAUGHT_UP = ("not caught up", ErrorCode.REQUEST_TIMED_OUT)
    DUPLICATE_VOTER = ("duplicate voter", ErrorCode.DUPLICATE_VOTER)
    VOTER_NOT_FOUND = ("voter not found", ErrorCode.VOTER_NOT_FOUND)
    LAST_VOTER = ("last voter", ErrorCode.VOTER_NOT_FOUND)

    def __init__(self, text: str, code: ErrorCode) -> None:
        self.text = text
        self.code = code

    def __str__(self) -> str:
        return self.text


# -- requests and replies


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftRequest:
    """What all requests between replicas say. `recipient` None: whoever listens at an address."""

    cluster_id: Uuid
    sender: ReplicaKey
    recipient: ReplicaKey | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftReply:
    """What all replies say. `leader` is the leader of `epoch`, where the answerer knows it."""

    epoch: int
    leader: Voter | None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRequest(RaftRequest):
    """Will you vote for me? A pre-vote only asks whether you would, in your present epoch."""

    last_epoch: int
    end_offset: int
    pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteReply(RaftReply):
    @property
    def granted(self) -> bool:
        return self.refusal is None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochRequest(RaftRequest):
    """I lead this epoch. Repeated as long as it lasts: followers pull, so they must find me."""

    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochReply(RaftReply):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochRequest(RaftRequest):
    """I no longer lead. The first of the successors holds most of my log and may campaign first."""

    successors: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochReply(RaftReply):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest(RaftRequest):
    """Give me what follows `offset`; all below it is durable here, and ends in `last_epoch`."""

    offset: int
    last_epoch: int
    high_watermark: int
    max_wait_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchReply(RaftReply):
    """Records, or where the logs part, or which snapshot to fetch instead.

    `high_watermark` is None until the leader has committed something in its own epoch: before
    that it does not know how far its predecessors came.
    """

    high_watermark: int | None = None
    log_start_offset: int = 0
    batches: tuple[Batch, ...] = ()
    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotRequest(RaftRequest):
    snapshot: SnapshotId
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotReply(RaftReply):
    snapshot: SnapshotId
    size: int = 0
    position: int = 0
    data: Buffer = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterRequest(RaftRequest):
    """A voter whose endpoint changed tells the leader."""

    voter: Voter


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterReply(RaftReply):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class AddVoterRequest:
    """From an operator, not from a replica."""

    cluster_id: Uuid
    voter: Voter


@dataclass(frozen=True, slots=True, kw_only=True)
class AddVoterReply(RaftReply):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVoterRequest:
    """From an operator, not from a replica."""

    cluster_id: Uuid
    key: ReplicaKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveVoterReply(RaftReply):
    pass


ReplicaRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | UpdateVoterRequest
)
Request = ReplicaRequest | AddVoterRequest | RemoveVoterRequest
ReplicaReply = (
    VoteReply
    | BeginQuorumEpochReply
    | EndQuorumEpochReply
    | FetchReply
    | FetchSnapshotReply
    | UpdateVoterReply
)
Reply = ReplicaReply | AddVoterReply | RemoveVoterReply
