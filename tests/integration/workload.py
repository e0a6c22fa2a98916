"""Callers that propose all the time, whoever leads, and remember what they were told."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kraftlog.errors import AmbiguousError, RetriableError
from kraftlog.types import Uuid
from quorum.proposer import Proposer

CALLERS = 8
RETRY_SECONDS = 0.02
TIMEOUT_MS = 2_000


@dataclass
class Workload:
    """Values are unique and never sent twice: one whose outcome is unknown stays so."""

    endpoints: Sequence[str]
    cluster_id: Uuid
    acked: dict[bytes, int] = field(default_factory=dict)
    unknown: set[bytes] = field(default_factory=set)
    refused: set[bytes] = field(default_factory=set)
    per_caller: dict[int, list[int]] = field(default_factory=dict)
    """The offsets of each caller, in the order in which it was told."""
    _proposers: dict[str, Proposer] = field(default_factory=dict)
    _leader: str = ""
    _values: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Workload"]:
        async with asyncio.TaskGroup() as tasks:
            for endpoint in self.endpoints:
                self._proposers[endpoint] = Proposer(endpoint, self.cluster_id)
            work = [each.run() for each in self._proposers.values()]
            work += [self._call(number) for number in range(CALLERS)]
            running = [tasks.create_task(each) for each in work]
            yield self
            for task in running:
                task.cancel()

    async def _call(self, caller: int) -> None:
        offsets = self.per_caller.setdefault(caller, [])
        while True:
            self._values += 1
            value = b"value %d of caller %d" % (self._values, caller)
            offset = await self._propose(value)
            if offset is not None:
                offsets.append(offset)

    async def _propose(self, value: bytes) -> int | None:
        endpoint = self._leader or self.endpoints[self._values % len(self.endpoints)]
        proposer = self._proposers[endpoint]
        self.unknown.add(value)
        try:
            offset = await proposer.propose([value], timeout_ms=TIMEOUT_MS)
        except AmbiguousError:
            self._leader = ""
            await asyncio.sleep(RETRY_SECONDS)
            return None
        except RetriableError:
            self.unknown.discard(value)
            self.refused.add(value)
            self._leader = proposer.leader if proposer.leader in self._proposers else ""
            await asyncio.sleep(RETRY_SECONDS)
            return None
        self.unknown.discard(value)
        self.acked[value] = offset
        return offset

    async def wait_acks(self, more: int) -> None:
        """Until so many more are acknowledged."""
        target = len(self.acked) + more
        async with asyncio.timeout(60):
            while len(self.acked) < target:  # noqa: ASYNC110 - callers come and go
                await asyncio.sleep(RETRY_SECONDS)
