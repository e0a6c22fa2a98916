"""What a power cut would leave of a server's files, kept as a copy beside them, for drills.

Bytes enter the copy when a sync of their file has returned, names when a sync of their directory
has: what was created, written, renamed or removed without that is not in it. To cut the power of a
server is then to kill it and to put the copy in the place of its files.

    files/7       the bytes of one file as they were last synced
    dirs/3/       one directory: hard links to files, and symbolic links to directories
    root-0        the first directory of the server, as a symbolic link

The unkindest loss that storage/files.py allows: of what was not synced nothing is left. What was
there when the server started counts as durable.
"""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kraftlog.drill_hooks import DISK, DURABLE
from kraftlog.types import Buffer
from storage.descriptor_pool import DescriptorPool
from storage.faulty_disk import Faults, FaultyFiles
from storage.files import Files, OsFile, OsFiles

_NEW_LINK = ".new-link"


@dataclass(slots=True)
class _Inode:
    number: int
    """Its name in the copy. The system's own number is used again once a file is gone."""
    length: int = 0
    dirty: tuple[int, int] | None = None
    """From the first byte to the last that changed since the last sync."""
    syncing: threading.Lock = field(default_factory=threading.Lock)

    def touch(self, begin: int, end: int) -> None:
        first, last = self.dirty or (begin, end)
        self.dirty = min(first, begin), max(last, end)


class DurableCopy:
    """Any thread may use it."""

    def __init__(self, target: str, roots: Sequence[str]) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._inodes: dict[int, _Inode] = {}
        self._entries: dict[int, dict[str, int]] = {}
        """Of each directory, by its number: the names that are durable."""
        self._last_number = 0
        for name in os.listdir(target):
            path = os.path.join(target, name)
            os.unlink(path) if os.path.islink(path) else shutil.rmtree(path)
        os.mkdir(self._path("files"))
        os.mkdir(self._path("dirs"))
        for place, root in enumerate(roots):
            os.makedirs(root, exist_ok=True)
            os.symlink(f"dirs/{self._take_over(root)}", self._path(f"root-{place}"))

    def _path(self, *parts: str) -> str:
        return os.path.join(self._target, *parts)

    def _take_over(self, directory: str) -> int:
        """Everything below a directory, as durable; its number."""
        for entry in os.scandir(directory):
            if entry.is_dir(follow_symlinks=False):
                self._take_over(entry.path)
                continue
            with open(entry.path, "rb") as file, self.syncing(file.fileno()):
                pass
        number = self._find(os.stat(directory).st_ino).number
        self._commit(number, self._listing(directory))
        return number

    def _find(self, ino: int, *, size: int | None = None) -> _Inode:
        """`size` is None for a directory. What was never seen has nothing that is durable."""
        with self._lock:
            known = self._inodes.get(ino)
            if known is None:
                self._last_number += 1
                known = self._inodes[ino] = _Inode(self._last_number)
                if size is None:
                    self._entries[known.number] = {}
                    os.mkdir(self._path("dirs", str(known.number)))
                else:
                    known.length, known.dirty = size, (0, size)
                    open(self._path("files", str(known.number)), "xb").close()
            return known

    def _find_file(self, fd: int) -> _Inode:
        now = os.fstat(fd)
        return self._find(now.st_ino, size=now.st_size)

    @contextlib.contextmanager
    def forgetting(self, path: str) -> Iterator[None]:
        """Around the end of a file or directory; its name stays in the copy for now."""
        with self._lock:  # nobody may take what comes next for it
            ino = os.stat(path).st_ino if os.path.exists(path) else None
            yield
            self._inodes.pop(ino or 0, None)

    # -- bytes

    def wrote(self, fd: int, position: int, count: int) -> None:
        inode = self._find_file(fd)
        with self._lock:
            inode.touch(position, position + count)
            inode.length = max(inode.length, position + count)

    def truncated(self, fd: int, length: int) -> None:
        inode = self._find_file(fd)
        with self._lock:
            inode.touch(min(length, inode.length), max(length, inode.length))
            inode.length = length

    @contextlib.contextmanager
    def syncing(self, fd: int) -> Iterator[None]:
        """Around a sync: what was written before it began is durable once it has returned."""
        inode = self._find_file(fd)
        with inode.syncing:  # whoever finds nothing to sync waits for the one who does it
            with self._lock:
                length, (begin, end) = inode.length, inode.dirty or (0, 0)
                inode.dirty = None
            yield
            with open(self._path("files", str(inode.number)), "r+b", buffering=0) as copy:
                copy.truncate(length)
                data = os.pread(fd, max(0, min(end, length) - begin), begin)
                os.pwrite(copy.fileno(), data, begin)

    # -- names

    def sync_dir(self, files: OsFiles, path: str) -> None:
        inode = self._find(os.stat(path).st_ino)
        with inode.syncing:
            listing = self._listing(path)
            OsFiles.sync_dir(files, path)
            self._commit(inode.number, listing)

    def _listing(self, path: str) -> dict[str, tuple[int, bool]]:
        """The number of each name, and whether it is a directory."""
        found: dict[str, tuple[int, bool]] = {}
        for entry in os.scandir(path):
            with contextlib.suppress(FileNotFoundError):
                is_dir = entry.is_dir(follow_symlinks=False)
                size = None if is_dir else entry.stat(follow_symlinks=False).st_size
                found[entry.name] = self._find(entry.inode(), size=size).number, is_dir
        return found

    def _commit(self, number: int, listing: dict[str, tuple[int, bool]]) -> None:
        known, place = self._entries[number], self._path("dirs", str(number))
        new = os.path.join(place, _NEW_LINK)
        for name, (target, is_dir) in listing.items():
            if known.get(name) == target:
                continue
            if is_dir:
                os.symlink(f"../{target}", new)
            else:
                os.link(self._path("files", str(target)), new)
            os.replace(new, os.path.join(place, name))
            known[name] = target
        for name in known.keys() - listing.keys():
            os.unlink(os.path.join(place, name))
            del known[name]


class CopiedFile(OsFile):
    __slots__ = ("_copy",)

    def __init__(
        self, files: "CopiedFiles", pool: DescriptorPool, path: str, copy: DurableCopy
    ) -> None:
        super().__init__(files, pool, path)
        self._copy = copy

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        total = super().pwrite(buffers, position)
        with self.pinned_fd() as fd:
            self._copy.wrote(fd, position, total)
        return total

    def truncate(self, length: int) -> None:
        super().truncate(length)
        with self.pinned_fd() as fd:
            self._copy.truncated(fd, length)

    def sync(self) -> None:
        with self.pinned_fd() as fd, self._copy.syncing(fd):
            super().sync()


class CopiedFiles(OsFiles):
    """The operating system's files, with a copy of what is durable of them."""

    def __init__(self, copy: DurableCopy) -> None:
        super().__init__()
        self._copy = copy

    def make_file(self, path: str) -> CopiedFile:
        return CopiedFile(self, self.pool, path, self._copy)

    def remove(self, path: str) -> None:
        with self.pool.names, self._copy.forgetting(path):
            super().remove(path)

    def remove_dir(self, path: str) -> None:
        with self.pool.names, self._copy.forgetting(path):
            super().remove_dir(path)

    def rename(self, src: str, dst: str) -> None:
        if os.path.normpath(src) == os.path.normpath(dst):
            super().rename(src, dst)
            return
        with self.pool.names, self._copy.forgetting(dst):
            super().rename(src, dst)

    def sync_dir(self, path: str) -> None:
        self._copy.sync_dir(self, path)


def server_files(hooks: str | None, *roots: str) -> Files:
    """The files of a server with these directories. `hooks` is that of `kraftlog.drill_hooks`."""
    if hooks is None:
        return OsFiles()
    if os.path.isdir(os.path.join(hooks, DISK)):
        return FaultyFiles(Faults(hooks))
    durable = os.path.join(hooks, DURABLE)
    if not os.path.isdir(durable):
        return OsFiles()
    return CopiedFiles(DurableCopy(durable, sorted(set(roots))))
