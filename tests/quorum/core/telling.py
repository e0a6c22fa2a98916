"""How transcripts put what a core wants done into words."""

from quorum.core.effects import (
    Append,
    CheckSnapshot,
    Committed,
    DropLogBelow,
    DropSnapshot,
    Effect,
    FinishSnapshot,
    Flush,
    LeadershipGained,
    LeadershipLost,
    ReadFailed,
    ReadReady,
    SaveElection,
    Send,
    SendRecords,
    SendReply,
    SendSnapshotChunk,
    StartSnapshot,
    TruncateLog,
)
from quorum.core.messages import (
    Batch,
    EndQuorumEpochRequest,
    FetchReply,
    FetchRequest,
    FetchSnapshotRequest,
    LeaderChange,
    ReplicaKey,
    ReplicaRequest,
    Reply,
    UpdateVoterRequest,
    VoteReply,
    VoteRequest,
    VoterSet,
)
from quorum.core.replica import name_of
from quorum.core.state import ElectionState
from tests.quorum.core.world import Node


def name(key: ReplicaKey) -> str:
    """n3 is node 3 with its first disk, n3/2 with its second."""
    disk = key.directory_id.raw[-2]
    return f"n{key.node_id}" + (f"/{disk}" if disk != 1 else "")


def state(node: Node) -> str:
    core, log = node.core, node.core.log
    epochs = " ".join(f"e{each.epoch}@{each.start_offset}" for each in log.epochs)
    role = type(core.role).__name__.lower()
    return (
        f"{name(core.key)} {role} e{core.epoch}"
        f" log=[{log.start_offset},{log.end_offset}) {epochs or '-'} hw={core.high_watermark}"
    )


def election(saved: ElectionState) -> str:
    vote = f" vote={name(saved.voted_key)}" if saved.voted_key else ""
    leader = f" leader=n{saved.leader_id}" if saved.leader_id is not None else ""
    return f"e{saved.epoch}{vote}{leader}"


def batch(each: Batch) -> str:
    match each.control:
        case None:
            what = bytes(each.data).decode()
        case LeaderChange(leader=leader):
            what = f"leader {name(leader)}"
        case VoterSet(keys=keys):
            what = "voters " + ",".join(map(name, keys))
        case _:
            what = "no-op"
    return f"{each.base_offset}:e{each.epoch} {what}"


def request(asked: ReplicaRequest) -> str:
    said = f"{name_of(asked)} e{asked.epoch}"
    match asked:
        case VoteRequest(last_epoch=epoch, end_offset=end):
            return f"{said} log ends {end} in e{epoch}"
        case FetchRequest(offset=offset, last_epoch=epoch, high_watermark=high_watermark):
            return f"{said} from {offset} after e{epoch}, hw={high_watermark}"
        case FetchSnapshotRequest(snapshot=snapshot, position=position):
            return f"{said} {snapshot} from byte {position}"
        case EndQuorumEpochRequest(successors=successors):
            return f"{said} next is " + ", ".join(map(name, successors))
        case UpdateVoterRequest(voter=voter):
            return f"{said} {name(voter.key)} is at {voter.endpoint}"
        case _:
            return said


def reply(said: Reply) -> str:
    kind = type(said).__name__.removesuffix("Reply")
    leader = f", leader is {name(said.leader.key)}" if said.leader else ""
    if said.refusal:
        return f"{kind} e{said.epoch} refused: {said.refusal}{leader}"
    match said:
        case VoteReply():
            return f"{kind} e{said.epoch} granted"
        case FetchReply(diverging=found) if found:
            return f"{kind} e{said.epoch} diverging: e{found.epoch} ends at {found.end_offset}"
        case FetchReply(snapshot=found) if found:
            return f"{kind} e{said.epoch} snapshot {found}"
        case FetchReply(high_watermark=high_watermark):
            known = "unknown" if high_watermark is None else high_watermark
            return f"{kind} e{said.epoch} hw={known}"
        case _:
            return f"{kind} e{said.epoch} done"


def effect(node: Node, wanted: Effect) -> str | None:
    """One line, or nothing worth one."""
    told = _change(wanted) or _download(wanted) or _news(wanted)
    return f"{name(node.core.key)} {told}" if told else None


def _change(wanted: Effect) -> str | None:
    match wanted:
        case SaveElection(election=saved):
            return f"saves {election(saved)}"
        case Append(batches=batches):
            return "appends " + ", ".join(map(batch, batches))
        case Flush(end_offset=end):
            return f"flushes up to {end}"
        case TruncateLog(end_offset=end):
            return f"cuts its log at {end}"
        case DropLogBelow(snapshot=snapshot):
            return f"drops its log below {snapshot}"
        case _:
            return None


def _download(wanted: Effect) -> str | None:
    match wanted:
        case StartSnapshot(snapshot=snapshot):
            return f"starts to download {snapshot}"
        case CheckSnapshot(snapshot=snapshot):
            return f"checks {snapshot}"
        case FinishSnapshot(snapshot=snapshot):
            return f"puts {snapshot} in the place of its log"
        case DropSnapshot(snapshot=snapshot):
            return f"gives up the download of {snapshot}"
        case _:
            return None


def _news(wanted: Effect) -> str | None:
    match wanted:
        case Committed(high_watermark=end):
            return f"knows all below {end} to be committed"
        case LeadershipGained(epoch=epoch):
            return f"leads e{epoch}"
        case LeadershipLost(epoch=epoch):
            return f"leads e{epoch} no more"
        case ReadReady(tokens=tokens, end_offset=end):
            return f"answers {len(tokens)} reads from all below {end}"
        case ReadFailed(tokens=tokens, refusal=refusal):
            return f"refuses {len(tokens)} reads: {refusal}"
        case _:
            return None


def message(node: Node, wanted: Effect) -> str | None:
    who = name(node.core.key)
    match wanted:
        case Send(endpoint=endpoint, request=asked):
            return f"{who} -> {endpoint} {request(asked)}"
        case SendReply(token=token, reply=said):
            return f"{who} => {_asker(node, token)} {reply(said)}"
        case SendRecords(token=token, reply=said, offset=offset):
            asker = _asker(node, token)
            return f"{who} => {asker} {reply(said)} and records from {offset}"
        case SendSnapshotChunk(token=token, reply=said):
            return f"{who} => {_asker(node, token)} {said.snapshot} from byte {said.position}"
        case _:
            return None


def _asker(node: Node, token: int) -> str:
    source = node.incoming[token].source
    return f"n{source}" if source else "operator"
