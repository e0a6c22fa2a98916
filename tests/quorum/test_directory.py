from pathlib import Path

import pytest

from kraftlog.clock import ManualClock
from kraftlog.errors import ConfigError, LogDamaged, LogDirLocked
from quorum.directory import (
    AlreadyFormatted,
    Identity,
    NotFormatted,
    Seat,
    form_directories,
    format_directory,
    open_directory,
)
from quorum.store import Store
from storage.files import Files, OsFiles
from storage.model_disk import ModelDisk, PowerCut
from tests.quorum.samples import CLUSTER

CLOCK = ManualClock()


def identity_of(files: Files, path: str) -> Identity:
    with open_directory(files, path, CLOCK) as identity:
        return identity


def test_a_formed_cluster_has_its_voters_on_every_disk(tmp_path: Path) -> None:
    files = OsFiles()
    seats = [Seat(number, f"{tmp_path}/c{number}", f"h:{number}") for number in (3, 1, 2)]
    cluster_id, made = form_directories(files, seats, CLOCK)
    assert len({identity.key.directory_id for identity in made}) == 3
    for seat, identity in zip(seats, made, strict=True):
        assert identity_of(files, seat.directory) == identity
        assert identity.cluster_id == cluster_id
        voters = Store(files, seat.directory, CLOCK).view.latest_voters.voters
        assert [each.key.node_id for each in voters.voters] == [1, 2, 3]
        assert identity.key in voters


def test_a_formatted_directory_makes_nobody_a_voter(tmp_path: Path) -> None:
    path = f"{tmp_path}/c1"
    one = format_directory(OsFiles(), path, CLOCK, cluster_id=CLUSTER, node_id=7)
    assert identity_of(OsFiles(), path) == one
    assert len(Store(OsFiles(), path, CLOCK).view.latest_voters.voters) == 0


def test_ids_are_drawn_anew_each_time(tmp_path: Path) -> None:
    ids = {
        format_directory(
            OsFiles(), f"{tmp_path}/{number}", CLOCK, cluster_id=CLUSTER, node_id=7
        ).key.directory_id
        for number in range(5)
    }
    assert len(ids) == 5


def test_a_second_form_is_refused(tmp_path: Path) -> None:
    seats = [Seat(1, f"{tmp_path}/c1", "h:1"), Seat(2, f"{tmp_path}/c2", "h:2")]
    form_directories(OsFiles(), seats[:1], CLOCK)
    before = identity_of(OsFiles(), seats[0].directory)
    for again in (seats[:1], seats, seats[::-1]):
        with pytest.raises(AlreadyFormatted, match="belongs to node 1 of cluster"):
            form_directories(OsFiles(), again, CLOCK)
    assert identity_of(OsFiles(), seats[0].directory) == before
    with pytest.raises(NotFormatted):  # none of a refused set is formatted
        identity_of(OsFiles(), seats[1].directory)
    with pytest.raises(AlreadyFormatted):
        format_directory(OsFiles(), seats[0].directory, CLOCK, cluster_id=CLUSTER, node_id=1)


def test_two_voters_of_one_id_are_refused(tmp_path: Path) -> None:
    seats = [Seat(1, f"{tmp_path}/a", "h:1"), Seat(1, f"{tmp_path}/b", "h:2")]
    with pytest.raises(ConfigError, match="same node id"):
        form_directories(OsFiles(), seats, CLOCK)


@pytest.mark.parametrize("exists", [False, True])
def test_what_was_never_formatted_says_so(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "c1"
    if exists:
        path.mkdir()
    with pytest.raises(NotFormatted, match="is not formatted"):
        identity_of(OsFiles(), str(path))


def test_a_directory_has_one_user(tmp_path: Path) -> None:
    path = f"{tmp_path}/c1"
    format_directory(OsFiles(), path, CLOCK, cluster_id=CLUSTER, node_id=7)
    with open_directory(OsFiles(), path, CLOCK), pytest.raises(LogDirLocked):
        identity_of(OsFiles(), path)
    identity_of(OsFiles(), path)


def test_a_log_without_its_identity_is_not_formatted_over(tmp_path: Path) -> None:
    path = tmp_path / "c1"
    format_directory(OsFiles(), str(path), CLOCK, cluster_id=CLUSTER, node_id=7)
    (path / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(b"records")
    (path / "meta.properties").unlink()
    with pytest.raises(LogDamaged, match=r"meta\.properties is missing, but the directory holds"):
        format_directory(OsFiles(), str(path), CLOCK, cluster_id=CLUSTER, node_id=7)


@pytest.mark.parametrize(
    ("old", "new"), [("node.id=7\n", ""), (f"cluster.id={CLUSTER}", "cluster.id=somebody")]
)
def test_an_identity_that_is_no_controllers_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "c1"
    format_directory(OsFiles(), str(path), CLOCK, cluster_id=CLUSTER, node_id=7)
    meta = path / "meta.properties"
    meta.write_text(meta.read_text().replace(old, new))
    with pytest.raises(LogDamaged, match=r"meta\.properties"):
        identity_of(OsFiles(), str(path))


def test_a_format_that_lost_power_can_be_repeated() -> None:
    for crash_after in range(40):
        disk = ModelDisk(seed=crash_after)
        disk.crash_after = crash_after
        try:
            form_directories(disk, [Seat(1, "/d/c1", "h:1")], CLOCK)
        except PowerCut:
            disk.restart(crash_after)
        disk.crash_after = None
        try:
            identity = identity_of(disk, "/d/c1")
        except NotFormatted:
            _, (identity,) = form_directories(disk, [Seat(1, "/d/c1", "h:1")], CLOCK)
        assert identity.key in Store(disk, "/d/c1", CLOCK).view.latest_voters.voters
