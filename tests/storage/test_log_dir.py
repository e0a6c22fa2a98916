"""One log directory: what its logs have in common, and that no crash mixes a log with its past."""

import errno

import pytest

from kraftlog._check import InvariantViolation
from kraftlog.clock import ManualClock
from kraftlog.errors import LogDamaged, LogDirLocked, StorageError
from kraftlog.types import TopicPartition, Uuid
from storage.checkpoint import read_clean_shutdown, read_offsets, read_partition_metadata
from storage.compaction import CleanOptions, clean
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_dir import (
    CLEANED_FILE,
    HIGH_WATERMARKS_FILE,
    LOG_STARTS_FILE,
    RECOVERY_POINTS_FILE,
    LogDir,
)
from storage.model_disk import ModelDisk, Operation, PowerCut
from storage.partition_names import is_delete_name
from tests.storage.keyed import compacting, put, settle
from tests.storage.logs import batch, fill, records_of, small_segments, values_of

DATA = "/data"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = Uuid.parse("4vXbmMQIQtmhPq5D1XhKdw")
DELAY_MS = 60_000


@pytest.fixture
def disk() -> ModelDisk:
    return ModelDisk(seed=1)


def locked(
    disk: ModelDisk, config: LogConfig | None = None, clock: ManualClock | None = None
) -> LogDir:
    config = config or small_segments(file_delete_delay_ms=DELAY_MS)
    return LogDir(disk, DATA, config_of=lambda _: config, clock=clock or ManualClock())


def loaded(
    disk: ModelDisk, config: LogConfig | None = None, clock: ManualClock | None = None
) -> LogDir:
    log_dir = locked(disk, config, clock)
    if log_dir.meta is None:
        log_dir.format("cluster", node_id=1)
    log_dir.load()
    return log_dir


def filled(log_dir: LogDir, partition: TopicPartition, count: int = 10) -> Log:
    log = log_dir.create(partition, TOPIC_ID)
    fill(log, count)
    log.high_watermark = log.end_offset
    return log


def offsets(disk: ModelDisk, name: str) -> dict[TopicPartition, int]:
    return read_offsets(disk, f"{DATA}/{name}")


# -- whose it is


def test_a_directory_is_locked_until_it_is_released(disk: ModelDisk) -> None:
    first = locked(disk)
    with pytest.raises(LogDirLocked):
        locked(disk)
    first.release()
    second = loaded(disk)
    with pytest.raises(LogDirLocked):
        locked(disk)
    second.close(broker_epoch=1)
    locked(disk).release()


def test_a_directory_that_cannot_be_read_is_not_left_locked(disk: ModelDisk) -> None:
    loaded(disk).release()
    disk.flip_bit(f"{DATA}/meta.properties", 3, 0)
    with pytest.raises(LogDamaged):
        locked(disk)
    disk.flip_bit(f"{DATA}/meta.properties", 3, 0)
    locked(disk).release()


def test_formatting_draws_a_directory_id_and_is_durable(disk: ModelDisk) -> None:
    log_dir = locked(disk)
    log_dir.format("cluster", node_id=None)
    log_dir.set_node_id(7)
    assert log_dir.meta is not None
    drawn = log_dir.meta.directory_id
    again = locked(disk.restart(seed=3))
    assert again.meta is not None
    assert (again.meta.cluster_id, again.meta.node_id) == ("cluster", 7)
    assert again.meta.directory_id == drawn
    with pytest.raises(InvariantViolation):
        again.format("cluster", node_id=7)


def test_a_directory_with_logs_is_never_formatted_anew(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    log_dir.close(broker_epoch=1)
    disk.remove(f"{DATA}/meta.properties")
    with pytest.raises(LogDamaged, match="holds t-0 and so is not new"):
        locked(disk).format("cluster", node_id=1)


def test_what_is_not_ours_is_left_alone(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    log_dir.close(broker_epoch=1)
    for name in ("__cluster_metadata-0", "lost+found", "t-01", f"t-1.{'a' * 32}-stray"):
        disk.make_dir(f"{DATA}/{name}")
    disk.open(f"{DATA}/t-5", create=True)
    before = disk.list_dir(DATA)
    again = loaded(disk)
    assert list(again.logs) == [T0]
    assert again.purge() == 0
    again.close(broker_epoch=1)
    assert disk.list_dir(DATA) == before


# -- a clean stop


def test_a_clean_stop_is_remembered_with_its_broker_epoch(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    log = filled(log_dir, T0)
    log.advance_start(2)
    log.high_watermark = 7
    assert log_dir.close(broker_epoch=42)
    assert read_clean_shutdown(disk, DATA) == 42
    again = loaded(disk.restart(seed=5))
    assert again.clean_broker_epoch == 42
    found = again.logs[T0]
    assert (found.start_offset, found.high_watermark, found.end_offset) == (2, 7, 10)
    assert found.topic_id == TOPIC_ID


# KAFKA-10471: else what dies while it opens them trusts the mark at its next start
def test_the_mark_is_gone_before_a_log_is_opened(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    log_dir.close(broker_epoch=42)
    disk.fail_next("open", errno.EIO, "*.log")
    disk.fail_next("pread", errno.EIO, "*.index")
    with pytest.raises(StorageError):
        loaded(disk)
    assert read_clean_shutdown(disk.restart(seed=1), DATA) is None


def test_a_stop_without_close_is_not_a_clean_one(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    log_dir.checkpoint()
    log_dir.release()
    assert loaded(disk).clean_broker_epoch is None


def test_a_directory_that_was_never_loaded_keeps_its_mark(disk: ModelDisk) -> None:
    loaded(disk).close(broker_epoch=42)
    locked(disk).release()
    assert loaded(disk).clean_broker_epoch == 42


@pytest.mark.parametrize(
    ("operation", "path_glob"),
    [("pwrite", "*/recovery-point"), ("create", "*checkpoint.tmp"), ("create", "*cleanshutdown*")],
)
def test_a_stop_that_meets_an_error_is_not_a_clean_one(
    disk: ModelDisk, operation: Operation, path_glob: str
) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    filled(log_dir, T1).flush()
    log_dir.logs[T1].append(batch(b"more"), leader_epoch=0)
    disk.fail_next(operation, errno.ENOSPC, path_glob)
    assert not log_dir.close(broker_epoch=42)
    again = loaded(disk)
    assert again.clean_broker_epoch is None
    assert (again.logs[T0].end_offset, again.logs[T1].end_offset) == (10, 11)


# -- the set of logs


def test_a_partition_has_no_directory_before_its_first_append(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    log = log_dir.create(T0, TOPIC_ID)
    log_dir.checkpoint()
    assert not disk.is_dir(f"{DATA}/t-0")
    log.append(batch(b"a"), leader_epoch=0)
    assert read_partition_metadata(disk, f"{DATA}/t-0") == TOPIC_ID
    assert offsets(disk, HIGH_WATERMARKS_FILE) == {}


def test_a_name_that_cannot_be_a_directory_is_our_own_bug(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    for topic in ("../t", "a b", "", "."):
        with pytest.raises(InvariantViolation):
            log_dir.create(TopicPartition(topic, 0), TOPIC_ID)
    filled(log_dir, T0)
    with pytest.raises(InvariantViolation):
        log_dir.create(T0, TOPIC_ID)


def test_a_directory_that_appears_from_outside_is_not_taken_over(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    disk.make_dir(f"{DATA}/t-0")
    with pytest.raises(StorageError, match="has appeared since this process started"):
        log_dir.create(T0, TOPIC_ID)


def test_a_deleted_log_is_renamed_and_unlinked_later(disk: ModelDisk) -> None:
    clock = ManualClock()
    log_dir = loaded(disk, clock=clock)
    log = filled(log_dir, T0)
    log_dir.delete(T0)
    assert log_dir.logs == {}
    with pytest.raises(StorageError, match="is deleted"):
        log.append(batch(b"late"), leader_epoch=0)
    assert [name for name in disk.list_dir(DATA) if name.startswith("t-0")] != []
    assert not disk.is_dir(f"{DATA}/t-0")
    clock.advance(DELAY_MS - 1)
    assert log_dir.purge() == 1
    clock.advance(1)
    assert log_dir.purge() == 0
    assert [name for name in disk.list_dir(DATA) if name.startswith("t-0")] == []


def test_what_was_to_be_deleted_goes_after_a_restart(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    log_dir.delete(T0)
    again = loaded(disk.restart(seed=2))
    assert again.logs == {}
    assert again.purge() == 0
    assert not any(is_delete_name(name) for name in disk.list_dir(DATA))


def test_a_directory_that_cannot_be_unlinked_is_tried_again(disk: ModelDisk) -> None:
    log_dir = loaded(disk, small_segments(file_delete_delay_ms=0))
    filled(log_dir, T0)
    log_dir.delete(T0)
    disk.fail_next("remove", errno.EIO)
    assert log_dir.purge() == 1
    assert log_dir.purge() == 0


def test_a_deleted_log_leaves_nothing_to_the_next_of_its_name(disk: ModelDisk) -> None:
    """The old checkpoints are still there when the new log is created, and after any crash."""
    log_dir = loaded(disk)
    log = filled(log_dir, T0)
    log.advance_start(8)
    log_dir.checkpoint()
    log_dir.delete(T0)
    fresh = log_dir.create(T0, TOPIC_ID)
    fill(fresh, 3)
    fresh.flush()
    again = loaded(disk.restart(seed=9)).logs[T0]
    assert (again.start_offset, again.high_watermark, again.end_offset) == (0, 0, 3)
    assert len(values_of(again)) == 3


def test_a_stray_log_is_kept_aside(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    kept = log_dir.set_aside(T0)
    assert kept is not None
    assert kept.endswith("-stray")
    assert log_dir.logs == {}
    again = loaded(disk.restart(seed=4))
    assert again.logs == {}
    assert again.purge() == 0
    assert disk.exists(f"{kept}/00000000000000000000.log")
    assert again.create(T0, TOPIC_ID).end_offset == 0


def test_a_log_without_a_directory_needs_none_to_be_deleted(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    log_dir.create(T0, TOPIC_ID)
    log_dir.delete(T0)
    log_dir.create(T0, TOPIC_ID)
    assert log_dir.set_aside(T0) is None
    assert log_dir.partition_count == 0


# -- damage


def test_a_damaged_log_does_not_stop_the_others(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0, count=2)
    filled(log_dir, T1, count=2).advance_start(1)
    log_dir.checkpoint()
    log_dir.close(broker_epoch=1)
    disk.remove(f"{DATA}/.kafka_cleanshutdown")
    disk.flip_bit(f"{DATA}/t-1/00000000000000000000.log", 70, 0)
    again = loaded(disk)
    assert list(again.logs) == [T0]
    assert "offset 0 of /data/t-1 cannot be read" in str(again.damaged[T1])
    assert again.partition_count == 2
    fill(again.logs[T0], 1)
    assert not again.close(broker_epoch=2)
    # What the checkpoints say of it is still true once it is mended.
    assert offsets(disk, LOG_STARTS_FILE)[T1] == 1
    disk.flip_bit(f"{DATA}/t-1/00000000000000000000.log", 70, 0)
    mended = loaded(disk)
    assert (mended.logs[T1].start_offset, mended.logs[T0].end_offset) == (1, 3)


def test_a_damaged_log_can_be_deleted_or_set_aside(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    for partition in (T0, T1):
        filled(log_dir, partition)
    log_dir.close(broker_epoch=1)
    for partition in (T0, T1):
        disk.open(f"{DATA}/{partition}/partition.metadata").truncate(5)
    again = loaded(disk)
    assert set(again.damaged) == {T0, T1}
    again.delete(T0)
    assert again.set_aside(T1) is not None
    assert again.damaged == {}
    assert again.create(T0, TOPIC_ID).end_offset == 0


def test_a_damaged_checkpoint_stops_the_directory(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    log_dir.close(broker_epoch=1)
    disk.open(f"{DATA}/{HIGH_WATERMARKS_FILE}").truncate(3)
    with pytest.raises(LogDamaged, match="replication-offset-checkpoint line 2"):
        loaded(disk)


# -- checkpoints


def test_checkpoints_say_where_logs_begin_and_what_is_committed(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    first, second = filled(log_dir, T0), filled(log_dir, T1)
    first.advance_start(3)
    first.flush()
    second.high_watermark = 4
    log_dir.checkpoint()
    assert offsets(disk, LOG_STARTS_FILE) == {T0: 3}
    assert offsets(disk, HIGH_WATERMARKS_FILE) == {T0: 10, T1: 4}
    assert offsets(disk, RECOVERY_POINTS_FILE) == {T0: 10, T1: 0}
    assert offsets(disk, CLEANED_FILE) == {}


def test_what_has_not_changed_is_not_written(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    log_dir.checkpoint()
    before = disk.op_count
    log_dir.checkpoint()
    assert disk.op_count == before


def test_a_high_watermark_stays_within_its_log(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0).flush()
    filled(log_dir, T1)
    log_dir.checkpoint()
    log_dir.logs[T0].advance_start(6)
    log_dir.logs[T0].drop_oldest(2)
    # Of the second log nothing was flushed, so the power cut may take all of it.
    again = loaded(disk.restart(seed=7))
    for log in again.logs.values():
        assert log.start_offset <= log.high_watermark <= log.end_offset


def test_a_cut_lowers_the_checkpoints_first(disk: ModelDisk) -> None:
    """After a power cut in any step of a truncation nothing is committed that was cut."""
    log_dir = loaded(disk)
    filled(log_dir, T0).flush()
    log_dir.checkpoint()
    for crash_after in range(200):
        trial = disk.fork().kill_process()
        cut = loaded(trial)
        trial.op_count, trial.crash_after = 0, crash_after
        try:
            cut.truncate_to(T0, 4)
            fill(cut.logs[T0], 4, leader_epoch=1)
            cut.logs[T0].flush()
        except PowerCut:
            found = loaded(trial.restart(seed=crash_after)).logs[T0]
            assert found.high_watermark <= 4 or found.end_offset == 10
            continue
        assert (cut.logs[T0].high_watermark, cut.logs[T0].end_offset) == (4, 8)
        return
    pytest.fail("the work never came to its end")


def test_a_log_restarts_elsewhere_with_its_checkpoints(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0).advance_start(5)
    log_dir.checkpoint()
    log_dir.restart_at(T0, 2)
    assert offsets(disk, LOG_STARTS_FILE) == {T0: 2}
    assert offsets(disk, HIGH_WATERMARKS_FILE) == {T0: 2}
    again = loaded(disk.restart(seed=3)).logs[T0]
    assert (again.start_offset, again.end_offset) == (2, 2)


def test_what_is_compacted_is_remembered_and_forgotten_at_a_cut(disk: ModelDisk) -> None:
    log_dir = loaded(disk, compacting())
    log = log_dir.create(T0, TOPIC_ID)
    for number in range(30):
        put(log, (b"%d" % (number % 3), b"%d" % number))
    result = clean(settle(log), 0, CleanOptions(clock=ManualClock()))
    log_dir.note_cleaned(T0, result)
    assert log_dir.cleaned_offset(T0) == 30
    log_dir.checkpoint()
    assert loaded(disk.restart(seed=2), compacting()).cleaned_offset(T0) == 30
    again = loaded(disk.kill_process(), compacting())
    again.truncate_to(T0, 10)
    assert again.cleaned_offset(T0) <= 10
    assert offsets(disk, CLEANED_FILE)[T0] <= 10


def test_a_compaction_that_a_cut_overtook_is_not_noted(disk: ModelDisk) -> None:
    log_dir = loaded(disk, compacting())
    log = log_dir.create(T0, TOPIC_ID)
    for number in range(30):
        put(log, (b"%d" % number, b"v"))
    result = clean(settle(log), 0, CleanOptions(clock=ManualClock()))
    log_dir.truncate_to(T0, 10)
    log_dir.note_cleaned(T0, result)
    assert log_dir.cleaned_offset(T0) == 0
    log_dir.delete(T0)
    log_dir.note_cleaned(T0, result)
    assert log_dir.cleaned_offset(T0) == 0


# -- trouble


def test_an_error_names_the_directory(disk: ModelDisk) -> None:
    log_dir = loaded(disk)
    filled(log_dir, T0)
    disk.fail_next("create", errno.ENOSPC, "*.tmp")
    with pytest.raises(StorageError, match=r"cannot write the checkpoints of .* /data:") as caught:
        log_dir.checkpoint()
    assert "has room" in caught.value.hint
    log_dir.checkpoint()


def test_a_power_cut_at_any_step_keeps_what_was_flushed(disk: ModelDisk) -> None:
    """The whole life of a directory: format, create, append, delete, stop, start."""

    def live(files: ModelDisk, flushed: dict[TopicPartition, int]) -> None:
        log_dir = loaded(files)
        for partition in (T0, T1):
            fill(log_dir.create(partition, TOPIC_ID), 3)
            flushed[partition] = log_dir.logs[partition].flush()
        log_dir.checkpoint()
        flushed.pop(T1)
        log_dir.delete(T1)
        log_dir.purge()
        log_dir.close(broker_epoch=1)
        log_dir = loaded(files)
        fill(log_dir.logs[T0], 2, first=3)
        flushed[T0] = log_dir.logs[T0].flush()

    for crash_after in range(1_000):
        trial = disk.fork()
        trial.crash_after = crash_after
        flushed: dict[TopicPartition, int] = {}
        try:
            live(trial, flushed)
        except PowerCut:
            again = loaded(trial.restart(seed=crash_after))
            assert again.damaged == {}
            for partition, end in flushed.items():
                found = values_of(again.logs[partition])
                assert len(found) >= end
            for log in again.logs.values():
                numbers = [int((r.value or b"").split(b":")[0]) for r in records_of(log)]
                assert numbers == list(range(len(numbers)))
            continue
        return
    pytest.fail("the work never came to its end")
