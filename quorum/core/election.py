"""Elections: who gets a vote, who announces itself, who steps down (KIP-595, KIP-996)."""

from dataclasses import replace

from quorum.core.log_view import Position
from quorum.core.messages import (
    BeginQuorumEpochReply,
    BeginQuorumEpochRequest,
    EndQuorumEpochReply,
    EndQuorumEpochRequest,
    Refusal,
    ReplicaKey,
    Voter,
    VoteReply,
    VoteRequest,
)
from quorum.core.replica import InFlight, Replica, name_of
from quorum.core.state import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.core.transitions import (
    become_follower,
    become_prospective,
    become_unattached,
    follow_epoch,
    give_up_prospect,
    leave_resigned,
    settle_election,
)

# -- votes that others ask for


def on_vote_request(replica: Replica, token: int, request: VoteRequest) -> None:
    refusal = _judge_vote(replica, request)
    if refusal:
        replica.note_refusal(request.sender.node_id, name_of(request), refusal, ours=True)
    elif not request.pre_vote:
        _give_vote(replica, request.sender)
    replica.reply(
        token, VoteReply(epoch=replica.epoch, leader=replica.known_leader, refusal=refusal)
    )
    role, is_judged = replica.role, refusal in (None, Refusal.LOG_BEHIND)
    if isinstance(role, Prospective) and request.pre_vote and is_judged:
        _meet_rival(replica, role, request, granted=refusal is None)


def _judge_vote(replica: Replica, request: VoteRequest) -> Refusal | None:
    newest_possible = request.epoch if request.pre_vote else request.epoch - 1
    if request.end_offset < 0 or not 0 <= request.last_epoch <= newest_possible:
        return Refusal.INVALID_REQUEST
    if request.epoch < replica.epoch:
        return Refusal.EPOCH_STALE
    if request.epoch > replica.epoch:
        become_unattached(replica, request.epoch)
    is_behind = Position(request.last_epoch, request.end_offset).is_behind(replica.log.position)
    if request.pre_vote:
        return _judge_pre_vote(replica, is_behind=is_behind)
    return _judge_binding_vote(replica, request.sender, is_behind=is_behind)


def _judge_pre_vote(replica: Replica, *, is_behind: bool) -> Refusal | None:
    """Nothing is promised by a pre-vote, so any number may be given."""
    match replica.role:
        case Leader() | Follower(has_fetched=True):
            return Refusal.LEADER_ALIVE
        case _:
            return Refusal.LOG_BEHIND if is_behind else None


def _judge_binding_vote(
    replica: Replica, candidate: ReplicaKey, *, is_behind: bool
) -> Refusal | None:
    """One vote per epoch (thesis 3.4), and none for a log that could miss a committed record
    (3.6.1). The same candidate gets the same answer again, whatever our log holds by now: replies
    can be lost.
    """
    match replica.role:
        case Leader() | Follower():
            return Refusal.LEADER_ALIVE
        case Candidate() | Resigned():
            return Refusal.ALREADY_VOTED  # for ourselves
        case Unattached() | Prospective():
            pass
    voted = replica.election.voted_key
    if voted is not None:
        return None if voted == candidate else Refusal.ALREADY_VOTED
    if replica.election.leader_id is not None:
        return Refusal.LEADER_ALIVE
    return Refusal.LOG_BEHIND if is_behind else None


def _give_vote(replica: Replica, candidate: ReplicaKey) -> None:
    if replica.election.voted_key == candidate:
        return
    replica.save_election(replace(replica.election, voted_key=candidate))
    replica.set_role(Unattached(replica.election_timeout()))


def _meet_rival(
    replica: Replica, role: Prospective, request: VoteRequest, *, granted: bool
) -> None:
    """Two voters ask at once, and both going on would split the votes. The one with less of the
    log, or else with the greater key, steps back. The other asks again where it was refused:
    whoever asks does not hear the leader any more.
    """
    rival = request.sender
    if rival not in replica.voters:
        return
    theirs = Position(request.last_epoch, request.end_offset)
    is_first = rival < replica.key or replica.log.flushed_position.is_behind(theirs)
    if granted and is_first:
        give_up_prospect(replica, role)
    else:
        role.rivals.add(rival)
        role.tally.forget_refusal(rival)


# -- votes that we ask for


def ask_for_votes(replica: Replica, role: Prospective | Candidate) -> None:
    if isinstance(role, Candidate) and role.lost:
        return
    # Whoever votes for us will do so again in this epoch, so we must not be able to forget what we
    # asked with: of our log only what is flushed counts.
    log = replica.log.flushed_position
    waiting = set(role.tally.unrecorded)
    for voter in replica.other_voters:
        if voter.key in waiting and replica.may_send_to(voter.endpoint):
            request = VoteRequest(
                cluster_id=replica.config.cluster_id,
                sender=replica.key,
                recipient=voter.key,
                epoch=replica.epoch,
                last_epoch=log.last_epoch,
                end_offset=log.end_offset,
                pre_vote=isinstance(role, Prospective),
            )
            replica.send(voter, request, after_flush=log.end_offset)


def on_vote_reply(replica: Replica, flight: InFlight, reply: VoteReply) -> None:
    role = replica.role
    if not isinstance(role, Prospective | Candidate) or flight.peer is None:
        return
    if reply.refusal is Refusal.WRONG_RECIPIENT:
        replica.back_off(flight.endpoint)  # another disk lives there: neither yes nor no
        return
    if reply.refusal is Refusal.LEADER_ALIVE and _is_rival(role, flight.peer):
        return  # overtaken by its own question: ask again
    role.tally.record(flight.peer, granted=reply.granted)
    settle_election(replica)


def _is_rival(role: Prospective | Candidate, key: ReplicaKey) -> bool:
    """Only once: it may have heard of the leader again."""
    is_rival = isinstance(role, Prospective) and key in role.rivals
    if isinstance(role, Prospective):
        role.rivals.discard(key)
    return is_rival


# -- time


def poll_unattached(replica: Replica, role: Unattached) -> None:
    if replica.may_campaign and replica.now_ms >= role.election_deadline_ms:
        become_prospective(replica)


def poll_campaign(replica: Replica, role: Prospective | Candidate) -> None:
    if replica.now_ms < role.deadline_ms:
        ask_for_votes(replica, role)
    elif isinstance(role, Prospective):
        give_up_prospect(replica, role)
    else:
        become_prospective(replica, retries=role.retries + 1)


def poll_resigned(replica: Replica, role: Resigned) -> None:
    if replica.now_ms >= role.deadline_ms:
        leave_resigned(replica)
        return
    for voter in role.unacked:
        if replica.may_send_to(voter.endpoint):
            replica.send(voter, _end_request(replica, role, voter))


def _end_request(replica: Replica, role: Resigned, voter: Voter) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        cluster_id=replica.config.cluster_id,
        sender=replica.key,
        recipient=voter.key,
        epoch=replica.epoch,
        successors=role.successors,
    )


# -- the beginning and the end of an epoch


def on_begin_request(replica: Replica, token: int, request: BeginQuorumEpochRequest) -> None:
    """A leader announces itself. That it lives is proved by fetches only: no timer is reset."""
    refusal = None
    if request.epoch < replica.epoch:
        refusal = Refusal.EPOCH_STALE
    elif not learn_leader(replica, request.epoch, Voter(request.sender, request.endpoint)):
        refusal = Refusal.OTHER_LEADER
    if refusal:
        replica.note_refusal(request.sender.node_id, name_of(request), refusal, ours=True)
    replica.reply(
        token,
        BeginQuorumEpochReply(epoch=replica.epoch, leader=replica.known_leader, refusal=refusal),
    )


def learn_leader(replica: Replica, epoch: int, leader: Voter) -> bool:
    """Somebody leads an epoch that is not older than ours. False: we know that another one does,
    so it is not to be believed.
    """
    if epoch > replica.epoch:
        follow_epoch(replica, epoch, leader)
        return True
    if not _may_lead(replica, leader.key):
        return False
    if isinstance(replica.role, Follower):
        replica.role.leader = leader  # it may have moved to another address
    elif not replica.is_leader_gone:
        become_follower(replica, leader)
    return True


def _may_lead(replica: Replica, key: ReplicaKey) -> bool:
    """Whether we know of no other leader in our epoch. Our disk has the node id only."""
    match replica.role:
        case Follower(leader=leader) | Prospective(leader=Voter() as leader):
            return leader.key == key
        case _:
            return replica.election.leader_id in (None, key.node_id)


def on_begin_reply(replica: Replica, flight: InFlight, reply: BeginQuorumEpochReply) -> None:
    if reply.refusal:
        replica.back_off(flight.endpoint)


def on_end_request(replica: Replica, token: int, request: EndQuorumEpochRequest) -> None:
    """Our leader steps down: campaign when our turn among its successors comes."""
    refusal = None
    if request.epoch < replica.epoch:
        refusal = Refusal.EPOCH_STALE
    elif request.epoch > replica.epoch:
        become_unattached(replica, request.epoch)
    elif _may_lead(replica, request.sender):
        _await_turn(replica, request)
    else:
        refusal = Refusal.OTHER_LEADER
    if refusal:
        replica.note_refusal(request.sender.node_id, name_of(request), refusal, ours=True)
    replica.reply(
        token,
        EndQuorumEpochReply(epoch=replica.epoch, leader=replica.known_leader, refusal=refusal),
    )


def _await_turn(replica: Replica, request: EndQuorumEpochRequest) -> None:
    replica.resigned_epoch = replica.epoch
    at_ms = replica.now_ms + _turn_backoff(replica, request.successors)
    match replica.role:
        case Follower() as role:
            role.fetch_deadline_ms = at_ms
            role.has_fetched = False
        case Unattached() as role:
            role.election_deadline_ms = min(role.election_deadline_ms, at_ms)
        case Prospective() as role:
            role.leader = None  # nobody to go back to
        case _:
            pass  # we campaign already


def _turn_backoff(replica: Replica, successors: tuple[ReplicaKey, ...]) -> int:
    """None for the first in line, then doubling up to the longest for the last."""
    longest = replica.config.timing.election_backoff_max_ms
    if replica.key not in successors:
        return longest
    position = successors.index(replica.key)
    if position == 0:
        return 0
    return min(longest, (longest >> (len(successors) - 1)) << (position - 1))


def on_end_reply(replica: Replica, flight: InFlight, reply: EndQuorumEpochReply) -> None:
    """Whatever it thinks of it, it has heard."""
    role = replica.role
    if reply.refusal is Refusal.WRONG_RECIPIENT:
        replica.back_off(flight.endpoint)
    elif isinstance(role, Resigned):
        role.unacked = tuple(voter for voter in role.unacked if voter.key != flight.peer)
