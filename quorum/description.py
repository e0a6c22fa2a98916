"""What a node says about itself and, where it leads, about the others: DescribeQuorum."""

from kraftlog.rpc import raft_pb2
from kraftlog.types import Uuid
from quorum.batches import decode_key, encode_key
from quorum.core.messages import Voter
from quorum.core.raft import RaftCore
from quorum.core.replica import RefusalNote
from quorum.core.state import Leader, Progress
from quorum.node import RaftNode


def describe(node: RaftNode, cluster_id: Uuid) -> raft_pb2.DescribeQuorumReply:
    """All but the header."""
    now_ms = node.now_ms()
    described = describe_core(node.core, now_ms)
    described.cluster_id = cluster_id.raw
    described.applied_offset = node.driver.applier.applied_offset
    described.election_timeout_ms = node.timing.election_timeout_ms
    described.led_epoch = node.led_epoch
    if node.leaderless_ms is not None:
        described.leaderless_ms = node.leaderless_ms
    for each in described.voters:
        heard_ms = node.heard_ms.get(decode_key(each.key))
        if heard_ms is not None:
            each.heard_ago_ms = now_ms - heard_ms
    return described


def describe_core(core: RaftCore, now_ms: int) -> raft_pb2.DescribeQuorumReply:
    """What the core knows of it."""
    voted = core.election.voted_key
    return raft_pb2.DescribeQuorumReply(
        node=encode_key(core.key),
        role=type(core.role).__name__.lower(),
        high_watermark=core.high_watermark,
        end_offset=core.log.end_offset,
        log_start_offset=core.log.start_offset,
        voted=encode_key(voted) if voted else None,
        voters=[_replica(core, voter, now_ms) for voter in core.voters.voters],
        observers=[_replica(core, observer, now_ms) for observer in observers(core)],
        refusals=[
            _note(node_id, note, now_ms)
            for node_id, notes in sorted(core.refusals.items())
            for note in notes
        ],
    )


def observers(core: RaftCore) -> list[Voter]:
    """Who fetches from us without a vote. Where they listen, if at all, they do not say."""
    known = core.role.replicas if isinstance(core.role, Leader) else {}
    return [Voter(key, "") for key in sorted(known) if key not in core.voters]


def _progress(core: RaftCore, voter: Voter, now_ms: int) -> Progress:
    if voter.key == core.key:
        return Progress(core.log.flushed_offset, now_ms, core.log.end_offset, now_ms)
    if isinstance(core.role, Leader):
        return core.role.replicas.get(voter.key, Progress())
    return Progress()


def _replica(core: RaftCore, voter: Voter, now_ms: int) -> raft_pb2.ReplicaState:
    progress = _progress(core, voter, now_ms)
    fetched, caught_up = progress.last_fetch_ms, progress.caught_up_ms
    return raft_pb2.ReplicaState(
        key=encode_key(voter.key),
        endpoint=voter.endpoint,
        end_offset=progress.end_offset,
        last_fetch_ago_ms=now_ms - fetched if fetched >= 0 else None,
        caught_up_ago_ms=now_ms - caught_up if caught_up >= 0 else None,
    )


def _note(node_id: int, note: RefusalNote, now_ms: int) -> raft_pb2.RefusalNote:
    return raft_pb2.RefusalNote(
        node_id=node_id,
        ago_ms=now_ms - note.at_ms,
        epoch=note.epoch,
        request=note.request,
        refusal=note.refusal.text,
        ours=note.ours,
    )
