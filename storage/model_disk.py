"""A disk in memory that forgets, at a power cut, what was never promised to be durable.

It takes the place of `OsFiles` in property tests and in the simulator. It is stricter than most
file systems: a synced file whose directory was not synced may lose its name, and unsynced changes
survive in the most awkward mixtures (`storage/model_inode.py` has the rules). Code that passes here
relies on what `storage/files.py` promises, and on nothing else.

    disk = ModelDisk()
    disk.crash_after = 7                # the power fails during the eighth change
    try:
        work(disk)
    except PowerCut:
        disk.restart(seed)              # the same seed leaves the same remains
    check(disk)

Not for use by several threads.
"""

import copy
import errno as errnos
import os
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, NoReturn, Self

from kraftlog._check import invariant
from kraftlog.errors import LogDirLocked, NotYetSupported
from kraftlog.types import Buffer
from storage.files import READ_BYTES_MAX, Files, check_same_dir, replace_file
from storage.handle_table import HandleTable
from storage.model_inode import (
    CrashRules,
    DirNode,
    FileNode,
    Link,
    Move,
    Truncate,
    Unlink,
    Write,
)

Operation = Literal[
    "open",
    "create",
    "pread",
    "pwrite",
    "truncate",
    "sync",
    "rename",
    "remove",
    "remove_dir",
    "make_dir",
    "sync_dir",
]


class PowerCut(BaseException):
    """The power failed. Not an Exception, as no code may handle it and go on."""


class ProcessEnded(BaseException):
    """A sync failed, and a real process would have ended; or it was killed."""


@dataclass(slots=True)
class _Fault:
    operation: Operation
    errno: int
    path_glob: str
    times: int
    skipped: int


class ModelFile:
    """A file of a model disk, made by `ModelDisk.open`."""

    __slots__ = ("_disk", "_node", "closed", "path")

    def __init__(self, disk: "ModelDisk", node: FileNode, path: str) -> None:
        self._disk = disk
        self._node = node
        self.path = path
        self.closed = False

    def size(self) -> int:
        self._check_open()
        return len(self._node.content)

    def pread(self, length: int, position: int) -> bytes:
        self._check_open()
        self._disk.begin("pread", self.path)
        if length < 0 or position < 0:
            _raise(errnos.EINVAL, self.path)
        return bytes(self._node.content[position : position + length])

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        self._check_open()
        if position < 0:
            _raise(errnos.EINVAL, self.path)
        data = b"".join(buffers)
        self._disk.write(self._node, self.path, Write(position, data))
        return len(data)

    def truncate(self, length: int) -> None:
        self._check_open()
        if length < 0:
            _raise(errnos.EINVAL, self.path)
        self._disk.begin("truncate", self.path)
        self._node.do(Truncate(length))
        self._disk.count()

    def sync(self) -> None:
        self._check_open()
        self._disk.begin_sync("sync", self.path)
        self._node.sync()

    def rename(self, path: str) -> None:
        self._check_open()
        self._disk.rename(self.path, path)

    def pinned_fd(self) -> AbstractContextManager[int]:
        raise NotYetSupported(f"{self.path} is on a model disk and has no descriptor")

    def close(self) -> None:
        if not self.closed:
            self._disk.forget(self)
            self.closed = True

    def _check_open(self) -> None:
        self._disk.check_power()
        if self.closed:
            raise OSError(errnos.EBADF, "file is closed", self.path)


class ModelDisk(Files):
    """The model. All its choices come from seeds, so a failure can be repeated."""

    def __init__(
        self,
        seed: int = 0,
        *,
        reorder: bool = True,
        extend: bool = True,
        capacity_bytes: int | None = None,
    ) -> None:
        self.op_count = 0
        """Changes since the start or the last restart; one in flight at a power cut counts too."""
        self.crash_after: int | None = None
        """The power fails during the change after this many; that one may survive in part."""
        self.kill_after: int | None = None
        """The process is killed during the change after this many; nothing is lost."""
        self.capacity_bytes = capacity_bytes
        """Where the disk is full: writes beyond are cut short with ENOSPC. None is never."""
        self._rules = CrashRules(reorder=reorder, extend=extend)
        self._rng = random.Random(seed)  # noqa: S311  repeatable on purpose
        self._root = DirNode()
        self._handles: HandleTable[ModelFile] = HandleTable()
        self._locks: set[str] = set()
        self._faults: list[_Fault] = []
        self._down: PowerCut | ProcessEnded | None = None

    # What a test does to it

    def restart(self, seed: int | None = None) -> Self:
        """Cut the power, if it is not cut yet, and come back with what survived.

        Handles and locks of before are dead, `crash_after` and all faults are cleared, `op_count`
        is 0.
        """
        rng = self._rng if seed is None else random.Random(seed)  # noqa: S311
        self._root.crash(rng, self._rules)
        self._faults.clear()
        self.crash_after = None
        self.op_count = 0
        self._end_process()
        return self

    def kill_process(self) -> Self:
        """End the process that uses the disk: handles and locks die, and nothing is lost."""
        invariant(not isinstance(self._down, PowerCut), "after a power cut comes a restart")
        self._end_process()
        return self

    def _end_process(self) -> None:
        self._down = None
        self.kill_after = None
        self._locks = set()  # another one, so that a lock of before cannot free one of after
        for file in self._handles.take_all():
            file.closed = True

    def sync_all(self) -> None:
        """Make everything durable, as time does. Not an operation that counts or fails."""
        self._root.sync_all()

    def fork(self) -> "ModelDisk":
        """A disk in the same state, to try another fate on it."""
        return copy.deepcopy(self)

    def fail_next(
        self,
        operation: Operation,
        errno: int,
        path_glob: str = "*",
        *,
        times: int = 1,
        skipped: int = 0,
    ) -> None:
        """Let the next `times` operations of this kind on matching paths fail, after `skipped` that
        do not.

        A failing pwrite writes some of its bytes first. A failing sync raises ProcessEnded, as does
        everything after it until the disk is restarted or the process killed.
        """
        self._faults.append(_Fault(operation, errno, path_glob, times, skipped))

    def clear_faults(self) -> None:
        """Forget what was planned with `fail_next`."""
        self._faults.clear()

    def flip_bit(self, path: str, byte: int, bit: int) -> None:
        """Damage one bit of a file, durably."""
        node = self._file(path)
        invariant(0 <= byte < len(node.content), "no such byte", path=path, byte=byte)
        invariant(0 <= bit < 8, "no such bit", bit=bit)
        node.flip_bit(byte, bit)

    # What every operation passes

    def check_power(self) -> None:
        if self._down is not None:
            raise type(self._down)(*self._down.args)

    def begin(self, operation: Operation, path: str) -> None:
        """Raise what stands in the way of an operation: no power, or a planned fault."""
        self.check_power()
        errno = self._take_fault(operation, path)
        if errno is not None:
            _raise(errno, path)

    def count(self) -> None:
        """Count a change that was made but is not durable; perhaps the power fails during it."""
        self.op_count += 1
        if self.crash_after is not None and self.op_count > self.crash_after:
            self._go_down(PowerCut(f"power cut in operation {self.op_count}"))
        if self.kill_after is not None and self.op_count > self.kill_after:
            self._go_down(ProcessEnded(f"killed in operation {self.op_count}"))

    def begin_sync(self, operation: Operation, path: str) -> None:
        """Like `begin` and `count`, for a change that is durable once this returns."""
        self.check_power()
        errno = self._take_fault(operation, path)
        if errno is not None:
            self._go_down(ProcessEnded(f"{operation} of {path} failed: {os.strerror(errno)}"))
        self.count()

    def _go_down(self, why: PowerCut | ProcessEnded) -> NoReturn:
        self._down = why
        raise why

    def _take_fault(self, operation: Operation, path: str) -> int | None:
        path = os.path.normpath(path)
        for fault in self._faults:
            if fault.operation != operation or not fnmatchcase(path, fault.path_glob):
                continue
            if fault.skipped:
                fault.skipped -= 1
                continue
            fault.times -= 1
            if fault.times == 0:
                self._faults.remove(fault)
            return fault.errno
        return None

    def write(self, node: FileNode, path: str, write: Write) -> None:
        """Write all, or as much as a planned fault or the room on the disk allows, and raise."""
        self.check_power()
        errno = self._take_fault("pwrite", path)
        allowed = len(write.data)
        if errno is not None:
            allowed = self._rng.randint(0, allowed)
        elif self.capacity_bytes is not None:
            allowed = self._room_for(node, write)
        if allowed:
            node.do(write.part(write.position, write.position + allowed))
        self.count()
        if allowed < len(write.data) or errno is not None:
            _raise(errno or errnos.ENOSPC, path)

    def _room_for(self, node: FileNode, write: Write) -> int:
        free = max(0, (self.capacity_bytes or 0) - self._root.total_bytes())
        end_max = max(len(node.content), write.position) + free
        return max(0, min(write.end, end_max) - write.position)

    # Files

    def open(self, path: str, *, create: bool = False) -> ModelFile:
        path = os.path.normpath(path)
        self.begin("open", path)
        parent, name = self._parent(path)
        node = parent.names.get(name)
        if isinstance(node, DirNode):
            _raise(errnos.EISDIR, path)
        if node is None:
            if not create:
                _raise(errnos.ENOENT, path)
            node = self._create(parent, name, path)
        file = ModelFile(self, node, path)
        self._handles.add(file)
        return file

    def _create(self, parent: DirNode, name: str, path: str) -> FileNode:
        self.begin("create", path)
        node = FileNode()
        parent.do(Link(name, node))
        self.count()
        return node

    def forget(self, file: ModelFile) -> None:
        """A handle that closes need no longer follow renames."""
        self._handles.discard(file)

    def exists(self, path: str) -> bool:
        self.check_power()
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        self.check_power()
        return isinstance(self._find(path), DirNode)

    def size(self, path: str) -> int:
        self.check_power()
        return len(self._file(path).content)

    def list_dir(self, path: str) -> list[str]:
        self.check_power()
        return sorted(self._dir(path).names)

    def list_sizes(self, path: str) -> dict[str, int]:
        self.check_power()
        nodes = sorted(self._dir(path).names.items())
        return {name: len(node.content) for name, node in nodes if isinstance(node, FileNode)}

    def make_dir(self, path: str) -> None:
        self.check_power()
        node: DirNode | FileNode = self._root
        for name in _parts(path):
            if not isinstance(node, DirNode):
                _raise(errnos.ENOTDIR, path)
            if name not in node.names:
                self.begin("make_dir", path)
                node.do(Link(name, DirNode()))
                self.count()
            node = node.names[name]
        if not isinstance(node, DirNode):
            _raise(errnos.EEXIST, path)

    def remove(self, path: str) -> None:
        path = os.path.normpath(path)
        self.begin("remove", path)
        self._file(path)
        parent, name = self._parent(path)
        parent.do(Unlink(name))
        self._close_all(self._handles.take(path))
        self.count()

    def remove_dir(self, path: str) -> None:
        self.begin("remove_dir", path)
        if self._dir(path).names:
            _raise(errnos.ENOTEMPTY, path)
        parent, name = self._parent(path)
        parent.do(Unlink(name))
        self.count()

    def rename(self, src: str, dst: str) -> None:
        src, dst = os.path.normpath(src), os.path.normpath(dst)
        check_same_dir(src, dst)
        self.begin("rename", src)
        parent, name = self._parent(src)
        node = parent.names.get(name)
        if node is None:
            _raise(errnos.ENOENT, src)
        if src == dst:
            return
        _check_replaceable(node, self._find(dst), dst)
        parent.do(Move(name, os.path.basename(dst)))
        self._close_all(self._handles.take(dst))
        self._handles.move(src, dst)
        self._handles.move_dir(src, dst)
        self.count()

    def _close_all(self, files: list[ModelFile]) -> None:
        for file in files:
            file.closed = True

    def sync_dir(self, path: str) -> None:
        self.check_power()
        node = self._dir(path)
        self.begin_sync("sync_dir", path)
        node.sync()

    def read_bytes(self, path: str, limit: int = READ_BYTES_MAX) -> bytes:
        self.begin("pread", path)
        content = self._file(path).content
        if len(content) > limit:
            raise OSError(errnos.EFBIG, f"more than the limit of {limit} bytes", path)
        return bytes(content)

    def write_atomic(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        replace_file(self, path, data, sync_data=durable, sync_name=durable)

    def lock(self, path: str) -> "ModelLock":
        path = os.path.normpath(path)
        self.open(path, create=True).close()
        if path in self._locks:
            raise LogDirLocked(
                f"{path} is locked by another process", hint="release it, or restart the disk"
            )
        self._locks.add(path)
        return ModelLock(self._locks, path)

    # Names

    def _find(self, path: str) -> DirNode | FileNode | None:
        node: DirNode | FileNode | None = self._root if path else None
        for name in _parts(path):
            node = node.names.get(name) if isinstance(node, DirNode) else None
        return node

    def _parent(self, path: str) -> tuple[DirNode, str]:
        parts = _parts(path)
        invariant(bool(parts), "the root is in no directory", path=path)
        return self._dir("/" + "/".join(parts[:-1])), parts[-1]

    def _dir(self, path: str) -> DirNode:
        if not path:
            _raise(errnos.ENOENT, path)  # no name is not the root
        node = self._root
        for name in _parts(path):
            child = node.names.get(name)
            if child is None:
                _raise(errnos.ENOENT, path)
            if not isinstance(child, DirNode):
                _raise(errnos.ENOTDIR, path)
            node = child
        return node

    def _file(self, path: str) -> FileNode:
        parent, name = self._parent(path)
        node = parent.names.get(name)
        if node is None:
            _raise(errnos.ENOENT, path)
        if not isinstance(node, FileNode):
            _raise(errnos.EISDIR, path)
        return node


class ModelLock:
    """A lock of a model disk; a restart frees it."""

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self.path = path
        self._held = True

    def release(self) -> None:
        if self._held:
            self._locks.discard(self.path)
            self._held = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _parts(path: str) -> list[str]:
    return [part for part in os.path.normpath(path).split("/") if part not in ("", ".")]


def _raise(errno: int, path: str) -> NoReturn:
    # OSError picks the subclass (FileNotFoundError, ...) by the number.
    raise OSError(errno, os.strerror(errno), path)


def _check_replaceable(
    node: DirNode | FileNode, target: DirNode | FileNode | None, path: str
) -> None:
    """What POSIX allows a rename to replace: a file by a file, an empty directory by another."""
    if isinstance(target, DirNode):
        if not isinstance(node, DirNode):
            _raise(errnos.EISDIR, path)
        if target.names:
            _raise(errnos.ENOTEMPTY, path)
    elif target is not None and isinstance(node, DirNode):
        _raise(errnos.ENOTDIR, path)
