from kraftlog.rpc import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RaftRequests(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[RaftRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[RaftRequest, _Mapping]]] = ...) -> None: ...

class RaftReplies(_message.Message):
    __slots__ = ("replies",)
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[RaftReply]
    def __init__(self, replies: _Optional[_Iterable[_Union[RaftReply, _Mapping]]] = ...) -> None: ...

class RaftRequest(_message.Message):
    __slots__ = ("correlation_id", "vote", "begin_quorum_epoch", "end_quorum_epoch", "fetch", "fetch_snapshot", "add_voter", "remove_voter", "update_voter", "propose", "describe_quorum", "step_down", "read_log")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    VOTE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_QUORUM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_QUORUM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    FETCH_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    ADD_VOTER_FIELD_NUMBER: _ClassVar[int]
    REMOVE_VOTER_FIELD_NUMBER: _ClassVar[int]
    UPDATE_VOTER_FIELD_NUMBER: _ClassVar[int]
    PROPOSE_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_QUORUM_FIELD_NUMBER: _ClassVar[int]
    STEP_DOWN_FIELD_NUMBER: _ClassVar[int]
    READ_LOG_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    vote: VoteRequest
    begin_quorum_epoch: BeginQuorumEpochRequest
    end_quorum_epoch: EndQuorumEpochRequest
    fetch: FetchRequest
    fetch_snapshot: FetchSnapshotRequest
    add_voter: AddVoterRequest
    remove_voter: RemoveVoterRequest
    update_voter: UpdateVoterRequest
    propose: ProposeRequest
    describe_quorum: DescribeQuorumRequest
    step_down: StepDownRequest
    read_log: ReadLogRequest
    def __init__(self, correlation_id: _Optional[int] = ..., vote: _Optional[_Union[VoteRequest, _Mapping]] = ..., begin_quorum_epoch: _Optional[_Union[BeginQuorumEpochRequest, _Mapping]] = ..., end_quorum_epoch: _Optional[_Union[EndQuorumEpochRequest, _Mapping]] = ..., fetch: _Optional[_Union[FetchRequest, _Mapping]] = ..., fetch_snapshot: _Optional[_Union[FetchSnapshotRequest, _Mapping]] = ..., add_voter: _Optional[_Union[AddVoterRequest, _Mapping]] = ..., remove_voter: _Optional[_Union[RemoveVoterRequest, _Mapping]] = ..., update_voter: _Optional[_Union[UpdateVoterRequest, _Mapping]] = ..., propose: _Optional[_Union[ProposeRequest, _Mapping]] = ..., describe_quorum: _Optional[_Union[DescribeQuorumRequest, _Mapping]] = ..., step_down: _Optional[_Union[StepDownRequest, _Mapping]] = ..., read_log: _Optional[_Union[ReadLogRequest, _Mapping]] = ...) -> None: ...

class RaftReply(_message.Message):
    __slots__ = ("correlation_id", "vote", "begin_quorum_epoch", "end_quorum_epoch", "fetch", "fetch_snapshot", "add_voter", "remove_voter", "update_voter", "propose", "describe_quorum", "step_down", "read_log")
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    VOTE_FIELD_NUMBER: _ClassVar[int]
    BEGIN_QUORUM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_QUORUM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    FETCH_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    ADD_VOTER_FIELD_NUMBER: _ClassVar[int]
    REMOVE_VOTER_FIELD_NUMBER: _ClassVar[int]
    UPDATE_VOTER_FIELD_NUMBER: _ClassVar[int]
    PROPOSE_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_QUORUM_FIELD_NUMBER: _ClassVar[int]
    STEP_DOWN_FIELD_NUMBER: _ClassVar[int]
    READ_LOG_FIELD_NUMBER: _ClassVar[int]
    correlation_id: int
    vote: VoteReply
    begin_quorum_epoch: BeginQuorumEpochReply
    end_quorum_epoch: EndQuorumEpochReply
    fetch: FetchReply
    fetch_snapshot: FetchSnapshotReply
    add_voter: AddVoterReply
    remove_voter: RemoveVoterReply
    update_voter: UpdateVoterReply
    propose: ProposeReply
    describe_quorum: DescribeQuorumReply
    step_down: StepDownReply
    read_log: ReadLogReply
    def __init__(self, correlation_id: _Optional[int] = ..., vote: _Optional[_Union[VoteReply, _Mapping]] = ..., begin_quorum_epoch: _Optional[_Union[BeginQuorumEpochReply, _Mapping]] = ..., end_quorum_epoch: _Optional[_Union[EndQuorumEpochReply, _Mapping]] = ..., fetch: _Optional[_Union[FetchReply, _Mapping]] = ..., fetch_snapshot: _Optional[_Union[FetchSnapshotReply, _Mapping]] = ..., add_voter: _Optional[_Union[AddVoterReply, _Mapping]] = ..., remove_voter: _Optional[_Union[RemoveVoterReply, _Mapping]] = ..., update_voter: _Optional[_Union[UpdateVoterReply, _Mapping]] = ..., propose: _Optional[_Union[ProposeReply, _Mapping]] = ..., describe_quorum: _Optional[_Union[DescribeQuorumReply, _Mapping]] = ..., step_down: _Optional[_Union[StepDownReply, _Mapping]] = ..., read_log: _Optional[_Union[ReadLogReply, _Mapping]] = ...) -> None: ...

class Voter(_message.Message):
    __slots__ = ("key", "endpoint")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.VoterKey
    endpoint: str
    def __init__(self, key: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ..., endpoint: _Optional[str] = ...) -> None: ...

class ReplicaHeader(_message.Message):
    __slots__ = ("cluster_id", "sender", "recipient", "epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    sender: _common_pb2.VoterKey
    recipient: _common_pb2.VoterKey
    epoch: int
    def __init__(self, cluster_id: _Optional[bytes] = ..., sender: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ..., recipient: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class ReplyHeader(_message.Message):
    __slots__ = ("epoch", "leader", "refusal", "error")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    leader: Voter
    refusal: str
    error: _common_pb2.Error
    def __init__(self, epoch: _Optional[int] = ..., leader: _Optional[_Union[Voter, _Mapping]] = ..., refusal: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class VoteRequest(_message.Message):
    __slots__ = ("header", "last_epoch", "end_offset", "pre_vote")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRE_VOTE_FIELD_NUMBER: _ClassVar[int]
    header: ReplicaHeader
    last_epoch: int
    end_offset: int
    pre_vote: bool
    def __init__(self, header: _Optional[_Union[ReplicaHeader, _Mapping]] = ..., last_epoch: _Optional[int] = ..., end_offset: _Optional[int] = ..., pre_vote: bool = ...) -> None: ...

class VoteReply(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ...) -> None: ...

class BeginQuorumEpochRequest(_message.Message):
    __slots__ = ("header", "endpoint")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    header: ReplicaHeader
    endpoint: str
    def __init__(self, header: _Optional[_Union[ReplicaHeader, _Mapping]] = ..., endpoint: _Optional[str] = ...) -> None: ...

class BeginQuorumEpochReply(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ...) -> None: ...

class EndQuorumEpochRequest(_message.Message):
    __slots__ = ("header", "successors")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SUCCESSORS_FIELD_NUMBER: _ClassVar[int]
    header: ReplicaHeader
    successors: _containers.RepeatedCompositeFieldContainer[_common_pb2.VoterKey]
    def __init__(self, header: _Optional[_Union[ReplicaHeader, _Mapping]] = ..., successors: _Optional[_Iterable[_Union[_common_pb2.VoterKey, _Mapping]]] = ...) -> None: ...

class EndQuorumEpochReply(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("header", "offset", "last_epoch", "high_watermark", "max_wait_ms", "max_bytes")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    header: ReplicaHeader
    offset: int
    last_epoch: int
    high_watermark: int
    max_wait_ms: int
    max_bytes: int
    def __init__(self, header: _Optional[_Union[ReplicaHeader, _Mapping]] = ..., offset: _Optional[int] = ..., last_epoch: _Optional[int] = ..., high_watermark: _Optional[int] = ..., max_wait_ms: _Optional[int] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class EpochEndOffset(_message.Message):
    __slots__ = ("epoch", "end_offset")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    end_offset: int
    def __init__(self, epoch: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class SnapshotId(_message.Message):
    __slots__ = ("end_offset", "epoch")
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    end_offset: int
    epoch: int
    def __init__(self, end_offset: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class FetchReply(_message.Message):
    __slots__ = ("header", "high_watermark", "log_start_offset", "records", "diverging", "snapshot")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    DIVERGING_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    high_watermark: int
    log_start_offset: int
    records: bytes
    diverging: EpochEndOffset
    snapshot: SnapshotId
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., records: _Optional[bytes] = ..., diverging: _Optional[_Union[EpochEndOffset, _Mapping]] = ..., snapshot: _Optional[_Union[SnapshotId, _Mapping]] = ...) -> None: ...

class FetchSnapshotRequest(_message.Message):
    __slots__ = ("header", "snapshot", "position", "max_bytes")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    header: ReplicaHeader
    snapshot: SnapshotId
    position: int
    max_bytes: int
    def __init__(self, header: _Optional[_Union[ReplicaHeader, _Mapping]] = ..., snapshot: _Optional[_Union[SnapshotId, _Mapping]] = ..., position: _Optional[int] = ..., max_bytes: _Optional[int] = ...) -> None: ...

class FetchSnapshotReply(_message.Message):
    __slots__ = ("header", "snapshot", "size", "position", "data")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    snapshot: SnapshotId
    size: int
    position: int
    data: bytes
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., snapshot: _Optional[_Union[SnapshotId, _Mapping]] = ..., size: _Optional[int] = ..., position: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class AddVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "voter")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    voter: Voter
    def __init__(self, cluster_id: _Optional[bytes] = ..., voter: _Optional[_Union[Voter, _Mapping]] = ...) -> None: ...

class AddVoterReply(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ...) -> None: ...

class RemoveVoterRequest(_message.Message):
    __slots__ = ("cluster_id", "key")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    key: _common_pb2.VoterKey
    def __init__(self, cluster_id: _Optional[bytes] = ..., key: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ...) -> None: ...

class RemoveVoterReply(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ...) -> None: ...

class UpdateVoterRequest(_message.Message):
    __slots__ = ("header", "voter")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VOTER_FIELD_NUMBER: _ClassVar[int]
    header: ReplicaHeader
    voter: Voter
    def __init__(self, header: _Optional[_Union[ReplicaHeader, _Mapping]] = ..., voter: _Optional[_Union[Voter, _Mapping]] = ...) -> None: ...

class UpdateVoterReply(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ...) -> None: ...

class ProposeRequest(_message.Message):
    __slots__ = ("cluster_id", "records", "epoch")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    records: _containers.RepeatedScalarFieldContainer[bytes]
    epoch: int
    def __init__(self, cluster_id: _Optional[bytes] = ..., records: _Optional[_Iterable[bytes]] = ..., epoch: _Optional[int] = ...) -> None: ...

class ProposeReply(_message.Message):
    __slots__ = ("header", "base_offset")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    BASE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    base_offset: int
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., base_offset: _Optional[int] = ...) -> None: ...

class DescribeQuorumRequest(_message.Message):
    __slots__ = ("cluster_id",)
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    def __init__(self, cluster_id: _Optional[bytes] = ...) -> None: ...

class ReplicaState(_message.Message):
    __slots__ = ("key", "endpoint", "end_offset", "last_fetch_ago_ms", "caught_up_ago_ms", "heard_ago_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LAST_FETCH_AGO_MS_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_AGO_MS_FIELD_NUMBER: _ClassVar[int]
    HEARD_AGO_MS_FIELD_NUMBER: _ClassVar[int]
    key: _common_pb2.VoterKey
    endpoint: str
    end_offset: int
    last_fetch_ago_ms: int
    caught_up_ago_ms: int
    heard_ago_ms: int
    def __init__(self, key: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ..., endpoint: _Optional[str] = ..., end_offset: _Optional[int] = ..., last_fetch_ago_ms: _Optional[int] = ..., caught_up_ago_ms: _Optional[int] = ..., heard_ago_ms: _Optional[int] = ...) -> None: ...

class RefusalNote(_message.Message):
    __slots__ = ("node_id", "ago_ms", "epoch", "request", "refusal", "ours")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    AGO_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    OURS_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    ago_ms: int
    epoch: int
    request: str
    refusal: str
    ours: bool
    def __init__(self, node_id: _Optional[int] = ..., ago_ms: _Optional[int] = ..., epoch: _Optional[int] = ..., request: _Optional[str] = ..., refusal: _Optional[str] = ..., ours: bool = ...) -> None: ...

class DescribeQuorumReply(_message.Message):
    __slots__ = ("header", "node", "role", "high_watermark", "end_offset", "log_start_offset", "voters", "observers", "refusals", "cluster_id", "applied_offset", "voted", "leaderless_ms", "led_epoch", "election_timeout_ms")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    OBSERVERS_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    APPLIED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    VOTED_FIELD_NUMBER: _ClassVar[int]
    LEADERLESS_MS_FIELD_NUMBER: _ClassVar[int]
    LED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ELECTION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    node: _common_pb2.VoterKey
    role: str
    high_watermark: int
    end_offset: int
    log_start_offset: int
    voters: _containers.RepeatedCompositeFieldContainer[ReplicaState]
    observers: _containers.RepeatedCompositeFieldContainer[ReplicaState]
    refusals: _containers.RepeatedCompositeFieldContainer[RefusalNote]
    cluster_id: bytes
    applied_offset: int
    voted: _common_pb2.VoterKey
    leaderless_ms: int
    led_epoch: int
    election_timeout_ms: int
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., node: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ..., role: _Optional[str] = ..., high_watermark: _Optional[int] = ..., end_offset: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., voters: _Optional[_Iterable[_Union[ReplicaState, _Mapping]]] = ..., observers: _Optional[_Iterable[_Union[ReplicaState, _Mapping]]] = ..., refusals: _Optional[_Iterable[_Union[RefusalNote, _Mapping]]] = ..., cluster_id: _Optional[bytes] = ..., applied_offset: _Optional[int] = ..., voted: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ..., leaderless_ms: _Optional[int] = ..., led_epoch: _Optional[int] = ..., election_timeout_ms: _Optional[int] = ...) -> None: ...

class StepDownRequest(_message.Message):
    __slots__ = ("cluster_id", "successor")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    SUCCESSOR_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    successor: _common_pb2.VoterKey
    def __init__(self, cluster_id: _Optional[bytes] = ..., successor: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ...) -> None: ...

class StepDownReply(_message.Message):
    __slots__ = ("header",)
    HEADER_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ...) -> None: ...

class ReadLogRequest(_message.Message):
    __slots__ = ("cluster_id", "offset", "max_bytes", "snapshot", "position")
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    cluster_id: bytes
    offset: int
    max_bytes: int
    snapshot: SnapshotId
    position: int
    def __init__(self, cluster_id: _Optional[bytes] = ..., offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., snapshot: _Optional[_Union[SnapshotId, _Mapping]] = ..., position: _Optional[int] = ...) -> None: ...

class ReadLogReply(_message.Message):
    __slots__ = ("header", "high_watermark", "log_start_offset", "snapshot", "data", "size")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOG_START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    header: ReplyHeader
    high_watermark: int
    log_start_offset: int
    snapshot: SnapshotId
    data: bytes
    size: int
    def __init__(self, header: _Optional[_Union[ReplyHeader, _Mapping]] = ..., high_watermark: _Optional[int] = ..., log_start_offset: _Optional[int] = ..., snapshot: _Optional[_Union[SnapshotId, _Mapping]] = ..., data: _Optional[bytes] = ..., size: _Optional[int] = ...) -> None: ...

class LeaderChangeRecord(_message.Message):
    __slots__ = ("leader", "voters", "granted_by")
    LEADER_FIELD_NUMBER: _ClassVar[int]
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    GRANTED_BY_FIELD_NUMBER: _ClassVar[int]
    leader: _common_pb2.VoterKey
    voters: _containers.RepeatedCompositeFieldContainer[_common_pb2.VoterKey]
    granted_by: _containers.RepeatedCompositeFieldContainer[_common_pb2.VoterKey]
    def __init__(self, leader: _Optional[_Union[_common_pb2.VoterKey, _Mapping]] = ..., voters: _Optional[_Iterable[_Union[_common_pb2.VoterKey, _Mapping]]] = ..., granted_by: _Optional[_Iterable[_Union[_common_pb2.VoterKey, _Mapping]]] = ...) -> None: ...

class VotersRecord(_message.Message):
    __slots__ = ("voters",)
    VOTERS_FIELD_NUMBER: _ClassVar[int]
    voters: _containers.RepeatedCompositeFieldContainer[Voter]
    def __init__(self, voters: _Optional[_Iterable[_Union[Voter, _Mapping]]] = ...) -> None: ...

class SnapshotHeaderRecord(_message.Message):
    __slots__ = ("last_timestamp",)
    LAST_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    last_timestamp: int
    def __init__(self, last_timestamp: _Optional[int] = ...) -> None: ...

class SnapshotFooterRecord(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NoOpRecord(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
