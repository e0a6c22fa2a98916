from pathlib import Path

import pytest

from brokers.config import BrokerConfig, broker_config
from brokers.directories import Directories, open_directories
from kraftlog.clock import SystemClock
from kraftlog.errors import ConfigError, LogDirLocked
from kraftlog.types import TopicPartition, Uuid
from storage.files import OsFiles
from storage.log_config import LogConfig
from storage.log_dirs import LogDirMismatch
from tests.brokers.images import image_of, registered, topic, uuid
from tests.brokers.views import static
from tests.storage.logs import batch

CLUSTER = str(Uuid(b"cluster id......"))


def config(path: Path, **flags: str) -> BrokerConfig:
    given = {"log_dirs": str(path / "data"), "cluster_id": CLUSTER, "node_id": "1"} | flags
    return broker_config(static(quorum_peers="127.0.0.1:1", **given))


def opened(path: Path, **flags: str) -> Directories:
    plain = LogConfig()
    return open_directories(config(path, **flags), OsFiles(), SystemClock(), lambda _: plain)


def test_a_new_directory_is_formatted_and_known_again(tmp_path: Path) -> None:
    first = opened(tmp_path)
    assert first.cluster_id == Uuid.parse(CLUSTER)
    assert first.previous_epoch is None
    assert first.log_dir_ids == (first.metadata_dir_id,)
    assert not first.has_own_metadata_dir
    assert first.close(70)
    again = opened(tmp_path, cluster_id="none", node_id="-1")
    assert (again.logs.node_id, again.cluster_id) == (1, first.cluster_id)
    assert again.log_dir_ids == first.log_dir_ids
    assert again.previous_epoch == 70
    again.release()
    again.release()
    unclean = opened(tmp_path)
    assert unclean.previous_epoch is None  # the mark is gone as soon as a process begins
    unclean.release()


def test_without_a_registration_the_epoch_of_the_last_clean_stop_stays(tmp_path: Path) -> None:
    opened(tmp_path).close(70)
    opened(tmp_path).close()
    last = opened(tmp_path)
    assert last.previous_epoch == 70
    last.release()


def test_a_new_directory_needs_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no cluster\.id was given"):
        opened(tmp_path, cluster_id="none")


def test_two_processes_cannot_have_one_directory(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(LogDirLocked):
        opened(tmp_path)
    first.release()
    opened(tmp_path).release()


def test_the_metadata_log_may_live_apart(tmp_path: Path) -> None:
    apart = str(tmp_path / "meta")
    first = opened(tmp_path, metadata_log_dir=apart)
    assert first.has_own_metadata_dir
    assert first.metadata.path == apart
    assert first.metadata_dir_id not in first.log_dir_ids
    with pytest.raises(LogDirLocked):
        opened(tmp_path / "other", metadata_log_dir=apart)
    first.close(1)
    with pytest.raises(LogDirMismatch, match="belongs to node 1 of cluster"):
        opened(tmp_path / "third", metadata_log_dir=apart, node_id="2")
    opened(tmp_path, metadata_log_dir=apart).release()  # nothing was left locked


def test_an_id_that_was_handed_out_is_kept_everywhere(tmp_path: Path) -> None:  # R1
    flags = {"node_id": "-1", "metadata_log_dir": str(tmp_path / "meta")}
    flags["log_dirs"] = f"{tmp_path}/d1,{tmp_path}/d2"
    first = opened(tmp_path, **flags)
    assert first.logs.node_id is None
    first.keep_node_id(9)
    first.close()
    for name in ("d1", "d2", "meta"):
        assert "node.id=9\n" in (tmp_path / name / "meta.properties").read_text()
    again = opened(tmp_path, **flags)
    assert again.logs.node_id == 9
    again.release()


def test_logs_that_are_not_ours_are_set_aside_and_never_deleted(tmp_path: Path) -> None:
    directories = opened(tmp_path)
    ours = {"kept": "kept", "moved": "moved", "gone": "gone", "anew": "the old one"}
    for name, owner in ours.items():
        log = directories.logs.create(TopicPartition(name, 0), uuid(owner))
        log.append(batch(b"x"), leader_epoch=0)
    image = image_of(registered(1), topic("kept", [1]), topic("moved", [2]), topic("anew", [1]))
    kept = directories.set_strays_aside(image, 1)
    names = sorted(Path(path).name.partition(".")[0] for path in kept)
    assert names == ["anew-0", "gone-0", "moved-0"]
    assert all(path.endswith("-stray") and Path(path).is_dir() for path in kept)
    assert directories.logs.partitions() == [TopicPartition("kept", 0)]
    directories.close(1)
