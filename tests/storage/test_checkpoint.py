"""Small files of state beside the logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.errors import LogDamaged
from kraftlog.types import TopicPartition, Uuid
from storage.checkpoint import (
    OFFSET_MAX,
    PARTITION_MAX,
    SECTOR_BYTES,
    RecoveryPoint,
    RecoveryPointState,
    read_clean_shutdown,
    read_offsets,
    read_partition_metadata,
    remove_clean_shutdown,
    write_clean_shutdown,
    write_offsets,
    write_partition_metadata,
)
from storage.model_disk import ModelDisk, PowerCut

PATH = "/data/replication-offset-checkpoint"
POINT = "/data/recovery-point"
MARK = "/data/.kafka_cleanshutdown"
TOPIC_ID = Uuid.parse("4vXbmMQIQtmhPq5D1XhKdw")

topics = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)
keys = st.builds(TopicPartition, topics, st.integers(0, PARTITION_MAX))


def new_disk(seed: int = 1) -> ModelDisk:
    disk = ModelDisk(seed)
    disk.make_dir("/data")
    disk.sync_dir("/")
    return disk


@pytest.fixture
def disk() -> ModelDisk:
    return new_disk()


# -- an offset for each partition


def test_offsets_are_kafkas_text_in_order(disk: ModelDisk) -> None:
    offsets = {TopicPartition("b", 0): 7, TopicPartition("a", 10): 0, TopicPartition("a", 9): 5}
    write_offsets(disk, PATH, offsets)
    assert disk.read_bytes(PATH) == b"0\n3\na 9 5\na 10 0\nb 0 7\n"
    assert read_offsets(disk, PATH) == offsets


@given(st.dictionaries(keys, st.integers(0, OFFSET_MAX)))
def test_offsets_are_read_as_they_were_written(offsets: dict[TopicPartition, int]) -> None:
    disk = new_disk()
    write_offsets(disk, PATH, offsets)
    assert read_offsets(disk, PATH) == offsets


def test_no_file_is_no_offsets(disk: ModelDisk) -> None:
    assert read_offsets(disk, PATH) == {}


@pytest.mark.parametrize("offset", [-1, OFFSET_MAX + 1])
def test_what_is_no_offset_is_not_written(disk: ModelDisk, offset: int) -> None:
    with pytest.raises(InvariantViolation):
        write_offsets(disk, PATH, {TopicPartition("a", 0): offset})
    assert not disk.exists(PATH)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "line 1: the file ends"),
        (b"0\n", "line 2: the file ends"),
        (b"1\n0\n", "line 1: version '1' is not 0"),
        (b"0\nx\n", "line 2: 'x' is not a count"),
        (b"0\n2\na 0 1\n", "line 2: 2 entries are announced, 1 follow"),
        (b"0\n1\na 0 1\nb 0 1\n", "line 2: 1 entries are announced, 2 follow"),
        (b"0\n1\na 0 1", "line 3: the line has no end"),
        (b"0\n1\na 0\n", "line 3: 'a 0' is not 'topic partition offset'"),
        (b"0\n1\n 0 1\n", "line 3"),
        (b"0\n1\na 0 -1\n", "line 3: '-1' is not a number"),
        (b"0\n1\na 0 01\n", "line 3: '01' is not a number"),
        (b"0\n1\na 2147483648 1\n", "line 3: '2147483648' is not a number"),
        (b"0\n1\na 0 9223372036854775808\n", "line 3"),
        (b"0\n2\na 0 1\na 0 2\n", "line 4: a-0 is there twice"),
        (b"0\n1\na 0 \xff\n", "line 3: byte 8 is not text"),
    ],
)
def test_damaged_offsets_are_refused_by_line(disk: ModelDisk, text: bytes, why: str) -> None:
    disk.write_atomic(PATH, text)
    with pytest.raises(LogDamaged, match=f"^{PATH} {why}") as refusal:
        read_offsets(disk, PATH)
    assert "remove it" in refusal.value.hint


@given(st.data())
def test_no_cut_of_offsets_is_taken_for_a_whole_file(data: st.DataObject) -> None:
    disk = new_disk()
    write_offsets(disk, PATH, {TopicPartition("a", 0): 1234, TopicPartition("b", 1): 5678})
    whole = disk.read_bytes(PATH)
    disk.write_atomic(PATH, whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(LogDamaged):
        read_offsets(disk, PATH)


@pytest.mark.parametrize("seed", range(5))
def test_a_power_cut_leaves_the_old_offsets_or_the_new_ones(seed: int) -> None:
    key = TopicPartition("a", 0)
    for crash_after in range(10):
        disk = new_disk(seed)
        write_offsets(disk, PATH, {key: 1})
        disk.crash_after = disk.op_count + crash_after
        finished = False
        try:
            write_offsets(disk, PATH, {key: 2})
            finished = True
        except PowerCut:
            pass
        disk.restart(seed)
        assert read_offsets(disk, PATH)[key] in ((2,) if finished else (1, 2))


# -- the recovery point


def test_a_recovery_point_is_one_sector(disk: ModelDisk) -> None:
    point = RecoveryPoint(disk, POINT)
    assert point.read() == RecoveryPointState(None)
    point.write(5)
    point.write(OFFSET_MAX)
    assert disk.size(POINT) == SECTOR_BYTES
    assert point.read() == RecoveryPointState(OFFSET_MAX)
    point.close()
    assert RecoveryPoint(disk, POINT).read() == RecoveryPointState(OFFSET_MAX)


@given(st.integers(0, 8 * 20 - 1))
def test_every_flipped_bit_of_a_recovery_point_is_noticed(bit: int) -> None:
    disk = new_disk()
    RecoveryPoint(disk, POINT).write(1_000)
    disk.flip_bit(POINT, bit // 8, bit % 8)
    assert RecoveryPoint(disk, POINT).read() == RecoveryPointState(None, readable=False)


@pytest.mark.parametrize("length", [0, 19, SECTOR_BYTES - 1])
def test_a_short_recovery_point_is_unreadable(disk: ModelDisk, length: int) -> None:
    RecoveryPoint(disk, POINT).write(1_000)
    disk.open(POINT).truncate(length)
    assert not RecoveryPoint(disk, POINT).read().readable


# KAFKA-10101: one that is ahead of what was flushed makes recovery skip what is damaged
@pytest.mark.parametrize("seed", range(10))
def test_a_recovery_point_may_be_old_after_a_power_cut_but_never_ahead(seed: int) -> None:
    disk = new_disk(seed)
    point = RecoveryPoint(disk, POINT)
    for offset in (10, 20, 30):
        point.write(offset)
    disk.restart(seed)
    found = RecoveryPoint(disk, POINT).read()
    assert found.readable
    assert found.offset in (None, 10, 20, 30)


@pytest.mark.parametrize("seed", range(10))
def test_a_lowered_recovery_point_stays_low(seed: int) -> None:
    disk = new_disk(seed)
    point = RecoveryPoint(disk, POINT)
    point.write(30)
    disk.sync_all()
    point.lower(7)
    disk.restart(seed)
    assert RecoveryPoint(disk, POINT).read() == RecoveryPointState(7)


def test_a_recovery_point_follows_its_directory(disk: ModelDisk) -> None:
    disk.make_dir("/data/t-0")
    point = RecoveryPoint(disk, "/data/t-0/recovery-point")
    point.write(1)
    point.write(2)
    disk.rename("/data/t-0", "/data/t-1")
    assert point.path == "/data/t-1/recovery-point"
    point.close()
    assert point.read() == RecoveryPointState(2)


# -- the topic id of a partition


def test_partition_metadata_is_kafkas_text(disk: ModelDisk) -> None:
    assert read_partition_metadata(disk, "/data") is None
    write_partition_metadata(disk, "/data", TOPIC_ID)
    text = disk.read_bytes("/data/partition.metadata")
    assert text == b"version: 0\ntopic_id: 4vXbmMQIQtmhPq5D1XhKdw"
    assert read_partition_metadata(disk, "/data") == TOPIC_ID


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not a version and a topic_id"),
        (b"version: 0\n", "not a version and a topic_id"),
        (b"version: 1\ntopic_id: 4vXbmMQIQtmhPq5D1XhKdw", "line 1: version '1'"),
        (b"version: 0\ntopic_id: 4vXbmMQIQtmhPq5D1XhKd", "line 2"),
        (b"\0\0\0", "not a version and a topic_id"),
    ],
)
def test_damaged_partition_metadata_is_refused(disk: ModelDisk, text: bytes, why: str) -> None:
    disk.write_atomic("/data/partition.metadata", text)
    with pytest.raises(LogDamaged, match=f"/data/partition.metadata: .*{why}"):
        read_partition_metadata(disk, "/data")


# -- the mark of a clean stop


def test_the_mark_of_a_clean_stop_is_kafkas(disk: ModelDisk) -> None:
    assert read_clean_shutdown(disk, "/data") is None
    write_clean_shutdown(disk, "/data", 42)
    assert disk.read_bytes(MARK) == b'{"version":0,"brokerEpoch":42}'
    assert read_clean_shutdown(disk, "/data") == 42
    remove_clean_shutdown(disk, "/data")
    assert read_clean_shutdown(disk, "/data") is None
    remove_clean_shutdown(disk, "/data")


@pytest.mark.parametrize("seed", range(10))
def test_neither_the_mark_nor_its_removal_is_lost_in_a_power_cut(seed: int) -> None:
    disk = new_disk(seed)
    write_clean_shutdown(disk, "/data", 42)
    disk.restart(seed)
    assert read_clean_shutdown(disk, "/data") == 42
    remove_clean_shutdown(disk, "/data")
    disk.restart(seed)
    assert read_clean_shutdown(disk, "/data") is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"\xff",
        b'{"version":1,"brokerEpoch":42}',
        b'{"version":0}',
        b'{"version":0,"brokerEpoch":true}',
        b'{"version":0,"brokerEpoch":"42"}',
        b"[" * 100_000,
    ],
)
def test_a_mark_that_makes_no_sense_is_none(disk: ModelDisk, text: bytes) -> None:
    disk.write_atomic(MARK, text)
    assert read_clean_shutdown(disk, "/data") is None
