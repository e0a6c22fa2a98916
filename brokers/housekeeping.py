"""What a broker does again and again: look at its ISRs, and keep its logs in order.

All that waits for the disk runs in an executor of its own, one job at a time, so that compaction
cannot hold up a flush that someone waits for. Looking at ISRs is quick and stays on the loop, a
slice in each turn; leaders whose replicas all have everything are not looked at.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from brokers.partition import Partition
from brokers.settings import ReplicaSettings
from brokers.turns import Turns
from kraftlog.errors import KraftError
from storage.cleaner import Cleaner
from storage.log import Log
from storage.log_dirs import LogDirs

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Housekeeping:
    """`partitions` gives all that are here, `unsettled` those that time alone may change."""

    def __init__(
        self,
        logs: LogDirs,
        *,
        settings: ReplicaSettings,
        partitions: Callable[[], Iterable[Partition]],
        unsettled: set[Partition],
        cleaner: Cleaner | None,
    ) -> None:
        self._logs = logs
        self._settings = settings
        self._partitions = partitions
        self._unsettled = unsettled
        self._cleaner = cleaner
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="housekeeping")

    async def run(self) -> None:
        """Until cancelled. A disk that fails ends it."""
        settings = self._settings
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_every(settings.isr_check_ms, self.check_isrs))
            tasks.create_task(_every(settings.checkpoint_ms, self.checkpoint))
            tasks.create_task(_every(settings.flush_check_ms, self.flush_closed_segments))
            tasks.create_task(_every(settings.retention_check_ms, self.apply_retention))
            if self._cleaner is not None:
                tasks.create_task(self._clean_on())

    async def check_isrs(self) -> None:
        turns = Turns()
        for partition in list(self._unsettled):
            partition.check()
            await turns.share()

    async def checkpoint(self) -> None:
        """Write the high watermarks and log starts."""
        await self._off_loop(self._logs.checkpoint)

    async def flush_closed_segments(self) -> None:
        """Below the recovery point nothing is scanned at the next start, and only what is flushed
        is compacted.
        """
        turns = Turns()
        for partition in list(self._partitions()):
            await turns.share()
            if partition.log is not None and _has_unflushed(partition.log):
                await self._off_loop(partial(_flush, partition.log))

    async def apply_retention(self) -> int:
        """Drop what has expired, and unlink what was dropped a while ago; returns the number of
        segments that went.
        """
        dropped = await self._off_loop(self._logs.apply_retention)
        if dropped:
            turns = Turns()
            for partition in list(self._partitions()):
                await turns.share()
                if partition.start_offset > partition.state.start_offset:
                    partition.note_start()
        await self._off_loop(self._logs.purge)
        return dropped

    async def clean_once(self) -> bool:
        """Compact the dirtiest log; whether one was due."""
        cleaner = self._cleaner
        if cleaner is None:
            return False
        cleaned = await self._off_loop(lambda: self._logs.clean_dirtiest(cleaner))
        return cleaned is not None

    async def _clean_on(self) -> None:
        while True:
            if not await self.clean_once():
                await asyncio.sleep(self._settings.cleaner_backoff_ms / 1000)

    async def _off_loop(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Waits for the job that runs."""
        self._executor.shutdown()


async def _every(interval_ms: int, work: Callable[[], Awaitable[object]]) -> None:
    while True:
        await asyncio.sleep(interval_ms / 1000)
        await work()


def _has_unflushed(log: Log) -> bool:
    """Whether a segment was closed since the last flush."""
    return bool(log.segments) and log.flushed_offset < log.segments[-1].base_offset


def _flush(log: Log) -> None:
    try:
        log.flush()
    except KraftError as error:
        logger.info("%s is not flushed: %s", log.directory, error)  # deleted meanwhile
