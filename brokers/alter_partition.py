"""Changes of ISRs on their way to the controller: all of a broker in one request, one in flight.

A leader proposes, and until it hears an answer it proposes again; its pending state
(brokers/isr.py) stays as it is meanwhile. The answer goes to the partition, whose state knows what
each one means. A proposal that was overtaken by metadata before it left is not sent at all.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.requests import IsrChange, IsrResult
from kraftlog.errors import KraftError

logger = logging.getLogger(__name__)

CHANGES_MAX = 1_000
"""Of one request: the controller decides about so many partitions in one event."""

AlterPartitions = Callable[[Sequence[IsrChange]], Awaitable[Sequence[IsrResult]]]
"""Sends one request to the active controller. KraftError if there is no answer, or no to all."""


class AlterQueue:
    def __init__(self, send: AlterPartitions, *, backoff_ms: int) -> None:
        self._send = send
        self._backoff_ms = backoff_ms
        self._queued: dict[PartitionId, tuple[Partition, IsrChange]] = {}
        self._wanted = asyncio.Event()

    def __len__(self) -> int:
        return len(self._queued)

    def propose(self, partition: Partition, change: IsrChange) -> None:
        """A partition has at most one: the latest."""
        self._queued[partition.id] = (partition, change)
        self._wanted.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(0)  # what else this turn of the loop brings goes along
            batch = self._take()
            if batch and not await self._exchange(batch):
                await self.pause()
            if not self._queued:
                self._wanted.clear()

    async def pause(self) -> None:
        """Before the same is asked again."""
        await asyncio.sleep(self._backoff_ms / 1000)

    def _take(self) -> list[tuple[Partition, IsrChange]]:
        batch: list[tuple[Partition, IsrChange]] = []
        while self._queued and len(batch) < CHANGES_MAX:
            partition, change = self._queued.pop(next(iter(self._queued)))
            if partition.state.is_pending(change):
                batch.append((partition, change))
        return batch

    async def _exchange(self, batch: list[tuple[Partition, IsrChange]]) -> bool:
        """Send and hand out the answers. Whether none of it is to be asked again as it was."""
        try:
            results = await self._send([change for _, change in batch])
        except KraftError as error:
            logger.info("no answer to %d changes of ISRs, again later: %s", len(batch), error)
            results = ()
        answers = {result.partition: result for result in results}
        for partition, change in batch:
            answer = answers.get(partition.id)
            if answer is not None:
                self._log(partition, change, answer)
                partition.altered(change, answer)
            elif partition.id not in self._queued:
                self.propose(partition, change)
        return bool(answers) and not any(self._is_queued(*each) for each in batch)

    def _is_queued(self, partition: Partition, change: IsrChange) -> bool:
        queued = self._queued.get(partition.id)
        return queued is not None and queued[1] is change

    def _log(self, partition: Partition, change: IsrChange, answer: IsrResult) -> None:
        asked = sorted(change.ids)
        if answer.error is None:
            logger.info("%s: the ISR is %s (asked for %s)", partition.name, answer.isr, asked)
        else:
            logger.info("%s: no ISR %s: %s", partition.name, asked, answer.error)
