"""A bounded pool of file descriptors.

A log of many partitions has far more files than a process may have descriptors. So a descriptor is
opened on use, and the least recently used one is closed when a new one would exceed the limit; one
that is in the middle of an operation is never closed.

Closing a descriptor whose bytes are still dirty loses nothing: a sync through a later descriptor
writes them, and Linux (4.16 and later) reports to it a writeback error that nobody has seen yet.
"""

import errno
import os
import threading
from collections import OrderedDict

DESCRIPTOR_WAIT_S = 5.0


class Descriptor:
    """A descriptor that comes and goes, but for while `pins` operations are in flight."""

    __slots__ = ("closed", "doomed_fd", "fd", "path", "pins", "pool")

    def __init__(self, pool: "DescriptorPool", path: str) -> None:
        self.pool = pool
        self.path = path
        self.fd = -1
        self.doomed_fd = -1  # closed while pinned: the last operation in flight closes it
        self.pins = 0
        self.closed = False

    def pin(self) -> int:
        pool = self.pool
        with pool.lock:
            fd = self.fd
            if fd >= 0:
                self.pins += 1
                pool.open.move_to_end(self)
                return fd
        return pool.open_and_pin(self)

    def unpin(self) -> None:
        pool = self.pool
        with pool.lock:
            self.pins -= 1
            if self.pins == 0 and (self.closed or pool.waiting):
                pool.released(self)


class DescriptorPool:
    """Holds at most `open_max` descriptors.

    `lock` guards the fields of every descriptor and is held for a few instructions only. `names`
    is held while a name is opened, renamed or removed, so that a path cannot change under an open;
    it is taken before `lock`, never inside it. Operations on open descriptors never wait for it.
    """

    def __init__(self, open_max: int, wait_s: float = DESCRIPTOR_WAIT_S) -> None:
        self.open_max = open_max
        self.wait_s = wait_s
        self.names = threading.RLock()
        self.lock = threading.Lock()
        self.freed = threading.Condition(self.lock)
        self.waiting = 0
        self.open: OrderedDict[Descriptor, None] = OrderedDict()  # least recently used first

    def open_and_pin(self, file: Descriptor, flags: int = 0) -> int:
        with self.names:
            with self.lock:
                if file.closed:
                    raise OSError(errno.EBADF, "file is closed", file.path)
                if file.fd >= 0:  # another thread was faster
                    file.pins += 1
                    return file.fd
                self._make_room(file.path)
            fd = os.open(file.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o666)
            with self.lock:
                file.fd = fd
                file.pins += 1
                self.open[file] = None
            return fd

    def _make_room(self, path: str) -> None:
        """Close descriptors until one more fits. Called under both locks."""
        while len(self.open) >= self.open_max:
            victim = next((file for file in self.open if file.pins == 0), None)
            if victim is None:
                self._wait_for_unpin(path)
                continue
            del self.open[victim]
            fd, victim.fd = victim.fd, -1
            os.close(fd)

    def _wait_for_unpin(self, path: str) -> None:
        # Operations end soon. A wait that lasts means that callers sit on pinned descriptors,
        # perhaps the waiting one itself, and an error serves better than a deadlock.
        self.waiting += 1
        try:
            if not self.freed.wait(self.wait_s):
                raise OSError(errno.EMFILE, f"all {self.open_max} descriptors are in use", path)
        finally:
            self.waiting -= 1

    def close(self, file: Descriptor) -> None:
        with self.lock:
            if file.closed:
                return
            file.closed = True
            file.doomed_fd, file.fd = file.fd, -1
            if file.pins == 0:
                self.released(file)

    def released(self, file: Descriptor) -> None:
        """Nothing is in flight any more; what was closed meanwhile can go. Called under `lock`."""
        if file.doomed_fd >= 0:
            del self.open[file]
            fd, file.doomed_fd = file.doomed_fd, -1
            os.close(fd)
        self.freed.notify()
