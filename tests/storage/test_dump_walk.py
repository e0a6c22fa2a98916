"""From paths to files."""

import errno
import os
from pathlib import Path

import pytest

from storage.dump_events import FileBegin, Options, Severity
from storage.dump_walk import NothingToRead, dump_target, find_targets
from storage.files import OsFiles
from storage.model_disk import ModelDisk
from tests.storage.dumps import END, FIRST, SECOND, events, findings, rows, write_log


def names(path: Path) -> list[str]:
    return [os.path.basename(e.path) for e in events(path) if isinstance(e, FileBegin)]


def test_a_directory_is_read_segment_by_segment(tmp_path: Path) -> None:
    assert names(write_log(tmp_path)) == [
        f"{FIRST}.log",
        f"{FIRST}.index",
        f"{FIRST}.timeindex",
        f"{SECOND}.log",
        f"{SECOND}.index",
        f"{SECOND}.timeindex",
        f"{SECOND}.snapshot",
        f"{END}.snapshot",
        "leader-epoch-checkpoint",
        "recovery-point",
    ]


def test_a_directory_of_partitions_is_read_partition_by_partition(tmp_path: Path) -> None:
    write_log(tmp_path, "orders-0")
    write_log(tmp_path, "orders-1")
    (tmp_path / "not a partition").mkdir()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n0\n")
    found = events(tmp_path, Options(verify=True))
    begun = [event.path for event in found if isinstance(event, FileBegin)]
    assert begun[0] == str(tmp_path / "log-start-offset-checkpoint")
    assert len([path for path in begun if path.endswith(".log")]) == 4
    assert findings(found) == []


def test_strangers_in_a_directory_are_passed_over(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    before = names(log)
    (log / "notes.txt").write_text("hello")
    (log / f"{99:020d}.log").mkdir()
    assert names(log) == before


def test_what_is_on_its_way_out_is_left_out_and_said_so(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    deleted = log / f"{FIRST}.log.1.deleted"
    deleted.write_bytes(b"garbage")
    found = events(log, Options(verify=True))
    (note,) = findings(found)
    assert (note.path, note.severity) == (str(deleted), Severity.NOTE)
    assert [finding.severity for finding in findings(events(deleted))] == [Severity.DAMAGE]


def test_a_swap_is_part_of_the_log_but_not_of_its_chain(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    first = log / f"{FIRST}.log"
    (log / f"{FIRST}.log.swap").write_bytes(first.read_bytes())
    found = events(log, Options(verify=True))
    assert findings(found) == []
    assert f"{FIRST}.log.swap" in names(log)


@pytest.mark.parametrize(
    ("name", "what"),
    [("missing.log", "no such file or directory"), ("notes.txt", "not the name of a log's file")],
)
def test_a_path_with_nothing_behind_it(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NothingToRead, match=what) as caught:
        find_targets(OsFiles(), str(tmp_path / name))
    assert str(tmp_path / name) in caught.value.message
    assert caught.value.hint


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(NothingToRead, match="no file in this directory"):
        find_targets(OsFiles(), str(tmp_path))


def test_a_file_that_goes_away_meanwhile_is_of_note_only(tmp_path: Path) -> None:
    log = write_log(tmp_path)
    (target,) = find_targets(OsFiles(), str(log))
    (log / f"{FIRST}.index").unlink()
    (finding,) = findings(dump_target(OsFiles(), target, Options()))
    assert finding.severity is Severity.NOTE
    assert finding.path.endswith(f"{FIRST}.index")


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_of_note(tmp_path: Path, suffix: str) -> None:
    log = write_log(tmp_path)
    (log / f"{FIRST}{suffix}").unlink()
    (finding,) = findings(events(log, Options(verify=True)))
    assert finding.path == str(log / f"{FIRST}{suffix}")
    assert finding.severity is Severity.NOTE


class Failing(OsFiles):
    """A disk on which one file cannot be asked for its size."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__()
        self._name = name
        self._number = number

    def size(self, path: str) -> int:
        if path.endswith(self._name):
            raise OSError(self._number, os.strerror(self._number), path)
        return super().size(path)


@pytest.mark.parametrize(
    ("number", "severity"), [(errno.EIO, Severity.DAMAGE), (errno.EACCES, Severity.UNREAD)]
)
def test_a_file_that_cannot_be_read_does_not_keep_the_others(
    tmp_path: Path, number: int, severity: Severity
) -> None:
    log = write_log(tmp_path)
    files = Failing(f"{FIRST}.log", number)
    (target,) = find_targets(files, str(log))
    found = list(dump_target(files, target, Options()))
    (finding,) = findings(found)
    assert (finding.severity, finding.path) == (severity, str(log / f"{FIRST}.log"))
    assert os.strerror(number) in finding.what
    assert len(rows(found)) > 0


def test_a_model_disk_is_read_as_well() -> None:
    disk = ModelDisk()
    disk.make_dir("/orders-0")
    for suffix in ("log", "index", "timeindex"):
        disk.open(f"/orders-0/{FIRST}.{suffix}", create=True)
    (target,) = find_targets(disk, "/orders-0")
    assert findings(dump_target(disk, target, Options(verify=True))) == []
