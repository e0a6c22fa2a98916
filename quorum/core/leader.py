"""Leading: appending, serving fetches, deciding what is committed, answering reads."""

from collections.abc import Sequence
from dataclasses import replace

from kraftlog._check import invariant
from kraftlog.errors import RecordTooLarge
from kraftlog.types import EpochEnd
from quorum.core.effects import Append, Committed, Flush, ReadReady, SendRecords, SendSnapshotChunk
from quorum.core.log_view import NOT_IN_LOG
from quorum.core.messages import (
    AddVoterReply,
    Batch,
    BeginQuorumEpochRequest,
    Control,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    LeaderChange,
    NoOp,
    Proposal,
    RaftRequest,
    Refusal,
    RemoveVoterReply,
    ReplicaKey,
    SnapshotId,
)
from quorum.core.replica import Replica, name_of
from quorum.core.state import NEVER_MS, Leader, Parked, Progress
from quorum.core.tally import majority, majority_end
from quorum.core.transitions import resign

# -- appending


def open_epoch(replica: Replica, leader: Leader) -> None:
    """The first record of our epoch: once it is committed, so is all before it (thesis 3.6.2)."""
    voters = replica.voters
    change = LeaderChange(replica.key, voters.keys, leader.granted_by)
    append_control(replica, leader, change)
    current = voters.with_voter(replica.itself) if replica.is_voter else voters
    if replica.log.latest_voters.offset == NOT_IN_LOG or current != voters:
        append_control(replica, leader, current)


def append_control(replica: Replica, leader: Leader, control: Control) -> int:
    """One control record of its own; returns its offset."""
    offset = replica.log.end_offset
    _append(replica, leader, [Batch(offset, replica.epoch, 1, control=control)])
    return offset


def append_proposals(replica: Replica, leader: Leader, proposals: Sequence[Proposal]) -> int:
    """Each proposal one batch; returns the offset of the first record."""
    first = offset = replica.log.end_offset
    batches = []
    for proposal in proposals:
        batches.append(Batch(offset, replica.epoch, proposal.count, proposal.data))
        offset += proposal.count
    _append(replica, leader, batches)
    return first


def judge_proposals(replica: Replica, proposals: Sequence[Proposal]) -> None:
    """What cannot be appended is refused before anything is: in the log it would stay."""
    invariant(len(proposals) > 0, "nothing to append")
    for proposal in proposals:
        invariant(proposal.count > 0, "a batch without records", proposal=proposal)
        size, most = len(proposal.data), replica.config.batch_bytes_max
        if size > most:
            raise RecordTooLarge(
                f"a batch of {size} bytes, over {most}",
                hint="propose fewer or smaller records at once",
            )


def _append(replica: Replica, leader: Leader, batches: Sequence[Batch]) -> None:
    for batch in batches:
        replica.log.append(batch)
    replica.emit(Append(tuple(batches), fetched=False))
    replica.emit(Flush(replica.log.end_offset, replica.log.version))
    if leader.late_reads:
        _attach_reads(replica, leader)


# -- reads


def add_read(leader: Leader, token: int) -> None:
    leader.late_reads.append(token)


def _attach_reads(replica: Replica, leader: Leader) -> None:
    """The newest record came at or after these reads: its commit proves that we still lead."""
    leader.reads.append((replica.log.end_offset - 1, tuple(leader.late_reads)))
    leader.late_reads = []


def prove_leadership(replica: Replica, leader: Leader) -> None:
    """Reads that nothing was written after wait for a no-op, one at a time for all of them."""
    if leader.late_reads and leader.noop_offset < replica.high_watermark:
        leader.noop_offset = replica.log.end_offset
        append_control(replica, leader, NoOp())


def _release_reads(replica: Replica, leader: Leader) -> None:
    while leader.reads and leader.reads[0][0] < replica.high_watermark:
        offset, tokens = leader.reads.popleft()
        replica.emit(ReadReady(tokens, offset + 1))


# -- commit


def advance_commit(replica: Replica, leader: Leader) -> None:
    """Committed is what a majority of voters has flushed, once that includes a record of this
    epoch (thesis 3.6.2). We count ourselves only up to what we have flushed, and only as a voter.
    """
    end = majority_end([_flushed_end(replica, leader, key) for key in replica.voters.keys])
    if end <= leader.start_offset or end <= replica.high_watermark:
        return
    replica.high_watermark = end
    replica.emit(Committed(end))
    _release_reads(replica, leader)
    _finish_change(replica, leader)


def _flushed_end(replica: Replica, leader: Leader, key: ReplicaKey) -> int:
    if key == replica.key:
        return replica.log.flushed_offset
    progress = leader.replicas.get(key)
    return progress.end_offset if progress else -1


def _finish_change(replica: Replica, leader: Leader) -> None:
    """A change of voters is answered at its commit; a leader that left its own voters resigns."""
    change = leader.change
    if change and change.offset < replica.high_watermark:
        leader.change = None
        reply = AddVoterReply if change.added else RemoveVoterReply
        replica.reply(change.token, reply(epoch=replica.epoch, leader=replica.itself))
    is_settled = replica.log.latest_voters.offset < replica.high_watermark
    if is_settled and not replica.is_voter:
        _answer_parked(replica, leader)  # the last news they get from us is that commit
        resign(replica, leader)


def has_committed(replica: Replica, leader: Leader) -> bool:
    """Until a record of our own epoch is committed we do not know what our predecessors did."""
    return replica.high_watermark > leader.start_offset


# -- fetches


def on_fetch_request(replica: Replica, token: int, request: FetchRequest) -> None:
    refusal = _judge_fetch(request) or judge_leader_request(replica, request)
    leader = replica.role
    if refusal or not isinstance(leader, Leader):
        refusal = refusal or Refusal.NOT_LEADER
        replica.note_refusal(request.sender.node_id, name_of(request), refusal, ours=True)
        replica.reply(
            token, FetchReply(epoch=replica.epoch, leader=replica.known_leader, refusal=refusal)
        )
        return
    _release_parked(replica, leader, request.sender)
    other_way = replica.log.judge_fetch(request.offset, request.last_epoch)
    if other_way is not None:
        _redirect(replica, leader, token, other_way)
        return
    _record_progress(replica, leader, request)
    if isinstance(replica.role, Leader):
        _serve(replica, leader, token, request)
    else:  # the commit that this fetch brought was that of our own removal
        replica.reply(
            token, FetchReply(epoch=replica.epoch, leader=None, refusal=Refusal.NOT_LEADER)
        )


def judge_leader_request(replica: Replica, request: RaftRequest) -> Refusal | None:
    if request.epoch < replica.epoch:
        return Refusal.EPOCH_STALE
    if request.epoch > replica.epoch:
        return Refusal.EPOCH_UNKNOWN
    return None if isinstance(replica.role, Leader) else Refusal.NOT_LEADER


def _judge_fetch(request: FetchRequest) -> Refusal | None:
    sane = (
        request.offset >= 0
        and request.max_wait_ms >= 0
        and request.max_bytes > 0
        and 0 <= request.last_epoch <= request.epoch
    )
    return None if sane else Refusal.INVALID_REQUEST


def _redirect(
    replica: Replica, leader: Leader, token: int, other_way: EpochEnd | SnapshotId
) -> None:
    """Logs that part, or a log that begins too late. Neither is progress."""
    reply = FetchReply(
        epoch=replica.epoch,
        leader=replica.itself,
        high_watermark=_known_watermark(replica, leader),
        log_start_offset=replica.log.start_offset,
        diverging=other_way if isinstance(other_way, EpochEnd) else None,
        snapshot=other_way if isinstance(other_way, SnapshotId) else None,
    )
    replica.reply(token, reply)


def _record_progress(replica: Replica, leader: Leader, request: FetchRequest) -> None:
    progress = leader.replicas.setdefault(request.sender, Progress())
    end = replica.log.end_offset
    if request.offset >= end:
        progress.caught_up_ms = replica.now_ms
    elif request.offset >= progress.leader_end_offset >= 0:
        progress.caught_up_ms = max(progress.caught_up_ms, progress.last_fetch_ms)
    progress.end_offset = request.offset
    progress.last_fetch_ms = replica.now_ms
    progress.leader_end_offset = end
    note_alive(replica, leader, request.sender)
    if request.sender in replica.voters:
        advance_commit(replica, leader)


def _serve(replica: Replica, leader: Leader, token: int, request: FetchRequest) -> None:
    wait_ms = min(request.max_wait_ms, _wait_ms(replica, leader, request))
    if wait_ms == 0:
        _answer(replica, leader, token, request)
    else:
        deadline_ms = replica.now_ms + wait_ms
        leader.parked[request.sender] = Parked(token, request, deadline_ms)
        leader.parked_until_ms = min(leader.parked_until_ms, deadline_ms)


def _wait_ms(replica: Replica, leader: Leader, request: FetchRequest) -> int:
    """How long a fetch may be kept: not at all where there are records for it. A higher watermark
    over records that the replica has (KIP-1166) lingers, since the next records may carry it.
    """
    if replica.log.end_offset > request.offset:
        return 0
    if min(_known_watermark(replica, leader) or 0, request.offset) > request.high_watermark:
        return replica.config.watermark_linger_ms
    return replica.config.timing.fetch_wait_ms


def _known_watermark(replica: Replica, leader: Leader) -> int | None:
    return replica.high_watermark if has_committed(replica, leader) else None


def _answer(replica: Replica, leader: Leader, token: int, request: FetchRequest) -> None:
    """Followers get what we have not flushed yet: the flush gates our own count only."""
    reply = FetchReply(
        epoch=replica.epoch,
        leader=replica.itself,
        high_watermark=_known_watermark(replica, leader),
        log_start_offset=replica.log.start_offset,
    )
    end = replica.log.end_offset
    if end <= request.offset:
        replica.reply(token, reply)
        return
    max_bytes = min(request.max_bytes, replica.config.fetch_bytes_max)
    replica.emit(SendRecords(token, reply, request.offset, end, max_bytes))


def _release_parked(replica: Replica, leader: Leader, key: ReplicaKey) -> None:
    """A replica has one fetch at a time: a new one means that it gave the old one up."""
    old = leader.parked.pop(key, None)
    if old:
        _answer(replica, leader, old.token, old.request)


def serve_parked(replica: Replica, leader: Leader) -> None:
    """Answer the parked fetches that have news by now, or have waited long enough. They are looked
    at only if there can be one: most inputs bring no news, and there may be many observers.
    """
    at = (replica.log.end_offset, replica.high_watermark)
    if at == leader.parked_at and replica.now_ms < leader.parked_until_ms:
        return
    leader.parked_at = at
    for key, parked in list(leader.parked.items()):
        wait_until_ms = replica.now_ms + _wait_ms(replica, leader, parked.request)
        if replica.now_ms >= min(parked.deadline_ms, wait_until_ms):
            del leader.parked[key]
            _answer(replica, leader, parked.token, parked.request)
        elif wait_until_ms < parked.deadline_ms:
            leader.parked[key] = replace(parked, deadline_ms=wait_until_ms)
    waiting = (parked.deadline_ms for parked in leader.parked.values())
    leader.parked_until_ms = min(waiting, default=NEVER_MS)


def _answer_parked(replica: Replica, leader: Leader) -> None:
    for key in list(leader.parked):
        _release_parked(replica, leader, key)


def on_fetch_snapshot_request(replica: Replica, token: int, request: FetchSnapshotRequest) -> None:
    refusal = judge_leader_request(replica, request)
    if refusal is None and request.snapshot not in replica.log.snapshots:
        refusal = Refusal.SNAPSHOT_NOT_FOUND
    if refusal is None and (request.position < 0 or request.max_bytes <= 0):
        refusal = Refusal.POSITION_OUT_OF_RANGE
    reply = FetchSnapshotReply(
        epoch=replica.epoch,
        leader=replica.known_leader,
        refusal=refusal,
        snapshot=request.snapshot,
        position=request.position,
    )
    if isinstance(replica.role, Leader) and refusal is None:
        note_alive(replica, replica.role, request.sender)
        max_bytes = min(request.max_bytes, replica.config.snapshot_chunk_bytes)
        replica.emit(SendSnapshotChunk(token, reply, max_bytes))
        return
    refusal = refusal or Refusal.NOT_LEADER
    replica.note_refusal(request.sender.node_id, name_of(request), refusal, ours=True)
    replica.reply(token, reply)


# -- check-quorum


def note_alive(replica: Replica, leader: Leader, key: ReplicaKey) -> None:
    """A leader that a majority fetches from within the time leads on."""
    if key in replica.voters:
        leader.heard_ms[key] = replica.now_ms
        set_check_quorum(replica, leader)


def set_check_quorum(replica: Replica, leader: Leader) -> None:
    """The time runs from the oldest of the newest fetches that make a majority, each voter's last
    one counted: from then on fewer than a majority were heard.
    """
    needed = majority(len(replica.voters)) - replica.is_voter
    newest = sorted((leader.heard_ms[each.key] for each in replica.other_voters), reverse=True)
    since_ms = newest[needed - 1] if needed else replica.now_ms
    deadline_ms = since_ms + replica.config.timing.check_quorum_ms
    leader.check_quorum_deadline_ms = deadline_ms


def await_newcomers(replica: Replica, leader: Leader) -> None:
    """The voters have changed: the time of those who are new begins now, that of the rest goes on,
    or a leader that is cut off could give itself more of it.
    """
    heard_ms = leader.heard_ms
    voters = replica.other_voters
    leader.heard_ms = {each.key: heard_ms.get(each.key, replica.now_ms) for each in voters}
    set_check_quorum(replica, leader)


def check_quorum(replica: Replica, leader: Leader) -> bool:
    """Whether a majority has fetched lately; if not, resign."""
    is_alone = replica.is_voter and len(replica.voters) == 1
    if replica.now_ms < leader.check_quorum_deadline_ms or is_alone:
        return True
    resign(replica, leader)
    return False


def poll_leader(replica: Replica, leader: Leader) -> None:
    if not check_quorum(replica, leader):
        return
    prove_leadership(replica, leader)
    serve_parked(replica, leader)
    if replica.now_ms >= leader.begin_at_ms:
        leader.begin_at_ms = replica.now_ms + replica.config.timing.begin_period_ms
        _announce(replica)
        _forget_observers(replica, leader)


def _forget_observers(replica: Replica, leader: Leader) -> None:
    oldest = replica.now_ms - replica.config.timing.observer_session_ms
    for key, progress in list(leader.replicas.items()):
        if progress.last_fetch_ms < oldest and key not in replica.voters:
            del leader.replicas[key]


def _announce(replica: Replica) -> None:
    for voter in replica.other_voters:
        if replica.may_send_to(voter.endpoint):
            request = BeginQuorumEpochRequest(
                cluster_id=replica.config.cluster_id,
                sender=replica.key,
                recipient=voter.key,
                epoch=replica.epoch,
                endpoint=replica.config.endpoint,
            )
            replica.send(voter, request)
