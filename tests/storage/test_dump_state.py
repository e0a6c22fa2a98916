"""The small files: what they hold, and what is said when they are damaged."""

from pathlib import Path

import pytest

from kraftlog.types import TopicPartition, Uuid
from storage.checkpoint import write_offsets, write_partition_metadata
from storage.dump_events import Event, Finding, Options, Severity
from storage.dump_state import read_flushed_offset
from storage.files import OsFiles
from storage.meta_properties import MetaProperties, write_meta_properties
from storage.producer_state import decode_snapshot, encode_snapshot
from tests.storage.dumps import END, FIRST, SECOND, cut, damage, events, flip, rows, write_log
from tests.storage.logs import TIME_MS

VERIFY = Options(verify=True)
EPOCHS = "leader-epoch-checkpoint"
POINT = "recovery-point"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path)


def only_damage(found: list[Event]) -> Finding:
    bad = damage(found)
    assert len(bad) == 1, bad
    return bad[0]


def test_producers(log: Path) -> None:
    (row,) = rows(events(log / f"{SECOND}.snapshot"))
    assert row.fields == {
        "producerId": 7,
        "producerEpoch": 0,
        "lastSequence": 23,
        "lastOffset": 23,
        "offsetDelta": 1,
        "lastTimestamp": TIME_MS + 11,
        "coordinatorEpoch": -1,
        "currentTxnFirstOffset": -1,
    }


def test_epochs(log: Path) -> None:
    assert [row.fields for row in rows(events(log / EPOCHS))] == [
        {"epoch": 0, "startOffset": 0},
        {"epoch": 1, "startOffset": 20},
    ]


def test_the_recovery_point(log: Path) -> None:
    assert [row.fields for row in rows(events(log / POINT))] == [{"offset": 30}]
    assert read_flushed_offset(OsFiles(), str(log / POINT)) == 30
    assert read_flushed_offset(OsFiles(), str(log / "missing")) is None


def test_offsets_of_partitions(tmp_path: Path) -> None:
    path = tmp_path / "log-start-offset-checkpoint"
    write_offsets(OsFiles(), str(path), {TopicPartition("orders", 3): 42})
    assert [row.fields for row in rows(events(path))] == [
        {"topic": "orders", "partition": 3, "offset": 42}
    ]


def test_who_a_directory_belongs_to(tmp_path: Path) -> None:
    files, topic_id, directory_id = OsFiles(), Uuid.random(), Uuid.random()
    write_partition_metadata(files, str(tmp_path), topic_id)
    properties = MetaProperties.of(cluster_id="cluster", directory_id=directory_id, node_id=1)
    write_meta_properties(files, str(tmp_path), properties)
    assert [row.fields for row in rows(events(tmp_path))] == [
        {"topicId": str(topic_id)},
        {
            "version": "1",
            "cluster.id": "cluster",
            "node.id": "1",
            "directory.id": str(directory_id),
        },
    ]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (f"{SECOND}.snapshot", "has crc"),
        (EPOCHS, "begins with"),
        (POINT, "it is not readable"),
    ],
)
def test_a_flipped_bit_is_found(log: Path, name: str, what: str) -> None:
    flip(log / name, 3)
    bad = only_damage(events(log / name))
    assert bad.what.startswith(what)
    assert bad.path == str(log / name)
    assert bad.hint


@pytest.mark.parametrize("name", [f"{SECOND}.snapshot", EPOCHS, POINT])
def test_a_cut_file_is_found(log: Path, name: str) -> None:
    cut(log / name, 1)
    found = events(log / name)
    assert only_damage(found).severity is Severity.DAMAGE
    assert rows(found) == []


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("cleaner-offset-checkpoint", "0\n1\norders 3\n", "line 3: 'orders 3' is not"),
        ("partition.metadata", "version: 9\ntopic_id: x", "line 1: version '9'"),
        ("meta.properties", "version=1\n", "cluster.id is missing"),
    ],
)
def test_damaged_text_is_located(tmp_path: Path, name: str, text: str, what: str) -> None:
    (tmp_path / name).write_text(text)
    assert only_damage(events(tmp_path / name)).what.startswith(what)


# -- against the log


def test_verify_finds_nothing_wrong_with_a_sound_log(log: Path) -> None:
    assert damage(events(log, VERIFY)) == []
    assert rows(events(log, VERIFY)) == []


@pytest.mark.parametrize(
    ("text", "offset", "what"),
    [
        ("0\n1\n0 0\n", 20, "says epoch 0, the batch there has 1"),
        ("0\n1\n1 0\n", 0, "says epoch 1, the batch there has 0"),
        ("0\n2\n0 0\n1 21\n", 20, "says epoch 0, the batch there has 1"),
        ("0\n1\n1 20\n", 0, "knows no epoch, the batch there has 0"),
    ],
)
def test_epochs_that_contradict_the_log(log: Path, text: str, offset: int, what: str) -> None:
    (log / EPOCHS).write_text(text)
    assert damage(events(log)) == []
    bad = only_damage(events(log, VERIFY))
    assert (bad.path, bad.offset, bad.what) == (str(log / EPOCHS), offset, what)


def test_epochs_beyond_the_recovery_point_may_be_on_their_way(log: Path) -> None:
    (log / EPOCHS).write_text("0\n1\n0 0\n")
    (log / POINT).unlink()
    assert damage(events(log, VERIFY)) == []


def test_a_snapshot_that_knows_the_future(log: Path) -> None:
    path = log / f"{SECOND}.snapshot"
    (entry,) = decode_snapshot(path.read_bytes(), str(path))
    path.write_bytes(encode_snapshot([entry._replace(last_offset=24)]))
    bad = only_damage(events(path, VERIFY))
    assert bad.what == "producer 7 has last offset 24, the snapshot was made at 24"


def test_the_snapshot_of_a_clean_stop_is_at_the_end_of_the_log(log: Path) -> None:
    assert [row.fields["lastOffset"] for row in rows(events(log / f"{END}.snapshot"))] == [29]
    assert not (log / f"{FIRST}.snapshot").exists()
