"""Compaction beside other work, on a disk that fails, and on one that loses power."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kraftlog.clock import ManualClock, SystemClock
from kraftlog.errors import LogDamaged, StorageError
from kraftlog.record_batch import Record
from storage.compaction import CleanOptions, Outcome, clean
from storage.files import OsFiles
from storage.log import Log
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk, Operation, PowerCut
from tests.storage.keyed import (
    batches_of,
    check_layout,
    cleaned,
    compacted_log,
    compacting,
    put,
    settle,
    view,
)
from tests.storage.logs import TIME_MS, records_of

# -- beside other work


def filled(config: LogConfig | None = None, disk: ModelDisk | None = None) -> Log:
    log = compacted_log(disk or ModelDisk(), config=config)
    for number in range(40):
        put(log, (b"%d" % (number % 7), b"%d" % number))
    return settle(log)


def test_appends_and_reads_go_on_meanwhile() -> None:
    log = filled()
    expected = view(records_of(log))

    def meanwhile() -> bool:
        number = log.end_offset
        put(log, (b"new", b"%d" % number))
        expected[b"new"] = b"%d" % number
        assert view(records_of(log)) == expected
        log.flush()
        return False

    result = clean(log, 0, CleanOptions(should_stop=meanwhile, clock=ManualClock()))
    assert (result.outcome, result.next_dirty_offset) == (Outcome.DONE, 40)
    assert view(records_of(log)) == expected
    check_layout(log)


@pytest.mark.parametrize("at", range(12))
def test_a_stop_at_any_time_leaves_a_good_log(at: int) -> None:
    log = filled()
    expected = view(records_of(log))
    asked = iter(range(1_000))
    result = clean(log, 0, CleanOptions(should_stop=lambda: next(asked) == at, clock=ManualClock()))
    assert (result.outcome, result.next_dirty_offset) == (Outcome.STOPPED, 0)
    assert view(records_of(log)) == expected
    assert not any(name.endswith(".cleaned") for name in log.files.list_dir("/t-0"))
    cleaned(log)
    assert len(records_of(log)) == 7


@pytest.mark.parametrize("at", range(15))
def test_a_cut_meanwhile_ends_the_compaction(at: int) -> None:
    log = filled()
    asked = iter(range(1_000))
    below: list[Record] = []

    def meanwhile() -> bool:
        if next(asked) == at:
            below[:] = [record for record in records_of(log) if record.offset < 11]
            log.truncate_to(11)
            for number in range(11, 40):
                put(log, (b"after", b"%d" % number))
            settle(log)
        return False

    result = clean(log, 0, CleanOptions(should_stop=meanwhile, clock=ManualClock()))
    assert (result.outcome, result.cuts, log.cuts) == (Outcome.LOG_CHANGED, 0, 1)
    found = records_of(log)
    assert found[: len(below)] == below
    assert [record.value for record in found[len(below) :]] == [b"%d" % n for n in range(11, 40)]
    check_layout(log)
    cleaned(log)
    assert view(records_of(log)) == view(found)


def test_a_cut_is_noticed_even_when_there_was_nothing_to_replace() -> None:
    log = compacted_log(ModelDisk())
    put(log, (b"a", b"1"))
    settle(log)
    put(log, (b"b", b"2"))

    def meanwhile() -> bool:
        log.truncate_to(1)
        return False

    result = clean(log, 0, CleanOptions(should_stop=meanwhile, clock=ManualClock()))
    assert (result.outcome, result.cuts) == (Outcome.LOG_CHANGED, 0)


@pytest.mark.parametrize("at", range(15))
def test_segments_dropped_and_unlinked_meanwhile_end_it_or_do_not_matter(at: int) -> None:
    log = filled(compacting(file_delete_delay_ms=0))
    expected = view(records_of(log))
    asked = iter(range(1_000))

    def meanwhile() -> bool:
        if next(asked) == at:
            log.drop_oldest(3)
            log.purge()
        return False

    result = clean(log, 0, CleanOptions(should_stop=meanwhile, clock=ManualClock()))
    assert next(asked) > at
    assert result.outcome is not Outcome.STOPPED
    assert view(records_of(log)) == expected
    check_layout(log)
    cleaned(log)
    assert view(records_of(log)) == expected


def test_a_writer_a_reader_and_the_cleaner_in_their_own_threads(tmp_path: Path) -> None:
    log = compacted_log(OsFiles(), str(tmp_path / "t-0"), compacting(2_000), SystemClock())
    failures: list[BaseException] = []
    written = threading.Event()

    def write() -> None:
        for number in range(1_500):
            put(log, (b"%d" % (number % 20), b"%d" % number))
            if number % 50 == 0:
                settle(log)

    def read() -> None:
        while not written.is_set():
            offsets = [record.offset for record in records_of(log, max_bytes=4_000)]
            assert offsets == sorted(set(offsets))

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  shown by the main thread
            failures.append(error)

    writer = threading.Thread(target=guarded, args=(write,))
    reader = threading.Thread(target=guarded, args=(read,))
    writer.start()
    reader.start()
    dirty = 0
    while writer.is_alive():
        dirty = clean(log, dirty).next_dirty_offset
    written.set()
    writer.join()
    reader.join()
    assert failures == []
    clean(settle(log), dirty)
    assert view(records_of(log)) == {b"%d" % (n % 20): b"%d" % n for n in range(1_480, 1_500)}
    check_layout(log)
    log.close()


# -- when something is wrong


def test_damage_stops_it_before_anything_is_replaced() -> None:
    disk = ModelDisk()
    log = compacted_log(disk)
    for number in range(40):
        put(log, (b"%d" % (number % 7), b"%d" % number))
    settle(log)
    segments = log.segments
    disk.flip_bit(segments[3].log.path, 66, 0)
    with pytest.raises(LogDamaged, match=r"cannot be compacted.*crc") as refusal:
        clean(log, 0)
    assert segments[3].log.path in str(refusal.value)
    assert log.segments == segments


FAULTS: list[tuple[Operation, str]] = [
    *[("create", f"*{suffix}.cleaned") for suffix in (".log", ".index", ".timeindex")],
    *[("pwrite", f"*{suffix}.cleaned") for suffix in (".log", ".timeindex")],
    *[("rename", f"*{suffix}.cleaned") for suffix in (".log", ".index", ".timeindex")],
    *[("rename", f"*{suffix}") for suffix in (".log", ".index", ".timeindex")],
    *[("rename", f"*{suffix}.swap") for suffix in (".log", ".index", ".timeindex")],
    ("pread", "*.log"),
    ("pwrite", "*/recovery-point"),
]


@pytest.mark.parametrize(("operation", "path_glob"), FAULTS)
@pytest.mark.parametrize("group", range(2))
def test_an_error_of_the_disk_never_changes_what_readers_see(
    operation: Operation, path_glob: str, group: int
) -> None:
    disk, clock = ModelDisk(), ManualClock()
    config = compacting(file_delete_delay_ms=0)
    log = compacted_log(disk, config=config, clock=clock)
    for number in range(40):
        put(log, (b"%d" % (number % 7), b"%d" % number))
    expected = view(records_of(settle(log)))
    if path_glob.startswith("*."):
        path_glob = f"*{log.segments[2 * group].base_offset:020d}{path_glob[1:]}"
    disk.fail_next(operation, errno.EIO, path_glob)
    with pytest.raises(StorageError, match=r"/t-0.*Input/output error"):
        clean(log, 0, CleanOptions(clock=clock))
    log.purge()
    assert view(records_of(log)) == expected
    again = compacted_log(disk, config=config)
    assert view(records_of(again)) == expected
    check_layout(again)
    cleaned(settle(again))
    assert len(records_of(again)) == 7


# -- power cuts


CRASH_CONFIG = compacting(400, delete_retention_ms=1_000)
LEFTOVERS = (".cleaned", ".swap", ".deleted", ".tmp")


def filled_disk() -> ModelDisk:
    """A log with values, tombstones, some of them old, producers, and small segments to merge."""
    disk, clock = ModelDisk(), ManualClock(wall_ms=TIME_MS)
    disk.make_dir("/data")
    disk.sync_dir("/")
    log = compacted_log(disk, "/data/t-0", CRASH_CONFIG, clock)
    for number in range(8):
        value = None if number % 3 == 0 else b"old"
        put(log, (b"%d" % number, value), producer=(1, 0, number))
    cleaned(settle(log), clock=clock)
    for number in range(14):
        value = None if number % 5 == 1 else b"%d" % number
        put(log, (b"%d" % (number % 9), value), (b"twice", b"%d" % number))
    settle(log).close()
    return disk


class State(NamedTuple):
    """What readers see: the segments, and every byte."""

    segments: list[tuple[int, int, int]]
    contents: bytes


def state_of(log: Log) -> State:
    return State(layout_of(log), b"".join(batch.data for batch in batches_of(log)))


def layout_of(log: Log) -> list[tuple[int, int, int]]:
    return [(each.base_offset, each.next_offset, each.size) for each in log.segments]


def reopened(disk: ModelDisk) -> Log:
    log = compacted_log(disk, "/data/t-0", CRASH_CONFIG)
    log.high_watermark = log.end_offset
    return log


def compact(log: Log) -> list[State]:
    """Compact in several passes; returns what readers saw before and after each swap."""
    seen: list[State] = []

    def look() -> bool:
        if not seen or seen[-1].segments != layout_of(log):
            seen.append(state_of(log))
        return False

    clock = ManualClock(wall_ms=TIME_MS + 2_000)
    options = CleanOptions(dedupe_buffer_bytes=24 * 10, clock=clock, should_stop=look)
    assert clean(log, 0, options).outcome is Outcome.DONE
    look()
    return seen


def recovered(disk: ModelDisk, seed: int, *, cut_again_after: int) -> Log:
    """The log after a power cut, and perhaps a second one while it was recovered from the first."""
    disk.restart(seed)
    disk.crash_after = disk.op_count + cut_again_after
    try:
        log = reopened(disk)
    except PowerCut:
        disk.restart(seed + 1)
        log = reopened(disk)
    disk.crash_after = None
    return log


@pytest.mark.parametrize("seed", range(2))
def test_a_power_cut_at_every_operation_leaves_each_swap_done_or_not(seed: int) -> None:  # R30
    start = filled_disk()
    final = reopened(start.fork())
    states = compact(final)
    layouts = [state.segments for state in states]
    expected, producers = records_of(final), final.producers.last_offsets()
    assert len(states) > 4
    for crash_after in range(1_000):
        disk = start.fork()
        log = reopened(disk)
        disk.crash_after = disk.op_count + crash_after
        try:
            compact(log)
        except PowerCut:
            visible = layouts.index(layout_of(log))
        else:
            break
        log = recovered(disk, crash_after * 2 + seed, cut_again_after=(crash_after * 7 + seed) % 30)
        # A swap that readers may have seen is durable: the log never falls back behind it.
        assert state_of(log) in states[visible:]
        assert view(records_of(log)) == view(expected)
        assert log.producers.last_offsets() == producers
        check_layout(log)
        assert not [n for n in disk.list_dir("/data/t-0") if n.endswith(LEFTOVERS)]
        cleaned(settle(log), clock=ManualClock(wall_ms=TIME_MS + 2_000))
        assert records_of(log) == expected
    assert 50 < crash_after < 999
