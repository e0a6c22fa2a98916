"""Following: finding the leader, pulling its log, cutting our own where the two part (KIP-595)."""

from collections.abc import Sequence

from kraftlog._check import invariant
from kraftlog.types import EpochEnd
from quorum.core.config import BACKOFF_EXPONENT_MAX, REJECTED_PAUSE_MAX_MS
from quorum.core.effects import (
    Append,
    AppendSnapshotChunk,
    CheckSnapshot,
    Committed,
    DropSnapshot,
    FinishSnapshot,
    StartSnapshot,
    TruncateLog,
)
from quorum.core.messages import (
    Batch,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    Refusal,
    ReplicaKey,
    ReplicaRequest,
    SnapshotId,
    UpdateVoterReply,
    UpdateVoterRequest,
    Voter,
    VoterSet,
)
from quorum.core.replica import InFlight, Replica
from quorum.core.state import Download, Follower, Rejected
from quorum.core.transitions import become_prospective, become_unattached

# -- asking


def poll_follower(replica: Replica, role: Follower) -> None:
    if replica.now_ms >= role.fetch_deadline_ms:
        _give_up_leader(replica)
    elif replica.now_ms < role.pause_until_ms:
        pass
    elif replica.may_send_to(role.leader.endpoint) and not replica.is_leader_gone:
        _ask_leader(replica, role)
    elif not replica.is_voter:
        # Nobody tells observers of a new leader: while ours does not answer they ask around.
        poll_discovery(replica)


def _ask_leader(replica: Replica, role: Follower) -> None:
    if role.download:
        if role.download.finished:
            _pause(replica, role)
        replica.send(role.leader, _snapshot_request(replica, role, role.download))
    elif replica.is_durable:
        if _must_update_voter(replica, role):
            _send_update(replica, role)
        else:
            _send_fetch(replica, role.leader, role.leader.key)


def _give_up_leader(replica: Replica) -> None:
    """The leader is silent: a voter asks the others whether they think so too."""
    if replica.may_campaign:
        become_prospective(replica)
    else:
        become_unattached(replica, replica.epoch)


def _send_fetch(replica: Replica, to: Voter | str, recipient: ReplicaKey | None) -> None:
    config, end = replica.config, replica.log.end_offset
    request = FetchRequest(
        cluster_id=config.cluster_id,
        sender=replica.key,
        recipient=recipient,
        epoch=replica.epoch,
        offset=end,
        last_epoch=replica.log.last_epoch,
        high_watermark=replica.high_watermark,
        max_wait_ms=config.timing.fetch_wait_ms,
        max_bytes=config.fetch_bytes_max,
    )
    replica.send(to, request, after_flush=end if replica.must_flush else None)


def poll_discovery(replica: Replica) -> None:
    """Ask around who leads, one peer at a time."""
    if replica.inflight or not replica.is_durable:
        return
    voters = (voter.endpoint for voter in replica.other_voters)
    known = sorted({*replica.config.peers, *voters} - {replica.config.endpoint})
    candidates = [endpoint for endpoint in known if replica.may_send_to(endpoint)]
    if candidates:
        _send_fetch(replica, candidates[replica.draw(len(candidates))], None)


# -- records


def on_fetch_reply(replica: Replica, flight: InFlight, reply: FetchReply) -> None:
    role = replica.role
    if not isinstance(role, Follower) or flight.peer != role.leader.key:
        replica.back_off(flight.endpoint)  # it was only asked who leads
    elif reply.refusal:
        _on_refusal(replica, role, flight, reply.refusal)
    elif _is_answer(replica, flight.request) and not _take(replica, role, reply):
        replica.back_off(flight.endpoint)  # nonsense is no sign of life


def _is_answer(replica: Replica, request: ReplicaRequest) -> bool:
    """Whether our log still ends where it ended when we asked."""
    log = replica.log
    asked = (request.offset, request.last_epoch) if isinstance(request, FetchRequest) else None
    return asked == (log.end_offset, log.last_epoch)


def _take(replica: Replica, role: Follower, reply: FetchReply) -> bool:
    """False: the leader sends what no leader of ours would send."""
    if reply.diverging:
        is_good = _cut_divergence(replica, reply.diverging)
    elif reply.snapshot:
        is_good = _start_download(replica, role, reply.snapshot)
    else:
        is_good = _take_records(replica, reply.batches)
        _learn_watermark(replica, reply.high_watermark)
    if is_good:
        note_heard(replica, role)
    return is_good


def note_heard(replica: Replica, role: Follower) -> None:
    if replica.is_leader_gone:
        return  # that was sent before it resigned
    role.has_fetched = True
    role.fetch_deadline_ms = replica.fetch_timeout()


def _on_refusal(replica: Replica, role: Follower, flight: InFlight, refusal: Refusal) -> None:
    replica.back_off(flight.endpoint)
    if refusal is Refusal.NOT_LEADER:
        _hasten_election(replica, role)


def _hasten_election(replica: Replica, role: Follower) -> None:
    """Our leader says that it leads no more. It never will in this epoch: do not wait for it."""
    replica.resigned_epoch = replica.epoch
    role.has_fetched = False
    timeout_ms = replica.config.timing.election_timeout_ms
    if role.fetch_deadline_ms > replica.now_ms + timeout_ms:
        role.fetch_deadline_ms = replica.now_ms + replica.draw(timeout_ms)


def _cut_divergence(replica: Replica, theirs: EpochEnd) -> bool:
    """One cut per answer: to where the leader's epoch ends here or there, whichever is less. If
    we do not have that epoch, to the end of the greatest one below it.
    """
    ours = replica.log.end_for_epoch(theirs.epoch)
    is_shared = ours.epoch == theirs.epoch
    end = min(ours.end_offset, theirs.end_offset) if is_shared else ours.end_offset
    if end >= replica.log.end_offset:
        return False  # a divergence that cuts nothing
    facts = {"leader": theirs, "ours": ours, "high_watermark": replica.high_watermark}
    holds = min(end, theirs.end_offset) >= replica.high_watermark
    invariant(holds, "a leader contradicts committed records", **facts)
    replica.log.truncate(end)
    replica.emit(TruncateLog(end))
    replica.flush()
    return True


def _take_records(replica: Replica, batches: Sequence[Batch]) -> bool:
    """Append up to the first batch that cannot be the next one, and drop the rest."""
    good: list[Batch] = []
    for batch in batches:
        if not _is_next(replica, batch):
            break
        replica.log.append(batch)
        good.append(batch)
    if good:
        replica.emit(Append(tuple(good), fetched=True))
        replica.flush()
    return len(good) == len(batches)


def _is_next(replica: Replica, batch: Batch) -> bool:
    log = replica.log
    follows = batch.base_offset == log.end_offset and batch.count > 0
    return follows and log.last_epoch <= batch.epoch <= replica.epoch


def _learn_watermark(replica: Replica, leader_watermark: int | None) -> None:
    if leader_watermark is None:
        return
    known = min(leader_watermark, replica.log.end_offset)
    if known > replica.high_watermark:
        replica.high_watermark = known
        replica.emit(Committed(known))


# -- snapshots


def _start_download(replica: Replica, role: Follower, snapshot: SnapshotId) -> bool:
    """It brings something that we do not know to be committed, from no later epoch than ours."""
    if snapshot.end_offset <= replica.high_watermark or snapshot.epoch > replica.epoch:
        return False
    if _is_to_wait(replica, role, snapshot):
        _pause(replica, role)
        return True
    role.download = Download(snapshot)
    replica.emit(StartSnapshot(snapshot))
    return True


def _is_to_wait(replica: Replica, role: Follower, snapshot: SnapshotId) -> bool:
    """It made no sense before."""
    is_known = _times_rejected(replica, role.leader.key, snapshot) > 0
    return is_known and replica.rejected is not None and replica.now_ms < replica.rejected.until_ms


def _pause(replica: Replica, role: Follower) -> None:
    """Until a sign of life is due, for us and for the leader."""
    role.pause_until_ms = replica.now_ms + replica.config.timing.sign_of_life_ms


def _snapshot_request(replica: Replica, role: Follower, download: Download) -> FetchSnapshotRequest:
    """The next chunk; or the last byte once more, while we check what we have."""
    return FetchSnapshotRequest(
        cluster_id=replica.config.cluster_id,
        sender=replica.key,
        recipient=role.leader.key,
        epoch=replica.epoch,
        snapshot=download.snapshot,
        position=download.position - download.finished,
        max_bytes=replica.config.snapshot_chunk_bytes,
    )


def on_fetch_snapshot_reply(replica: Replica, flight: InFlight, reply: FetchSnapshotReply) -> None:
    role = replica.role
    if not isinstance(role, Follower) or role.download is None:
        return
    download = role.download
    is_gone = reply.refusal in (Refusal.SNAPSHOT_NOT_FOUND, Refusal.POSITION_OUT_OF_RANGE)
    if reply.refusal and not is_gone:
        _on_refusal(replica, role, flight, reply.refusal)
    elif download.finished:
        note_heard(replica, role)
    elif is_gone:
        _drop_download(replica, role, download)  # the leader has a newer one: ask it anew
        note_heard(replica, role)
    elif _is_next_chunk(download, reply):
        _take_chunk(replica, role, download, reply)
        note_heard(replica, role)
    else:
        replica.back_off(flight.endpoint)


def _is_next_chunk(download: Download, reply: FetchSnapshotReply) -> bool:
    fits = reply.position + len(reply.data) <= reply.size
    known_size = download.size in (None, reply.size)
    is_ours = reply.snapshot == download.snapshot and reply.position == download.position
    return is_ours and fits and known_size and len(reply.data) > 0


def _take_chunk(
    replica: Replica, role: Follower, download: Download, reply: FetchSnapshotReply
) -> None:
    replica.emit(AppendSnapshotChunk(download.snapshot, download.position, reply.data))
    download.size = reply.size
    download.position += len(reply.data)
    if download.position == download.size:
        download.finished = True
        replica.emit(CheckSnapshot(download.snapshot))
        _pause(replica, role)


def _drop_download(replica: Replica, role: Follower, download: Download) -> None:
    role.download = None
    replica.emit(DropSnapshot(download.snapshot))


def take_snapshot(replica: Replica, snapshot: SnapshotId) -> None:
    """The check of the download is done. Nothing comes between this and `load_snapshot`."""
    invariant(_awaits_check(replica, snapshot), "a check that nobody waits for", snapshot=snapshot)
    replica.emit(FinishSnapshot(snapshot))


def _awaits_check(replica: Replica, snapshot: SnapshotId) -> bool:
    role = replica.role
    download = role.download if isinstance(role, Follower) else None
    return download is not None and download.finished and download.snapshot == snapshot


def reject_snapshot(replica: Replica, snapshot: SnapshotId) -> None:
    """It makes no sense, and maybe never will: what the leader has on its disk is damaged. Each
    time the next download of it is farther away; a newer one, or another leader's, is welcome.
    """
    invariant(_awaits_check(replica, snapshot), "a check that nobody waits for", snapshot=snapshot)
    role = replica.role
    if not isinstance(role, Follower) or role.download is None:
        return
    leader = role.leader.key
    times = 1 + _times_rejected(replica, leader, snapshot)
    grown_ms = replica.config.timing.sign_of_life_ms << min(times, BACKOFF_EXPONENT_MAX)
    until_ms = replica.now_ms + min(grown_ms, REJECTED_PAUSE_MAX_MS)
    replica.rejected = Rejected(leader, snapshot, times, until_ms)
    replica.snapshots_rejected += 1
    why = Refusal.SNAPSHOT_DAMAGED
    replica.note_refusal(leader.node_id, "fetch snapshot", why, ours=True)
    _drop_download(replica, role, role.download)


def _times_rejected(replica: Replica, leader: ReplicaKey, snapshot: SnapshotId) -> int:
    known = replica.rejected
    if known is None or (known.leader, known.snapshot) != (leader, snapshot):
        return 0
    return known.times


def load_snapshot(replica: Replica, snapshot: SnapshotId, voters: VoterSet) -> None:
    """The driver has put a downloaded snapshot in the place of the log."""
    is_ours = _awaits_check(replica, snapshot)
    invariant(is_ours, "a snapshot that nobody waits for", snapshot=snapshot, role=replica.role)
    replica.log.restart_at(snapshot, voters)
    replica.high_watermark = max(replica.high_watermark, snapshot.end_offset)
    role = replica.role
    if isinstance(role, Follower):
        role.download = None
        role.pause_until_ms = 0


# -- our own address


def _must_update_voter(replica: Replica, role: Follower) -> bool:
    """The log has another address for us than the one we are at."""
    if replica.now_ms < role.update_voter_at_ms:
        return False
    known = replica.voters.find_key(replica.key)
    return known is not None and known.endpoint != replica.config.endpoint


def _send_update(replica: Replica, role: Follower) -> None:
    role.update_voter_at_ms = replica.now_ms + replica.config.timing.update_voter_ms
    request = UpdateVoterRequest(
        cluster_id=replica.config.cluster_id,
        sender=replica.key,
        recipient=role.leader.key,
        epoch=replica.epoch,
        voter=Voter(replica.key, replica.config.endpoint),
    )
    replica.send(role.leader, request)


def on_update_voter_reply(replica: Replica, flight: InFlight, reply: UpdateVoterReply) -> None:
    if reply.refusal:
        replica.back_off(flight.endpoint)
