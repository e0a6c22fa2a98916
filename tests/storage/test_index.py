"""Both indexes against a list, and against files that are missing, cut, torn or wrong."""

import errno
import struct
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from storage.damage import StateDamaged
from storage.files import Files, OsFiles
from storage.index import CHECKED_ENTRIES, INT32_MAX, OffsetIndex, TimeIndex
from storage.model_disk import ModelDisk, Operation

BASE = 1_000
PATH = "00000000000000001000.index"


class SmallBlockOffsets(OffsetIndex):
    """Blocks so small that a search of a few entries takes every step that a large one does."""

    _block_entries = 4


class SmallBlockTimes(TimeIndex):
    _block_entries = 4


class WatchedDisk(ModelDisk):
    """Counts reads, and can do something in the middle of the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.before_read: Callable[[], None] | None = None

    def begin(self, operation: Operation, path: str) -> None:
        if operation == "pread":
            self.reads += 1
            meanwhile, self.before_read = self.before_read, None
            if meanwhile:
                meanwhile()
        super().begin(operation, path)


def offsets_in(files: Files, *entries: tuple[int, int], path: str = PATH) -> OffsetIndex:
    index = SmallBlockOffsets(files, path, BASE)
    index.reset()
    for entry in entries:
        index.append(*entry)
    return index


def times_in(files: Files, *entries: tuple[int, int], path: str = PATH) -> TimeIndex:
    index = SmallBlockTimes(files, path, BASE)
    index.reset()
    for entry in entries:
        index.append(*entry)
    return index


def with_bytes(data: bytes) -> ModelDisk:
    disk = ModelDisk()
    disk.open(PATH, create=True).pwrite([data], 0)
    return disk


# -- the formats


def test_offset_index_is_kafkas_file() -> None:
    disk = ModelDisk()
    offsets_in(disk, (BASE + 5, 4_200), (BASE + 260, 70_000)).flush()
    assert disk.read_bytes(PATH) == bytes.fromhex("00000005 00001068  00000104 00011170")


def test_time_index_is_kafkas_file() -> None:
    disk = ModelDisk()
    times_in(disk, (1_700_000_000_000, BASE), (1_700_000_000_001, BASE + 300)).flush()
    assert disk.read_bytes(PATH) == bytes.fromhex(
        "0000018bcfe56800 00000000  0000018bcfe56801 0000012c"
    )


def test_an_offset_fits_as_long_as_its_distance_is_an_int32() -> None:
    index = OffsetIndex(ModelDisk(), PATH, BASE)
    assert index.fits(BASE)
    assert index.fits(BASE + INT32_MAX)
    assert not index.fits(BASE + INT32_MAX + 1)
    assert not index.fits(BASE - 1)


# -- lookups


def test_offset_lookup_gives_the_last_entry_at_or_before() -> None:
    index = offsets_in(ModelDisk(), (BASE + 10, 100), (BASE + 20, 200))
    assert index.lookup(BASE + 9) == (BASE, 0)
    assert index.lookup(BASE + 10) == (BASE + 10, 100)
    assert index.lookup(BASE + 19) == (BASE + 10, 100)
    assert index.lookup(BASE + 10**12) == (BASE + 20, 200)
    assert [index.floor_position(p) for p in (0, 99, 100, 199, 5_000)] == [0, 0, 100, 100, 200]


def test_time_lookup_gives_the_last_entry_at_or_before() -> None:
    index = times_in(ModelDisk(), (50, BASE + 3), (70, BASE + 9))
    assert index.lookup(49) == (-1, BASE)
    assert index.lookup(50) == (50, BASE + 3)
    assert index.lookup(69) == (50, BASE + 3)
    assert index.lookup(10**15) == (70, BASE + 9)


def test_time_index_ignores_what_is_not_newer() -> None:
    index = times_in(ModelDisk(), (-1, BASE), (50, BASE + 3), (50, BASE + 8), (40, BASE + 9))
    assert list(index.entries()) == [(50, BASE + 3)]


@pytest.mark.parametrize("kind", [SmallBlockOffsets, SmallBlockTimes])
@given(st.data())
def test_a_search_in_the_file_is_a_bisection(
    kind: type[SmallBlockOffsets | SmallBlockTimes], data: st.DataObject
) -> None:
    keys = sorted(data.draw(st.sets(st.integers(1, 200), max_size=60)))
    index = kind(ModelDisk(), PATH, 0)
    index.reset()
    for key in keys:
        index.append(key, key * 7)
        if data.draw(st.booleans()):
            index.flush()
    target = data.draw(st.integers(0, 220))
    found = bisect_right(keys, target)
    none = (0, 0) if kind is SmallBlockOffsets else (-1, 0)
    expected = (keys[found - 1], keys[found - 1] * 7) if found else none
    assert index.lookup(target) == expected


def test_a_large_index_is_searched_with_few_reads() -> None:
    disk = WatchedDisk()
    count = 2 * 1024 * 1024 // 8
    entries = b"".join(struct.pack(">ii", n, n * 4_096) for n in range(1, count + 1))
    disk.open(PATH, create=True).pwrite([entries], 0)
    index = OffsetIndex(disk, PATH, BASE)
    for n in (1, 2_048, 2_049, count // 3, count):
        disk.reads = 0
        assert index.lookup(BASE + n) == (BASE + n, n * 4_096)
        assert disk.reads <= 10


# -- files that come and go


def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    files = OsFiles()
    path = str(tmp_path / PATH)
    (tmp_path / PATH).write_bytes(b"")
    index = OffsetIndex(files, path, BASE)
    index.check(0)
    assert index.lookup(BASE + 5) == (BASE, 0)
    index.flush()
    assert files.open_descriptors == 0
    index.append(BASE + 1, 5_000)
    index.flush()
    assert files.open_descriptors == 1
    index.close()
    assert files.open_descriptors == 0
    assert (tmp_path / PATH).read_bytes() == struct.pack(">ii", 1, 5_000)


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_a_missing_file_is_damage_until_a_reset(
    kind: type[OffsetIndex | TimeIndex],
) -> None:  # R29
    disk = ModelDisk()
    index = kind(disk, PATH, BASE)
    for use in (
        index.last,
        index.check_deep,
        lambda: index.lookup(BASE),
        lambda: index.append(1, 1),
    ):
        with pytest.raises(StateDamaged, match="is missing"):
            use()
    index.flush()
    assert not disk.exists(PATH)
    index.reset()
    assert index.last() is None
    assert disk.size(PATH) == 0


def test_a_file_that_vanishes_is_noticed_and_made_again(tmp_path: Path) -> None:  # R29
    files = OsFiles(max_open=1)
    path = str(tmp_path / PATH)
    index = offsets_in(files, (BASE + 1, 10), path=path)
    index.flush()
    (tmp_path / PATH).unlink()
    files.open(str(tmp_path / "other"), create=True).close()
    with files.open(str(tmp_path / "other")).pinned_fd():
        pass  # the pool has room for one: the index lost its descriptor
    with pytest.raises(StateDamaged, match="is missing"):
        index.lookup(BASE + 1)
    index.reset()
    index.append(BASE + 2, 20)
    index.sync()
    assert (tmp_path / PATH).read_bytes() == struct.pack(">ii", 2, 20)


def test_a_flush_into_a_missing_file_is_damage() -> None:
    disk = ModelDisk()
    index = offsets_in(disk, (BASE + 1, 10))
    index.flush()
    index.close()
    index = OffsetIndex(disk, PATH, BASE)
    assert index.entry_count == 1
    disk.remove(PATH)
    index._view().tail.extend(struct.pack(">ii", 2, 20))
    with pytest.raises(StateDamaged, match="is missing"):
        index.flush()


def test_renaming_a_missing_file_leaves_the_finding_to_the_next_search() -> None:
    disk = ModelDisk()
    index = OffsetIndex(disk, PATH, BASE)
    index.rename(PATH + ".deleted")
    assert index.path == PATH + ".deleted"
    index.sync()
    with pytest.raises(StateDamaged, match="deleted is missing"):
        index.last()


def test_an_error_of_the_disk_is_not_damage() -> None:
    disk = ModelDisk()
    index = offsets_in(disk, (BASE + 1, 10))
    index.flush()
    disk.fail_next("pread", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        index.lookup(BASE + 1)
    assert index.lookup(BASE + 1) == (BASE + 1, 10)


def test_a_search_survives_a_truncation_in_its_middle() -> None:
    disk = WatchedDisk()
    index = offsets_in(disk, *((BASE + n, n * 10) for n in range(1, 41)))
    index.flush()
    disk.before_read = lambda: index.truncate_to(BASE + 3)
    assert index.lookup(BASE + 40) == (BASE + 2, 20)
    disk.before_read = index.reset
    assert index.last() is None


def test_a_leftover_of_a_failed_flush_does_not_outlive_a_truncation() -> None:
    for seed in range(20):
        disk = ModelDisk(seed)
        index = offsets_in(disk, (BASE + 1, 10), (BASE + 2, 20), (BASE + 3, 30))
        disk.fail_next("pwrite", errno.ENOSPC)
        with pytest.raises(OSError, match="No space"):
            index.flush()
        index.truncate_to(BASE + 2)
        index.flush()
        assert disk.read_bytes(PATH) == struct.pack(">ii", 1, 10)


# -- our own mistakes


def test_entries_never_go_back() -> None:
    index = offsets_in(ModelDisk(), (BASE + 5, 50))
    for entry in ((BASE + 5, 60), (BASE + 4, 60), (BASE + 6, 50), (BASE + 6, 40)):
        with pytest.raises(InvariantViolation, match="offset index goes back"):
            index.append(*entry)
    times = times_in(ModelDisk(), (50, BASE + 5))
    with pytest.raises(InvariantViolation, match="time index goes back"):
        times.append(60, BASE + 4)


def test_entries_must_fit() -> None:
    index = offsets_in(ModelDisk())
    for entry in ((BASE - 1, 1), (BASE + INT32_MAX + 1, 1), (BASE, -1), (BASE, INT32_MAX + 1)):
        with pytest.raises(InvariantViolation, match="does not fit"):
            index.append(*entry)
    index.append(BASE + INT32_MAX, INT32_MAX)
    with pytest.raises(InvariantViolation, match="does not fit"):
        times_in(ModelDisk()).append(1, BASE + INT32_MAX + 1)


# -- damage


@pytest.mark.parametrize("size", [1, 7, 9, 15])
def test_half_an_entry_is_damage(size: int) -> None:  # R29
    index = OffsetIndex(with_bytes(bytes(size)), PATH, BASE)
    with pytest.raises(StateDamaged, match=f"has {size} bytes"):
        index.check(10**6)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([(5, 1_000)], "leads to byte 1000 of a log that has 1000 bytes"),
        ([(100, 10)], f"leads to offset {BASE + 100}, the end is {BASE + 100}"),
        ([(-1, 10)], "after None"),
        ([(1, -10)], "after None"),
        ([(5, 50), (5, 60)], "after"),
        ([(5, 50), (6, 50)], "after"),
        ([(0, 0), (0, 0)], "after"),
        ([(5, 50), (6, 60), (4, 70)], "after"),
    ],
)
def test_a_cheap_check_of_an_offset_index(entries: list[tuple[int, int]], why: str) -> None:  # R29
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)
    index = OffsetIndex(with_bytes(data), PATH, BASE)
    with pytest.raises(StateDamaged, match=why):
        index.check(1_000, BASE + 100)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([(5, 100)], f"leads to offset {BASE + 100}, the end is {BASE + 100}"),
        ([(-1, 10)], "after None"),
        ([(1, -10)], "after None"),
        ([(5, 50), (5, 60)], "after"),
        ([(5, 50), (6, 40)], "after"),
    ],
)
def test_a_cheap_check_of_a_time_index(entries: list[tuple[int, int]], why: str) -> None:  # R29
    data = b"".join(struct.pack(">qi", *entry) for entry in entries)
    index = TimeIndex(with_bytes(data), PATH, BASE)
    with pytest.raises(StateDamaged, match=why):
        index.check(BASE + 100)


def test_a_good_index_passes_its_checks() -> None:
    disk = WatchedDisk()
    index = offsets_in(disk, *((BASE + n, n) for n in range(1, 1_000)))
    index.flush()
    index.check(1_000)
    index.check(1_000, BASE + 1_000)
    index.check_deep()
    times = times_in(disk, (5, BASE), (6, BASE), path="times")
    times.check()
    times.check(BASE + 1)


def test_only_the_deep_check_looks_in_the_middle() -> None:
    count = 10 * CHECKED_ENTRIES
    entries = [(n, n) for n in range(1, count + 1)]
    entries[count // 2] = (0, 0)
    disk = WatchedDisk()
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)
    disk.open(PATH, create=True).pwrite([data], 0)
    index = OffsetIndex(disk, PATH, BASE)
    index.check(10**6)
    assert disk.reads == 2
    with pytest.raises(StateDamaged, match="after"):
        index.check_deep()


def test_a_search_notices_a_wrong_neighbour() -> None:
    entries = [(n, n * 10) for n in range(1, 10)]
    entries[4] = (5, 10**6)
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)
    index = OffsetIndex(with_bytes(data), PATH, BASE)
    with pytest.raises(StateDamaged, match="after"):
        index.lookup(BASE + 5)


def test_a_file_that_shrinks_behind_our_back_is_damage() -> None:
    disk = ModelDisk()
    index = offsets_in(disk, *((BASE + n, n) for n in range(1, 9)))
    index.flush()
    disk.open(PATH).truncate(20)
    with pytest.raises(StateDamaged, match="ends at byte"):
        index.lookup(BASE + 9)
    with pytest.raises(StateDamaged, match="ends at byte"):
        index.last()


@given(st.binary(max_size=200), st.integers(-(2**40), 2**40))
def test_any_bytes_are_an_answer_or_damage(data: bytes, target: int) -> None:
    for kind in (SmallBlockOffsets, SmallBlockTimes):
        index = kind(with_bytes(data), PATH, BASE)
        try:
            first, second = index.lookup(target)
        except StateDamaged:
            continue
        assert first >= -1
        assert second >= 0


@given(st.integers(0, 200), st.integers(0, 200), st.integers(0, 2**32))
def test_a_power_cut_never_changes_what_was_synced(synced: int, more: int, seed: int) -> None:
    disk = ModelDisk()
    index = offsets_in(disk, *((BASE + n, n * 10) for n in range(1, synced + 1)))
    index.sync()
    disk.sync_dir(".")
    for n in range(synced + 1, synced + more + 1):
        index.append(BASE + n, n * 10)
    index.flush()
    disk.restart(seed)
    index = OffsetIndex(disk, PATH, BASE)
    try:
        found = list(index.entries())
    except StateDamaged:
        assert more  # a torn entry
        return
    assert found[:synced] == [(BASE + n, n * 10) for n in range(1, synced + 1)]
