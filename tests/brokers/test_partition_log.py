"""A log as an event loop may use it: what waits for the disk happens elsewhere."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from brokers.partition_log import PartitionLog
from kraftlog._check import InvariantViolation
from kraftlog.errors import KraftError, StorageError
from kraftlog.types import EpochEnd, TopicPartition, Uuid
from storage.files import OsFiles
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_dirs import LogDirs
from tests.brokers.aio import async_test
from tests.brokers.brokers import CLUSTER_ID
from tests.loops import until
from tests.storage.logs import batch

T = TypeVar("T")
NAME = TopicPartition("t", 0)
TOPIC_ID = Uuid(b"t" * 16)


class Made:
    """A PartitionLog over a new directory, and the failures that it told of."""

    def __init__(self, path: Path) -> None:
        self.logs = LogDirs.open(
            OsFiles(),
            [str(path)],
            cluster_id=CLUSTER_ID,
            node_id=1,
            config_of=lambda _: LogConfig(),
        )
        self.jobs = 0
        self.failures: list[BaseException] = []
        self.data = PartitionLog(
            NAME,
            TOPIC_ID,
            None,
            logs=self.logs,
            in_executor=self.run,
            on_failure=self.failures.append,
        )

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        self.jobs += 1
        return asyncio.get_running_loop().run_in_executor(None, work)


@async_test
async def test_there_is_no_log_until_one_is_asked_for(tmp_path: Path) -> None:
    made = Made(tmp_path)
    data = made.data
    assert (data.start_offset, data.flushed_offset, data.end_offset, data.last_epoch) == (
        0,
        0,
        0,
        None,
    )
    assert data.epoch_end(2, 5) == EpochEnd(2, 0)
    assert data.epoch_end(6, 5) is None
    data.flush(lambda _: None)
    with pytest.raises(InvariantViolation):
        data.opened()
    assert made.jobs == 0
    made.logs.close()


@async_test
async def test_all_who_ask_for_it_get_it_in_their_order(tmp_path: Path) -> None:
    made, seen = Made(tmp_path), list[int]()
    made.data.configure(LogConfig(max_message_bytes=77))

    def note(number: int, error: KraftError | None) -> None:
        assert error is None
        seen.append(number)

    for number in range(3):
        made.data.when_open(partial(note, number))
    assert not seen
    log = await made.data.open()
    assert seen == [0, 1, 2]
    assert made.jobs == 1
    assert log.config.max_message_bytes == 77
    made.data.when_open(lambda _: seen.append(3))
    assert seen == [0, 1, 2, 3]
    log.append(batch(b"a"), leader_epoch=4)
    assert made.data.last_epoch == 4
    made.data.configure(LogConfig(max_message_bytes=88))
    assert log.config.max_message_bytes == 88
    made.logs.close()


@async_test
async def test_a_disk_that_refuses_is_told_and_may_be_tried_again(tmp_path: Path) -> None:
    made = Made(tmp_path)
    in_the_way = tmp_path / "t-0"
    make_directory(in_the_way)
    with pytest.raises(StorageError):
        await made.data.open()
    in_the_way.rmdir()
    assert (await made.data.open()).topic_id == TOPIC_ID
    made.logs.close()


def make_directory(path: Path) -> None:
    path.mkdir()


@async_test
async def test_a_bug_is_no_error_of_the_disk(tmp_path: Path) -> None:
    made, told = Made(tmp_path), list[KraftError | None]()

    def break_down(_partition: TopicPartition, _topic_id: Uuid) -> Log:
        raise InvariantViolation("as a test wants it")

    made.logs.create = break_down  # type: ignore[method-assign,assignment]
    made.data.when_open(told.append)
    await until(lambda: bool(made.failures))
    assert isinstance(made.failures[0], InvariantViolation)
    assert not told
    made.logs.close()


@async_test
async def test_who_waits_until_it_is_idle_waits_for_a_cut(tmp_path: Path) -> None:
    made = Made(tmp_path)
    log = await made.data.open()
    for value in (b"a", b"b", b"c"):
        log.append(batch(value), leader_epoch=0)
    order: list[str] = []

    async def cut() -> None:
        await made.data.truncate_to(1)
        order.append("cut")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cut())
        await asyncio.sleep(0)
        await made.data.idle()
        order.append("idle")
    assert sorted(order) == ["cut", "idle"]
    assert made.data.end_offset == 1
    await made.data.restart_at(9)
    assert (made.data.start_offset, made.data.end_offset) == (9, 9)
    made.logs.close()


@async_test
async def test_a_flush_moves_what_is_flushed(tmp_path: Path) -> None:
    made, done = Made(tmp_path), list[BaseException | None]()
    log = await made.data.open()
    log.append(batch(b"a"), leader_epoch=0)
    made.data.flush(done.append)
    await until(lambda: done == [None])
    assert made.data.flushed_offset == 1
    made.logs.close()
