"""How a replica changes role. Each `become_*` asserts what must hold before it.

    Unattached -> Prospective -> Candidate -> Leader -> Resigned -> Unattached (next epoch)
         \\____________\\____________\\________> Follower -> Prospective

Whatever we are, a higher epoch makes us Unattached, or Follower where its leader is known.
"""

from kraftlog._check import invariant
from quorum.core.config import BACKOFF_EXPONENT_MAX, BACKOFF_STEP_MS
from quorum.core.effects import (
    DropSnapshot,
    LeadershipGained,
    LeadershipLost,
    ReadFailed,
)
from quorum.core.messages import (
    AddVoterReply,
    FetchReply,
    Refusal,
    RemoveVoterReply,
    ReplicaKey,
    Voter,
)
from quorum.core.replica import Replica
from quorum.core.state import (
    Candidate,
    ElectionState,
    Follower,
    Leader,
    Progress,
    Prospective,
    Resigned,
    Unattached,
)
from quorum.core.tally import Tally, TallyResult


def begin(replica: Replica) -> None:
    """The role after a start: never Leader, and not in an epoch that we may have led before."""
    if replica.election.epoch < replica.log.last_epoch:
        replica.save_election(ElectionState(replica.log.last_epoch))
    election = replica.election
    if election.leader_id == replica.key.node_id:
        # Our unflushed tail may be lost: in this epoch we must not give its offsets out again.
        replica.set_role(Resigned(replica.election_timeout()))
    elif election.voted_key == replica.key and election.leader_id is None and replica.may_campaign:
        _campaign(replica, retries=0)
    elif leader := _address_of(replica, election.leader_id):
        become_follower(replica, leader)
    else:
        replica.set_role(Unattached(replica.election_timeout()))
    if len(replica.voters) == 1 and replica.is_voter:
        _elect_itself(replica)


def _address_of(replica: Replica, node_id: int | None) -> Voter | None:
    return replica.voters.find(node_id) if node_id is not None else None


def _elect_itself(replica: Replica) -> None:
    """A sole voter has nobody to wait for. As a candidate it has won already."""
    if not isinstance(replica.role, Leader):
        become_prospective(replica)


def leave_role(replica: Replica) -> None:
    """Whoever waits for something that only the present role could give is told."""
    match replica.role:
        case Leader() as leader:
            _stop_leading(replica, leader)
        case Follower(download=download) if download is not None:
            replica.emit(DropSnapshot(download.snapshot))


def _stop_leading(replica: Replica, leader: Leader) -> None:
    """Parked fetches, reads and changes are answered; proposals fail as *outcome unknown*."""
    lost, epoch = Refusal.LEADERSHIP_LOST, replica.epoch
    for parked in leader.parked.values():
        not_leader = FetchReply(epoch=epoch, leader=None, refusal=Refusal.NOT_LEADER)
        replica.reply(parked.token, not_leader)
    if leader.change:
        reply = AddVoterReply if leader.change.added else RemoveVoterReply
        replica.reply(leader.change.token, reply(epoch=epoch, leader=None, refusal=lost))
    waiting = [token for _, tokens in leader.reads for token in tokens]
    if waiting or leader.late_reads:
        replica.emit(ReadFailed((*waiting, *leader.late_reads), lost))
    replica.emit(LeadershipLost(replica.epoch))


def become_unattached(replica: Replica, epoch: int) -> None:
    """The leader is not known, or not heard. What is left of an election time goes on."""
    invariant(epoch >= replica.epoch, "epoch falls", epoch=epoch, own=replica.epoch)
    leave_role(replica)
    deadline_ms = _remaining_election(replica)
    if epoch > replica.epoch:
        replica.enter_epoch(epoch)
    replica.set_role(Unattached(deadline_ms))


def _remaining_election(replica: Replica) -> int:
    match replica.role:
        case Unattached(election_deadline_ms=at) | Candidate(deadline_ms=at) if at > replica.now_ms:
            return at
    return replica.election_timeout()


def become_follower(replica: Replica, leader: Voter) -> None:
    """The leader of our epoch is known, and where it is."""
    invariant(leader.key != replica.key, "following ourselves", epoch=replica.epoch)
    invariant(not isinstance(replica.role, Leader), "a leader follows in its own epoch")
    leave_role(replica)
    replica.save_leader(leader.key.node_id)
    _set_follower(replica, leader, replica.fetch_timeout())


def _set_follower(replica: Replica, leader: Voter, fetch_deadline_ms: int) -> None:
    update_at = replica.now_ms + replica.config.timing.update_voter_ms
    replica.set_role(Follower(leader, fetch_deadline_ms, update_at))


def follow_epoch(replica: Replica, epoch: int, leader: Voter | None) -> None:
    """A peer told of a higher epoch, and maybe who leads it: one durable write for both. A leader
    with our own node id is one that our disk was before it was wiped: nobody to follow.
    """
    if leader is None or leader.key.node_id == replica.key.node_id:
        become_unattached(replica, epoch)
        return
    leave_role(replica)
    replica.enter_epoch(epoch, leader.key.node_id)
    _set_follower(replica, leader, replica.fetch_timeout())


def become_prospective(replica: Replica, *, retries: int = 0) -> None:
    """Ask who would vote for us, before an epoch is spent on it (KIP-996)."""
    invariant(replica.may_campaign, "an observer campaigns", key=replica.key)
    known = replica.role.leader if isinstance(replica.role, Follower) else None
    leader = None if replica.is_leader_gone else known
    leave_role(replica)
    tally = Tally(replica.voters)
    tally.record(replica.key, granted=True)
    replica.set_role(Prospective(tally, replica.election_timeout(), retries, leader))
    settle_election(replica)


def _become_candidate(replica: Replica, *, retries: int) -> None:
    """A majority would vote for us: our own epoch, our own vote, in one durable write."""
    invariant(isinstance(replica.role, Prospective), "candidate without pre-votes")
    replica.save_election(ElectionState(replica.epoch + 1, voted_key=replica.key))
    _campaign(replica, retries=retries)


def _campaign(replica: Replica, *, retries: int) -> None:
    tally = Tally(replica.voters)
    tally.record(replica.key, granted=True)
    replica.set_role(Candidate(tally, replica.election_timeout(), retries))
    settle_election(replica)


def settle_election(replica: Replica) -> None:
    """Act on the votes so far."""
    role = replica.role
    if not isinstance(role, Prospective | Candidate):
        return
    match role, role.tally.result:
        case Prospective(), TallyResult.WON:
            _become_candidate(replica, retries=role.retries)
        case Prospective(), TallyResult.LOST:
            give_up_prospect(replica, role)
        case Candidate(), TallyResult.WON:
            _become_leader(replica, role)
        case Candidate(lost=False), TallyResult.LOST:
            role.lost = True
            role.deadline_ms = replica.now_ms + _backoff(replica, role.retries)
        case _:
            pass  # still open


def _backoff(replica: Replica, retries: int) -> int:
    most = replica.config.timing.election_backoff_max_ms
    return min(most, BACKOFF_STEP_MS * replica.draw(1 << min(retries + 1, BACKOFF_EXPONENT_MAX)))


def give_up_prospect(replica: Replica, role: Prospective) -> None:
    """Back to the leader that a majority may still hear, or wait for another time. If the leader
    is gone we are the first to know: do not wait for a whole fetch timeout again. Nobody tells one
    that may have been removed of a later leader: it asks around instead.
    """
    if role.leader is not None and replica.is_voter:
        _set_follower(replica, role.leader, replica.pre_vote_pause())
    else:
        replica.set_role(Unattached(replica.pre_vote_pause()))


def _become_leader(replica: Replica, role: Candidate) -> None:
    """What was known of the high watermark stays ours; others hear none until this epoch has its
    own commit.
    """
    replica.save_leader(replica.key.node_id)
    timing = replica.config.timing
    leader = Leader(
        start_offset=replica.log.end_offset,
        check_quorum_deadline_ms=replica.now_ms + timing.check_quorum_ms,
        begin_at_ms=replica.now_ms,
        granted_by=role.tally.granted_by,
        replicas={voter.key: Progress() for voter in replica.other_voters},
        heard_ms={voter.key: replica.now_ms for voter in replica.other_voters},
    )
    replica.set_role(leader)
    replica.emit(LeadershipGained(replica.epoch, leader.start_offset))


def resign(replica: Replica, leader: Leader, heir: ReplicaKey | None = None) -> None:
    """Stop leading. The voters hear it, the heir first in line, then those with most of the log."""
    ends = {key: progress.end_offset for key, progress in leader.replicas.items()}
    others = sorted(
        replica.other_voters,
        key=lambda voter: (voter.key != heir, -ends.get(voter.key, -1), voter),
    )
    leave_role(replica)
    successors = tuple(voter.key for voter in others)
    replica.set_role(Resigned(replica.election_timeout(), tuple(others), successors))


def leave_resigned(replica: Replica) -> None:
    """A voter starts the next epoch; whoever is no voter any more waits for others to do so."""
    become_unattached(replica, replica.epoch + 1 if replica.may_campaign else replica.epoch)
