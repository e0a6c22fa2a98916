"""What an operator asks of one controller: to step down, and to show its log.

Neither is part of the protocol between replicas. A leader that steps down resigns as it does before
a stop, with the chosen heir first in line; the voters still decide. Reading shows what is committed
as far as this controller knows, also where nobody leads.
"""

from kraftlog.errors import ErrorCode, InvalidRequest, NotLeaderError, RequestTimedOut
from kraftlog.rpc import raft_pb2
from quorum.batches import decode_key
from quorum.core.messages import ReplicaKey, SnapshotId
from quorum.core.state import Leader
from quorum.node import RaftNode

READ_BYTES_MAX = 1 << 20

OperatorReply = raft_pb2.StepDownReply | raft_pb2.ReadLogReply


def begin_step_down(node: RaftNode, request: raft_pb2.StepDownRequest) -> None:
    """Resign in the node's next turn; refused where that could only do harm."""
    core = node.core
    if not isinstance(core.role, Leader):
        leader = f"{core.leader.key.node_id} does" if core.leader else "nobody is known to"
        raise NotLeaderError(
            f"node {core.key.node_id} does not lead: {leader}", hint="ask that one"
        )
    if len(core.voters) < 2:
        raise _unknown(f"{core.key.node_id} is the only voter", "let another one join first")
    heir = _heir(node, core.role, request) if request.HasField("successor") else None
    if heir != core.key:
        node.post(lambda: node.driver.resign(heir))


def _heir(node: RaftNode, leader: Leader, request: raft_pb2.StepDownRequest) -> ReplicaKey:
    core = node.core
    try:
        heir = decode_key(request.successor)
    except ValueError as error:
        raise InvalidRequest(f"successor: {error}") from None
    if heir not in core.voters:
        known = ", ".join(str(voter.key.node_id) for voter in core.voters.voters)
        raise _unknown(f"{heir} is no voter", f"the voters are {known}")
    progress = leader.replicas.get(heir)
    if heir == core.key or progress is None:
        return heir
    silent = node.now_ms() - progress.last_fetch_ms > node.timing.fetch_timeout_ms
    if silent or progress.end_offset < core.high_watermark:
        raise RequestTimedOut(
            f"{heir.node_id} has not caught up: its log ends at {progress.end_offset}, committed"
            f" is {core.high_watermark}",
            hint="kraftctl quorum replication shows how far each one is",
        )
    return heir


def _unknown(what: str, hint: str) -> InvalidRequest:
    return InvalidRequest(what, hint=hint, code=ErrorCode.VOTER_NOT_FOUND)


def read_log(node: RaftNode, request: raft_pb2.ReadLogRequest) -> raft_pb2.ReadLogReply:
    """Committed batches from an offset on, or where it is too old, the snapshot to read instead."""
    core, store = node.core, node.store
    size = min(max(request.max_bytes, 1), READ_BYTES_MAX)
    reply = raft_pb2.ReadLogReply(
        high_watermark=core.high_watermark, log_start_offset=core.log.start_offset
    )
    if request.HasField("snapshot"):
        wanted = SnapshotId(request.snapshot.end_offset, request.snapshot.epoch)
        try:
            reply.size, reply.data = store.read_chunk(wanted, max(request.position, 0), size)
        except FileNotFoundError:
            raise InvalidRequest(
                f"there is no snapshot {wanted} any more",
                hint="begin again: a newer one has taken its place",
                code=ErrorCode.SNAPSHOT_NOT_FOUND,
            ) from None
    elif request.offset < 0:
        raise InvalidRequest(f"offset {request.offset}", hint="a log begins at 0 or above")
    elif request.offset < core.log.start_offset:
        first = core.log.snapshots[0]
        reply.snapshot.end_offset, reply.snapshot.epoch = first.end_offset, first.epoch
    elif request.offset < core.high_watermark:
        end = core.high_watermark
        reply.data = bytes(store.read(request.offset, end_offset=end, max_bytes=size))
    return reply
