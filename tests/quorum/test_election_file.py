import json

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import LogDamaged
from quorum.core.state import ElectionState
from quorum.election_file import read_election, write_election
from storage.model_disk import ModelDisk, PowerCut
from tests.quorum.samples import epochs, key, keys

PATH = "/d/quorum-state"

elections = st.builds(
    ElectionState,
    epochs,
    voted_key=st.none() | keys,
    leader_id=st.none() | st.integers(1, 2**31 - 1),
)


def disk_with(text: bytes | None) -> ModelDisk:
    disk = ModelDisk()
    disk.make_dir("/d")
    disk.sync_dir("/")
    if text is not None:
        disk.write_atomic(PATH, text)
    return disk


@given(elections)
def test_it_is_read_as_it_was_written(election: ElectionState) -> None:
    disk = disk_with(None)
    write_election(disk, PATH, election)
    assert read_election(disk, PATH) == election


def test_the_line_is_kafkas() -> None:
    disk = disk_with(None)
    write_election(disk, PATH, ElectionState(7, voted_key=key(2), leader_id=3))
    assert json.loads(disk.read_bytes(PATH)) == {
        "leaderId": 3,
        "leaderEpoch": 7,
        "votedId": 2,
        "votedDirectoryId": str(key(2).directory_id),
        "data_version": 1,
        "crc32c": 494992867,
    }


def test_after_a_power_cut_it_is_the_old_or_the_new_one() -> None:  # Q3
    old, new = ElectionState(1, voted_key=key(1)), ElectionState(2, voted_key=key(2))
    seen = set()
    for crash_after in range(8):
        for seed in range(8):
            disk = disk_with(None)
            write_election(disk, PATH, old)
            disk.crash_after = disk.op_count + crash_after
            try:
                write_election(disk, PATH, new)
            except PowerCut:
                acknowledged = False
            else:
                acknowledged = True
            disk.restart(seed)
            found = read_election(disk, PATH)
            assert found == new or (found == old and not acknowledged)
            seen.add(found.epoch)
    assert seen == {1, 2}


FIELDS = b'{"leaderId":-1,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"%s","data_version":1' % (
    b"A" * 22
)


def with_crc(fields: bytes) -> bytes:
    return fields + b',"crc32c":%d}\n' % crc32c(fields + b"}")


GOOD = with_crc(FIELDS)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        GOOD[:40],
        b"\xff\xfe",
        b"[]",
        b"null",
        FIELDS + b"}",
        GOOD.replace(b'"leaderEpoch":4', b'"leaderEpoch":5'),
        with_crc(FIELDS.replace(b'"data_version":1', b'"data_version":2')),
        with_crc(FIELDS.replace(b'"leaderEpoch":4', b'"leaderEpoch":-4')),
        with_crc(FIELDS.replace(b'"leaderEpoch":4', b'"leaderEpoch":4.5')),
        with_crc(FIELDS.replace(b'"leaderEpoch":4', b'"leaderEpoch":true')),
        with_crc(FIELDS.replace(b'"leaderEpoch":4', b'"leaderEpoch":2147483648')),
        with_crc(FIELDS.replace(b'"leaderId":-1,', b"")),
        with_crc(FIELDS.replace(b"A" * 22, b"A" * 21)),
    ],
)
def test_what_cannot_be_read_is_never_epoch_0(text: bytes) -> None:  # Q15
    assert read_election(disk_with(GOOD), PATH).epoch == 4
    with pytest.raises(LogDamaged, match=r"/d/quorum-state .*this node may have voted"):
        read_election(disk_with(text), PATH)


@given(st.data())
def test_no_flipped_bit_makes_another_vote(data: st.DataObject) -> None:  # Q15
    disk = disk_with(None)
    write_election(disk, PATH, data.draw(elections))
    at = data.draw(st.integers(0, disk.size(PATH) - 1))
    disk.flip_bit(PATH, at, data.draw(st.integers(0, 7)))
    with pytest.raises(LogDamaged):
        read_election(disk, PATH)


def test_a_missing_file_is_refused_too() -> None:  # Q15
    with pytest.raises(LogDamaged, match="is missing"):
        read_election(disk_with(None), PATH)
