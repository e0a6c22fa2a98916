"""One segment: batches, and indexes that are rebuilt when they are wrong."""

import contextlib
import errno
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import LogDamaged
from kraftlog.record_batch import RecordBatch, patch_offsets
from storage.files import OsFiles
from storage.index import Entry
from storage.model_disk import ModelDisk, Operation
from storage.segment import CLEANED_SUFFIX, SCAN_CHUNK_BYTES, Segment
from tests.storage.logs import TIME_MS, batch

BASE = 1_000


def placed(offset: int, size: int, timestamp: int = TIME_MS) -> RecordBatch:
    data = batch(b"x" * size, timestamp=timestamp)
    patch_offsets(data, base_offset=offset, leader_epoch=1)
    return RecordBatch(data)


def filled(disk: ModelDisk, sizes: list[int], interval: int = 100) -> Segment:
    segment = Segment.create(disk, "/", BASE, index_interval_bytes=interval)
    for number, size in enumerate(sizes):
        segment.append([placed(BASE + number, size, TIME_MS + number)])
    return segment


def reopened(disk: ModelDisk, segment: Segment) -> Segment:
    segment.seal()
    again = Segment(disk, "/", BASE, index_interval_bytes=100)
    again.find_end(disk.size(segment.log.path))
    return again


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60))
def test_every_offset_is_found_where_it_was_put(sizes: list[int]) -> None:  # R29
    disk = ModelDisk()
    for segment in (filled(disk, sizes), reopened(disk, filled(disk, sizes))):
        assert segment.next_offset == BASE + len(sizes)
        for number in range(len(sizes)):
            extent = segment.locate(BASE + number)
            assert extent is not None
            assert extent.base_offset == BASE + number
        assert segment.locate(segment.next_offset) is None


@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=60),
    start=st.integers(0, 59),
    limit=st.integers(0, 10_000),
)
def test_a_boundary_is_the_last_whole_batch_before_the_limit(
    sizes: list[int], start: int, limit: int
) -> None:
    segment = filled(ModelDisk(), sizes)
    extents = list(segment.extents(0))
    first = extents[start % len(extents)]
    ends = [e for e in extents if first.position < e.end_position <= limit]
    expected = ends[-1] if ends and ends[-1].position >= first.position else first
    found = segment.boundary(first, limit)
    assert found[:2] == (expected.end_position, expected.next_offset)
    behind = next((e for e in extents if e.position == expected.end_position), None)
    assert found.following in (behind, None)


@pytest.mark.parametrize("harm", ["missing", "ragged", "past the end", "between batches"])
def test_a_wrong_offset_index_is_rebuilt_on_use(harm: str) -> None:  # R29
    disk = ModelDisk()
    segment = filled(disk, [150] * 20)
    segment.seal()
    path, size = segment.offsets.path, disk.size(segment.offsets.path)
    segment.close()
    if harm == "missing":
        disk.remove(path)
    elif harm == "ragged":
        disk.open(path).truncate(size - 3)
    else:
        position = b"\x7f\xff\xff\xff" if harm == "past the end" else b"\x00\x00\x00\x11"
        disk.open(path).pwrite([position], size // 2 // 8 * 8 + 4)
    again = Segment(disk, "/", BASE, index_interval_bytes=100)
    again.size, again.next_offset = disk.size("/00000000000000001000.log"), BASE + 20
    assert [e.base_offset for e in map(again.locate, range(BASE, BASE + 20)) if e] == list(
        range(BASE, BASE + 20)
    )
    again.offsets.check_deep()


def test_a_damaged_log_is_not_blamed_on_the_index() -> None:
    disk = ModelDisk()
    segment = filled(disk, [150] * 20)
    segment.seal()
    fifth = segment.locate(BASE + 5)
    assert fifth is not None
    disk.flip_bit(segment.log.path, fifth.position + 16, 1)  # the magic byte
    with pytest.raises(LogDamaged, match=r"00000000000000001000\.log is damaged"):
        segment.locate(BASE + 5)


def test_a_batch_larger_than_a_read_chunk_is_read_whole() -> None:
    segment = filled(ModelDisk(), [10, SCAN_CHUNK_BYTES * 2, 10])
    assert [b.size for _, b in segment.batches(0)] == [
        e.end_position - e.position for e in segment.extents(0)
    ]


def test_the_largest_timestamp_survives_a_reopening_and_a_cut() -> None:
    disk = ModelDisk()
    segment = filled(disk, [150] * 10)
    assert reopened(disk, segment).max_timestamp.timestamp == TIME_MS + 9
    cut = segment.locate(BASE + 4)
    assert cut is not None
    segment.truncate(cut)
    assert segment.max_timestamp.timestamp == TIME_MS + 3
    assert segment.next_offset == BASE + 4
    segment.append([placed(BASE + 4, 10, TIME_MS + 50)])
    assert segment.max_timestamp.timestamp == TIME_MS + 50


def test_a_segment_with_a_suffix_takes_its_final_name_later() -> None:
    disk = ModelDisk()
    segment = Segment.create(disk, "/", BASE, index_interval_bytes=100, suffix=CLEANED_SUFFIX)
    segment.append([placed(BASE, 10)])
    assert all(name.endswith(".cleaned") for name in disk.list_dir("/"))
    segment.change_suffix("")
    assert disk.list_dir("/") == [
        "00000000000000001000.index",
        "00000000000000001000.log",
        "00000000000000001000.timeindex",
    ]
    segment.remove()
    assert disk.list_dir("/") == []


def test_creating_over_a_leftover_starts_empty() -> None:
    disk = ModelDisk()
    filled(disk, [50, 50]).seal()
    segment = filled(disk, [])
    assert (segment.log.size(), segment.offsets.entry_count) == (0, 0)


# -- indexes rebuilt while the segment is in use


def with_lost_index(disk: ModelDisk, count: int = 20) -> Segment:
    """An active segment whose index file somebody removes after a clean start."""
    again = reopened(disk, filled(disk, [150] * count))
    again.offsets.close()
    disk.remove(again.offsets.path)
    return again


def test_a_rebuild_never_moves_the_end(monkeypatch: pytest.MonkeyPatch) -> None:  # R29
    """Whoever appends meanwhile would write over what is there."""
    disk = ModelDisk()
    segment = with_lost_index(disk)
    size, seen = segment.size, []
    batches = segment.batches

    def watched(position: int, end: int | None = None) -> Iterator[tuple[int, RecordBatch]]:
        for found in batches(position, end):
            seen.append((segment.size, segment.next_offset))
            yield found

    monkeypatch.setattr(segment, "batches", watched)
    assert segment.locate(BASE + 15) is not None
    assert set(seen) == {(size, BASE + 20)}


def test_a_batch_appended_amid_a_rebuild_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = ModelDisk()
    segment = with_lost_index(disk)
    reset = segment.offsets.reset

    def append_first(entries: Iterable[Entry]) -> None:
        monkeypatch.undo()
        for number in range(20, 30):
            segment.append([placed(BASE + number, 150, TIME_MS + number)])
        reset(entries)

    monkeypatch.setattr(segment.offsets, "reset", append_first)
    segment.locate(BASE + 3)
    for number in range(30):
        found = segment.locate(BASE + number)
        assert found is not None
        assert found.base_offset == BASE + number
    assert segment.max_timestamp.timestamp == TIME_MS + 29
    segment.seal()
    segment.offsets.check_deep()
    segment.times.check_deep()
    assert reopened(disk, segment).max_timestamp.timestamp == TIME_MS + 29


@pytest.mark.parametrize("operation", ["create", "open", "pwrite", "truncate"])
def test_an_index_that_cannot_be_written_stays_in_memory(operation: Operation) -> None:
    disk = ModelDisk()
    segment = with_lost_index(disk)
    disk.fail_next(operation, errno.ENOSPC, "*.index", times=5)
    found = segment.locate(BASE + 15)
    assert found is not None
    assert (found.base_offset, segment.next_offset) == (BASE + 15, BASE + 20)
    segment.append([placed(BASE + 20, 150)])
    assert segment.locate(BASE + 20) is not None


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_append_goes_on_without_its_index(suffix: str) -> None:
    """The batch is written; an entry may be left out."""
    disk = ModelDisk()
    segment = reopened(disk, filled(disk, [150] * 20))
    assert segment.max_timestamp.timestamp == TIME_MS + 19
    for index in (segment.offsets, segment.times):
        index.close()
    disk.remove(f"/00000000000000001000.{suffix}")
    for number in range(20, 30):
        segment.append([placed(BASE + number, 150, TIME_MS + number)])
    segment.seal()
    segment.sync()
    again = Segment(disk, "/", BASE, index_interval_bytes=100)
    again.size, again.next_offset = disk.size("/00000000000000001000.log"), BASE + 30
    assert again.locate(BASE + 25) is not None
    assert again.max_timestamp.timestamp == TIME_MS + 29
    assert [e.base_offset for e in again.extents(0)] == list(range(BASE, BASE + 30))
    again.offsets.check_deep()
    again.times.check_deep()


def test_an_index_lost_between_seal_and_sync_is_made_again() -> None:
    disk = ModelDisk()
    segment = filled(disk, [150] * 20)
    segment.seal()
    disk.remove(segment.times.path)
    segment.offsets.close()
    segment.times.close()
    segment.sync()
    assert reopened(disk, segment).max_timestamp.timestamp == TIME_MS + 19


def test_threads_may_read_append_and_lose_the_index(tmp_path: Path) -> None:
    segment = Segment.create(OsFiles(), str(tmp_path), BASE, index_interval_bytes=100)
    for number in range(50):
        segment.append([placed(BASE + number, 50)])
    stop, progress = threading.Event(), threading.Condition()
    reads = [0, 0]

    def read(reader: int) -> None:
        while not stop.is_set():
            offset = BASE + reads[reader] % (segment.next_offset - BASE)
            found = segment.locate(offset)
            assert found is not None
            assert found.base_offset == offset
            with progress:
                reads[reader] += 1
                progress.notify()

    def go_on() -> bool:
        """Whether each reader has begun and ended a read from here on."""
        with progress:
            goals = [count + 2 for count in reads]
            return progress.wait_for(
                lambda: all(count >= goal for count, goal in zip(reads, goals, strict=True)), 60
            )

    def lose_index() -> None:
        segment.offsets.flush()
        os.unlink(segment.offsets.path)
        segment.offsets.close()

    with ThreadPoolExecutor(2) as pool, contextlib.ExitStack() as stack:
        stack.callback(stop.set)
        readers = [pool.submit(read, reader) for reader in range(2)]
        for number in range(50, 1_000):
            segment.append([placed(BASE + number, 50)])
            if number % 100 == 0:
                lose_index()
                assert go_on()
    assert [reader.result() for reader in readers] == [None, None]
    assert [e.base_offset for e in segment.extents(0)] == list(range(BASE, BASE + 1_000))


def test_a_segment_that_was_made_and_closed_holds_no_descriptor(tmp_path: Path) -> None:
    files = OsFiles()
    segment = Segment.create(files, str(tmp_path), BASE, index_interval_bytes=100)
    segment.append([placed(BASE, 500)])
    segment.seal()
    segment.close()
    assert files.open_descriptors == 0
