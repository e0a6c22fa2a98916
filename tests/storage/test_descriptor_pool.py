"""At most so many descriptors, and none is closed in the middle of an operation."""

import errno
import os
import threading
from pathlib import Path

import pytest

from storage.descriptor_pool import Descriptor, DescriptorPool


def descriptors(pool: DescriptorPool, directory: Path, count: int) -> list[Descriptor]:
    paths = [directory / f"f{number}" for number in range(count)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return [Descriptor(pool, str(path)) for path in paths]


def use(file: Descriptor) -> bytes:
    fd = file.pin()
    try:
        return os.pread(fd, 100, 0)
    finally:
        file.unpin()


def is_open(file: Descriptor) -> bool:
    return file.fd >= 0


def test_a_descriptor_is_opened_on_use_and_stays_open(tmp_path: Path) -> None:
    pool = DescriptorPool(2)
    (file,) = descriptors(pool, tmp_path, 1)
    assert not is_open(file)
    assert use(file) == b"f0"
    first = file.fd
    use(file)
    assert file.fd == first


def test_the_least_recently_used_is_closed(tmp_path: Path) -> None:
    pool = DescriptorPool(2)
    a, b, c = descriptors(pool, tmp_path, 3)
    for file in (a, b, a, c):
        use(file)
    assert [is_open(file) for file in (a, b, c)] == [True, False, True]
    assert use(b) == b"f1"
    assert [is_open(file) for file in (a, b, c)] == [False, True, True]


def test_one_in_use_is_passed_over(tmp_path: Path) -> None:
    pool = DescriptorPool(2)
    a, b, c = descriptors(pool, tmp_path, 3)
    fd = a.pin()
    for file in (b, c, b, c):
        use(file)
    assert a.fd == fd
    assert os.pread(fd, 100, 0) == b"f0"
    assert len(pool.open) == 2
    a.unpin()


def test_when_all_are_in_use_it_is_an_error_and_not_a_deadlock(tmp_path: Path) -> None:
    pool = DescriptorPool(1, wait_s=0.0)
    a, b = descriptors(pool, tmp_path, 2)
    a.pin()
    with pytest.raises(OSError, match="all 1 descriptors are in use") as caught:
        b.pin()
    assert caught.value.errno == errno.EMFILE
    a.unpin()
    assert use(b) == b"f1"


@pytest.mark.parametrize("end", ["unpin", "close"])
def test_whoever_waits_gets_the_next_one_that_is_free(tmp_path: Path, end: str) -> None:
    pool = DescriptorPool(1, wait_s=60.0)
    a, b = descriptors(pool, tmp_path, 2)
    a.pin()
    found: list[bytes] = []
    waiter = threading.Thread(target=lambda: found.append(use(b)))
    waiter.start()
    while not pool.waiting:
        os.sched_yield()
    if end == "close":
        pool.close(a)
    a.unpin()
    waiter.join()
    assert found == [b"f1"]


def test_close_during_an_operation_takes_effect_after_it(tmp_path: Path) -> None:
    pool = DescriptorPool(2)
    (file,) = descriptors(pool, tmp_path, 1)
    fd = file.pin()
    pool.close(file)
    pool.close(file)
    assert os.pread(fd, 100, 0) == b"f0"
    with pytest.raises(OSError, match="file is closed"):
        file.pin()
    file.unpin()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    assert not pool.open


def test_a_file_that_cannot_be_opened_leaves_no_trace(tmp_path: Path) -> None:
    pool = DescriptorPool(2)
    file = Descriptor(pool, str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        file.pin()
    assert (file.pins, len(pool.open)) == (0, 0)


def test_a_file_opened_by_two_threads_at_once_has_one_descriptor(tmp_path: Path) -> None:
    pool = DescriptorPool(2)
    (file,) = descriptors(pool, tmp_path, 1)
    fds: list[int] = []
    with pool.names:  # both come as far as this, and find the file not open
        threads = [threading.Thread(target=lambda: fds.append(file.pin())) for _ in range(2)]
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()
    assert fds == [file.fd, file.fd]
    assert (file.pins, len(pool.open)) == (2, 1)
