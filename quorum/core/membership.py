"""Changing the voters, one at a time, through the log (KIP-853).

The new set acts when it is appended, before it is committed. That is safe because any two sets in
a row differ by one voter, so their majorities overlap, and because a leader changes nothing before
it has committed a record of its own epoch (the error in thesis 4.1 that was found later).
"""

from kraftlog.types import UUID_BYTES, Uuid
from quorum.core.leader import (
    advance_commit,
    append_control,
    await_newcomers,
    has_committed,
    judge_leader_request,
)
from quorum.core.messages import (
    AddVoterReply,
    AddVoterRequest,
    Refusal,
    RemoveVoterReply,
    RemoveVoterRequest,
    ReplicaKey,
    UpdateVoterReply,
    UpdateVoterRequest,
    Voter,
    VoterSet,
)
from quorum.core.replica import Replica, name_of
from quorum.core.state import Leader, Progress, VoterChange


def on_add_voter(replica: Replica, token: int, request: AddVoterRequest) -> None:
    leader, voter = replica.role, request.voter
    refusal = _judge_caller(replica, request.cluster_id) or _judge_voter(voter)
    refusal = refusal or _judge_change(replica) or _judge_newcomer(replica, voter.key)
    if isinstance(leader, Leader) and refusal is None:
        _change(replica, leader, token, replica.voters.with_voter(voter), added=True)
        return
    why = refusal or Refusal.NOT_LEADER
    replica.note_refusal(voter.key.node_id, "add voter", why, ours=True)
    replica.reply(
        token, AddVoterReply(epoch=replica.epoch, leader=replica.known_leader, refusal=why)
    )


def _judge_newcomer(replica: Replica, key: ReplicaKey) -> Refusal | None:
    if replica.voters.find(key.node_id):
        return Refusal.DUPLICATE_VOTER
    return None if _is_caught_up(replica, key) else Refusal.NOT_CAUGHT_UP


def on_remove_voter(replica: Replica, token: int, request: RemoveVoterRequest) -> None:
    leader = replica.role
    refusal = _judge_caller(replica, request.cluster_id) or _judge_change(replica)
    if refusal is None and request.key not in replica.voters:
        refusal = Refusal.VOTER_NOT_FOUND
    if refusal is None and len(replica.voters) == 1:
        refusal = Refusal.LAST_VOTER
    if refusal or not isinstance(leader, Leader):
        why = refusal or Refusal.NOT_LEADER
        replica.note_refusal(request.key.node_id, "remove voter", why, ours=True)
        replica.reply(
            token, RemoveVoterReply(epoch=replica.epoch, leader=replica.known_leader, refusal=why)
        )
        return
    _change(replica, leader, token, replica.voters.without(request.key), added=False)


def on_update_voter(replica: Replica, token: int, request: UpdateVoterRequest) -> None:
    """A voter has moved. Answered at once: nothing waits for it."""
    refusal = judge_leader_request(replica, request) or _judge_voter(request.voter)
    refusal = refusal or _judge_change(replica)
    if refusal is None and (
        request.voter.key != request.sender or request.voter.key not in replica.voters
    ):
        refusal = Refusal.VOTER_NOT_FOUND
    leader = replica.role
    if refusal is None and isinstance(leader, Leader):
        voters = replica.voters.with_voter(request.voter)
        if voters != replica.voters:
            append_control(replica, leader, voters)
    elif refusal:
        replica.note_refusal(request.sender.node_id, name_of(request), refusal, ours=True)
    replica.reply(
        token, UpdateVoterReply(epoch=replica.epoch, leader=replica.known_leader, refusal=refusal)
    )


def _judge_caller(replica: Replica, cluster_id: Uuid) -> Refusal | None:
    if cluster_id != replica.config.cluster_id:
        return Refusal.WRONG_CLUSTER
    return None if isinstance(replica.role, Leader) else Refusal.NOT_LEADER


def _judge_voter(voter: Voter) -> Refusal | None:
    """A voter has a node id, a disk and an address."""
    is_named = voter.key.node_id >= 1 and voter.key.directory_id.raw != bytes(UUID_BYTES)
    return None if is_named and voter.endpoint else Refusal.INVALID_REQUEST


def _judge_change(replica: Replica) -> Refusal | None:
    """One change at a time, and none before this epoch has committed a record."""
    leader = replica.role
    if not isinstance(leader, Leader):
        return Refusal.NOT_LEADER
    if leader.change:
        return Refusal.CHANGE_PENDING
    if not has_committed(replica, leader):
        return Refusal.EPOCH_NOT_COMMITTED
    is_settled = replica.log.latest_voters.offset < replica.high_watermark
    return None if is_settled else Refusal.CHANGE_PENDING


def _is_caught_up(replica: Replica, key: ReplicaKey) -> bool:
    """Lately it had all that we had then, with a record of this epoch."""
    leader = replica.role
    progress = leader.replicas.get(key) if isinstance(leader, Leader) else None
    if not isinstance(leader, Leader) or progress is None or progress.caught_up_ms < 0:
        return False
    is_recent = replica.now_ms - progress.caught_up_ms <= replica.config.timing.fetch_timeout_ms
    return is_recent and progress.end_offset > leader.start_offset


def _change(replica: Replica, leader: Leader, token: int, voters: VoterSet, *, added: bool) -> None:
    offset = append_control(replica, leader, voters)
    leader.change = VoterChange(token, offset, added)
    for voter in voters.voters:
        if voter.key != replica.key:
            leader.replicas.setdefault(voter.key, Progress())
    await_newcomers(replica, leader)
    advance_commit(replica, leader)
