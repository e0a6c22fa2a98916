"""A source that a test plays: it notes what a follower asks, and the test answers."""

import asyncio
from typing import Self

from brokers.cluster import PartitionId
from brokers.replica_fetcher import OnFetchReply, SourceFetcher
from brokers.replication_throttle import ReplicationThrottle
from brokers.requests import FetchReply, FetchRequest, FetchResult, ReplicaIdentity
from brokers.settings import ReplicaSettings
from kraftlog.record_batch import encode_values
from tests.brokers.brokers import FAST, Broker, Cluster
from tests.loops import until


def batches(count: int, *, epoch: int = 3, first: int = 0) -> bytes:
    return b"".join(
        encode_values([b"v"], timestamp=1, base_offset=first + n, leader_epoch=epoch)
        for n in range(count)
    )


class Source:
    """Notes what it is asked; the test answers."""

    def __init__(self) -> None:
        self.asked: list[FetchRequest] = []
        self.wakes = 0
        self._on_reply: OnFetchReply = lambda _reply: None

    def send(self, request: FetchRequest, *, timeout_ms: int, on_reply: OnFetchReply) -> None:
        assert timeout_ms > 0
        if request.wake:
            self.wakes += 1
            return
        self.asked.append(request)
        self._on_reply = on_reply

    def answer(self, reply: FetchReply | None) -> None:
        self._on_reply(reply)

    async def next_request(self, count: int) -> FetchRequest:
        await until(lambda: len(self.asked) >= count)
        return self.asked[count - 1]

    async def run(self) -> None:
        await asyncio.Event().wait()


class Following:
    """Broker 2 follows its partitions from a source that the test plays."""

    def __init__(self, broker: Broker, settings: ReplicaSettings = FAST) -> None:
        self.broker = broker
        self.source = Source()
        self.fetcher = SourceFetcher(
            self.source,
            lambda: ReplicaIdentity(2, 2),
            settings=settings,
            throttle=ReplicationThrottle(broker.manager.clock),
        )

    async def __aenter__(self) -> Self:
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()
        self._task = self._tasks.create_task(self.fetcher.run())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        self.fetcher.close()
        await self._tasks.__aexit__(None, None, None)

    def reply(self, *results: FetchResult, session: int = 5) -> None:
        self.source.answer(FetchReply(session, results))


def told(partition: PartitionId, **fields: object) -> FetchResult:
    result = FetchResult(partition, 0, 0, 0)
    for name, value in fields.items():
        setattr(result, name, value)
    return result


async def follower(cluster: Cluster, name: str) -> PartitionId:
    """A partition that broker 2 follows, but for which nobody answers."""
    cluster.cut(1, 2)
    return await cluster.create(name, replicas=(1, 2))
