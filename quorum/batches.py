"""Between the bytes of the log and what the core knows of them: batches and control records.

A control record has Kafka's key (version, type; two big-endian int16) and a protobuf message as
its value. The first four types are Kafka's numbers; the no-op is ours.
"""

import struct
from collections.abc import Sequence

from google.protobuf.message import DecodeError, Message

from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import Record, RecordBatch, encode_batch, encode_values, read_batches
from kraftlog.rpc import common_pb2, raft_pb2
from kraftlog.types import Buffer, Uuid
from quorum.core.messages import (
    Batch,
    Control,
    LeaderChange,
    NoOp,
    ReplicaKey,
    Voter,
    VoterSet,
)

_KEY = struct.Struct(">hh")
_VERSION = 0

LEADER_CHANGE = 2
SNAPSHOT_HEADER = 3
SNAPSHOT_FOOTER = 4
VOTERS = 6
NO_OP = 1_000


# -- keys and voters


def encode_key(key: ReplicaKey) -> common_pb2.VoterKey:
    return common_pb2.VoterKey(node_id=key.node_id, directory_id=key.directory_id.raw)


def decode_key(key: common_pb2.VoterKey) -> ReplicaKey:
    if key.node_id < 1:
        raise ValueError(f"node id {key.node_id}")
    return ReplicaKey(key.node_id, Uuid(key.directory_id))


def encode_voter(voter: Voter) -> raft_pb2.Voter:
    return raft_pb2.Voter(key=encode_key(voter.key), endpoint=voter.endpoint)


def decode_voter(voter: raft_pb2.Voter) -> Voter:
    return Voter(decode_key(voter.key), voter.endpoint)


# -- control records


def encode_control(control: Control, *, offset: int, epoch: int, timestamp: int) -> bytes:
    match control:
        case LeaderChange(leader=leader, voters=voters, granted_by=granted_by):
            message: Message = raft_pb2.LeaderChangeRecord(
                leader=encode_key(leader),
                voters=map(encode_key, voters),
                granted_by=map(encode_key, granted_by),
            )
            return control_batch(LEADER_CHANGE, message, offset=offset, epoch=epoch, at=timestamp)
        case VoterSet(voters=members):
            message = raft_pb2.VotersRecord(voters=map(encode_voter, members))
            return control_batch(VOTERS, message, offset=offset, epoch=epoch, at=timestamp)
        case NoOp():
            message = raft_pb2.NoOpRecord()
            return control_batch(NO_OP, message, offset=offset, epoch=epoch, at=timestamp)


def control_batch(kind: int, value: Message, *, offset: int, epoch: int, at: int) -> bytes:
    key = _KEY.pack(_VERSION, kind)
    record = Record(offset, at, key, value.SerializeToString(deterministic=True), ())
    return encode_batch([record], leader_epoch=epoch, is_control=True)


def control_kind(batch: RecordBatch) -> tuple[int, bytes]:
    """Type and value of the one record of a control batch."""
    records = batch.records()
    if len(records) != 1 or records[0].key is None or len(records[0].key) != _KEY.size:
        raise CorruptRecord(f"control batch at offset {batch.base_offset} is none of ours")
    version, kind = _KEY.unpack(records[0].key)
    if version != _VERSION:
        raise CorruptRecord(f"control record at {batch.base_offset} has version {version}")
    return kind, records[0].value or b""


def decode_control(batch: RecordBatch) -> Control:
    kind, value = control_kind(batch)
    try:
        if kind == LEADER_CHANGE:
            change = raft_pb2.LeaderChangeRecord.FromString(value)
            return LeaderChange(
                decode_key(change.leader),
                tuple(map(decode_key, change.voters)),
                tuple(map(decode_key, change.granted_by)),
            )
        if kind == VOTERS:
            return decode_voters(value)
        if kind == NO_OP:
            return NoOp()
    except (DecodeError, ValueError) as error:
        raise CorruptRecord(f"control record at {batch.base_offset}: {error}") from error
    raise CorruptRecord(f"control record at {batch.base_offset} has type {kind}")


def decode_voters(value: bytes) -> VoterSet:
    return VoterSet(tuple(map(decode_voter, raft_pb2.VotersRecord.FromString(value).voters)))


# -- data


def encode_records(values: Sequence[bytes], *, timestamp: int) -> bytearray:
    """One batch, still without offset and epoch."""
    return bytearray(encode_values(values, timestamp=timestamp, base_offset=0))


def decode_batch(batch: RecordBatch) -> Batch:
    control = decode_control(batch) if batch.is_control else None
    count = batch.last_offset_delta + 1
    return Batch(batch.base_offset, batch.leader_epoch, count, batch.data, control)


def decode_batches(data: Buffer) -> tuple[Batch, ...]:
    """Every whole and sound batch up to the first that is not."""
    found: list[Batch] = []
    try:
        for batch in read_batches(data):
            batch.check_crc()
            found.append(decode_batch(batch))
    except CorruptRecord:
        pass  # the replica takes what is good and asks again for the rest
    return tuple(found)
