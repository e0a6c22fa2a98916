"""Segments that were dropped: out of the log at once, off the disk later."""

from kraftlog.clock import ManualClock
from storage.model_disk import ModelDisk
from storage.retired import RetiredSegments
from storage.segment import Segment
from tests.storage.logs import batch, fill, opened, small_segments, values_of


def segment(disk: ModelDisk, base_offset: int, data: bytes = b"") -> Segment:
    made = Segment.create(disk, "/t-0", base_offset, index_interval_bytes=100)
    made.log.pwrite([data], 0)
    return made


def test_a_dropped_segment_is_renamed_at_once_and_unlinked_when_its_time_has_come() -> None:  # R26
    disk, clock = ModelDisk(), ManualClock()
    disk.make_dir("/t-0")
    retired = RetiredSegments(clock)
    first, second = segment(disk, 0, b"first"), segment(disk, 5)
    retired.add(first)
    assert disk.list_dir("/t-0")[:3] == [
        "00000000000000000000.index.1.deleted",
        "00000000000000000000.log.1.deleted",
        "00000000000000000000.timeindex.1.deleted",
    ]
    clock.advance(10)
    retired.add(second)
    assert (retired.purge(60), first.log.pread(5, 0)) == (2, b"first")
    clock.advance(50)
    assert retired.purge(60) == 1
    assert {name[:20] for name in disk.list_dir("/t-0")} == {"00000000000000000005"}
    clock.advance(10)
    assert retired.purge(60) == 0
    assert disk.list_dir("/t-0") == []


def test_two_segments_of_one_base_offset_do_not_get_in_each_others_way() -> None:
    disk, clock = ModelDisk(), ManualClock()
    disk.make_dir("/t-0")
    retired = RetiredSegments(clock)
    for content in (b"before", b"after"):
        retired.add(segment(disk, 0, content))
    names = [name for name in disk.list_dir("/t-0") if ".log." in name]
    assert [disk.read_bytes(f"/t-0/{name}") for name in names] == [b"before", b"after"]


def test_closing_leaves_the_files_to_the_next_start() -> None:
    disk = ModelDisk()
    log = opened(disk, "/t-0", small_segments())
    fill(log, 12)
    log.drop_oldest(1)
    log.close()
    assert any(name.endswith(".deleted") for name in disk.list_dir("/t-0"))
    again = opened(disk, "/t-0", small_segments(), clean=True, start_offset=log.start_offset)
    assert len(values_of(again)) == again.end_offset - again.start_offset
    assert not any(name.endswith(".deleted") for name in disk.list_dir("/t-0"))


def test_a_flush_does_not_look_for_a_segment_that_was_dropped_and_unlinked() -> None:
    log = opened(ModelDisk(), "/t-0", small_segments(file_delete_delay_ms=0))
    log.append(batch(b"x"), leader_epoch=0)
    log.flush()
    log.roll()  # The indexes of the sealed segment are to be synced.
    log.drop_oldest(1)
    assert log.purge() == 0
    log.append(batch(b"y"), leader_epoch=0)
    assert log.flush() == 2
