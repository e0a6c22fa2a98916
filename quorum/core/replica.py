"""What all parts of the core share: who we are, what we know, what we want done.

Nothing here decides anything about elections or replication. It owns the three lists that every
decision ends in: the election state, the effects, and the requests on their way.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from kraftlog._check import invariant
from quorum.core.config import EPOCH_MAX, RaftConfig
from quorum.core.effects import Effect, Flush, LeaderChanged, SaveElection, Send, SendReply
from quorum.core.log_view import LogView
from quorum.core.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RaftRequest,
    Refusal,
    ReplicaKey,
    ReplicaRequest,
    Reply,
    UpdateVoterRequest,
    Voter,
    VoteRequest,
    VoterSet,
)
from quorum.core.state import ElectionState, Follower, Leader, Rejected, Role, Unattached

Draw = Callable[[int], int]
"""A whole number in [0, n), from dice that the driver owns."""

REFUSALS_KEPT = 8
"""Per peer."""
REFUSED_PEERS_MAX = 64
"""Anybody can make up a node id; those that were heard of last are kept."""


@dataclass(frozen=True, slots=True)
class RefusalNote:
    """One refusal, ours or theirs, for whoever asks why."""

    at_ms: int
    epoch: int
    request: str
    refusal: Refusal
    ours: bool


@dataclass(slots=True)
class InFlight:
    endpoint: str
    peer: ReplicaKey | None
    request: ReplicaRequest


@dataclass(slots=True)
class Replica:
    config: RaftConfig
    log: LogView
    election: ElectionState
    draw: Draw
    now_ms: int
    role: Role = field(init=False)
    high_watermark: int = 0
    """All below is committed, as far as we know. Never goes down."""
    resigned_epoch: int = -1
    """The leader of this epoch told us that it leads no more, and it will not again."""
    effects: list[Effect] = field(default_factory=list)
    inflight: dict[int, InFlight] = field(default_factory=dict)
    retry_at_ms: dict[str, int] = field(default_factory=dict)
    refusals: dict[int, deque[RefusalNote]] = field(default_factory=dict)
    votes_refused: Counter[Refusal] = field(default_factory=Counter)
    rejected: Rejected | None = None
    snapshots_rejected: int = 0
    _requests_made: int = 0
    _announced: tuple[int, int | None] = (-1, None)

    def __post_init__(self) -> None:
        # A snapshot holds nothing but committed records.
        latest = self.log.latest_snapshot
        self.high_watermark = latest.end_offset if latest else self.log.start_offset
        self.role = Unattached(self.now_ms)

    # -- who

    @property
    def key(self) -> ReplicaKey:
        return self.config.key

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def voters(self) -> VoterSet:
        """The latest in the log, committed or not (KIP-853)."""
        return self.log.latest_voters.voters

    @property
    def is_voter(self) -> bool:
        return self.key in self.voters

    @property
    def may_campaign(self) -> bool:
        """Voters may. So may one whose removal is not committed, as far as it knows: if nobody else
        has that record, nobody else can be elected (thesis 4.2.2).
        """
        return self.is_voter or self.key in self.log.committed_voters(self.high_watermark)

    @property
    def other_voters(self) -> tuple[Voter, ...]:
        return tuple(voter for voter in self.voters.voters if voter.key != self.key)

    @property
    def itself(self) -> Voter:
        return Voter(self.key, self.config.endpoint)

    @property
    def known_leader(self) -> Voter | None:
        """The leader of our epoch with its address, where we know both."""
        if isinstance(self.role, Leader):
            return self.itself
        return self.role.leader if isinstance(self.role, Follower) else None

    @property
    def is_leader_gone(self) -> bool:
        return self.resigned_epoch == self.epoch

    # -- effects

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def reply(self, token: int, reply: Reply) -> None:
        self.emit(SendReply(token, reply))

    def save_election(self, election: ElectionState) -> None:
        """The only way in which epoch, vote and leader change."""
        if election == self.election:
            return
        self.election.check_successor(election)
        invariant(election.epoch <= EPOCH_MAX, "epochs are used up", election=election)
        self.election = election
        self._save(SaveElection(election))

    def _save(self, save: SaveElection) -> None:
        """Two changes that only the news of the first stands between are one durable write."""
        last = len(self.effects) - 1
        if last > 0 and isinstance(self.effects[last], LeaderChanged):
            last -= 1
        if last >= 0 and isinstance(self.effects[last], SaveElection):
            self.effects[last] = save
        else:
            self.emit(save)

    def enter_epoch(self, epoch: int, leader_id: int | None = None) -> None:
        invariant(epoch > self.epoch, "entering an old epoch", epoch=epoch, own=self.epoch)
        self.save_election(ElectionState(epoch, leader_id=leader_id))

    def set_role(self, role: Role) -> None:
        """Answers to requests of the former role no longer count: forget the requests, and whom
        not to ask again at once.
        """
        self.role = role
        self.inflight.clear()
        self.retry_at_ms.clear()
        self.announce_leader()

    def announce_leader(self) -> None:
        leader = self.known_leader
        known = (self.epoch, leader.key.node_id if leader else None)
        if known != self._announced:
            self._announced = known
            self.emit(LeaderChanged(*known))

    def save_leader(self, leader_id: int) -> None:
        self.save_election(replace(self.election, leader_id=leader_id))

    # -- durability

    @property
    def must_flush(self) -> bool:
        """Voters promise what they hold. Controllers may become voters at any time."""
        return self.config.flush_always or self.is_voter

    @property
    def is_durable(self) -> bool:
        """Whether the end of our log may be told to others: the offset of a fetch is a promise."""
        return self.log.flushed_offset == self.log.end_offset or not self.must_flush

    def flush(self) -> None:
        if not self.is_durable:
            self.emit(Flush(self.log.end_offset, self.log.version))

    # -- requests of ours

    def may_send_to(self, endpoint: str) -> bool:
        """One request per peer at a time, and a pause after each that failed."""
        if self.now_ms < self.retry_at_ms.get(endpoint, 0):
            return False
        return all(flight.endpoint != endpoint for flight in self.inflight.values())

    def send(
        self, to: Voter | str, request: ReplicaRequest, *, after_flush: int | None = None
    ) -> None:
        endpoint, peer = (to, None) if isinstance(to, str) else (to.endpoint, to.key)
        self._requests_made += 1
        self.inflight[self._requests_made] = InFlight(endpoint, peer, request)
        timeout_ms = self.config.timing.request_timeout_ms
        self.emit(Send(self._requests_made, endpoint, peer, request, timeout_ms, after_flush))

    def back_off(self, endpoint: str) -> None:
        self.retry_at_ms[endpoint] = self.now_ms + self.config.timing.retry_backoff_ms

    def retry_times(self) -> Iterator[int]:
        return (at for at in self.retry_at_ms.values() if at > self.now_ms)

    # -- refusals

    def note_refusal(self, peer_id: int, request: str, refusal: Refusal, *, ours: bool) -> None:
        self.votes_refused[refusal] += ours and request in VOTES
        notes = self.refusals.pop(peer_id, None) or deque(maxlen=REFUSALS_KEPT)
        notes.append(RefusalNote(self.now_ms, self.epoch, request, refusal, ours))
        self.refusals[peer_id] = notes
        if len(self.refusals) > REFUSED_PEERS_MAX:
            del self.refusals[next(iter(self.refusals))]

    def why_not(self, request: RaftRequest) -> Refusal | None:
        """What is checked of every request before it can change anything (ARCHITECTURE 14)."""
        if request.cluster_id != self.config.cluster_id:
            return Refusal.WRONG_CLUSTER
        if request.recipient not in (None, self.key):
            return Refusal.WRONG_RECIPIENT
        if request.sender.node_id == self.key.node_id:
            return Refusal.SAME_NODE_ID
        if request.epoch < 0 or request.sender.node_id < 1:
            return Refusal.INVALID_REQUEST
        if not self.is_plausible(request.epoch):
            return Refusal.EPOCH_TOO_FAR_AHEAD
        return None

    def is_plausible(self, epoch: int) -> bool:
        """A replica far ahead of us is not ahead but broken, or not one of ours. Nor does anybody
        take us to the last epoch of all, after which there could be no election.
        """
        return epoch <= self.epoch + self.config.epoch_lead_max and epoch < EPOCH_MAX

    # -- timers

    def election_timeout(self) -> int:
        """When an election that begins now has taken too long: drawn from [T, 2T)."""
        base = self.config.timing.election_timeout_ms
        return self.now_ms + base + self.draw(base)

    def pre_vote_pause(self) -> int:
        """When to ask again after pre-votes were refused: drawn from [T/2, T). It costs no epoch,
        so it may be sooner than the next election.
        """
        half = max(1, self.config.timing.election_timeout_ms // 2)
        return self.now_ms + half + self.draw(half)

    def fetch_timeout(self) -> int:
        return self.now_ms + self.config.timing.fetch_timeout_ms


VOTES = ("vote", "pre-vote")


def name_of(request: RaftRequest) -> str:
    """A request in the words of `quorum why`."""
    match request:
        case VoteRequest(pre_vote=pre_vote):
            return VOTES[pre_vote]
        case BeginQuorumEpochRequest():
            return "begin epoch"
        case EndQuorumEpochRequest():
            return "end epoch"
        case FetchRequest():
            return "fetch"
        case FetchSnapshotRequest():
            return "fetch snapshot"
        case UpdateVoterRequest():
            return "update voter"
        case _:
            return "request"
