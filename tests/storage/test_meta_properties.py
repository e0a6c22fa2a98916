"""Whose log directory this is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import LogDamaged
from kraftlog.types import Uuid
from storage.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from storage.model_disk import ModelDisk, PowerCut

DIRECTORY_ID = "4vXbmMQIQtmhPq5D1XhKdw"
FILE = f"version=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\ndirectory.id={DIRECTORY_ID}\n"
PATH = "/data/meta.properties"


@pytest.fixture
def disk() -> ModelDisk:
    disk = ModelDisk(seed=1)
    disk.make_dir("/data")
    disk.sync_dir("/")
    return disk


def store(disk: ModelDisk, text: str | bytes) -> None:
    disk.write_atomic(PATH, text if isinstance(text, bytes) else text.encode())


def read(disk: ModelDisk) -> MetaProperties:
    found = read_meta_properties(disk, "/data")
    assert found is not None
    return found


def fresh(node_id: int | None = 1, cluster_id: str = "MkU3OEVBNTcwNTJENDM2Qg") -> MetaProperties:
    return MetaProperties.of(
        cluster_id=cluster_id, directory_id=Uuid.parse(DIRECTORY_ID), node_id=node_id
    )


def test_the_file_is_kafkas(disk: ModelDisk) -> None:
    write_meta_properties(disk, "/data", fresh())
    assert disk.read_bytes(PATH).decode() == FILE
    found = read(disk)
    assert (found.cluster_id, found.node_id) == ("MkU3OEVBNTcwNTJENDM2Qg", 1)
    assert str(found.directory_id) == DIRECTORY_ID


def test_a_directory_without_the_file_was_never_formatted(disk: ModelDisk) -> None:
    assert read_meta_properties(disk, "/data") is None


def test_a_node_id_may_come_later(disk: ModelDisk) -> None:
    write_meta_properties(disk, "/data", fresh(node_id=None))
    assert read(disk).node_id is None
    write_meta_properties(disk, "/data", read(disk).with_node_id(7))
    assert read(disk).node_id == 7
    assert str(read(disk).directory_id) == DIRECTORY_ID


def test_what_kafka_wrote_is_read_and_unknown_keys_stay(disk: ModelDisk) -> None:
    store(
        disk,
        f"#\n#Mon Jan 01 00:00:00 UTC 2024\n! more\n\nnode.id : 3\r\n"
        f"directory.id={DIRECTORY_ID}\n version = 1 \ncluster.id=c\nrack=a=b\n",
    )
    found = read(disk)
    assert (found.node_id, found.cluster_id, found.get("rack")) == (3, "c", "a=b")
    assert found.get("colour") is None
    write_meta_properties(disk, "/data", found.with_node_id(4))
    again = read(disk)
    assert [key for key, _ in again.entries] == [
        "node.id",
        "directory.id",
        "version",
        "cluster.id",
        "rack",
    ]
    assert again.node_id == 4


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FILE[:-1], "line 4: the line has no end"),
        (FILE + "what is this\n", "line 5: 'what is this' is not key=value"),
        (FILE + "node.id=2\n", "line 5: node.id was set in line 3 already"),
        (FILE + "path=C:\\x\n", "line 5"),
        (FILE.replace("version=1", "version=2"), "line 1: version='2' is not 1"),
        (FILE.replace("version=1\n", ""), "version is missing"),
        (FILE.replace("node.id=1", "node.id=0"), "line 3: node.id='0' is not a number from 1"),
        (FILE.replace("node.id=1", "node.id=-1"), "line 3"),
        (FILE.replace("node.id=1", "node.id=2147483648"), "line 3"),
        (FILE.replace("node.id=1", "node.id=one"), "line 3"),
        (FILE.replace(DIRECTORY_ID, "short"), "line 4: directory.id"),
        (FILE.replace(f"directory.id={DIRECTORY_ID}\n", ""), "directory.id is missing"),
        (FILE.replace("MkU3OEVBNTcwNTJENDM2Qg", ""), "cluster.id is missing"),
        ("", "version is missing"),
        (FILE.encode() + b"x=\xff\n", "line 5: byte .* is not ASCII"),
        (b"\0" * 100, "line 1"),
    ],
)
def test_a_damaged_file_is_refused_by_line(disk: ModelDisk, text: str | bytes, why: str) -> None:
    store(disk, text)
    with pytest.raises(LogDamaged, match=f"^{PATH}.*{why}") as refusal:
        read_meta_properties(disk, "/data")
    assert "format the directory anew" in refusal.value.hint


@given(st.integers(0, len(FILE) - 1))
def test_no_cut_of_the_file_is_taken_for_a_whole_one(length: int) -> None:
    disk = ModelDisk()
    disk.make_dir("/data")
    store(disk, FILE[:length])
    with pytest.raises(LogDamaged):
        read_meta_properties(disk, "/data")


visible = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\\"))


@given(visible.filter(bool), st.none() | st.integers(1, 2**31 - 1))
def test_what_is_written_is_read(cluster_id: str, node_id: int | None) -> None:
    disk = ModelDisk()
    disk.make_dir("/data")
    written = fresh(node_id, cluster_id)
    write_meta_properties(disk, "/data", written)
    assert read_meta_properties(disk, "/data") == written


@pytest.mark.parametrize("cluster_id", ["", "a b", "a\nnode.id=2", "a\\", "\u00e9"])
def test_what_could_not_be_read_back_is_not_written(disk: ModelDisk, cluster_id: str) -> None:
    write_meta_properties(disk, "/data", fresh())
    with pytest.raises(ValueError, match=PATH):
        write_meta_properties(disk, "/data", fresh(cluster_id=cluster_id))
    assert disk.read_bytes(PATH).decode() == FILE


@pytest.mark.parametrize("seed", range(5))
def test_a_power_cut_leaves_the_old_file_or_the_new_one(seed: int) -> None:
    for crash_after in range(10):
        disk = ModelDisk(seed)
        disk.make_dir("/data")
        disk.sync_dir("/")
        write_meta_properties(disk, "/data", fresh(1))
        disk.crash_after = disk.op_count + crash_after
        finished = False
        try:
            write_meta_properties(disk, "/data", fresh(2))
            finished = True
        except PowerCut:
            pass
        disk.restart(seed)
        assert read(disk).node_id in ((2,) if finished else (1, 2))
