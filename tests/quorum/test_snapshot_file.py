import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import LogDamaged
from quorum.core.messages import SnapshotId, VoterSet
from quorum.snapshot_file import (
    BATCH_BYTES,
    open_snapshot,
    parse_name,
    read_timestamp,
    snapshot_name,
    write_snapshot,
)
from storage.model_disk import ModelDisk, PowerCut
from tests.quorum.samples import TIME_MS, snapshot_ids, voter_sets, voters

ID = SnapshotId(1234, 5)
PATH = f"/d/{snapshot_name(ID)}"


def disk_with(values: list[bytes], of: VoterSet | None = None) -> ModelDisk:
    disk = ModelDisk()
    disk.make_dir("/d")
    disk.sync_dir("/")
    members = voters(1, 2) if of is None else of
    write_snapshot(disk, "/d", ID, members, values, timestamp=TIME_MS)
    return disk


@given(st.lists(st.binary(max_size=50)), voter_sets)
def test_it_is_read_as_it_was_written(values: list[bytes], members: VoterSet) -> None:
    disk = disk_with(values, members)
    snapshot = open_snapshot(disk, PATH, ID)
    assert snapshot.voters == members
    assert snapshot.timestamp == read_timestamp(disk, PATH) == TIME_MS
    assert list(snapshot.values()) == values


def test_large_ones_are_written_in_batches() -> None:
    values = [bytes([number]) * (BATCH_BYTES // 3) for number in range(40)]
    disk = disk_with(values)
    assert list(open_snapshot(disk, PATH, ID).values()) == values


@given(snapshot_ids)
def test_names_sort_like_snapshots(snapshot: SnapshotId) -> None:
    assert parse_name(snapshot_name(snapshot)) == snapshot


@pytest.mark.parametrize("name", ["x.checkpoint", "1-1.checkpoint", snapshot_name(ID) + ".part"])
def test_other_names_are_none(name: str) -> None:
    assert parse_name(name) is None


def test_a_name_without_part_is_a_whole_file_at_every_power_cut() -> None:
    values = [b"x" * 100] * 20
    for crash_after in range(20):
        disk = ModelDisk(seed=crash_after)
        disk.make_dir("/d")
        disk.sync_dir("/")
        disk.crash_after = disk.op_count + crash_after
        try:
            write_snapshot(disk, "/d", ID, voters(1), values, timestamp=TIME_MS)
        except PowerCut:
            disk.restart(crash_after)
        if disk.exists(PATH):
            assert list(open_snapshot(disk, PATH, ID).values()) == values


@given(st.data())
def test_damage_anywhere_is_found(data: st.DataObject) -> None:
    disk = disk_with([b"abc", b"def"])
    whole = disk.read_bytes(PATH)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    if data.draw(st.booleans()):
        damaged = damaged[:at]  # not even the empty file is a snapshot
    else:
        damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    disk.write_atomic(PATH, damaged)
    with pytest.raises(LogDamaged, match=PATH):
        open_snapshot(disk, PATH, ID)


def test_the_footer_must_be_last() -> None:
    disk = disk_with([b"abc"])
    whole = disk.read_bytes(PATH)
    disk.write_atomic(PATH, whole + whole)
    with pytest.raises(LogDamaged, match="something follows the footer"):
        open_snapshot(disk, PATH, ID)


def test_no_handle_stays_open() -> None:
    disk = disk_with([b"abc"] * 1_000)
    for _ in range(3):
        snapshot = open_snapshot(disk, PATH, ID)
        next(iter(snapshot.values()))
        read_timestamp(disk, PATH)
    disk.remove(PATH)
    assert not disk.exists(PATH)
