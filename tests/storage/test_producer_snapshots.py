"""Producer state comes back from snapshots and from the batches behind them."""

from storage.model_disk import ModelDisk
from storage.producer_snapshots import (
    drop_snapshots_after,
    drop_snapshots_before,
    restore_producers,
    snapshot_offsets,
    snapshot_path,
)
from tests.storage.logs import batch, opened, small_segments


def with_producer(disk: ModelDisk, count: int) -> list[int]:
    """A log of `count` batches of one producer in small segments; returns its snapshots."""
    log = opened(disk, "/t-0", small_segments())
    for sequence in range(count):
        log.append_from_client(batch(b"x" * 60, producer=(7, 0, sequence)), leader_epoch=0)
    return snapshot_offsets(disk.list_dir("/t-0"))


def test_a_snapshot_is_written_when_a_segment_is_sealed() -> None:
    disk = ModelDisk()
    offsets = with_producer(disk, 10)
    assert offsets == [s.base_offset for s in opened(disk, "/t-0", small_segments()).segments[1:]]


def test_the_state_equals_that_of_a_full_replay_whichever_snapshots_survive() -> None:
    disk = ModelDisk()
    offsets = with_producer(disk, 10)
    log = opened(disk, "/t-0", small_segments())
    for lost in reversed(offsets):
        states = restore_producers(disk, "/t-0", log.segments, log.end_offset)
        assert states.last_offsets() == {7: 9}
        disk.flip_bit(snapshot_path("/t-0", lost), 8, 0)
    assert restore_producers(disk, "/t-0", log.segments, log.end_offset).last_offsets() == {7: 9}
    assert snapshot_offsets(disk.list_dir("/t-0")) == []


def test_snapshots_beyond_a_cut_and_below_the_start_go() -> None:
    disk = ModelDisk()
    offsets = with_producer(disk, 12)
    drop_snapshots_after(disk, "/t-0", offsets[1])
    assert snapshot_offsets(disk.list_dir("/t-0")) == offsets[:2]
    drop_snapshots_before(disk, "/t-0", offsets[1])
    assert snapshot_offsets(disk.list_dir("/t-0")) == [offsets[1]]


def test_other_names_are_no_snapshots() -> None:
    assert snapshot_offsets(["x.snapshot", "00000000000000000003.snapshot", "3.log"]) == [3]
