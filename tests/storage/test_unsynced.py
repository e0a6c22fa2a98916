"""What a flush has to make durable, and that a flush which fails forgets nothing."""

from storage.model_disk import ModelDisk
from storage.segment import Segment
from storage.unsynced import Unsynced


def segments(disk: ModelDisk, count: int = 3) -> list[Segment]:
    disk.make_dir("/data/t-0")
    return [
        Segment.create(disk, "/data/t-0", offset, index_interval_bytes=100)
        for offset in range(count)
    ]


def test_a_segment_is_noted_once_in_a_row() -> None:
    first, second, _ = segments(ModelDisk())
    unsynced = Unsynced()
    for segment in (first, first, second, second):
        unsynced.add(segment)
    assert unsynced.segments == [first, second]
    unsynced.keep_only((second,))
    assert unsynced.segments == [second]


def test_what_came_later_is_put_behind() -> None:
    first, second, third = segments(ModelDisk())
    taken = Unsynced([first, second], names=True)
    both = taken.with_later(Unsynced([second, third], directory=True))
    assert both == Unsynced([first, second, third], names=True, directory=True)


def test_bytes_and_names_survive_a_power_cut_once_synced() -> None:
    for seed in range(20):
        disk = ModelDisk(seed)
        first, second, third = segments(disk)
        for segment in (first, second, third):
            segment.log.pwrite([b"bytes"], 0)
        Unsynced([first, second], names=True, directory=True).sync(disk, "/data/t-0")
        disk.sync_dir("/")
        disk.restart()
        for segment in (first, second):
            assert disk.read_bytes(segment.log.path) == b"bytes"


def test_nothing_to_sync_touches_no_disk() -> None:
    disk = ModelDisk()
    Unsynced().sync(disk, "/nowhere/t-0")
    assert disk.op_count == 0
