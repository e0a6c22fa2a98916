"""The log: append, read, roll, flush, truncate, drop."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.clock import ManualClock
from kraftlog.errors import (
    CorruptRecord,
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTimestamp,
    OffsetOutOfRange,
    OutOfOrderSequence,
    RecordTooLarge,
    StorageError,
)
from kraftlog.record_batch import patch_offsets, read_batches
from kraftlog.types import EpochEnd, TimestampType, Uuid
from storage.files import OsFiles
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk, PowerCut
from storage.recovery import OpenOptions, open_log
from tests.storage.logs import (
    TIME_MS,
    batch,
    fill,
    opened,
    records_of,
    small_segments,
    values_of,
)


@pytest.fixture
def disk() -> ModelDisk:
    disk = ModelDisk(seed=1)
    disk.make_dir("/data")
    return disk


def test_a_log_has_no_directory_before_its_first_append(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    assert not disk.exists("/data/t-0")
    assert (log.start_offset, log.end_offset) == (0, 0)
    log.append(batch(b"a"), leader_epoch=0)
    assert disk.is_dir("/data/t-0")


def test_the_first_append_records_the_topic_id(disk: ModelDisk) -> None:
    topic_id = Uuid.random()
    log = open_log(disk, "/data/t-0", LogConfig(), ManualClock(), OpenOptions(topic_id=topic_id))
    log.append(batch(b"a"), leader_epoch=0)
    assert str(topic_id).encode() in disk.read_bytes("/data/t-0/partition.metadata")


def test_the_leader_gives_offsets_and_epoch(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    first = log.append(batch(b"a", b"b"), leader_epoch=3)
    second = log.append(batch(b"c"), leader_epoch=3)
    assert (first.base_offset, first.last_offset) == (0, 1)
    assert (second.base_offset, second.last_offset) == (2, 2)
    found = list(read_batches(log.read(0, 1000).read()))
    assert [(b.base_offset, b.leader_epoch) for b in found] == [(0, 3), (2, 3)]
    assert values_of(log) == [b"a", b"b", b"c"]


def test_several_batches_go_in_one_append(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    log.append(batch(b"a", b"b") + batch(b"c"), leader_epoch=0)
    assert [record.offset for record in records_of(log)] == [0, 1, 2]


def test_append_time_replaces_the_producers_time(disk: ModelDisk) -> None:
    clock = ManualClock(wall_ms=5_000)
    config = LogConfig(timestamp_type=TimestampType.APPEND)
    log = opened(disk, "/data/t-0", config, clock=clock)
    log.append(batch(b"a"), leader_epoch=0)
    assert [record.timestamp for record in records_of(log)] == [5_000]


def test_an_append_that_is_no_batch_is_refused_and_changes_nothing(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    for junk in (bytearray(), bytearray(b"junk"), batch(b"a")[:-1]):
        with pytest.raises(CorruptRecord):
            log.append(junk, leader_epoch=0)
    assert log.end_offset == 0


def test_an_epoch_that_goes_down_is_our_own_bug(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    log.append(batch(b"a"), leader_epoch=4)
    with pytest.raises(InvariantViolation, match="epoch"):
        log.append(batch(b"b"), leader_epoch=3)


# -- what a client sends


def test_a_clients_timestamps_are_near_our_own_time(disk: ModelDisk) -> None:
    clock = ManualClock(wall_ms=TIME_MS)
    config = LogConfig(timestamp_before_max_ms=60_000, timestamp_after_max_ms=1_000)
    log = opened(disk, "/data/t-0", config, clock=clock)
    first = batch(b"a", producer=(7, 0, 0))
    for far in (TIME_MS - 60_001, TIME_MS + 1_001):
        with pytest.raises(InvalidTimestamp):
            log.append_from_client(batch(b"a", timestamp=far), leader_epoch=0)
    assert log.append_from_client(bytearray(first), leader_epoch=0).base_offset == 0
    clock.advance(100_000)
    assert log.append_from_client(bytearray(first), leader_epoch=0).duplicate  # it is there already
    with pytest.raises(InvalidTimestamp):
        log.append_from_client(batch(b"b", producer=(7, 0, 1)), leader_epoch=0)
    follower = opened(disk, "/data/g-0", config, clock=clock)
    follower.append_fetched(log.read(0, 1 << 20).read())  # what the leader took is taken
    assert (log.end_offset, follower.end_offset) == (1, 1)


def test_whatever_time_a_client_says_where_ours_counts(disk: ModelDisk) -> None:
    config = LogConfig(timestamp_type=TimestampType.APPEND, timestamp_after_max_ms=0)
    log = opened(disk, "/data/t-0", config, clock=ManualClock(wall_ms=5_000))
    log.append_from_client(batch(b"a", timestamp=TIME_MS), leader_epoch=0)
    assert [record.timestamp for record in records_of(log)] == [5_000]


def test_a_clients_batch_is_checked_before_it_is_written(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0", LogConfig(max_message_bytes=200))
    spoiled = batch(b"a")
    spoiled[-1] ^= 1
    with pytest.raises(CorruptRecord):
        log.append_from_client(spoiled, leader_epoch=0)
    with pytest.raises(InvalidRecord, match="one batch"):
        log.append_from_client(batch(b"a") + batch(b"b"), leader_epoch=0)
    with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes=200"):
        log.append_from_client(batch(b"x" * 300), leader_epoch=0)
    assert log.append_from_client(batch(b"ok"), leader_epoch=0).base_offset == 0


def test_a_retried_batch_is_answered_with_its_first_offset(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    log.append_from_client(batch(b"a", producer=(7, 0, 0)), leader_epoch=0)
    log.append_from_client(batch(b"b", producer=(7, 0, 1)), leader_epoch=0)
    again = log.append_from_client(batch(b"a", producer=(7, 0, 0)), leader_epoch=0)
    assert (again.base_offset, again.duplicate, log.end_offset) == (0, True, 2)
    with pytest.raises(OutOfOrderSequence):
        log.append_from_client(batch(b"z", producer=(7, 0, 9)), leader_epoch=0)
    log.append_from_client(batch(b"c", producer=(7, 1, 0)), leader_epoch=0)
    with pytest.raises(InvalidProducerEpoch):
        log.append_from_client(batch(b"d", producer=(7, 0, 2)), leader_epoch=0)


# -- what a follower fetches


def test_a_follower_keeps_the_leaders_bytes(disk: ModelDisk) -> None:
    leader, follower = opened(disk, "/data/l-0"), opened(disk, "/data/f-0")
    fill(leader, 5, leader_epoch=2)
    follower.append_fetched(leader.read(0, 1 << 20).read())
    assert follower.read(0, 1 << 20).read() == leader.read(0, 1 << 20).read()
    assert follower.latest_epoch == 2


def test_a_follower_refuses_offsets_it_has_and_bytes_that_are_spoiled(disk: ModelDisk) -> None:
    leader, follower = opened(disk, "/data/l-0"), opened(disk, "/data/f-0")
    fill(leader, 2)
    data = leader.read(0, 1 << 20).read()
    follower.append_fetched(data)
    with pytest.raises(CorruptRecord, match="where 2 comes next"):
        follower.append_fetched(data)
    spoiled = bytearray(leader.read(0, 1 << 20).read())
    spoiled[-1] ^= 1
    with pytest.raises(CorruptRecord):
        opened(disk, "/data/g-0").append_fetched(spoiled)


def test_a_follower_refuses_an_epoch_that_goes_down(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    fill(log, 2, leader_epoch=4)
    log.append_fetched(fetched(2, epoch=4))
    with pytest.raises(CorruptRecord, match=r"goes down: .*base_offset=3.* leader_epoch=0"):
        log.append_fetched(fetched(3, epoch=0))
    assert log.end_offset == 3


def fetched(offset: int, *, epoch: int) -> bytearray:
    data = batch(b"x")
    patch_offsets(data, base_offset=offset, leader_epoch=epoch)
    return data


def test_a_leader_never_goes_back_to_an_older_epoch(disk: ModelDisk) -> None:
    """Recovery would take what it wrote for a torn tail, and cut it."""
    log = opened(disk, "/data/t-0")
    fill(log, 1, leader_epoch=0)
    with pytest.raises(InvariantViolation, match="the epoch of a log goes down"):
        fill(log, 1, leader_epoch=-1)


def test_silent_producers_are_forgotten(disk: ModelDisk) -> None:
    clock = ManualClock(wall_ms=TIME_MS)
    log = opened(disk, "/data/t-0", clock=clock)
    log.append_from_client(batch(b"a", producer=(7, 0, 0)), leader_epoch=0)
    clock.advance(log.config.producer_id_expiration_ms - 1)
    assert log.expire_producers() == 0
    clock.advance(1)
    assert log.expire_producers() == 1
    assert not log.append_from_client(batch(b"a", producer=(7, 0, 0)), leader_epoch=0).duplicate


# -- segments


def test_segments_roll_by_size(disk: ModelDisk) -> None:  # R26
    log = opened(disk, "/data/t-0", small_segments(300))
    fill(log, 10)
    assert len(log.segments) > 2
    assert all(segment.size <= 300 for segment in log.segments)
    assert len(values_of(log)) == 10


def test_segments_roll_by_age_of_their_first_batch(disk: ModelDisk) -> None:  # R26
    log = opened(disk, "/data/t-0", LogConfig(segment_ms=1_000))
    for timestamp in (TIME_MS, TIME_MS + 1_000, TIME_MS + 1_001):
        log.append(batch(b"a", timestamp=timestamp), leader_epoch=0)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_full_index_rolls_the_segment(disk: ModelDisk) -> None:
    config = LogConfig(index_interval_bytes=1, index_bytes_max=16)
    log = opened(disk, "/data/t-0", config)
    fill(log, 8)
    assert len(log.segments) > 1


def test_an_empty_active_segment_does_not_roll(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    fill(log, 1)
    log.roll()
    log.roll()
    assert [segment.base_offset for segment in log.segments] == [0, 1]


# -- reading


def test_read_returns_whole_batches_and_at_least_one(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    fill(log, 10)
    one = log.read(0, 1)
    assert [b.base_offset for b in read_batches(one.read())] == [0]
    three = log.read(4, one.length * 3 + 5)
    assert [b.base_offset for b in read_batches(three.read())] == [4, 5, 6]
    assert three.next_offset == 7


def test_read_stops_before_the_limit(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0", small_segments())
    fill(log, 10)
    assert log.read(3, 1 << 20, limit=3).read() == b""
    got = [b.base_offset for b in read_batches(log.read(0, 1 << 20, limit=1).read())]
    assert got == [0]
    with pytest.raises(OffsetOutOfRange, match="outside"):
        log.read(11, 100)
    assert log.read(10, 100).read() == b""


def test_a_slice_is_a_region_of_a_file(tmp_path: object) -> None:
    files = OsFiles()
    log = opened(files, f"{tmp_path}/t-0")
    fill(log, 3)
    part = log.read(1, 1 << 20)
    with part.pinned_fd() as fd:
        assert os.pread(fd, part.length, part.position) == part.read()


@given(sizes=st.lists(st.integers(0, 400), min_size=1, max_size=30), data=st.data())
def test_any_read_gives_the_batches_from_the_offset_on(
    sizes: list[int], data: st.DataObject
) -> None:
    disk = ModelDisk(seed=1)
    log = opened(disk, "/t-0", small_segments(data.draw(st.integers(100, 1_000))))
    for size in sizes:
        log.append(batch(b"x" * size, b"y"), leader_epoch=0)
    for _ in range(10):
        offset = data.draw(st.integers(0, log.end_offset - 1))
        limit = data.draw(st.integers(offset, log.end_offset))
        max_bytes = data.draw(st.integers(0, 1_000))
        found = [
            b.base_offset for b in read_batches(log.read(offset, max_bytes, limit=limit).read())
        ]
        if (offset | 1) >= limit:
            assert found == []  # the batch that holds `offset` reaches the limit
            continue
        assert found[0] == offset - offset % 2
        assert found == list(range(found[0], found[0] + 2 * len(found), 2))
        assert found[-1] + 1 < limit


# -- by time


def test_offsets_by_time(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0", small_segments())
    for number in range(20):
        log.append(batch(b"x" * 60, timestamp=TIME_MS + 10 * number), leader_epoch=1)
    found = log.offset_for_time(TIME_MS + 95)
    assert found is not None
    assert (found.offset, found.timestamp, found.leader_epoch) == (10, TIME_MS + 100, 1)
    assert log.offset_for_time(TIME_MS + 191) is None
    newest = log.offset_of_max_timestamp()
    assert newest is not None
    assert newest.offset == 19
    log.advance_start(15)
    earliest = log.offset_for_time(0)
    assert earliest is not None
    assert earliest.offset == 15


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(0, 51))
def test_offset_for_time_equals_a_linear_search(times: list[int], wanted: int) -> None:
    log = opened(ModelDisk(seed=1), "/t-0", small_segments(400))
    for time in times:
        log.append(batch(b"x" * 40, timestamp=TIME_MS + time), leader_epoch=0)
    expected = next((i for i, time in enumerate(times) if time >= wanted), None)
    found = log.offset_for_time(TIME_MS + wanted)
    assert (found.offset if found else None) == expected


# -- truncation


def test_truncation_cuts_whole_batches_and_offsets_are_used_again(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0", small_segments())
    fill(log, 10, leader_epoch=1)
    log.append(batch(b"a", b"b", b"c"), leader_epoch=2)
    assert log.truncate_to(11) == 10
    assert log.end_for_epoch(2) is None
    assert log.truncate_to(4) == 4
    assert [r.offset for r in records_of(log)] == [0, 1, 2, 3]
    log.append(batch(b"new"), leader_epoch=3)
    assert values_of(log)[-1] == b"new"
    assert log.end_for_epoch(1) == EpochEnd(1, 4)


def test_truncation_forgets_producers_beyond_the_cut(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0", small_segments())
    for sequence in range(6):
        log.append_from_client(batch(b"x" * 50, producer=(7, 0, sequence)), leader_epoch=0)
    log.truncate_to(3)
    assert not log.append_from_client(batch(b"y", producer=(7, 0, 3)), leader_epoch=0).duplicate


def test_truncation_beyond_the_end_still_drops_the_epoch_that_began_there(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    fill(log, 2, leader_epoch=1)
    log.epochs.assign(2, 2)
    assert log.truncate_to(2) == 2
    assert log.latest_epoch == 1


def test_restart_at_leaves_an_empty_log_with_that_start(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0", small_segments())
    fill(log, 10, leader_epoch=1)
    log.restart_at(100)
    assert (log.start_offset, log.end_offset, log.size) == (100, 100, 0)
    assert log.append(batch(b"a"), leader_epoch=1).base_offset == 100
    log.close()
    again = opened(disk, "/data/t-0", clean=True)
    assert (again.start_offset, again.end_offset) == (100, 101)


@pytest.mark.parametrize("seed", range(5))
def test_a_log_that_restarted_elsewhere_knows_no_epoch_of_before(
    disk: ModelDisk, seed: int
) -> None:
    """A replica whose log is empty and claims an old epoch contradicts the snapshot before it."""
    log = opened(disk, "/data/t-0", small_segments())
    fill(log, 10, leader_epoch=1)
    log.flush()
    for crash_after in range(100):
        trial = disk.fork().kill_process()
        restarted = opened(trial, "/data/t-0", small_segments())
        trial.crash_after = trial.op_count + crash_after
        try:
            restarted.restart_at(100)
        except PowerCut:
            found = opened(trial.restart(seed=seed * 100 + crash_after), "/data/t-0")
            assert found.end_offset < 100 or not found.epochs.entries()
            continue
        assert not restarted.epochs.entries()
        return
    pytest.fail("the work never came to its end")


# -- dropping from the start


def test_retired_segments_are_renamed_first_and_unlinked_later(disk: ModelDisk) -> None:  # R26
    clock = ManualClock()
    log = opened(disk, "/data/t-0", small_segments(file_delete_delay_ms=60_000), clock=clock)
    fill(log, 10)
    held = log.read(0, 1)
    before = held.read()
    log.drop_oldest(2)
    assert log.start_offset == log.segments[0].base_offset
    assert any(name.endswith(".deleted") for name in disk.list_dir("/data/t-0"))
    assert held.read() == before
    assert log.purge() == 2
    clock.advance(60_000)
    assert log.purge() == 0
    assert not any(name.endswith(".deleted") for name in disk.list_dir("/data/t-0"))


def test_the_active_segment_is_never_dropped(disk: ModelDisk) -> None:  # R26
    log = opened(disk, "/data/t-0", small_segments())
    fill(log, 10)
    with pytest.raises(InvariantViolation):
        log.drop_oldest(len(log.segments))


def test_the_start_cannot_pass_the_end(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    fill(log, 2)
    with pytest.raises(OffsetOutOfRange):
        log.advance_start(3)
    log.advance_start(1)
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 100)


# -- a disk that fails


def test_a_full_disk_refuses_the_append_and_nothing_is_lost(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    fill(log, 3)
    disk.fail_next("pwrite", errno.ENOSPC, "*.log")
    with pytest.raises(StorageError, match="free space"):
        fill(log, 1)
    fill(log, 2, first=3)
    assert len(values_of(log)) == 5
    disk_values = values_of(log)
    log.flush()
    assert values_of(opened(disk, "/data/t-0")) == disk_values


def test_a_log_that_cannot_be_cut_back_takes_no_more_appends(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0")
    fill(log, 3)
    disk.fail_next("pwrite", errno.ENOSPC, "*.log")
    disk.fail_next("truncate", errno.EIO, "*.log")
    with pytest.raises(StorageError):
        fill(log, 1)
    with pytest.raises(StorageError, match="restart"):
        fill(log, 1)
    assert len(values_of(log)) == 3


def test_flush_covers_what_was_appended_before_it(disk: ModelDisk) -> None:
    log = opened(disk, "/data/t-0", small_segments())
    fill(log, 10)
    assert log.flushed_offset == 0
    assert log.flush() == 10
    assert log.flushed_offset == 10
