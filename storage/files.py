"""The only place in the log engine that opens, writes, syncs and renames files.

Everything above works on the protocols `File` and `Files`. There are two of each: the operating
system's, here, and a model that loses what was not synced (`storage/model_disk.py`).

What is durable when:

- bytes of a file after `File.sync`;
- a name (a creation, a rename, a removal) after `Files.sync_dir` of the directory that holds it;
- nothing else, and nothing earlier. A file whose bytes were synced can still lose its name.

A failed sync ends the process. The kernel may have dropped the dirty pages and marked them clean,
so a second attempt would succeed without having written anything, and what we then acknowledged
would be gone.

A `File` of `OsFiles` is a name with a place in a descriptor pool (`storage/descriptor_pool.py`).
"""

import contextlib
import errno
import fcntl
import os
import resource
import stat
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NoReturn, Protocol, Self

from kraftlog._check import invariant
from kraftlog.errors import LogDirLocked
from kraftlog.types import Buffer
from storage.descriptor_pool import Descriptor, DescriptorPool
from storage.handle_table import HandleTable

OPEN_FILES_MAX = 1024
READ_BYTES_MAX = 64 * 1024 * 1024
IO_VECTOR_MAX = os.sysconf("SC_IOV_MAX")
TMP_SUFFIX = ".tmp"
SYNC_FAILED_EXIT_CODE = 74  # EX_IOERR of sysexits.h

_LOCK_HOLDER_BYTES_MAX = 32

_NO_FILE = -1


class File(Protocol):
    """One open file. Positions are absolute: there is no cursor that two users could fight over."""

    @property
    def path(self) -> str:
        """Where it is now: a rename changes it."""
        ...

    def size(self) -> int: ...

    def pread(self, length: int, position: int) -> bytes:
        """`length` bytes from `position`; fewer only where the file ends."""
        ...

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        """Write all buffers one after the other and return their total length.

        A memoryview must be one of single bytes. After an OSError (a full disk) some of the bytes
        may be there.
        """
        ...

    def truncate(self, length: int) -> None:
        """Cut to `length`, or extend with zeros."""
        ...

    def sync(self) -> None:
        """Make the bytes durable, not the name. A failure ends the process."""
        ...

    def rename(self, path: str) -> None:
        """Rename within the directory. This handle stays valid, those of a replaced file close."""
        ...

    def pinned_fd(self) -> contextlib.AbstractContextManager[int]:
        """A descriptor that the pool leaves open until the end of the `with` block."""
        ...

    def close(self) -> None:
        """Give it up; a second close does nothing, any other use afterwards is OSError (EBADF)."""
        ...


class Lock(Protocol):
    """A lock that is held until `release`, or until the process ends."""

    def release(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Files(Protocol):
    """The names of files and directories. An OSError goes through unless said otherwise."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open to read and write. Missing is FileNotFoundError, unless `create`."""
        ...

    def exists(self, path: str) -> bool: ...
    def is_dir(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...

    def list_dir(self, path: str) -> list[str]:
        """All names in a directory, sorted."""
        ...

    def list_sizes(self, path: str) -> dict[str, int]:
        """The regular files of a directory with their sizes, sorted by name."""
        ...

    def make_dir(self, path: str) -> None:
        """Create a directory and the missing ones above it; one that is there already is fine."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; its open handles close."""
        ...

    def remove_dir(self, path: str) -> None:
        """Remove an empty directory."""
        ...

    def rename(self, src: str, dst: str) -> None:
        """Rename a file or directory within its directory; elsewhere is OSError (EXDEV).

        Open handles follow; those of a file that is replaced close.
        """
        ...

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable. A failed sync ends the process."""
        ...

    def read_bytes(self, path: str, limit: int = READ_BYTES_MAX) -> bytes:
        """The whole file, or OSError (EFBIG) when it is larger than `limit`."""
        ...

    def write_atomic(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """Replace a file as a whole: readers, and a restart, find the old content or the new.

        With `durable=False` nothing is synced: a power cut may leave the new name with any content.
        One writer per path at a time.
        """
        ...

    def lock(self, path: str) -> Lock:
        """Take the lock file `path`, created if missing, or raise LogDirLocked."""
        ...


def way_out(error: OSError) -> str:
    """What an operator can do about it."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "free space on that disk"
        case errno.EMFILE | errno.ENFILE:
            return "allow more open files (ulimit -n)"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "let this user write there"
        case _:
            return "look at that disk, and at what the kernel says of it (dmesg)"


def replace_file(
    files: Files, path: str, data: Buffer, *, sync_data: bool, sync_name: bool
) -> None:
    """`write_atomic` in terms of the other operations: the order is the whole point of it.

    With `sync_data` alone a power cut leaves the old file or the new one, whole, and which one is
    open until the directory is synced.
    """
    file = files.open(path + TMP_SUFFIX, create=True)
    try:
        file.truncate(0)  # a crash may have left one behind
        file.pwrite([data], 0)
        if sync_data:
            file.sync()
        file.rename(path)
    finally:
        file.close()
    if sync_name:
        files.sync_dir(os.path.dirname(path) or ".")


def check_same_dir(src: str, dst: str) -> None:
    """One directory sync must be able to make a rename durable, hence one directory."""
    if os.path.dirname(src) != os.path.dirname(dst):
        raise OSError(errno.EXDEV, "rename crosses directories", src, None, dst)


class OsFile(Descriptor):
    """A file of the operating system, made by `OsFiles.open`."""

    __slots__ = ("_files",)

    def __init__(self, files: "OsFiles", pool: DescriptorPool, path: str) -> None:
        super().__init__(pool, path)
        self._files = files

    def size(self) -> int:
        fd = self.pin()
        try:
            return os.fstat(fd).st_size
        finally:
            self.unpin()

    def pread(self, length: int, position: int) -> bytes:
        fd = self.pin()
        try:
            data = os.pread(fd, length, position)
            return data if len(data) == length else _read_rest(fd, length, position, data)
        except OSError as error:
            error.filename = self.path
            raise
        finally:
            self.unpin()

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        total = sum(map(len, buffers))
        fd = self.pin()
        try:
            _check_position(position)
            written = os.pwritev(fd, buffers[:IO_VECTOR_MAX], position)
            if written != total:
                _write_rest(fd, buffers, position, written)
        except OSError as error:
            error.filename = self.path
            raise
        finally:
            self.unpin()
        return total

    def truncate(self, length: int) -> None:
        fd = self.pin()
        try:
            os.ftruncate(fd, length)
        except OSError as error:
            error.filename = self.path
            raise
        finally:
            self.unpin()

    def sync(self) -> None:
        fd = self.pin()
        try:
            os.fdatasync(fd)
        except OSError as error:
            end_process("fdatasync", self.path, error)
        finally:
            self.unpin()

    def rename(self, path: str) -> None:
        with self.pool.names:
            if self.closed:
                raise OSError(errno.EBADF, "file is closed", self.path)
            self._files.rename(self.path, path)

    @contextlib.contextmanager
    def pinned_fd(self) -> Iterator[int]:
        fd = self.pin()
        try:
            yield fd
        finally:
            self.unpin()

    def close(self) -> None:
        self._files.forget(self)
        self.pool.close(self)

    def __repr__(self) -> str:
        return f"OsFile({self.path!r})"


def _file_size(entry: os.DirEntry[str]) -> int:
    """A file may go while we look: retention and compaction run beside."""
    with contextlib.suppress(FileNotFoundError):
        if entry.is_file():
            return entry.stat().st_size
    return _NO_FILE


def _check_position(position: int) -> None:
    """The kernel takes -1 for the descriptor's cursor, and would write there without a word."""
    if position < 0:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _read_rest(fd: int, length: int, position: int, data: bytes) -> bytes:
    """A short read is the end of the file only if the next one gives nothing."""
    while len(data) < length:
        more = os.pread(fd, length - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


def _write_rest(fd: int, buffers: Sequence[Buffer], position: int, written: int) -> None:
    """Go on after a short write, or after the first IO_VECTOR_MAX buffers."""
    rest = [memoryview(buffer) for buffer in buffers]
    position += written
    first = 0
    while True:
        while first < len(rest) and written >= len(rest[first]):
            written -= len(rest[first])
            first += 1
        if first == len(rest):
            return
        rest[first] = rest[first][written:]
        written = os.pwritev(fd, rest[first : first + IO_VECTOR_MAX], position)
        if written == 0:
            raise OSError(errno.EIO, "the file takes no more bytes")
        position += written


def end_process(operation: str, path: str, error: OSError) -> NoReturn:
    """Leave at once, without clean-up: no code of ours may run that could still acknowledge."""
    name = errno.errorcode.get(error.errno or 0, "?")
    message = (
        f"kraftlog: {operation} of {path} failed: {name} (errno {error.errno}), {error.strerror}. "
        "Its last writes may be lost, so this process ends before anything is acknowledged.\n"
    )
    with contextlib.suppress(OSError):
        os.write(2, message.encode(errors="backslashreplace"))
    os._exit(SYNC_FAILED_EXIT_CODE)


class OsFiles(Files):
    """The operating system's files; at most `max_open` descriptors for all that `open` gives."""

    def __init__(self, max_open: int = OPEN_FILES_MAX) -> None:
        invariant(max_open >= 1, "a pool needs room for one descriptor", max_open=max_open)
        # Where the process may have few descriptors, half are left for sockets and the rest.
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.max_open = max_open if allowed < 0 else max(1, min(max_open, allowed // 2))
        self.pool = DescriptorPool(self.max_open)
        self._handles: HandleTable[OsFile] = HandleTable()

    @property
    def open_descriptors(self) -> int:
        """How many descriptors the pool holds at this moment."""
        return len(self.pool.open)

    def make_file(self, path: str) -> OsFile:
        """A handle that is not open yet."""
        return OsFile(self, self.pool, path)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        path = os.path.normpath(path)
        file = self.make_file(path)
        with self.pool.names:
            if create:
                self.pool.open_and_pin(file, os.O_CREAT)
                file.unpin()
            elif stat.S_ISDIR(os.stat(path).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            self._handles.add(file)
        return file

    def forget(self, file: OsFile) -> None:
        """A handle that closes need no longer follow renames."""
        with self.pool.names:
            self._handles.discard(file)

    def exists(self, path: str) -> bool:
        """What cannot be looked at is not taken for missing: PermissionError, or that of a disk."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return False
        return True

    def is_dir(self, path: str) -> bool:
        return self.exists(path) and os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def list_sizes(self, path: str) -> dict[str, int]:
        with os.scandir(path) as entries:
            found = sorted((entry.name, _file_size(entry)) for entry in entries)
        return {name: size for name, size in found if size != _NO_FILE}

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        path = os.path.normpath(path)
        with self.pool.names:
            os.unlink(path)
            self._close_all(self._handles.take(path))

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    def rename(self, src: str, dst: str) -> None:
        src, dst = os.path.normpath(src), os.path.normpath(dst)
        check_same_dir(src, dst)
        with self.pool.names:
            os.rename(src, dst)
            if src == dst:
                return
            self._close_all(self._handles.take(dst))
            self._handles.move(src, dst)
            if os.path.isdir(dst):
                self._handles.move_dir(src, dst)

    def _close_all(self, files: list[OsFile]) -> None:
        for file in files:
            self.pool.close(file)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            end_process("fsync", path, error)
        finally:
            os.close(fd)

    def read_bytes(self, path: str, limit: int = READ_BYTES_MAX) -> bytes:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            if size > limit:
                raise OSError(errno.EFBIG, f"{size} bytes, more than the limit of {limit}", path)
            return os.pread(fd, size, 0)
        finally:
            os.close(fd)

    def write_atomic(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        replace_file(self, path, data, sync_data=durable, sync_name=durable)

    def lock(self, path: str) -> "OsLock":
        return OsLock(path)


class OsLock:
    """`flock` on a file that holds the owner's process id. The kernel frees it with the process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(self._fd)
            os.close(self._fd)
            raise LogDirLocked(
                f"{path} is locked by {holder}",
                hint="stop that process, or give this one a directory of its own",
            ) from None
        except OSError:
            os.close(self._fd)
            raise
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Free the lock; the file stays, as removing it would race with the next owner."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _read_holder(fd: int) -> str:
    text = os.pread(fd, _LOCK_HOLDER_BYTES_MAX, 0).decode("ascii", "replace").strip()
    return f"process {text}" if text.isdecimal() else "another process"
