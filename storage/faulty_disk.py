"""A disk that fails when a drill says so, by files in a directory of `kraftlog.drill_hooks`.

    disk/fail-sync   while it is there, every sync fails with EIO
    disk/full        while it is there, every write fails with ENOSPC
    disk/slow-sync   while it is there, every sync takes as many milliseconds longer as it says

It stands before the operating system's files, so a drill needs neither root nor strace. What it
cannot do is to write half of a block: a small file system that is really full does that.
"""

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path

from kraftlog.drill_hooks import DISK, FAIL_SYNC, FULL, SLOW_SYNC
from kraftlog.types import Buffer
from storage.descriptor_pool import DescriptorPool
from storage.files import OsFile, OsFiles, end_process


class Faults:
    """What is wrong with the disk at this moment."""

    def __init__(self, hooks: str) -> None:
        self._directory = Path(hooks, DISK)

    def before_write(self, path: str) -> None:
        if (self._directory / FULL).exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def before_sync(self, operation: str, path: str) -> None:
        if (self._directory / FAIL_SYNC).exists():
            end_process(operation, path, OSError(errno.EIO, os.strerror(errno.EIO)))
        try:
            slower_ms = int((self._directory / SLOW_SYNC).read_text())
        except (FileNotFoundError, ValueError):  # it may be on its way in or out
            return
        time.sleep(slower_ms / 1000)


class FaultyFile(OsFile):
    __slots__ = ("_faults",)

    def __init__(
        self, files: "FaultyFiles", pool: DescriptorPool, path: str, faults: Faults
    ) -> None:
        super().__init__(files, pool, path)
        self._faults = faults

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        self._faults.before_write(self.path)
        return super().pwrite(buffers, position)

    def sync(self) -> None:
        self._faults.before_sync("fdatasync", self.path)
        super().sync()


class FaultyFiles(OsFiles):
    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def make_file(self, path: str) -> FaultyFile:
        return FaultyFile(self, self.pool, path, self._faults)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        if create and not self.exists(path):
            self._faults.before_write(path)
        return super().open(path, create=create)

    def make_dir(self, path: str) -> None:
        self._faults.before_write(path)
        super().make_dir(path)

    def sync_dir(self, path: str) -> None:
        self._faults.before_sync("fsync", path)
        super().sync_dir(path)
