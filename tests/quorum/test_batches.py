import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import Record, RecordBatch, encode_batch
from kraftlog.rpc import common_pb2, raft_pb2
from quorum.batches import (
    LEADER_CHANGE,
    VOTERS,
    control_batch,
    control_kind,
    decode_batch,
    decode_batches,
    decode_control,
    encode_control,
    encode_records,
)
from quorum.core.messages import Control, LeaderChange, NoOp, VoterSet
from tests.quorum.samples import TIME_MS, epochs, key, keys, voter_sets, voters

controls = (
    st.builds(LeaderChange, keys, st.lists(keys).map(tuple), granted_by=st.lists(keys).map(tuple))
    | voter_sets
    | st.just(NoOp())
)


@given(controls, st.integers(0, 2**62), epochs)
def test_a_control_record_is_read_as_it_was_written(
    control: Control, offset: int, epoch: int
) -> None:
    data = encode_control(control, offset=offset, epoch=epoch, timestamp=TIME_MS)
    (batch,) = decode_batches(data)
    assert batch.control == control
    assert (batch.base_offset, batch.epoch, batch.count) == (offset, epoch, 1)


def test_the_numbers_of_kafka() -> None:
    change = LeaderChange(key(1), (key(1),), (key(1),))
    of_change = RecordBatch(encode_control(change, offset=0, epoch=1, timestamp=TIME_MS))
    of_voters = RecordBatch(encode_control(voters(1), offset=0, epoch=1, timestamp=TIME_MS))
    assert control_kind(of_change)[0] == LEADER_CHANGE == 2
    assert control_kind(of_voters)[0] == VOTERS == 6


@given(st.lists(st.binary(max_size=40), min_size=1), st.integers(0, 300))
def test_bytes_are_read_up_to_the_first_damage(values: list[bytes], at: int) -> None:
    first = bytes(encode_records(values, timestamp=TIME_MS))
    noop = encode_control(NoOp(), offset=len(values), epoch=0, timestamp=TIME_MS)
    assert [batch.count for batch in decode_batches(first + noop)] == [len(values), 1]
    assert len(decode_batches(first + noop[: at % len(noop)])) == 1
    torn = bytearray(first + noop)
    torn[len(first) + 21 + at % (len(noop) - 21)] ^= 1  # covered by the CRC
    assert [batch.base_offset for batch in decode_batches(torn)] == [0]


def test_data_has_no_control_record() -> None:
    batch = RecordBatch(encode_records([b"a", b"b"], timestamp=TIME_MS))
    assert decode_batch(batch).control is None
    assert decode_batch(batch).count == 2


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Record(0, TIME_MS, None, b"x", ()), "none of ours"),
        (Record(0, TIME_MS, b"\0\0\0", b"x", ()), "none of ours"),
        (Record(0, TIME_MS, b"\0\1\0\2", b"x", ()), "version 1"),
        (Record(0, TIME_MS, b"\0\0\0\x63", b"x", ()), "type 99"),
        (Record(0, TIME_MS, b"\0\0\0\2", b"\xff", ()), "control record at 0"),
    ],
)
def test_what_is_no_control_record_of_ours_is_refused(record: Record, message: str) -> None:
    batch = RecordBatch(encode_batch([record], leader_epoch=1, is_control=True))
    with pytest.raises(CorruptRecord, match=message):
        decode_control(batch)


def test_two_voters_of_one_id_are_refused() -> None:
    twice = [raft_pb2.Voter(key=common_pb2.VoterKey(node_id=1, directory_id=bytes(16)))] * 2
    data = control_batch(VOTERS, raft_pb2.VotersRecord(voters=twice), offset=0, epoch=1, at=0)
    with pytest.raises(CorruptRecord, match="own id"):
        decode_control(RecordBatch(data))
    assert VoterSet() == decode_control(
        RecordBatch(control_batch(VOTERS, raft_pb2.VotersRecord(), offset=0, epoch=1, at=0))
    )
