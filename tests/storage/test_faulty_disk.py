"""A disk that fails when it is told to, and is whole again afterwards."""

import errno
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kraftlog.drill_hooks import DISK, FAIL_SYNC, FULL, SLOW_SYNC
from storage.durable_copy import server_files
from storage.faulty_disk import FaultyFiles
from storage.files import SYNC_FAILED_EXIT_CODE, Files

SYNCER = """
import sys
from storage.durable_copy import server_files
files = server_files(sys.argv[1], sys.argv[2])
file = files.open(sys.argv[2] + "/log", create=True)
file.pwrite([b"a"], 0)
file.sync() if sys.argv[3] == "file" else files.sync_dir(sys.argv[2])
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / DISK).mkdir()
    (tmp_path / "data").mkdir()
    return tmp_path / DISK


def files_of(disk: Path) -> Files:
    files = server_files(str(disk.parent), str(disk.parent / "data"))
    assert isinstance(files, FaultyFiles)
    return files


def test_while_it_is_full_nothing_can_be_written_and_all_be_read(disk: Path) -> None:
    files, log = files_of(disk), str(disk.parent / "data" / "log")
    with closing(files.open(log, create=True)) as file:
        file.pwrite([b"before"], 0)
        (disk / FULL).touch()
        with pytest.raises(OSError, match="No space left") as full:
            file.pwrite([b"more"], 6)
        assert (full.value.errno, full.value.filename) == (errno.ENOSPC, log)
        for fails in (
            lambda: files.open(f"{log}2", create=True),
            lambda: files.make_dir(f"{log}.d"),
            lambda: files.write_atomic(f"{log}3", b"x"),
        ):
            with pytest.raises(OSError, match="No space left"):
                fails()
        assert file.pread(10, 0) == b"before"
        assert files.list_dir(str(disk.parent / "data")) == ["log"]
        (disk / FULL).unlink()
        file.pwrite([b" and after"], 6)
        assert file.pread(20, 0) == b"before and after"


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_sync_that_fails_ends_the_process(disk: Path, what: str) -> None:
    command = [sys.executable, "-c", SYNCER, str(disk.parent), str(disk.parent / "data"), what]
    assert subprocess.run(command, check=False).returncode == 0
    (disk / FAIL_SYNC).touch()
    failed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert failed.returncode == SYNC_FAILED_EXIT_CODE
    assert "EIO" in failed.stderr


def test_a_sync_may_be_slow(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("storage.faulty_disk.time.sleep", slept.append)
    files = files_of(disk)
    with closing(files.open(str(disk.parent / "data" / "log"), create=True)) as file:
        for text in ("150", ""):
            (disk / SLOW_SYNC).write_text(text)
            file.sync()
        assert slept == [0.15]
