"""Brokers in one process: real managers over real logs, joined by direct calls.

    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", replicas=(1, 2, 3), min_insync=2)
        reply = await cluster.produce(topic, b"a", b"b")

The controller is a model (tests/brokers/controller.py); what it decides reaches each broker by a
task of its own, in order. Links between brokers can be cut.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers.cluster import Assignment, PartitionId
from brokers.partition import Partition
from brokers.purgatory import wait
from brokers.replica_fetcher import OnFetchReply, SourceLink
from brokers.replica_manager import ReplicaManager
from brokers.requests import (
    ACKS_ALL,
    FetchPart,
    FetchReply,
    FetchRequest,
    FetchResult,
    IsrChange,
    IsrResult,
    ProducePart,
    ProduceReply,
    ProduceRequest,
    ProduceResult,
)
from brokers.settings import ReplicaSettings, TopicSettings
from kraftlog.clock import SystemClock
from kraftlog.errors import NetworkError
from kraftlog.record_batch import read_batches
from kraftlog.types import Uuid
from storage.cleaner import Cleaner
from storage.files import OsFiles
from storage.log_config import LogConfig
from storage.log_dirs import LogDirs
from tests.brokers.controller import Controller, Metadata
from tests.loops import until
from tests.storage.logs import batch

CLUSTER_ID = str(Uuid(b"c" * 16))
BROKEN_LINK_S = 0.01

FAST = ReplicaSettings(
    replica_lag_ms=400,
    fetch_wait_ms=50,
    fetch_timeout_ms=500,
    fetch_backoff_ms=100,
    alter_backoff_ms=10,
    high_watermark_news_ms=5,
    checkpoint_ms=50,
    retention_check_ms=60_000,
    cleaner_backoff_ms=60_000,
    flush_check_ms=60_000,
)


class Gate:
    """Open until a test closes it."""

    def __init__(self) -> None:
        self.is_open = True
        self.told_fenced = False

    def session_alive(self, now_ms: int) -> bool:  # noqa: ARG002 - the protocol's signature
        return self.is_open


class DirectLink:
    """Calls another broker's manager, unless the link is cut or that broker is not there."""

    def __init__(self, cluster: "Cluster", source: int, target: int) -> None:
        self._cluster = cluster
        self._ends = (source, target)

    def send(
        self,
        request: FetchRequest,
        *,
        timeout_ms: int,  # noqa: ARG002 - a cut link says so at once
        on_reply: OnFetchReply,
    ) -> None:
        asyncio.get_running_loop().call_soon(self._arrive, request, on_reply)

    def _arrive(self, request: FetchRequest, on_reply: OnFetchReply) -> None:
        target = self._cluster.brokers.get(self._ends[1])
        if target is None or self._is_cut():
            asyncio.get_running_loop().call_later(BROKEN_LINK_S, on_reply, None)
            return
        self._cluster.fetches += 1
        target.manager.fetch(request, lambda reply: self._return(reply, on_reply))

    def _return(self, reply: FetchReply, on_reply: OnFetchReply) -> None:
        loop = asyncio.get_running_loop()
        if self._is_cut() or self._ends[1] not in self._cluster.brokers:
            loop.call_later(BROKEN_LINK_S, on_reply, None)
        else:
            loop.call_soon(on_reply, reply)

    def _is_cut(self) -> bool:
        return frozenset(self._ends) in self._cluster.cuts

    async def run(self) -> None:
        self._cluster.links.append(self._ends)
        try:
            await asyncio.Event().wait()
        finally:
            self._cluster.links.remove(self._ends)


class Broker:
    """A process, as far as the data plane is concerned."""

    def __init__(self, broker_id: int, cluster: "Cluster") -> None:
        self.id = broker_id
        self.epoch = cluster.controller.now.brokers[broker_id].epoch
        self.gate = Gate()
        self.applied = Metadata()
        self.hears_controller = True
        self._cluster = cluster
        self.logs = LogDirs.open(
            OsFiles(),
            [str(cluster.directory / f"b{broker_id}")],
            cluster_id=CLUSTER_ID,
            node_id=broker_id,
            config_of=lambda _partition: LogConfig(),
        )
        self.manager = ReplicaManager(
            broker_id,
            self.logs,
            settings=cluster.settings,
            clock=SystemClock(),
            gate=self.gate,
            broker_epoch=lambda: self.epoch,
            alter_partitions=self._alter,
            connect=self._connect,
            cleaner=Cleaner(),
        )

    def _connect(self, target: int) -> SourceLink:
        return DirectLink(self._cluster, self.id, target)

    async def _alter(self, changes: Sequence[IsrChange]) -> list[IsrResult]:
        await asyncio.sleep(0)
        if not self.hears_controller:
            raise NetworkError("no controller")
        results = self._cluster.controller.alter_all(self.id, self.epoch, changes)
        self._cluster.publish()
        return results

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.manager.run())
            tasks.create_task(self._follow_metadata())

    async def _follow_metadata(self) -> None:
        while True:
            news = self._cluster.news
            now = self._cluster.controller.now
            if now is not self.applied and self.hears_controller:
                await self.manager.apply(now, now.change_since(self.applied, self.id))
                self.applied = now
            else:
                await news.wait()

    def partition(self, partition: PartitionId) -> Partition:
        return self.manager.table.hosted[partition]


class Cluster(AbstractAsyncContextManager["Cluster"]):
    def __init__(
        self, directory: Path, *, count: int = 3, settings: ReplicaSettings = FAST
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.controller = Controller(range(1, count + 1))
        self.brokers: dict[int, Broker] = {}
        self.cuts: set[frozenset[int]] = set()
        self.fetches = 0
        self.links: list[tuple[int, int]] = []
        """Who has a link open to fetch from whom."""
        self.news = asyncio.Event()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        for broker_id in self.controller.now.brokers:
            self.start(broker_id)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for broker_id in list(self.brokers):
            await self.stop(broker_id)
        await self._tasks.__aexit__(kind, error, trace)

    # -- brokers

    def start(self, broker_id: int) -> None:
        broker = self.brokers[broker_id] = Broker(broker_id, self)
        self._running[broker_id] = self._tasks.create_task(broker.run())

    async def stop(self, broker_id: int, *, clean: bool = True) -> None:
        """End a broker, by a signal or by a kill: what is in its files stays either way."""
        broker, task = self.brokers.pop(broker_id), self._running.pop(broker_id)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
        if clean:
            await broker.manager.close(broker.epoch)
        else:
            await broker.manager.abandon()

    async def kill(self, broker_id: int) -> None:
        """It dies, and the controller notices."""
        await self.stop(broker_id, clean=False)
        self.controller.fence(broker_id)
        self.publish()

    async def restart(self, broker_id: int, *, clean: bool = True) -> None:
        """It comes back, registers, catches up with the metadata and is let in."""
        self.controller.register(broker_id, clean=clean)
        self.start(broker_id)
        self.publish()
        await self.caught_up(broker_id)
        self.controller.unfence(broker_id)
        self.publish()

    async def caught_up(self, broker_id: int) -> None:
        await until(lambda: self.brokers[broker_id].applied is self.controller.now)

    def publish(self) -> None:
        """There is new metadata."""
        news, self.news = self.news, asyncio.Event()
        news.set()

    def change(self, act: Callable[[Controller], object]) -> None:
        """Have the controller do something, and let everybody know."""
        act(self.controller)
        self.publish()

    async def settled(self) -> None:
        """Until every broker that hears the controller has all metadata."""
        for broker_id, broker in list(self.brokers.items()):
            if broker.hears_controller:
                await self.caught_up(broker_id)

    def cut(self, *ends: int) -> None:
        self.cuts.add(frozenset(ends))

    def heal(self) -> None:
        self.cuts.clear()

    def place(self, broker_id: int, rack: str) -> None:
        info = self.controller.now.brokers[broker_id]
        self.controller.change_broker(replace(info, rack=rack))
        self.publish()

    # -- topics

    async def create(
        self,
        topic: str,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        partition: int = 0,
        min_insync: int = 1,
        log: LogConfig | None = None,
        flush_before_ack: bool = False,
    ) -> PartitionId:
        settings = TopicSettings(
            log=log or LogConfig(),
            min_insync_replicas=min_insync,
            flush_before_ack=flush_before_ack,
        )
        created = PartitionId(topic.encode().ljust(16, b"."), partition)
        self.controller.min_insync = min_insync
        self.controller.configure(topic, settings)
        self.controller.put(Assignment(created, topic, replicas[0], 0, 0, replicas, replicas))
        self.publish()
        await self.settled()
        return created

    def leader(self, partition: PartitionId) -> Broker:
        return self.brokers[self.controller.now.assignments[partition].leader]

    def isr(self, partition: PartitionId) -> tuple[int, ...]:
        return self.controller.now.assignments[partition].isr

    async def elect(self, partition: PartitionId, leader: int) -> None:
        self.change(lambda controller: controller.elect(partition, leader))
        await self.settled()

    async def in_sync(self, partition: PartitionId, *members: int) -> None:
        await until(lambda: set(self.isr(partition)) == set(members))
        await self.settled()

    async def replicated(self, partition: PartitionId) -> None:
        """Until all live replicas have the same end and the same high watermark."""

        def same() -> bool:
            here = [
                b.partition(partition)
                for b in self.brokers.values()
                if partition in b.manager.table.hosted
            ]
            return len({(each.end_offset, each.high_watermark) for each in here}) == 1

        await until(same)

    # -- clients

    async def produce(
        self,
        partition: PartitionId,
        *values: bytes,
        acks: int = ACKS_ALL,
        timeout_ms: int = 5_000,
        to: int | None = None,
        producer: tuple[int, int, int] = (-1, -1, -1),
    ) -> ProduceResult:
        """One batch, to the leader or to a broker that is named."""
        data = batch(*values, producer=producer)
        return await self.produce_batch(partition, data, acks=acks, timeout_ms=timeout_ms, to=to)

    async def produce_batch(
        self,
        partition: PartitionId,
        data: bytes | bytearray,
        *,
        acks: int = ACKS_ALL,
        timeout_ms: int = 5_000,
        to: int | None = None,
    ) -> ProduceResult:
        broker = self.leader(partition) if to is None else self.brokers[to]
        request = ProduceRequest(acks, timeout_ms, [ProducePart(partition, data)])
        reply: ProduceReply = await wait(lambda done: broker.manager.produce(request, done))
        return reply.parts[0] if reply.parts else ProduceResult(partition)

    async def fetch(
        self,
        partition: PartitionId,
        offset: int,
        *,
        of: int | None = None,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 20,
        leader_epoch: int | None = None,
        last_epoch: int | None = None,
        rack: str = "",
    ) -> FetchResult:
        broker = self.leader(partition) if of is None else self.brokers[of]
        part = FetchPart(partition, offset, leader_epoch, last_epoch, max_bytes=max_bytes)
        request = FetchRequest(max_wait_ms=max_wait_ms, parts=[part], rack=rack)
        reply: FetchReply = await wait(lambda done: broker.manager.fetch(request, done))
        return reply.parts[0]

    async def read(self, partition: PartitionId, *, of: int | None = None) -> list[bytes | None]:
        """All that consumers may see."""
        values: list[bytes | None] = []
        offset = 0
        while True:
            found = await self.fetch(partition, offset, of=of)
            if found.error is not None:
                raise found.error
            if not found.records:
                return values
            for each in read_batches(found.records):
                each.check_crc()
                values += [record.value for record in each.records()]
                offset = each.next_offset


def values_in(broker: Broker, partition: PartitionId) -> list[bytes | None]:
    """All that is in a replica's log, committed or not."""
    log = broker.partition(partition).log
    if log is None:
        return []
    found: list[bytes | None] = []
    offset = log.start_offset
    while offset < log.end_offset:
        piece = log.read(offset, 1 << 20)
        found += [record.value for each in read_batches(piece.read()) for record in each.records()]
        offset = piece.next_offset
    return found
