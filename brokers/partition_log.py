"""The log of one replica, as an event loop may use it.

Appends and reads are direct calls into the page cache. What waits for the disk runs in an executor:
opening, flushing, cutting. Before its first record a partition has no log at all, so that an empty
one costs neither a file nor memory; `when_open` makes it.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from brokers.flusher import Flusher
from kraftlog._check import invariant
from kraftlog.errors import KraftError
from kraftlog.types import EpochEnd, TopicPartition, Uuid
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_dirs import LogDirs
from storage.log_reader import LogSlice

T = TypeVar("T")

NOTHING = LogSlice(None, 0, 0, 0)

OnOpen = Callable[[KraftError | None], None]


class InExecutor(Protocol):
    def __call__(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run work that waits for the disk."""
        ...


class PartitionLog:
    """All but the work in the executor is for the thread of the loop."""

    __slots__ = (
        "_busy",
        "_config",
        "_flusher",
        "_in_executor",
        "_logs",
        "_on_failure",
        "_topic_id",
        "_waiting",
        "log",
        "name",
    )

    def __init__(
        self,
        name: TopicPartition,
        topic_id: Uuid,
        log: Log | None,
        *,
        logs: LogDirs,
        in_executor: InExecutor,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`on_failure` hears of what is no error of the disk but one of ours."""
        self.name = name
        self._on_failure = on_failure
        self.log = log
        self._topic_id = topic_id
        self._logs = logs
        self._in_executor = in_executor
        self._config: LogConfig | None = None
        self._flusher: Flusher | None = None
        self._busy: asyncio.Future[None] | None = None
        self._waiting: list[OnOpen] = []

    def configure(self, config: LogConfig) -> None:
        self._config = config
        if self.log is not None:
            self.log.config = config

    # -- reading

    @property
    def start_offset(self) -> int:
        return self.log.start_offset if self.log else 0

    @property
    def flushed_offset(self) -> int:
        return self.log.flushed_offset if self.log else 0

    @property
    def end_offset(self) -> int:
        return self.log.end_offset if self.log else 0

    @property
    def last_epoch(self) -> int | None:
        """The epoch of the last record; None if there is none."""
        return self.log.epochs.epoch_at(self.log.end_offset - 1) if self.log else None

    def epoch_end(self, epoch: int, leader_epoch: int) -> EpochEnd | None:
        """The end of the largest epoch up to `epoch` that is known; `leader_epoch` always is."""
        if self.log is not None:
            return self.log.end_for_epoch(epoch)
        return EpochEnd(epoch, 0) if epoch <= leader_epoch else None

    def locate(self, offset: int, max_bytes: int, limit: int) -> LogSlice:
        """Batches from `offset` on, at least one, none at or past `limit`."""
        if self.log is None or offset >= limit:
            return NOTHING
        return self.log.read(offset, max_bytes, limit=limit)

    # -- opening

    def when_open(self, call: OnOpen) -> None:
        """Call when there is a log to append to, or with why there is none; in the order of asking,
        and at once if there is one.
        """
        if self.log is not None:
            call(None)
            return
        self._waiting.append(call)
        if len(self._waiting) == 1:
            self._busy = asyncio.get_running_loop().create_future()
            self._in_executor(self._create).add_done_callback(self._opened)

    def _create(self) -> Log:
        log = self._logs.create(self.name, self._topic_id)
        if self._config is not None:
            log.config = self._config
        if not log.segments:
            log.roll()
        return log

    def _opened(self, created: "asyncio.Future[Log]") -> None:
        waiting, self._waiting = self._waiting, []
        self._free()
        if created.cancelled():
            return
        error = created.exception()
        if error is not None and not isinstance(error, KraftError):
            self._on_failure(error)
            return
        if error is None:
            self.log = created.result()
        for call in waiting:
            call(error)

    async def open(self) -> Log:
        """Wait until there is a log. KraftError if there can be none."""
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(error: KraftError | None) -> None:
            if opened.done():
                return
            if error is None:
                opened.set_result(None)
            else:
                opened.set_exception(error)

        self.when_open(take)
        await opened
        return self.opened()

    def opened(self) -> Log:
        """The log, of which the caller knows that it is there."""
        invariant(self.log is not None, "a log is used before it is open", partition=self.name)
        return cast("Log", self.log)

    # -- cutting

    async def idle(self) -> None:
        """Until nobody opens or cuts it."""
        while self._busy is not None:
            await asyncio.wait([self._busy])

    async def truncate_to(self, offset: int) -> None:
        await self._cut(lambda: self._logs.truncate_to(self.name, offset))

    async def restart_at(self, offset: int) -> None:
        await self.open()
        await self._cut(lambda: self._logs.restart_at(self.name, offset))

    async def _cut(self, work: Callable[[], object]) -> None:
        await self.idle()
        self._busy = asyncio.get_running_loop().create_future()
        try:
            await self._in_executor(work)
        finally:
            self._free()

    def _free(self) -> None:
        busy, self._busy = self._busy, None
        if busy is not None and not busy.done():
            busy.set_result(None)

    # -- flushing

    def flush(self, on_done: Callable[[BaseException | None], None]) -> None:
        """Flush all that is there by now. One flush at a time; `on_done` is that of the first."""
        if self.log is None:
            return
        if self._flusher is None:
            self._flusher = Flusher(self.log, self._in_executor, on_done)
        self._flusher.request()
