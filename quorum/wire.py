"""The messages of the core as protobuf, and back. What cannot be one of them is InvalidRequest."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypedDict

from kraftlog.errors import InvalidRequest
from kraftlog.rpc import common_pb2, raft_pb2
from kraftlog.types import Buffer, EpochEnd, Uuid
from quorum.batches import decode_batches, decode_key, decode_voter, encode_key, encode_voter
from quorum.core.messages import (
    AddVoterReply,
    AddVoterRequest,
    BeginQuorumEpochReply,
    BeginQuorumEpochRequest,
    EndQuorumEpochReply,
    EndQuorumEpochRequest,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    RaftReply,
    RaftRequest,
    Refusal,
    RemoveVoterReply,
    RemoveVoterRequest,
    ReplicaKey,
    Reply,
    Request,
    SnapshotId,
    UpdateVoterReply,
    UpdateVoterRequest,
    Voter,
    VoteReply,
    VoteRequest,
)

_REFUSALS = {refusal.text: refusal for refusal in Refusal}

# -- requests


def encode_request(correlation_id: int, request: Request) -> raft_pb2.RaftRequest:
    build = raft_pb2.RaftRequest
    match request:
        case FetchRequest():
            return build(correlation_id=correlation_id, fetch=_encode_fetch(request))
        case VoteRequest():
            return build(correlation_id=correlation_id, vote=_encode_vote(request))
        case BeginQuorumEpochRequest():
            begin = raft_pb2.BeginQuorumEpochRequest(
                header=_encode_header(request), endpoint=request.endpoint
            )
            return build(correlation_id=correlation_id, begin_quorum_epoch=begin)
        case EndQuorumEpochRequest():
            end = raft_pb2.EndQuorumEpochRequest(
                header=_encode_header(request), successors=map(encode_key, request.successors)
            )
            return build(correlation_id=correlation_id, end_quorum_epoch=end)
        case FetchSnapshotRequest():
            chunk = _encode_fetch_snapshot(request)
            return build(correlation_id=correlation_id, fetch_snapshot=chunk)
        case UpdateVoterRequest():
            update = raft_pb2.UpdateVoterRequest(
                header=_encode_header(request), voter=encode_voter(request.voter)
            )
            return build(correlation_id=correlation_id, update_voter=update)
        case AddVoterRequest(cluster_id=cluster_id, voter=voter):
            add = raft_pb2.AddVoterRequest(cluster_id=cluster_id.raw, voter=encode_voter(voter))
            return build(correlation_id=correlation_id, add_voter=add)
        case RemoveVoterRequest(cluster_id=cluster_id, key=key):
            remove = raft_pb2.RemoveVoterRequest(cluster_id=cluster_id.raw, key=encode_key(key))
            return build(correlation_id=correlation_id, remove_voter=remove)


def _encode_header(request: RaftRequest) -> raft_pb2.ReplicaHeader:
    return raft_pb2.ReplicaHeader(
        cluster_id=request.cluster_id.raw,
        sender=encode_key(request.sender),
        recipient=encode_key(request.recipient) if request.recipient else None,
        epoch=request.epoch,
    )


def _encode_fetch(request: FetchRequest) -> raft_pb2.FetchRequest:
    return raft_pb2.FetchRequest(
        header=_encode_header(request),
        offset=request.offset,
        last_epoch=request.last_epoch,
        high_watermark=request.high_watermark,
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
    )


def _encode_vote(request: VoteRequest) -> raft_pb2.VoteRequest:
    return raft_pb2.VoteRequest(
        header=_encode_header(request),
        last_epoch=request.last_epoch,
        end_offset=request.end_offset,
        pre_vote=request.pre_vote,
    )


def _encode_fetch_snapshot(request: FetchSnapshotRequest) -> raft_pb2.FetchSnapshotRequest:
    return raft_pb2.FetchSnapshotRequest(
        header=_encode_header(request),
        snapshot=_encode_snapshot(request.snapshot),
        position=request.position,
        max_bytes=request.max_bytes,
    )


def _encode_snapshot(snapshot: SnapshotId) -> raft_pb2.SnapshotId:
    return raft_pb2.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)


def decode_request(envelope: raft_pb2.RaftRequest) -> Request:
    """The request in an envelope of the stream; of what is not for the core: InvalidRequest."""
    kind = envelope.WhichOneof("request")
    decoder = _REQUEST_DECODERS.get(kind or "")
    if decoder is None:
        raise InvalidRequest(f"request {envelope.correlation_id} is of no kind known here: {kind}")
    try:
        return decoder(envelope)
    except ValueError as error:
        raise InvalidRequest(
            f"{kind} request makes no sense: {error}", hint="uuids have 16 bytes, ids are 1 or more"
        ) from error


class _Header(TypedDict):
    cluster_id: Uuid
    sender: ReplicaKey
    recipient: ReplicaKey | None
    epoch: int


def _decode_header(header: raft_pb2.ReplicaHeader) -> _Header:
    return {
        "cluster_id": Uuid(header.cluster_id),
        "sender": decode_key(header.sender),
        "recipient": decode_key(header.recipient) if header.HasField("recipient") else None,
        "epoch": header.epoch,
    }


def _decode_fetch(envelope: raft_pb2.RaftRequest) -> FetchRequest:
    fetch = envelope.fetch
    return FetchRequest(
        **_decode_header(fetch.header),
        offset=fetch.offset,
        last_epoch=fetch.last_epoch,
        high_watermark=fetch.high_watermark,
        max_wait_ms=fetch.max_wait_ms,
        max_bytes=fetch.max_bytes,
    )


def _decode_vote(envelope: raft_pb2.RaftRequest) -> VoteRequest:
    vote = envelope.vote
    return VoteRequest(
        **_decode_header(vote.header),
        last_epoch=vote.last_epoch,
        end_offset=vote.end_offset,
        pre_vote=vote.pre_vote,
    )


def _decode_begin(envelope: raft_pb2.RaftRequest) -> BeginQuorumEpochRequest:
    begin = envelope.begin_quorum_epoch
    return BeginQuorumEpochRequest(**_decode_header(begin.header), endpoint=begin.endpoint)


def _decode_end(envelope: raft_pb2.RaftRequest) -> EndQuorumEpochRequest:
    end = envelope.end_quorum_epoch
    successors = tuple(map(decode_key, end.successors))
    return EndQuorumEpochRequest(**_decode_header(end.header), successors=successors)


def _decode_fetch_snapshot(envelope: raft_pb2.RaftRequest) -> FetchSnapshotRequest:
    chunk = envelope.fetch_snapshot
    return FetchSnapshotRequest(
        **_decode_header(chunk.header),
        snapshot=_decode_snapshot(chunk.snapshot),
        position=chunk.position,
        max_bytes=chunk.max_bytes,
    )


def _decode_snapshot(snapshot: raft_pb2.SnapshotId) -> SnapshotId:
    return SnapshotId(snapshot.end_offset, snapshot.epoch)


def _decode_update(envelope: raft_pb2.RaftRequest) -> UpdateVoterRequest:
    update = envelope.update_voter
    return UpdateVoterRequest(**_decode_header(update.header), voter=decode_voter(update.voter))


def _decode_add(envelope: raft_pb2.RaftRequest) -> AddVoterRequest:
    add = envelope.add_voter
    return AddVoterRequest(cluster_id=Uuid(add.cluster_id), voter=decode_voter(add.voter))


def _decode_remove(envelope: raft_pb2.RaftRequest) -> RemoveVoterRequest:
    remove = envelope.remove_voter
    return RemoveVoterRequest(cluster_id=Uuid(remove.cluster_id), key=decode_key(remove.key))


_REQUEST_DECODERS: Mapping[str, Callable[[raft_pb2.RaftRequest], Request]] = {
    "fetch": _decode_fetch,
    "vote": _decode_vote,
    "begin_quorum_epoch": _decode_begin,
    "end_quorum_epoch": _decode_end,
    "fetch_snapshot": _decode_fetch_snapshot,
    "update_voter": _decode_update,
    "add_voter": _decode_add,
    "remove_voter": _decode_remove,
}

# -- replies


def encode_reply(correlation_id: int, reply: Reply, records: Buffer = b"") -> raft_pb2.RaftReply:
    """`records`: what a fetch is answered with, as it is in the log."""
    build = raft_pb2.RaftReply
    header = encode_reply_header(reply)
    match reply:
        case FetchReply():
            fetch = _encode_fetch_reply(header, reply, records)
            return build(correlation_id=correlation_id, fetch=fetch)
        case VoteReply():
            return build(correlation_id=correlation_id, vote=raft_pb2.VoteReply(header=header))
        case BeginQuorumEpochReply():
            begin = raft_pb2.BeginQuorumEpochReply(header=header)
            return build(correlation_id=correlation_id, begin_quorum_epoch=begin)
        case EndQuorumEpochReply():
            end = raft_pb2.EndQuorumEpochReply(header=header)
            return build(correlation_id=correlation_id, end_quorum_epoch=end)
        case FetchSnapshotReply():
            chunk = _encode_chunk(header, reply)
            return build(correlation_id=correlation_id, fetch_snapshot=chunk)
        case UpdateVoterReply():
            update = raft_pb2.UpdateVoterReply(header=header)
            return build(correlation_id=correlation_id, update_voter=update)
        case AddVoterReply():
            add = raft_pb2.AddVoterReply(header=header)
            return build(correlation_id=correlation_id, add_voter=add)
        case RemoveVoterReply():
            remove = raft_pb2.RemoveVoterReply(header=header)
            return build(correlation_id=correlation_id, remove_voter=remove)


def encode_reply_header(reply: RaftReply) -> raft_pb2.ReplyHeader:
    refusal = reply.refusal
    error = common_pb2.Error(code=refusal.code, message=refusal.text) if refusal else None
    return raft_pb2.ReplyHeader(
        epoch=reply.epoch,
        leader=encode_voter(reply.leader) if reply.leader else None,
        refusal=refusal.text if refusal else None,
        error=error,
    )


def _encode_fetch_reply(
    header: raft_pb2.ReplyHeader, reply: FetchReply, records: Buffer
) -> raft_pb2.FetchReply:
    diverging = reply.diverging
    return raft_pb2.FetchReply(
        header=header,
        high_watermark=reply.high_watermark,
        log_start_offset=reply.log_start_offset,
        records=bytes(records),
        diverging=raft_pb2.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset)
        if diverging
        else None,
        snapshot=_encode_snapshot(reply.snapshot) if reply.snapshot else None,
    )


def _encode_chunk(
    header: raft_pb2.ReplyHeader, reply: FetchSnapshotReply
) -> raft_pb2.FetchSnapshotReply:
    return raft_pb2.FetchSnapshotReply(
        header=header,
        snapshot=_encode_snapshot(reply.snapshot),
        size=reply.size,
        position=reply.position,
        data=bytes(reply.data),
    )


def decode_reply(envelope: raft_pb2.RaftReply) -> Reply:
    """The reply in an envelope; InvalidRequest where it cannot be one."""
    kind = envelope.WhichOneof("reply")
    decoder = _REPLY_DECODERS.get(kind or "")
    if decoder is None:
        raise InvalidRequest(f"reply {envelope.correlation_id} is of no kind known here: {kind}")
    try:
        return decoder(envelope)
    except ValueError as error:
        raise InvalidRequest(f"{kind} reply makes no sense: {error}") from error


class _ReplyHeader(TypedDict):
    epoch: int
    leader: Voter | None
    refusal: Refusal | None


def decode_reply_header(header: raft_pb2.ReplyHeader) -> _ReplyHeader:
    refusal = None
    if header.HasField("refusal"):
        # A word of a later version: not granted, whatever it means.
        refusal = _REFUSALS.get(header.refusal, Refusal.INVALID_REQUEST)
    leader = decode_voter(header.leader) if header.HasField("leader") else None
    return {"epoch": header.epoch, "leader": leader, "refusal": refusal}


def _decode_fetch_reply(envelope: raft_pb2.RaftReply) -> FetchReply:
    fetch = envelope.fetch
    reply = FetchReply(
        **decode_reply_header(fetch.header),
        high_watermark=fetch.high_watermark if fetch.HasField("high_watermark") else None,
        log_start_offset=fetch.log_start_offset,
    )
    if fetch.HasField("diverging"):
        diverging = EpochEnd(fetch.diverging.epoch, fetch.diverging.end_offset)
        return replace(reply, diverging=diverging)
    if fetch.HasField("snapshot"):
        return replace(reply, snapshot=_decode_snapshot(fetch.snapshot))
    return replace(reply, batches=decode_batches(fetch.records)) if fetch.records else reply


def _decode_chunk(envelope: raft_pb2.RaftReply) -> FetchSnapshotReply:
    chunk = envelope.fetch_snapshot
    return FetchSnapshotReply(
        **decode_reply_header(chunk.header),
        snapshot=_decode_snapshot(chunk.snapshot),
        size=chunk.size,
        position=chunk.position,
        data=chunk.data,
    )


_REPLY_DECODERS: Mapping[str, Callable[[raft_pb2.RaftReply], Reply]] = {
    "fetch": _decode_fetch_reply,
    "vote": lambda it: VoteReply(**decode_reply_header(it.vote.header)),
    "begin_quorum_epoch": lambda it: BeginQuorumEpochReply(
        **decode_reply_header(it.begin_quorum_epoch.header)
    ),
    "end_quorum_epoch": lambda it: EndQuorumEpochReply(
        **decode_reply_header(it.end_quorum_epoch.header)
    ),
    "fetch_snapshot": _decode_chunk,
    "update_voter": lambda it: UpdateVoterReply(**decode_reply_header(it.update_voter.header)),
    "add_voter": lambda it: AddVoterReply(**decode_reply_header(it.add_voter.header)),
    "remove_voter": lambda it: RemoveVoterReply(**decode_reply_header(it.remove_voter.header)),
}
