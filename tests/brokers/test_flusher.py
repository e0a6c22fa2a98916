"""One flush at a time; all who ask meanwhile share the next."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from brokers.flusher import Flusher
from kraftlog.errors import StorageError
from storage.files import OsFiles
from tests.brokers.aio import async_test
from tests.loops import until
from tests.storage.logs import batch, opened


class Disk:
    """An executor that a test opens and shuts."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], int], asyncio.Future[int]]] = []

    def run(self, work: Callable[[], int]) -> "asyncio.Future[int]":
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.append((work, future))
        return future

    def finish(self) -> None:
        work, future = self.waiting.pop(0)
        try:
            future.set_result(work())
        except StorageError as error:
            future.set_exception(error)


@async_test
async def test_requests_that_come_while_one_runs_are_one(tmp_path: Path) -> None:
    log, disk = opened(OsFiles(), str(tmp_path / "t-0")), Disk()
    done: list[BaseException | None] = []
    flusher = Flusher(log, disk.run, done.append)
    for value in (b"a", b"b", b"c"):
        log.append(batch(value), leader_epoch=0)
        flusher.request()
    assert len(disk.waiting) == 1
    disk.finish()
    await until(lambda: len(disk.waiting) == 1)
    disk.finish()
    await until(lambda: len(done) == 2)
    assert done == [None, None]
    assert log.flushed_offset == 3
    assert not disk.waiting
    log.close()


@async_test
async def test_a_failure_is_told_and_ends_it(tmp_path: Path) -> None:
    log, disk = opened(OsFiles(), str(tmp_path / "t-0")), Disk()
    done: list[BaseException | None] = []
    flusher = Flusher(log, disk.run, done.append)
    log.append(batch(b"a"), leader_epoch=0)
    flusher.request()
    flusher.request()
    log.discard()
    disk.finish()
    await until(lambda: bool(done))
    assert isinstance(done[0], StorageError)
    assert not disk.waiting


@async_test
async def test_a_flush_that_was_called_off_says_nothing(tmp_path: Path) -> None:
    log, disk = opened(OsFiles(), str(tmp_path / "t-0")), Disk()
    done: list[BaseException | None] = []
    Flusher(log, disk.run, done.append).request()
    disk.waiting[0][1].cancel()
    await asyncio.sleep(0)
    assert not done
    log.close()
