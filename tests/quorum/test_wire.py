import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import InvalidRequest
from kraftlog.rpc import common_pb2, raft_pb2
from kraftlog.types import EpochEnd
from quorum.batches import encode_control
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
    NoOp,
    Refusal,
    RemoveVoterReply,
    RemoveVoterRequest,
    Reply,
    Request,
    UpdateVoterReply,
    UpdateVoterRequest,
    VoteReply,
    VoteRequest,
)
from quorum.wire import decode_reply, decode_request, encode_reply, encode_request
from tests.quorum.samples import (
    CLUSTER,
    epochs,
    key,
    keys,
    offsets,
    single_voters,
    snapshot_ids,
    uuids,
    voter,
)

int32 = st.integers(-(2**31), 2**31 - 1)
header = {
    "cluster_id": uuids,
    "sender": keys,
    "recipient": st.none() | keys,
    "epoch": int32,
}
requests = (
    st.builds(VoteRequest, **header, last_epoch=int32, end_offset=offsets, pre_vote=st.booleans())
    | st.builds(BeginQuorumEpochRequest, **header, endpoint=st.text())
    | st.builds(EndQuorumEpochRequest, **header, successors=st.lists(keys).map(tuple))
    | st.builds(
        FetchRequest,
        **header,
        offset=offsets,
        last_epoch=int32,
        high_watermark=offsets,
        max_wait_ms=int32,
        max_bytes=int32,
    )
    | st.builds(
        FetchSnapshotRequest, **header, snapshot=snapshot_ids, position=offsets, max_bytes=int32
    )
    | st.builds(UpdateVoterRequest, **header, voter=single_voters)
    | st.builds(AddVoterRequest, cluster_id=uuids, voter=single_voters)
    | st.builds(RemoveVoterRequest, cluster_id=uuids, key=keys)
)
answer = {
    "epoch": epochs,
    "leader": st.none() | single_voters,
    "refusal": st.none() | st.sampled_from(Refusal),
}
plain_replies = st.one_of(
    *(
        st.builds(kind, **answer)
        for kind in (
            VoteReply,
            BeginQuorumEpochReply,
            EndQuorumEpochReply,
            UpdateVoterReply,
            AddVoterReply,
            RemoveVoterReply,
        )
    )
)
fetched = {"high_watermark": st.none() | offsets, "log_start_offset": offsets}
replies = (
    plain_replies
    | st.builds(FetchReply, **answer, **fetched)
    | st.builds(FetchReply, **answer, **fetched, diverging=st.builds(EpochEnd, epochs, offsets))
    | st.builds(FetchReply, **answer, **fetched, snapshot=snapshot_ids)
    | st.builds(
        FetchSnapshotReply,
        **answer,
        snapshot=snapshot_ids,
        size=offsets,
        position=offsets,
        data=st.binary(),
    )
)


@given(st.integers(0, 2**62), requests)
def test_a_request_arrives_as_it_was_sent(number: int, request: Request) -> None:
    raw = encode_request(number, request).SerializeToString()
    envelope = raft_pb2.RaftRequest.FromString(raw)
    assert envelope.correlation_id == number
    assert decode_request(envelope) == request


@given(st.integers(0, 2**62), replies)
def test_a_reply_arrives_as_it_was_sent(number: int, reply: Reply) -> None:
    raw = encode_reply(number, reply).SerializeToString()
    envelope = raft_pb2.RaftReply.FromString(raw)
    assert envelope.correlation_id == number
    assert decode_reply(envelope) == reply


def test_records_come_with_a_fetch() -> None:
    data = encode_control(NoOp(), offset=5, epoch=2, timestamp=0)
    fetch = FetchReply(epoch=2, leader=voter(1), high_watermark=4)
    decoded = decode_reply(encode_reply(1, fetch, data))
    assert isinstance(decoded, FetchReply)
    assert [(batch.base_offset, batch.control) for batch in decoded.batches] == [(5, NoOp())]


def test_a_refusal_of_a_later_version_is_a_refusal() -> None:
    reply = raft_pb2.VoteReply(header=raft_pb2.ReplyHeader(epoch=1, refusal="mood"))
    decoded = decode_reply(raft_pb2.RaftReply(vote=reply))
    assert decoded.refusal is Refusal.INVALID_REQUEST


def test_refusals_have_kafkas_numbers() -> None:
    reply = VoteReply(epoch=1, leader=None, refusal=Refusal.WRONG_CLUSTER)
    assert encode_reply(1, reply).vote.header.error.code == 104


BAD_HEADERS = [
    raft_pb2.ReplicaHeader(),
    raft_pb2.ReplicaHeader(cluster_id=CLUSTER.raw),
    raft_pb2.ReplicaHeader(
        cluster_id=b"short", sender=common_pb2.VoterKey(node_id=1, directory_id=bytes(16))
    ),
    raft_pb2.ReplicaHeader(
        cluster_id=CLUSTER.raw, sender=common_pb2.VoterKey(node_id=1, directory_id=bytes(15))
    ),
]


@pytest.mark.parametrize("bad", BAD_HEADERS)
def test_what_makes_no_sense_is_an_invalid_request(bad: raft_pb2.ReplicaHeader) -> None:
    envelope = raft_pb2.RaftRequest(fetch=raft_pb2.FetchRequest(header=bad))
    with pytest.raises(InvalidRequest, match="fetch request makes no sense"):
        decode_request(envelope)


def test_an_envelope_of_no_kind_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no kind known here"):
        decode_request(raft_pb2.RaftRequest(correlation_id=1))
    with pytest.raises(InvalidRequest, match="no kind known here"):
        decode_request(raft_pb2.RaftRequest(propose=raft_pb2.ProposeRequest()))
    with pytest.raises(InvalidRequest, match="no kind known here"):
        decode_reply(raft_pb2.RaftReply(correlation_id=1))


def test_node_ids_begin_at_one() -> None:
    nobody = raft_pb2.ReplicaHeader(
        cluster_id=CLUSTER.raw,
        sender=common_pb2.VoterKey(node_id=0, directory_id=key(1).directory_id.raw),
    )
    envelope = raft_pb2.RaftRequest(vote=raft_pb2.VoteRequest(header=nobody))
    with pytest.raises(InvalidRequest, match="vote request makes no sense"):
        decode_request(envelope)


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_refused(raw: bytes) -> None:
    reply = raft_pb2.RaftReply(fetch=raft_pb2.FetchReply(records=raw))
    assert decode_reply(reply) is not None
