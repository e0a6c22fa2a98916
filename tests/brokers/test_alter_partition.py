"""Changes of ISRs on their way to the controller."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers.alter_partition import CHANGES_MAX, AlterQueue
from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.requests import IsrChange, IsrResult
from kraftlog.errors import ErrorCode, KraftError, NetworkError
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.loops import until


@dataclass
class Ear:
    """A controller that notes what it is asked, and answers what a test has prepared."""

    asked: list[list[IsrChange]] = field(default_factory=list)
    answers: list[KraftError | Sequence[IsrResult] | None] = field(default_factory=list)
    open_requests: int = 0

    async def alter(self, changes: Sequence[IsrChange]) -> Sequence[IsrResult]:
        self.asked.append(list(changes))
        self.open_requests += 1
        assert self.open_requests == 1, "one at a time"
        await asyncio.sleep(0.001)
        self.open_requests -= 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, KraftError):
            raise answer
        return [accepted(change) for change in changes] if answer is None else answer


def accepted(change: IsrChange) -> IsrResult:
    isr = tuple(sorted(change.ids))
    epoch = change.partition_epoch + 1
    return IsrResult(change.partition, 1, change.leader_epoch, epoch, isr)


class PausingQueue(AlterQueue):
    """Counts its pauses."""

    pauses = 0

    async def pause(self) -> None:
        self.pauses += 1
        await super().pause()


class Queue(AbstractAsyncContextManager["Queue"]):
    """A queue that runs, and partitions to propose for: a leader with two idle followers."""

    def __init__(self, path: Path) -> None:
        self.cluster = Cluster(path, count=3)
        self.ear = Ear()
        self.queue = PausingQueue(self.ear.alter, backoff_ms=1)
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self.cluster.__aenter__()
        manager = self.cluster.brokers[1].manager
        manager._alters = self.queue
        await self._tasks.__aenter__()
        self._task = self._tasks.create_task(self.queue.run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await self._tasks.__aexit__(kind, error, trace)
        await self.cluster.__aexit__(kind, error, trace)

    async def pending(self, name: str) -> tuple[Partition, IsrChange]:
        """A partition with a change that stands: broker 3 is to leave."""
        topic = await self.cluster.create(name)
        partition = self.cluster.brokers[1].partition(topic)
        state = partition.state
        info = self.cluster.controller.now.brokers[3]
        self.cluster.brokers[1].manager.table.view = replace(
            self.cluster.controller.now,
            brokers=self.cluster.controller.now.brokers | {3: replace(info, fenced=True)},
        )
        (effect,) = state.brokers_changed(0)
        change = getattr(effect, "change", None)
        assert isinstance(change, IsrChange)
        return partition, change


@async_test
async def test_all_that_is_proposed_goes_in_one_request(tmp_path: Path) -> None:
    async with Queue(tmp_path) as queue:
        pairs = [await queue.pending(name) for name in "abc"]
        for partition, change in pairs:
            queue.queue.propose(partition, change)
        await until(lambda: not any(p.state.is_pending(c) for p, c in pairs))
        assert queue.queue.pauses == 0
        assert [len(asked) for asked in queue.ear.asked] == [3]
        assert len(queue.queue) == 0


@async_test
async def test_what_is_not_answered_is_asked_again(tmp_path: Path) -> None:
    async with Queue(tmp_path) as queue:
        partition, change = await queue.pending("a")
        queue.ear.answers = [NetworkError("gone"), NetworkError("gone"), []]
        queue.queue.propose(partition, change)
        await until(lambda: not partition.state.is_pending(change))
        assert queue.ear.asked == [[change]] * 4
        assert queue.queue.pauses == 3


@async_test
async def test_an_error_that_may_pass_is_asked_again_after_a_pause(tmp_path: Path) -> None:
    """A controller that was deposed and does not know it says so for as long as it is asked."""
    async with Queue(tmp_path) as queue:
        partition, change = await queue.pending("a")
        other, its_change = await queue.pending("b")
        passing = KraftError("later", code=ErrorCode.NOT_CONTROLLER)
        stale = [IsrResult(partition.id, error=passing), accepted(its_change)]
        queue.ear.answers = [stale, stale[:1]]
        queue.queue.propose(partition, change)
        queue.queue.propose(other, its_change)
        await until(lambda: not partition.state.is_pending(change))
        assert queue.ear.asked == [[change, its_change], [change], [change]]
        assert queue.queue.pauses == 2


@async_test
async def test_what_metadata_has_overtaken_is_not_sent(tmp_path: Path) -> None:
    async with Queue(tmp_path) as queue:
        partition, change = await queue.pending("a")
        other, its_change = await queue.pending("b")
        queue.queue.propose(partition, change)
        queue.queue.propose(other, its_change)
        assignment = partition.state.assignment
        assert assignment is not None
        newer = assignment.partition_epoch + 1
        partition.apply(replace(assignment, isr=(1, 2), partition_epoch=newer))
        await until(lambda: not other.state.is_pending(its_change))
        assert queue.ear.asked == [[its_change]]


@async_test
async def test_a_request_has_a_bounded_number_of_changes(tmp_path: Path) -> None:
    async with Queue(tmp_path) as queue:
        partition, change = await queue.pending("a")
        for number in range(CHANGES_MAX + 10):
            key = PartitionId(b"n" * 16, number)
            queue.queue._queued[key] = (partition, change)
        assert len(queue.queue._take()) == CHANGES_MAX
        assert len(queue.queue) == 10
        queue.queue._queued.clear()
