"""All log directories of a process: where partitions live, and what must match before any is
touched.
"""

import errno
import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.clock import ManualClock
from kraftlog.errors import ConfigError, LogDamaged, LogDirLocked, StorageError
from kraftlog.types import TopicPartition, Uuid
from storage.checkpoint import read_clean_shutdown
from storage.cleaner import Cleaner
from storage.compaction import CleanOptions
from storage.files import Files, OsFiles
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_dirs import (
    UNKNOWN_BROKER_EPOCH,
    LogDirMismatch,
    LogDirs,
    PartitionInTwoDirs,
)
from storage.model_disk import ModelDisk, PowerCut
from tests.storage.keyed import compacting, put, settle, view
from tests.storage.logs import TIME_MS, batch, fill, records_of, small_segments, values_of

A, B, C = "/disk-a", "/disk-b", "/disk-c"
TOPIC_ID = Uuid.parse("4vXbmMQIQtmhPq5D1XhKdw")


def part(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def opened(
    files: Files,
    paths: Sequence[str] = (A, B),
    *,
    config: LogConfig | None = None,
    clock: ManualClock | None = None,
    cluster_id: str | None = "cluster",
    node_id: int | None = 1,
) -> LogDirs:
    config = config or small_segments()
    return LogDirs.open(
        files,
        paths,
        cluster_id=cluster_id,
        node_id=node_id,
        config_of=lambda _: config,
        clock=clock or ManualClock(),
    )


def log_of(dirs: LogDirs, number: int) -> Log:
    log = dirs.get(part(number))
    assert log is not None
    return log


def homes(dirs: LogDirs) -> dict[str, list[TopicPartition]]:
    return {log_dir.path: sorted(log_dir.logs) for log_dir in dirs.dirs}


# -- where partitions live


def test_the_directory_with_the_fewest_partitions_gets_the_next() -> None:  # R24
    dirs = opened(ModelDisk(), [A, B, C])
    for number in range(7):
        dirs.create(part(number), TOPIC_ID)
    assert homes(dirs) == {
        A: [part(0), part(3), part(6)],
        B: [part(1), part(4)],
        C: [part(2), part(5)],
    }
    dirs.delete(part(0))
    dirs.delete(part(3))
    dirs.create(part(9), TOPIC_ID)
    assert homes(dirs)[A] == [part(6), part(9)]


@given(st.lists(st.one_of(st.just("create"), st.integers(0, 30)), max_size=40), st.integers(1, 4))
def test_a_new_partition_never_goes_where_more_are(  # R24
    steps: list[str | int], count: int
) -> None:
    dirs = opened(ModelDisk(), [f"/disk-{number}" for number in range(count)])
    numbers = itertools.count()
    for step in steps:
        before = [log_dir.partition_count for log_dir in dirs.dirs]
        if isinstance(step, int):
            dirs.delete(part(step))
            continue
        partition = part(next(numbers))
        dirs.create(partition, TOPIC_ID)
        home = dirs.dir_of(partition)
        assert home is not None
        assert dirs.dirs.index(home) == before.index(min(before))
    assert len(dirs.partitions()) == sum(log_dir.partition_count for log_dir in dirs.dirs)


def test_a_partition_lives_in_one_directory_for_good() -> None:  # R24
    disk = ModelDisk()
    dirs = opened(disk)
    for number in range(4):
        fill(dirs.create(part(number), TOPIC_ID), 3)
    log = dirs.create(part(2), TOPIC_ID)
    assert log is dirs.get(part(2))
    before = homes(dirs)
    assert dirs.close(broker_epoch=5)
    again = opened(disk, [B, A])
    assert homes(again) == before
    assert sorted(again.partitions()) == [part(number) for number in range(4)]
    found = log_of(again, 2)
    assert (found.directory, found.end_offset) == (f"{A}/t-2", 3)


def test_a_damaged_log_counts_where_it_lives() -> None:  # R24
    disk = ModelDisk()
    dirs = opened(disk)
    fill(dirs.create(part(0), TOPIC_ID), 1)
    dirs.close()
    disk.open(f"{A}/t-0/partition.metadata").truncate(1)
    again = opened(disk)
    again.create(part(1), TOPIC_ID)
    assert homes(again) == {A: [], B: [part(1)]}
    assert list(again.damaged) == [part(0)]
    with pytest.raises(LogDamaged):
        again.get(part(0))
    with pytest.raises(LogDamaged):
        again.create(part(0), TOPIC_ID)
    assert again.delete(part(0))
    assert again.create(part(0), TOPIC_ID).directory == f"{A}/t-0"


def test_threads_place_partitions_one_after_the_other(tmp_path: Path) -> None:  # R24
    dirs = opened(OsFiles(), [str(tmp_path / name) for name in "abc"])
    with ThreadPoolExecutor(8) as pool:
        logs = list(pool.map(lambda n: dirs.create(part(n % 30), TOPIC_ID), range(120)))
    assert len({log.directory for log in logs}) == 30
    assert [log_dir.partition_count for log_dir in dirs.dirs] == [10, 10, 10]
    dirs.close()


def test_a_partition_without_a_log_is_none() -> None:
    dirs = opened(ModelDisk())
    assert dirs.get(part(0)) is None
    assert dirs.dir_of(part(0)) is None
    assert not dirs.delete(part(0))
    assert dirs.set_aside(part(0)) is None
    with pytest.raises(StorageError, match="t-0 has no log here"):
        dirs.truncate_to(part(0), 0)
    with pytest.raises(StorageError, match="create it first"):
        dirs.restart_at(part(0), 0)


def test_a_topic_created_anew_does_not_get_the_old_log() -> None:
    dirs = opened(ModelDisk())
    fill(dirs.create(part(0), TOPIC_ID), 3)
    other = Uuid.random()
    with pytest.raises(StorageError, match=f"belongs to topic id {TOPIC_ID}, not to {other}"):
        dirs.create(part(0), other)
    assert dirs.set_aside(part(0)) is not None
    assert dirs.create(part(0), other).end_offset == 0


def test_logs_are_cut_in_their_directory() -> None:
    dirs = opened(ModelDisk())
    log = dirs.create(part(0), TOPIC_ID)
    fill(log, 10)
    assert dirs.truncate_to(part(0), 4) == 4
    dirs.restart_at(part(0), 50)
    assert (log.start_offset, log.end_offset) == (50, 50)


# -- what belongs together


def test_new_directories_get_ids_of_their_own() -> None:
    disk = ModelDisk()
    opened(disk, [A]).close()
    dirs = opened(disk, [A, B], cluster_id=None, node_id=None)
    assert (dirs.cluster_id, dirs.node_id) == ("cluster", 1)
    metas = [log_dir.meta for log_dir in dirs.dirs]
    assert [(meta.cluster_id, meta.node_id) for meta in metas if meta] == [("cluster", 1)] * 2
    assert len({meta.directory_id for meta in metas if meta}) == 2


def test_a_node_id_may_come_later() -> None:
    disk = ModelDisk()
    dirs = opened(disk, node_id=None)
    assert dirs.node_id is None
    dirs.set_node_id(7)
    dirs.close()
    assert opened(disk, cluster_id=None, node_id=None).node_id == 7


def test_directories_of_before_the_node_id_are_given_it() -> None:
    disk = ModelDisk()
    opened(disk, node_id=None).close()
    opened(disk, node_id=7).close()
    assert opened(disk, node_id=None).node_id == 7


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "message"),
    [
        ("other", 1, "meta.properties says cluster.id=cluster, but this process was told"),
        ("cluster", 2, "meta.properties says node.id=1, but this process was told node.id=2"),
    ],
)
def test_directories_of_another_node_are_refused(
    cluster_id: str, node_id: int, message: str
) -> None:
    disk = ModelDisk()
    opened(disk).close(broker_epoch=9)
    with pytest.raises(LogDirMismatch, match=message):
        opened(disk, cluster_id=cluster_id, node_id=node_id)
    assert read_clean_shutdown(disk, A) == 9
    assert opened(disk).previous_broker_epoch == 9


def test_directories_of_two_nodes_are_refused() -> None:
    disk = ModelDisk()
    opened(disk, [A], node_id=1).close()
    opened(disk, [B], node_id=2).close()
    with pytest.raises(LogDirMismatch, match=rf"{B}/.* node.id=2, but {A}/.* node.id=1"):
        opened(disk, [A, B], node_id=None)


def test_a_copy_of_a_directory_is_refused() -> None:
    disk = ModelDisk()
    opened(disk, [A]).close()
    disk.make_dir(B)
    disk.write_atomic(f"{B}/meta.properties", disk.read_bytes(f"{A}/meta.properties"))
    with pytest.raises(LogDirMismatch, match="one is a copy of the other"):
        opened(disk, [A, B])


def test_a_partition_in_two_directories_is_refused_before_anything_changes() -> None:
    disk = ModelDisk()
    for path in (A, B):
        dirs = opened(disk, [path])
        fill(dirs.create(part(0), TOPIC_ID), 2)
        dirs.close(broker_epoch=3)
    with pytest.raises(PartitionInTwoDirs, match=f"{A}/t-0 and {B}/t-0") as caught:
        opened(disk, [A, B])
    assert "the one that ends earlier" in caught.value.hint
    assert [read_clean_shutdown(disk, path) for path in (A, B)] == [3, 3]


def test_a_failed_open_frees_the_locks() -> None:
    disk = ModelDisk()
    opened(disk, [A]).close()
    held = opened(disk, [B])
    with pytest.raises(LogDirLocked):
        opened(disk, [A, B])
    held.close()
    opened(disk, [A, B]).close()


def test_a_failed_load_frees_the_locks() -> None:
    disk = ModelDisk()
    dirs = opened(disk)
    fill(dirs.create(part(0), TOPIC_ID), 2)
    fill(dirs.create(part(1), TOPIC_ID), 2)
    dirs.close()
    disk.fail_next("pread", errno.EIO, f"{B}/*")
    with pytest.raises(StorageError):
        opened(disk)
    again = opened(disk)
    assert [again.get(part(n)) is not None for n in range(2)] == [True, True]


@pytest.mark.parametrize(
    ("paths", "message"),
    [([], "log.dirs is empty"), ([A, B, f"{A}/../disk-a"], f"log.dirs names {A} twice")],
)
def test_a_list_that_makes_no_sense_is_refused(paths: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(ModelDisk(), paths)


def test_a_new_directory_needs_a_cluster() -> None:
    with pytest.raises(ConfigError, match=f"{A} is new, and no cluster.id was given"):
        opened(ModelDisk(), cluster_id=None)


# -- stops


def test_the_broker_epoch_of_a_clean_stop_is_kept() -> None:
    disk = ModelDisk()
    dirs = opened(disk)
    assert dirs.previous_broker_epoch == UNKNOWN_BROKER_EPOCH
    assert dirs.close(broker_epoch=77)
    again = opened(disk.restart(seed=1))
    assert again.previous_broker_epoch == 77


def test_one_unclean_directory_makes_the_stop_unclean() -> None:
    disk = ModelDisk()
    opened(disk).close(broker_epoch=77)
    disk.remove(f"{B}/.kafka_cleanshutdown")
    assert opened(disk).previous_broker_epoch == UNKNOWN_BROKER_EPOCH


def test_a_directory_that_was_away_makes_the_epoch_unknown() -> None:
    disk = ModelDisk()
    opened(disk).close(broker_epoch=77)
    opened(disk, [A]).close(broker_epoch=78)
    assert opened(disk).previous_broker_epoch == UNKNOWN_BROKER_EPOCH


def test_a_power_cut_at_any_step_leaves_directories_that_open() -> None:
    def live(disk: ModelDisk, flushed: dict[TopicPartition, int]) -> None:
        dirs = opened(disk)
        for number in range(3):
            log = dirs.create(part(number), TOPIC_ID)
            fill(log, 2)
            flushed[part(number)] = log.flush()
        dirs.checkpoint()
        dirs.close(broker_epoch=1)

    for crash_after in range(1_000):
        disk = ModelDisk(seed=crash_after)
        disk.crash_after = crash_after
        flushed: dict[TopicPartition, int] = {}
        try:
            live(disk, flushed)
        except PowerCut:
            again = opened(disk.restart())
            for partition, end in flushed.items():
                log = again.get(partition)
                assert log is not None
                assert len(values_of(log)) >= end
            continue
        return
    pytest.fail("the work never came to its end")


# -- in the background


def test_retention_and_purge_go_over_all_directories() -> None:  # R26
    disk, clock = ModelDisk(), ManualClock(wall_ms=TIME_MS)
    config = small_segments(retention_ms=1_000, file_delete_delay_ms=60_000)
    dirs = opened(disk, config=config, clock=clock)
    for number in range(2):
        log = dirs.create(part(number), TOPIC_ID)
        fill(log, 20)
        log.high_watermark = log.end_offset
    clock.advance(5_000)
    retired = dirs.apply_retention()
    assert retired > 2
    assert [len(log.segments) for d in dirs.dirs for log in d.logs.values()] == [1, 1]
    assert dirs.purge() == retired
    clock.advance(60_000)
    assert dirs.purge() == 0
    dirs.checkpoint()
    again = opened(disk.restart(seed=2), config=config, clock=clock)
    log = log_of(again, 1)
    assert log.start_offset == log.segments[0].base_offset > 0


def test_producers_that_fell_silent_go_with_what_has_expired() -> None:
    clock = ManualClock(wall_ms=TIME_MS)
    dirs = opened(ModelDisk(), clock=clock)
    log = dirs.create(part(0), TOPIC_ID)
    log.append_from_client(batch(b"a", producer=(7, 0, 0)), leader_epoch=0)
    dirs.apply_retention()
    assert len(log.producers) == 1
    clock.advance(log.config.producer_id_expiration_ms)
    dirs.apply_retention()
    assert len(log.producers) == 0


def test_a_log_that_fails_does_not_hold_up_retention() -> None:
    disk, clock = ModelDisk(), ManualClock(wall_ms=TIME_MS * 2)
    dirs = opened(disk, config=small_segments(retention_ms=1), clock=clock)
    for number in range(2):
        log = dirs.create(part(number), TOPIC_ID)
        fill(log, 20)
        log.high_watermark = log.end_offset
    disk.fail_next("rename", errno.EIO, f"{A}/*")
    assert dirs.apply_retention() > 0
    log = log_of(dirs, 1)
    assert len(log.segments) == 1


def test_the_cleaner_is_given_every_log_and_its_progress_is_kept() -> None:  # R30
    disk, clock = ModelDisk(), ManualClock()
    dirs = opened(disk, config=compacting(), clock=clock)
    for number in range(2):
        log = dirs.create(part(number), TOPIC_ID)
        for record in range(30 + number):
            put(log, (b"%d" % (record % 3), b"%d" % record))
        settle(log)
    cleaner = Cleaner(CleanOptions(clock=clock))
    cleaned = [dirs.clean_dirtiest(cleaner) for _ in range(3)]
    assert sorted(each.log.directory for each in cleaned if each) == [f"{A}/t-0", f"{B}/t-1"]
    assert cleaned[2] is None
    dirs.checkpoint()
    again = opened(disk.restart(seed=1), config=compacting(), clock=clock)
    assert again.clean_dirtiest(cleaner) is None
    log = log_of(again, 0)
    assert view(records_of(log)) == {b"0": b"27", b"1": b"28", b"2": b"29"}
