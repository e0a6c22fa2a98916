"""The roles, each with what only that role needs, and the election state that outlives them.

    Unattached   knows the epoch, not the leader; observers wait here too
    Prospective  asks for pre-votes: would you vote for me? (KIP-996)
    Candidate    asks for votes in an epoch of its own
    Leader       appends, serves fetches, decides what is committed
    Follower     fetches from a leader it knows
    Resigned     led this epoch and must not lead it again

All deadlines are times of the clock that the driver passes in.
"""

from collections import deque
from dataclasses import dataclass, field

from kraftlog._check import invariant
from quorum.core.messages import FetchRequest, ReplicaKey, SnapshotId, Voter
from quorum.core.tally import Tally

NEVER_MS = 1 << 62


@dataclass(frozen=True, slots=True)
class ElectionState:
    """The content of the file `quorum-state`. Within an epoch vote and leader, once set, stay."""

    epoch: int = 0
    voted_key: ReplicaKey | None = None
    leader_id: int | None = None

    def check_successor(self, new: "ElectionState") -> None:
        """One vote and one leader per epoch, and no way back (thesis 3.4)."""
        invariant(new.epoch >= self.epoch, "epoch falls", old=self, new=new)
        if new.epoch == self.epoch:
            voted = self.voted_key in (None, new.voted_key)
            invariant(voted, "second vote in one epoch", old=self, new=new)
            led = self.leader_id in (None, new.leader_id)
            invariant(led, "second leader in one epoch", old=self, new=new)


@dataclass(slots=True)
class Unattached:
    election_deadline_ms: int


@dataclass(slots=True)
class Prospective:
    tally: Tally
    deadline_ms: int
    retries: int
    leader: Voter | None = None
    """Who led before it went silent; if a majority still hears it we go back."""
    rivals: set[ReplicaKey] = field(default_factory=set)
    """Who asked us for a pre-vote meanwhile, so that it no longer hears the leader either."""


@dataclass(slots=True)
class Candidate:
    tally: Tally
    deadline_ms: int
    retries: int
    lost: bool = False
    """No majority is left to win; the deadline is now the end of the backoff."""


@dataclass(slots=True)
class Download:
    """A snapshot on its way from the leader. `size` is known after the first chunk."""

    snapshot: SnapshotId
    position: int = 0
    size: int | None = None
    finished: bool = False
    """All bytes are here; the driver checks them."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A snapshot of a leader that made no sense, and until when it is not downloaded again."""

    leader: ReplicaKey
    snapshot: SnapshotId
    times: int
    until_ms: int


@dataclass(slots=True)
class Follower:
    leader: Voter
    fetch_deadline_ms: int
    update_voter_at_ms: int
    has_fetched: bool = False
    """The leader has answered a fetch in this epoch, so it is alive, and we grant no pre-votes."""
    download: Download | None = None
    pause_until_ms: int = 0
    """The leader is heard, and there is nothing to ask it for before this."""


@dataclass(slots=True)
class Progress:
    """What the leader knows of one replica, in this epoch only."""

    end_offset: int = -1
    last_fetch_ms: int = -1
    leader_end_offset: int = -1
    """Where the leader's log ended at the last fetch."""
    caught_up_ms: int = -1
    """The last time at which the replica had all that the leader had then."""


@dataclass(frozen=True, slots=True)
class Parked:
    """A fetch that waits for news."""

    token: int
    request: FetchRequest
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class VoterChange:
    """A change that waits for its voters record to be committed. `added`: which reply is due."""

    token: int
    offset: int
    added: bool


@dataclass(slots=True)
class Leader:
    start_offset: int
    """Where this epoch begins: the offset of its LeaderChange."""
    check_quorum_deadline_ms: int
    begin_at_ms: int
    granted_by: tuple[ReplicaKey, ...] = ()
    noop_offset: int = -1
    """The newest no-op that reads wait for."""
    replicas: dict[ReplicaKey, Progress] = field(default_factory=dict)
    parked: dict[ReplicaKey, Parked] = field(default_factory=dict)
    parked_until_ms: int = NEVER_MS
    """No parked fetch has waited long enough before this."""
    parked_at: tuple[int, int] = (0, 0)
    """Log end and high watermark: with these no parked fetch has news."""
    heard_ms: dict[ReplicaKey, int] = field(default_factory=dict)
    """When each of the other voters last fetched, or when it came to count."""
    change: VoterChange | None = None
    reads: deque[tuple[int, tuple[int, ...]]] = field(default_factory=deque)
    """Offset to be committed and the reads that wait for it, in log order."""
    late_reads: list[int] = field(default_factory=list)
    """Reads that came after the newest record, which therefore proves nothing for them."""


@dataclass(slots=True)
class Resigned:
    deadline_ms: int
    unacked: tuple[Voter, ...] = ()
    """Voters that have not yet heard that we no longer lead."""
    successors: tuple[ReplicaKey, ...] = ()


Role = Unattached | Prospective | Candidate | Leader | Follower | Resigned
