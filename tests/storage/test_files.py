"""The files of the operating system: pooled, synced or dead, locked."""

import errno
import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._check import InvariantViolation
from kraftlog.errors import LogDirLocked
from storage.files import (
    IO_VECTOR_MAX,
    SYNC_FAILED_EXIT_CODE,
    File,
    Files,
    OsFile,
    OsFiles,
    way_out,
)

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def files() -> Files:
    return OsFiles()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "f")


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


# -- bytes


@given(
    sizes=st.lists(st.integers(0, 3), max_size=2 * IO_VECTOR_MAX + 5)
    | st.sampled_from([[1] * IO_VECTOR_MAX, [1] * (IO_VECTOR_MAX + 1), [0] * 3000 + [1]]),
    position=st.integers(0, 10),
)
def test_all_buffers_are_written_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], position: int
) -> None:
    file = OsFiles().open(str(tmp_path_factory.mktemp("d") / "f"), create=True)
    buffers = [random.Random(n).randbytes(size) for n, size in enumerate(sizes)]
    whole = b"".join(buffers)
    assert file.pwrite(buffers, position) == len(whole)
    assert file.pread(len(whole) + 100, position) == whole
    assert file.size() == (position + len(whole) if whole else 0)
    file.close()


def test_buffers_of_every_kind_are_written(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    assert file.pwrite([b"a", bytearray(b"bc"), memoryview(b"xdefx")[1:4]], 0) == 6
    assert file.pread(10, 0) == b"abcdef"


@pytest.fixture
def file_bytes_max() -> Iterator[int]:
    """A limit of the operating system at which writes are cut short for real."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_cut_short_goes_on_until_the_error(
    files: Files, path: str, file_bytes_max: int
) -> None:
    file = files.open(path, create=True)
    with pytest.raises(OSError, match="File too large") as caught:
        file.pwrite([b"a" * 600, b"b" * 600], 0)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, path)
    assert file.pread(2000, 0) == b"a" * 600 + b"b" * 400


def test_an_error_names_the_file(files: Files, path: str) -> None:
    with pytest.raises(OSError, match="No space left") as caught:
        files.open("/dev/full").pwrite([b"x"], 0)
    assert caught.value.filename == "/dev/full"
    file = files.open(path, create=True)
    with pytest.raises(OSError, match="Invalid argument") as caught:
        file.truncate(-1)
    assert caught.value.filename == path
    with pytest.raises(OSError, match="Invalid argument") as caught:
        file.pread(1, -1)
    assert caught.value.filename == path


@pytest.mark.parametrize("position", [-1, -2])
def test_no_write_before_the_start(files: Files, path: str, position: int) -> None:
    file = files.open(path, create=True)
    with pytest.raises(OSError, match="Invalid argument") as caught:
        file.pwrite([b"abc"], position)
    assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, path)
    assert file.size() == 0


def test_reads_end_where_the_file_ends(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.pwrite([b"abc"], 0)
    assert [file.pread(2, at) for at in range(5)] == [b"ab", b"bc", b"c", b"", b""]
    file.truncate(1)
    file.truncate(3)
    assert file.pread(10, 0) == b"a\0\0"


def test_read_bytes_has_a_limit(files: Files, path: str) -> None:
    files.write_atomic(path, b"12345")
    assert files.read_bytes(path, limit=5) == b"12345"
    with pytest.raises(OSError, match="5 bytes, more than the limit of 4") as caught:
        files.read_bytes(path, limit=4)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, path)


# -- handles


def test_a_missing_file_is_not_made_by_accident(files: Files, path: str) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(path)
    assert not files.exists(path)
    with pytest.raises(IsADirectoryError):
        files.open(os.path.dirname(path))


def test_a_closed_file_refuses_all_but_another_close(files: Files, path: str) -> None:
    file = files.open(path, create=True)
    file.close()
    file.close()
    for use in (file.size, file.sync, lambda: file.rename(path + "2"), lambda: file.pread(1, 0)):
        with pytest.raises(OSError, match="file is closed") as caught:
            use()
        assert caught.value.errno == errno.EBADF
    assert files.exists(path)


def evict(files: OsFiles, directory: Path) -> None:
    """Use enough other files that nothing else keeps its descriptor."""
    for number in range(3):
        files.open(str(directory / f"other{number}"), create=True).size()


@pytest.mark.parametrize("by_handle", [True, False])
def test_a_handle_follows_its_file_even_without_a_descriptor(
    tmp_path: Path, path: str, by_handle: bool
) -> None:
    files = OsFiles(max_open=2)
    file = files.open(path, create=True)
    file.pwrite([b"abc"], 0)
    evict(files, tmp_path)
    if by_handle:
        file.rename(path + "2")
    else:
        files.rename(path, path + "2")
    assert file.path == path + "2"
    evict(files, tmp_path)
    file.pwrite([b"d"], 3)
    assert files.read_bytes(path + "2") == b"abcd"
    assert not files.exists(path)


def test_a_handle_follows_its_directory(tmp_path: Path) -> None:
    files = OsFiles(max_open=2)
    files.make_dir(str(tmp_path / "t-0"))
    file = files.open(str(tmp_path / "t-0" / "f"), create=True)
    files.rename(str(tmp_path / "t-0"), str(tmp_path / "t-0.x-delete"))
    evict(files, tmp_path)
    file.pwrite([b"abc"], 0)
    assert file.path == str(tmp_path / "t-0.x-delete" / "f")
    assert (tmp_path / "t-0.x-delete" / "f").read_bytes() == b"abc"


def test_removed_and_replaced_files_close_their_handles(files: Files, path: str) -> None:
    removed = files.open(path, create=True)
    files.remove(path)
    replaced = files.open(path, create=True)
    again = files.open(path + "/../f")
    files.write_atomic(path, b"new")
    for file in (removed, replaced, again):
        with pytest.raises(OSError, match="file is closed"):
            file.size()
    assert files.open(path).size() == 3


def test_a_rename_stays_in_its_directory(files: Files, tmp_path: Path, path: str) -> None:
    files.make_dir(str(tmp_path / "d"))
    file = files.open(path, create=True)
    with pytest.raises(OSError, match="crosses directories") as caught:
        file.rename(str(tmp_path / "d" / "f"))
    assert caught.value.errno == errno.EXDEV
    file.rename(path)
    assert file.size() == 0


# -- the pool


def test_a_pool_without_room_is_our_own_bug() -> None:
    with pytest.raises(InvariantViolation, match="room for one"):
        OsFiles(max_open=0)


def test_a_pinned_descriptor_survives_the_use_of_many_others(tmp_path: Path, path: str) -> None:
    files = OsFiles(max_open=2)
    file = files.open(path, create=True)
    file.pwrite([b"abc"], 0)
    with file.pinned_fd() as fd:
        evict(files, tmp_path)
        file.close()
        assert os.pread(fd, 10, 0) == b"abc"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


class Scribbler:
    """Reads and writes every second slot of many files, and now and then renames one."""

    def __init__(self, files: OsFiles, shared: list[OsFile], half: int) -> None:
        self.files, self.shared, self.half = files, shared, half
        self.rng = random.Random(half)
        self.written: dict[tuple[int, int], bytes] = {}
        self.most_open = 0

    def run(self) -> None:
        for turn in range(2000):
            number, slot = self.rng.randrange(len(self.shared)), 2 * self.rng.randrange(20)
            self.scribble(number, slot + self.half, b"%d%07d" % (self.half, turn))
            if turn % 50 == 0:
                self.shared[number].rename(f"{self.shared[number].path}-{self.half}")
            self.most_open = max(self.most_open, self.files.open_descriptors)

    def scribble(self, number: int, slot: int, data: bytes) -> None:
        found = self.shared[number].pread(8, slot * 8)
        assert found.strip(b"\0") == self.written.get((number, slot), b"")
        self.shared[number].pwrite([data], slot * 8)
        self.written[number, slot] = data


def test_two_threads_share_three_descriptors_for_fifty_files(tmp_path: Path) -> None:
    """Every byte lands where it belongs, whatever is closed and opened again meanwhile."""
    files = OsFiles(max_open=3)
    shared = [files.open(str(tmp_path / f"{number}"), create=True) for number in range(50)]
    scribblers = [Scribbler(files, shared, half) for half in range(2)]
    with ThreadPoolExecutor(max_workers=2) as threads:
        for done in [threads.submit(scribbler.run) for scribbler in scribblers]:
            done.result()
    for scribbler in scribblers:
        assert scribbler.most_open <= 3
        for (number, slot), data in scribbler.written.items():
            content = files.read_bytes(shared[number].path)
            assert content[slot * 8 : slot * 8 + 8] == data
    for file in shared:
        file.close()
    assert files.open_descriptors == 0


def test_ten_thousand_open_files_need_no_descriptors(tmp_path: Path, path: str) -> None:
    files = OsFiles()
    files.write_atomic(path, b"abc")
    handles: list[File] = [files.open(path) for _ in range(10_000)]
    assert files.open_descriptors == 0
    assert {handle.size() for handle in handles} == {3}
    assert files.open_descriptors == files.max_open <= 1024


def test_the_pool_leaves_half_of_few_descriptors_to_others() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    try:
        assert OsFiles().max_open == 150
        assert OsFiles(max_open=7).max_open == 7
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- names


def test_directories_are_listed_in_order(files: Files, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        files.write_atomic(str(tmp_path / name), name.encode() * 3)
    files.make_dir(str(tmp_path / "d" / "e"))
    files.make_dir(str(tmp_path / "d" / "e"))
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert files.list_dir(str(tmp_path)) == ["a", "b", "c", "d", "gone"]
    assert list(files.list_sizes(str(tmp_path)).items()) == [("a", 3), ("b", 3), ("c", 3)]
    assert files.is_dir(str(tmp_path / "d" / "e"))
    assert files.size(str(tmp_path / "a")) == 3
    files.remove_dir(str(tmp_path / "d" / "e"))
    with pytest.raises(FileExistsError):
        files.make_dir(str(tmp_path / "a"))


@pytest.mark.parametrize("durable", [True, False])
def test_an_atomic_write_replaces_the_file_and_a_leftover(
    files: Files, tmp_path: Path, path: str, durable: bool
) -> None:
    (tmp_path / "f.tmp").write_bytes(b"left by a crash, and longer")
    for data in (b"one", b"", b"three"):
        files.write_atomic(path, data, durable=durable)
        assert files.read_bytes(path) == data
    assert files.list_dir(str(tmp_path)) == ["f"]


def test_an_atomic_write_in_the_working_directory(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files.write_atomic("f", b"abc")
    assert (tmp_path / "f").read_bytes() == b"abc"


# -- a failed sync

SYNC_FILE = """
import sys
from storage.files import OsFiles
file = OsFiles().open(sys.argv[1])
try:
    file.sync()
finally:
    print("acknowledged")
"""
SYNC_DIR = """
import sys
from storage.files import OsFiles
try:
    OsFiles().sync_dir(sys.argv[1])
finally:
    print("acknowledged")
"""


def test_a_failed_fdatasync_ends_the_process_before_anything_else(path: str) -> None:
    os.mkfifo(path)  # a pipe cannot be synced: the kernel itself refuses
    ended = run_python(SYNC_FILE, path)
    assert (ended.returncode, ended.stdout) == (SYNC_FAILED_EXIT_CODE, "")
    assert f"fdatasync of {path} failed: EINVAL (errno 22)" in ended.stderr


def test_a_failed_fsync_of_a_directory_does_too() -> None:
    ended = run_python(SYNC_DIR, "/proc")
    assert (ended.returncode, ended.stdout) == (SYNC_FAILED_EXIT_CODE, "")
    assert "fsync of /proc failed: EINVAL" in ended.stderr


def test_the_process_ends_even_when_nobody_can_be_told(path: str) -> None:
    os.mkfifo(path)
    ended = run_python("import os\nos.close(2)\n" + SYNC_FILE, path)
    assert (ended.returncode, ended.stdout) == (SYNC_FAILED_EXIT_CODE, "")


def test_a_sync_that_works_returns(files: Files, tmp_path: Path, path: str) -> None:
    file = files.open(path, create=True)
    file.pwrite([b"abc"], 0)
    file.sync()
    files.sync_dir(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        files.sync_dir(str(tmp_path / "none"))


# -- locks

HOLD_LOCK = """
import sys
from storage.files import OsFiles
lock = OsFiles().lock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_lock_keeps_other_processes_out_until_its_holder_dies(files: Files, path: str) -> None:
    command = [sys.executable, "-c", HOLD_LOCK, path]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(LogDirLocked) as caught:
            files.lock(path)
        assert f"{path} is locked by process {holder.pid}" in str(caught.value)
        assert "a directory of its own" in caught.value.hint
        holder.kill()
    with files.lock(path):
        assert Path(path).read_text() == f"{os.getpid()}\n"
    assert Path(path).read_text() == ""


def test_a_lock_keeps_the_same_process_out_too(files: Files, path: str) -> None:
    lock = files.lock(path)
    with pytest.raises(LogDirLocked, match=f"process {os.getpid()}"):
        files.lock(path)
    Path(path).write_text("not a number")
    with pytest.raises(LogDirLocked, match="another process"):
        files.lock(path)
    lock.release()
    lock.release()
    files.lock(path).release()


def test_what_cannot_be_looked_at_is_not_missing(tmp_path: Path) -> None:
    files, loop = OsFiles(), tmp_path / "loop"
    loop.symlink_to(loop)
    for look in (files.exists, files.is_dir):
        assert not look(f"{tmp_path}/nothing")
        assert not look("not\0a name")
        with pytest.raises(OSError, match="symbolic links"):
            look(f"{loop}/file")
    (tmp_path / "file").write_bytes(b"")
    assert files.exists(f"{tmp_path}/file")
    assert not files.is_dir(f"{tmp_path}/file")
    assert not files.exists(f"{tmp_path}/file/below")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "free space"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EROFS, "let this user write"),
        (errno.EIO, "dmesg"),
    ],
)
def test_every_error_of_a_disk_has_a_way_out(number: int, words: str) -> None:
    assert words in way_out(OSError(number, os.strerror(number)))
