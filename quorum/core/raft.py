"""The core of the quorum: inputs in, effects out. No clock, dice, socket, disk or task inside.

    core.handle_request(token, request, now_ms)     somebody asks us
    core.handle_reply(request_id, reply, now_ms)    an answer, or None when there will be none
    core.tick(now_ms)                               `wake_at_ms` has come
    core.propose(proposals, now_ms)                 append as leader
    core.flushed(end_offset, log_version, now_ms)   a flush is done
    core.take_effects()                             what to do now, in this order

All branching on what came in is here; what to do about it is in the module of the role.
"""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from kraftlog._check import invariant
from kraftlog.errors import NotLeaderError
from quorum.core.config import RaftConfig
from quorum.core.effects import DropLogBelow, Effect, ReadFailed
from quorum.core.election import (
    learn_leader,
    on_begin_reply,
    on_begin_request,
    on_end_reply,
    on_end_request,
    on_vote_reply,
    on_vote_request,
    poll_campaign,
    poll_resigned,
    poll_unattached,
)
from quorum.core.follower import (
    load_snapshot,
    on_fetch_reply,
    on_fetch_snapshot_reply,
    on_update_voter_reply,
    poll_discovery,
    poll_follower,
    reject_snapshot,
    take_snapshot,
)
from quorum.core.leader import (
    add_read,
    advance_commit,
    append_proposals,
    check_quorum,
    has_committed,
    judge_proposals,
    on_fetch_request,
    on_fetch_snapshot_request,
    open_epoch,
    poll_leader,
)
from quorum.core.log_view import LogView
from quorum.core.membership import on_add_voter, on_remove_voter, on_update_voter
from quorum.core.messages import (
    AddVoterRequest,
    BeginQuorumEpochReply,
    BeginQuorumEpochRequest,
    EndQuorumEpochReply,
    EndQuorumEpochRequest,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    Proposal,
    RaftRequest,
    Refusal,
    RemoveVoterRequest,
    ReplicaKey,
    ReplicaReply,
    Reply,
    Request,
    SnapshotId,
    UpdateVoterReply,
    UpdateVoterRequest,
    Voter,
    VoteReply,
    VoteRequest,
    VoterSet,
)
from quorum.core.replica import Draw, InFlight, RefusalNote, Replica, name_of
from quorum.core.state import (
    Candidate,
    ElectionState,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorum.core.transitions import begin, follow_epoch, resign

ROUNDS_MAX = 16
"""How many changes of role one input may bring: prospective, candidate, leader, and room."""


class RaftCore:
    """One replica. Not thread-safe: one driver calls it, and carries out its effects in order."""

    def __init__(
        self, config: RaftConfig, log: LogView, election: ElectionState, *, draw: Draw, now_ms: int
    ) -> None:
        self._replica = Replica(config, log, election, draw, now_ms)
        begin(self._replica)
        self._poll()

    # -- what others may look at

    @property
    def role(self) -> Role:
        return self._replica.role

    @property
    def election(self) -> ElectionState:
        return self._replica.election

    @property
    def epoch(self) -> int:
        return self._replica.epoch

    @property
    def log(self) -> LogView:
        return self._replica.log

    @property
    def voters(self) -> VoterSet:
        return self._replica.voters

    @property
    def is_voter(self) -> bool:
        return self._replica.is_voter

    @property
    def high_watermark(self) -> int:
        return self._replica.high_watermark

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def key(self) -> ReplicaKey:
        return self._replica.key

    @property
    def now_ms(self) -> int:
        return self._replica.now_ms

    @property
    def leader(self) -> Voter | None:
        """The leader of our epoch and its address, where we know both."""
        return self._replica.known_leader

    @property
    def leader_id(self) -> int | None:
        return self.leader.key.node_id if self.leader else None

    @property
    def refusals(self) -> Mapping[int, Sequence[RefusalNote]]:
        return {node_id: tuple(notes) for node_id, notes in self._replica.refusals.items()}

    @property
    def votes_refused(self) -> Mapping[Refusal, int]:
        """Votes and pre-votes that we did not give, by the reason."""
        return self._replica.votes_refused

    @property
    def snapshots_rejected(self) -> int:
        """Downloads that made no sense."""
        return self._replica.snapshots_rejected

    # -- inputs

    def tick(self, now_ms: int) -> None:
        self._begin_input(now_ms)
        self._poll()

    def handle_request(self, token: int, request: Request, now_ms: int) -> None:
        self._begin_input(now_ms)
        if isinstance(self.role, Leader):
            # First: a fetch that waited while this process stood still is no news of a majority.
            check_quorum(self._replica, self.role)
        self._on_request(token, request)
        self._poll()

    def handle_reply(self, request_id: int, reply: Reply | None, now_ms: int) -> None:
        """The answer to a request of ours; None: it failed or took too long."""
        self._begin_input(now_ms)
        flight = self._replica.inflight.pop(request_id, None)
        if flight is None:
            pass  # asked in a role that is over
        elif reply is None:
            self._replica.back_off(flight.endpoint)
        else:
            self._on_reply(flight, reply)
        self._poll()

    def propose(self, proposals: Sequence[Proposal], *, epoch: int, now_ms: int) -> int:
        """Append as the leader of `epoch`; returns the first offset. Done once it is committed."""
        self._begin_input(now_ms)
        role = self.role
        if not isinstance(role, Leader) or epoch != self.epoch:
            raise NotLeaderError(
                f"node {self._replica.key.node_id} does not lead epoch {epoch}",
                hint=f"ask the leader, node {self.leader_id}" if self.leader_id else "try again",
            )
        judge_proposals(self._replica, proposals)
        first = append_proposals(self._replica, role, proposals)
        self._poll()
        return first

    def read(self, token: int, now_ms: int) -> None:
        """Ask for a linearizable read; answered by ReadReady or ReadFailed."""
        self._begin_input(now_ms)
        role = self.role
        if isinstance(role, Leader):
            add_read(role, token)
        else:
            self._replica.emit(ReadFailed((token,), Refusal.NOT_LEADER))
        self._poll()

    def flushed(self, end_offset: int, log_version: int, now_ms: int) -> None:
        """All below `end_offset` of that version of the log is durable."""
        self._begin_input(now_ms)
        log = self._replica.log
        if log_version == log.version:
            invariant(end_offset <= log.end_offset, "flushed beyond the end", end=end_offset)
            log.flushed_offset = max(log.flushed_offset, end_offset)
            if isinstance(self.role, Leader):
                advance_commit(self._replica, self.role)
        self._poll()

    def resign(self, now_ms: int, heir: ReplicaKey | None = None) -> None:
        """Step down, before a shutdown or for an heir; nothing happens if we do not lead."""
        self._begin_input(now_ms)
        if isinstance(self.role, Leader):
            resign(self._replica, self.role, heir)
        self._poll()

    def snapshot_created(self, snapshot: SnapshotId, now_ms: int) -> None:
        """The state machine has written a snapshot of its own; it is durable."""
        self._begin_input(now_ms)
        log = self._replica.log
        if snapshot.end_offset > log.start_offset:
            invariant(
                snapshot.end_offset <= self.high_watermark,
                "snapshot of what is not committed",
                snapshot=snapshot,
                high_watermark=self.high_watermark,
            )
            is_ours = log.epoch_before(snapshot.end_offset) == snapshot.epoch
            invariant(is_ours, "snapshot of another log", snapshot=snapshot, log=log)
            log.add_snapshot(snapshot)
        self._poll()

    def drop_log_below(self, snapshot: SnapshotId, now_ms: int) -> None:
        """Retention: let the log begin where this snapshot of ours ends."""
        self._begin_input(now_ms)
        if snapshot.end_offset > self._replica.log.start_offset:
            self._replica.log.drop_below(snapshot)
            self._replica.emit(DropLogBelow(snapshot))
        self._poll()

    def snapshot_checked(self, snapshot: SnapshotId, now_ms: int, *, is_sound: bool) -> None:
        """CheckSnapshot is done: the file is durable, or makes no sense."""
        self._begin_input(now_ms)
        if is_sound:
            take_snapshot(self._replica, snapshot)
        else:
            reject_snapshot(self._replica, snapshot)
            self._poll()

    def snapshot_loaded(self, snapshot: SnapshotId, voters: VoterSet, now_ms: int) -> None:
        """FinishSnapshot is done: the log starts at the end of the snapshot."""
        self._begin_input(now_ms)
        load_snapshot(self._replica, snapshot, voters)
        self._poll()

    # -- outputs

    def take_effects(self) -> list[Effect]:
        effects, self._replica.effects = self._replica.effects, []
        return effects

    @property
    def wake_at_ms(self) -> int:
        """The time of the next `tick`, unless another input comes first."""
        times = [*self._role_deadlines(), *self._replica.retry_times()]
        return max(min(times), self._replica.now_ms)

    def _role_deadlines(self) -> list[int]:
        match self.role:
            case Unattached(election_deadline_ms=at):
                far = self._replica.now_ms + self._replica.config.timing.election_timeout_ms
                return [at if self._replica.may_campaign else far]
            case Prospective(deadline_ms=at) | Candidate(deadline_ms=at) | Resigned(deadline_ms=at):
                return [at]
            case Follower(fetch_deadline_ms=at, pause_until_ms=pause):
                return [at, pause] if pause > self._replica.now_ms else [at]
            case Leader() as leader:
                times = [leader.begin_at_ms, *self._check_quorum_deadline(leader)]
                return [*times, leader.parked_until_ms] if leader.parked else times

    def _check_quorum_deadline(self, leader: Leader) -> list[int]:
        is_alone = self.is_voter and len(self.voters) == 1
        return [] if is_alone else [leader.check_quorum_deadline_ms]

    # -- dispatch

    def _begin_input(self, now_ms: int) -> None:
        replica = self._replica
        invariant(now_ms >= replica.now_ms, "time goes back", now=now_ms, was=replica.now_ms)
        replica.now_ms = now_ms

    def _poll(self) -> None:
        """Do what the time and the role ask for, until the role no longer changes."""
        replica = self._replica
        for _ in range(ROUNDS_MAX):
            before = replica.role
            self._poll_role()
            if replica.role is before:
                break
        else:
            invariant(False, "roles keep changing", role=type(replica.role).__name__)
        self._check()

    def _poll_role(self) -> None:
        replica = self._replica
        match replica.role:
            case Unattached() as role:
                poll_unattached(replica, role)
                if replica.role is role:
                    poll_discovery(replica)
            case Prospective() | Candidate() as role:
                poll_campaign(replica, role)
            case Follower() as role:
                poll_follower(replica, role)
            case Resigned() as role:
                poll_resigned(replica, role)
            case Leader() as role:
                if replica.log.end_offset == role.start_offset:
                    open_epoch(replica, role)
                poll_leader(replica, role)

    def _on_request(self, token: int, request: Request) -> None:
        replica = self._replica
        refusal = replica.why_not(request) if isinstance(request, RaftRequest) else None
        match request:
            case RaftRequest() if refusal:
                self._refuse(token, request, refusal)
            case VoteRequest():
                on_vote_request(replica, token, request)
            case BeginQuorumEpochRequest():
                on_begin_request(replica, token, request)
            case EndQuorumEpochRequest():
                on_end_request(replica, token, request)
            case FetchRequest():
                on_fetch_request(replica, token, request)
            case FetchSnapshotRequest():
                on_fetch_snapshot_request(replica, token, request)
            case UpdateVoterRequest():
                on_update_voter(replica, token, request)
            case AddVoterRequest():
                on_add_voter(replica, token, request)
            case RemoveVoterRequest():
                on_remove_voter(replica, token, request)

    def _refuse(self, token: int, request: RaftRequest, refusal: Refusal) -> None:
        """Refused before it changed anything. Who is not of our cluster learns nothing of it."""
        replica = self._replica
        replica.note_refusal(request.sender.node_id, name_of(request), refusal, ours=True)
        is_stranger = refusal is Refusal.WRONG_CLUSTER
        epoch, leader = (0, None) if is_stranger else (replica.epoch, replica.known_leader)
        reply: ReplicaReply
        match request:
            case VoteRequest():
                reply = VoteReply(epoch=epoch, leader=leader, refusal=refusal)
            case BeginQuorumEpochRequest():
                reply = BeginQuorumEpochReply(epoch=epoch, leader=leader, refusal=refusal)
            case EndQuorumEpochRequest():
                reply = EndQuorumEpochReply(epoch=epoch, leader=leader, refusal=refusal)
            case FetchSnapshotRequest(snapshot=snapshot):
                reply = FetchSnapshotReply(
                    epoch=epoch, leader=leader, refusal=refusal, snapshot=snapshot
                )
            case UpdateVoterRequest():
                reply = UpdateVoterReply(epoch=epoch, leader=leader, refusal=refusal)
            case _:
                reply = FetchReply(epoch=epoch, leader=leader, refusal=refusal)
        replica.reply(token, reply)

    def _on_reply(self, flight: InFlight, reply: Reply) -> None:
        """All replies first bring the news of an epoch or its leader, then what they are about."""
        replica = self._replica
        if reply.refusal and flight.peer:
            name = name_of(flight.request)
            replica.note_refusal(flight.peer.node_id, name, reply.refusal, ours=False)
        if self._is_foreign(reply):
            replica.back_off(flight.endpoint)
            return
        if reply.epoch > replica.epoch:
            follow_epoch(replica, reply.epoch, reply.leader)
            return
        if reply.epoch < replica.epoch:
            replica.back_off(flight.endpoint)
            return
        before = replica.role
        if self._is_news(reply.leader):
            learn_leader(replica, reply.epoch, reply.leader)
        if replica.role is before:
            self._on_own_reply(flight, reply)

    def _is_news(self, leader: Voter | None) -> TypeGuard[Voter]:
        """Who leads our epoch is news, unless it was us, or our disk before it was wiped. And if
        we ask for votes because that leader went silent, somebody else has not noticed yet.
        """
        if leader is None or leader.key.node_id == self.key.node_id:
            return False
        return not isinstance(self.role, Prospective) or self.election.leader_id is None

    def _is_foreign(self, reply: Reply) -> bool:
        """From another cluster, or from an epoch that no replica of ours can have reached."""
        is_other_cluster = reply.refusal is Refusal.WRONG_CLUSTER
        return is_other_cluster or not self._replica.is_plausible(reply.epoch)

    def _on_own_reply(self, flight: InFlight, reply: Reply) -> None:
        replica = self._replica
        match flight.request, reply:
            case VoteRequest(), VoteReply():
                on_vote_reply(replica, flight, reply)
            case BeginQuorumEpochRequest(), BeginQuorumEpochReply():
                on_begin_reply(replica, flight, reply)
            case EndQuorumEpochRequest(), EndQuorumEpochReply():
                on_end_reply(replica, flight, reply)
            case FetchRequest(), FetchReply():
                on_fetch_reply(replica, flight, reply)
            case FetchSnapshotRequest(), FetchSnapshotReply():
                on_fetch_snapshot_reply(replica, flight, reply)
            case UpdateVoterRequest(), UpdateVoterReply():
                on_update_voter_reply(replica, flight, reply)
            case _:
                replica.back_off(flight.endpoint)  # an answer to something else

    # -- rules that hold after every input

    def _check(self) -> None:
        replica, log = self._replica, self._replica.log
        invariant(log.flushed_offset <= log.end_offset, "flushed beyond the end", log=log)
        invariant(
            replica.high_watermark <= log.end_offset,
            "committed beyond the end",
            high_watermark=replica.high_watermark,
            end=log.end_offset,
        )
        match replica.role:
            case Candidate():
                is_own = replica.election.voted_key == replica.key
                invariant(is_own, "a candidate backs itself", election=replica.election)
            case Leader(start_offset=start):
                leads = replica.election.leader_id == replica.key.node_id
                invariant(leads, "a leader knows it", election=replica.election)
                invariant(start < log.end_offset, "an epoch without its first record")
            case Follower(leader=leader):
                named = replica.election.leader_id == leader.key.node_id
                invariant(named, "two leaders in one epoch", election=replica.election)
            case Unattached() | Prospective() | Resigned():
                pass

    def has_committed_epoch(self) -> bool:
        """We lead, and know what our predecessors committed."""
        return isinstance(self.role, Leader) and has_committed(self._replica, self.role)
