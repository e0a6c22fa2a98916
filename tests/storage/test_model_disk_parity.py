"""While the power is on, the model disk answers as the operating system's files do."""

import errno
import os
import tempfile
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kraftlog.errors import LogDirLocked
from storage.files import File, Files, OsFiles
from storage.model_disk import ModelDisk
from tests.storage.disks import tree

names = st.sampled_from(["a", "b", "c", "a/a", "a/b", "b/a", "b/a/c", "./a"])
numbers = st.integers(-1, 12) | st.just(600)
buffers = st.lists(st.binary(max_size=4) | st.just(b"." * 600), max_size=3)


class TwoDisks(RuleBasedStateMachine):
    """Any operations on both, and not one answer that tells them apart."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.root = self.directory.name
        self.os_files, self.model = OsFiles(max_open=2), ModelDisk()
        self.model.make_dir(self.root)
        self.handles: list[tuple[File, File]] = []

    def teardown(self) -> None:
        for os_file, _ in self.handles:
            os_file.close()
        self.directory.cleanup()

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def same(self, use: Callable[[Files], object]) -> None:
        assert outcome(lambda: use(self.os_files)) == outcome(lambda: use(self.model))

    def same_file(self, choice: int, use: Callable[[File], object]) -> None:
        os_file, model_file = self.handles[choice % len(self.handles)]
        assert outcome(lambda: use(os_file)) == outcome(lambda: use(model_file))
        assert os_file.path == model_file.path

    @initialize(name=st.sampled_from(["", "a/b", "b/a/c"]))
    def begin_with_a_file(self, name: str) -> None:
        """Three right names in a row are rare, and renaming a used directory needs them."""
        if name:
            self.make_dir(os.path.dirname(name))
            self.open(name, create=True)

    @rule(name=names, create=st.booleans())
    def open(self, name: str, create: bool) -> None:
        opened: list[File] = []
        self.same(lambda files: opened.append(files.open(self.path(name), create=create)))
        if opened:
            os_file, model_file = opened
            self.handles.append((os_file, model_file))

    @precondition(lambda self: self.handles)
    @rule(choice=st.integers(0, 20), data=buffers, position=numbers)
    def pwrite(self, choice: int, data: list[bytes], position: int) -> None:
        self.same_file(choice, lambda file: file.pwrite(data, position))

    @precondition(lambda self: self.handles)
    @rule(choice=st.integers(0, 20), length=numbers, position=numbers)
    def pread(self, choice: int, length: int, position: int) -> None:
        self.same_file(choice, lambda file: file.pread(length, position))

    @precondition(lambda self: self.handles)
    @rule(choice=st.integers(0, 20), length=numbers)
    def truncate(self, choice: int, length: int) -> None:
        self.same_file(choice, lambda file: file.truncate(length))

    @precondition(lambda self: self.handles)
    @rule(choice=st.integers(0, 20), name=names)
    def rename_file(self, choice: int, name: str) -> None:
        self.same_file(choice, lambda file: file.rename(self.path(name)))

    @precondition(lambda self: self.handles)
    @rule(choice=st.integers(0, 20), kind=st.sampled_from(["sync", "close"]))
    def use_file(self, choice: int, kind: str) -> None:
        self.same_file(choice, lambda file: file.sync() if kind == "sync" else file.close())

    @rule(src=names, dst=names)
    def rename(self, src: str, dst: str) -> None:
        self.same(lambda files: files.rename(self.path(src), self.path(dst)))

    @rule(name=names)
    def make_dir(self, name: str) -> None:
        self.same(lambda files: files.make_dir(self.path(name)))

    @rule(name=names, is_file=st.booleans())
    def remove(self, name: str, is_file: bool) -> None:
        path = self.path(name)
        self.same(lambda files: files.remove(path) if is_file else files.remove_dir(path))

    @rule(name=names, data=st.binary(max_size=4), durable=st.booleans())
    def write_atomic(self, name: str, data: bytes, durable: bool) -> None:
        self.same(lambda files: files.write_atomic(self.path(name), data, durable=durable))

    @rule(name=names)
    def ask(self, name: str) -> None:
        path = self.path(name)
        self.same(lambda files: (files.exists(path), files.is_dir(path)))
        self.same(lambda files: files.list_dir(path))
        self.same(lambda files: files.list_sizes(path))
        self.same(lambda files: files.read_bytes(path))
        self.same(lambda files: files.sync_dir(path))
        if not self.model.is_dir(path):  # what the size of a directory is, nobody promises
            self.same(lambda files: files.size(path))
            self.same(lambda files: files.read_bytes(path, limit=3))

    @invariant()
    def hold_the_same(self) -> None:
        assert tree(self.os_files, self.root) == tree(self.model, self.root)
        for choice in range(len(self.handles)):
            self.same_file(choice, lambda file: file.size())


def outcome(use: Callable[[], object]) -> object:
    """What came back, or the kind and number of the error."""
    try:
        return use()
    except OSError as error:
        return type(error), errno.errorcode[error.errno or 0]


TestTwoDisks = TwoDisks.TestCase


def test_locks_exclude_as_those_of_the_operating_system(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "lock")
    disk = ModelDisk()
    disk.make_dir(os.fspath(tmp_path))
    both: list[Files] = [OsFiles(), disk]
    for files in both:
        lock = files.lock(path)
        with pytest.raises(LogDirLocked):
            files.lock(path)
        lock.release()
        lock.release()
        with files.lock(path):
            assert files.exists(path)
        files.lock(path).release()


def test_no_name_is_no_directory_and_a_dot_is_one(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both: list[Files] = [OsFiles(), ModelDisk()]
    for files in both:
        with pytest.raises(FileNotFoundError):
            files.sync_dir("")
        with pytest.raises(FileNotFoundError):
            files.list_dir("")
        assert not files.exists("")
        assert not files.is_dir("")
        files.write_atomic("f", b"abc")
        files.sync_dir(".")
        assert files.list_dir(".") == ["f"]
