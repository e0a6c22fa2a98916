"""All partitions of a broker: which it leads, which it follows, and the requests about them.

The shell around it (lifecycle, gRPC) hands in metadata with `apply`, in the order of the metadata
log, and requests as they come. `run` does all that goes on in the background.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from brokers.alter_partition import AlterPartitions, AlterQueue
from brokers.cluster import (
    NO_LEADER,
    Assignment,
    BrokerInfo,
    ClusterChange,
    ClusterView,
    PartitionId,
)
from brokers.describe import describe
from brokers.fetch import Fetches, OnFetched
from brokers.gate import ServingGate
from brokers.housekeeping import Housekeeping
from brokers.isr_counts import IsrCounts
from brokers.offsets import Offsets, OnDeleted, OnEnds
from brokers.partition import Partition
from brokers.partition_state import Following, Leading
from brokers.partition_table import Damaged, NoCluster, PartitionTable
from brokers.produce import OnProduced, Produces
from brokers.purgatory import Cancellable, Purgatory
from brokers.range_fetch import fetch_range
from brokers.replica_fetcher import SourceFetcher, SourceLink
from brokers.replication_throttle import ReplicationThrottle
from brokers.requests import (
    DeleteRequest,
    DigestOf,
    EndsRequest,
    EpochAnswer,
    EpochQuery,
    FetchRequest,
    IsrChange,
    OffsetAnswer,
    OffsetQuery,
    ProduceRequest,
    RangeAnswer,
    RangePiece,
    RangeQuery,
    RangeRequest,
    ReplicaIdentity,
    ReplicaInfo,
)
from brokers.settings import ReplicaSettings
from brokers.turns import Turns
from kraftlog.clock import Clock
from kraftlog.errors import StaleEpoch, StorageError
from kraftlog.types import TopicPartition
from storage.cleaner import Cleaner
from storage.log import Log
from storage.log_dirs import UNKNOWN_BROKER_EPOCH, LogDirs

logger = logging.getLogger(__name__)

DISK_THREADS = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counts:
    """How the broker is doing, in numbers."""

    replicas: int
    leaders: int
    under_replicated: int
    under_min_isr: int
    at_min_isr: int
    isr_shrinks: int
    isr_expands: int
    parked: dict[str, int]
    sessions: int
    isr_changes: int
    fetchers: int
    damaged: int


class ReplicaManager:
    def __init__(
        self,
        broker_id: int,
        logs: LogDirs,
        *,
        settings: ReplicaSettings,
        clock: Clock,
        gate: ServingGate,
        broker_epoch: Callable[[], int],
        alter_partitions: AlterPartitions,
        connect: Callable[[int], SourceLink],
        cleaner: Cleaner | None = None,
    ) -> None:
        """`connect` makes a link to a broker by its id. `broker_epoch` tells our registration."""
        self.broker_id = broker_id
        self.logs = logs
        self.settings = settings
        self.clock = clock
        self.unsettled: set[Partition] = set()
        self.isr_counts = IsrCounts()
        self.table = PartitionTable(broker_id)
        self.purgatory = Purgatory(settings.parked_max)
        self._follower_throttle = ReplicationThrottle(clock)
        self.fetches = Fetches(self.table, self.purgatory, settings=settings, clock=clock)
        self._gate = gate
        self._broker_epoch = broker_epoch
        self._connect = connect
        self._produces = Produces(self.table, self.purgatory, clock=clock)
        self._offsets = Offsets(self.table, self.purgatory, clock=clock)
        self._alters = AlterQueue(alter_partitions, backoff_ms=settings.alter_backoff_ms)
        self._fetchers: dict[int, SourceFetcher] = {}
        self._new_fetchers: asyncio.Queue[tuple[int, SourceFetcher]] = asyncio.Queue()
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="disk")
        self._failure: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        self.housekeeping = Housekeeping(
            logs,
            settings=settings,
            partitions=lambda: list(self.table),
            unsettled=self.unsettled,
            cleaner=cleaner,
        )

    # -- metadata

    @property
    def view(self) -> ClusterView:
        return self.table.view

    async def apply(self, view: ClusterView, change: ClusterChange) -> None:
        """Take in the next metadata: what is gone first, then what we lead, then what we follow.

        Returns when all of it holds. Calls must not overlap. The first one must bring metadata that
        has our own registration: in older metadata we may still lead, with records that we have
        lost since. StaleEpoch if it does not.
        """
        if isinstance(self.table.view, NoCluster):
            self._check_registered(view)
        self.table.view = view
        await self._remove(change.removed)
        led: list[Assignment] = []
        followed: list[Assignment] = []
        for assignment in change.changed:
            (led if assignment.leader == self.broker_id else followed).append(assignment)
        turns = Turns()
        for assignment in (*led, *followed):
            await self._place(assignment)
            await turns.share()
        if change.configs:
            await self._configure(frozenset(change.configs))
        if change.brokers:
            await self._brokers_changed(frozenset(change.brokers))
        self._retire_fetchers()

    def _check_registered(self, view: ClusterView) -> None:
        here, epoch = view.broker(self.broker_id), self._broker_epoch()
        if here is None or here.epoch < epoch:
            raise StaleEpoch(
                f"the metadata has broker {self.broker_id} with epoch"
                f" {here.epoch if here else 'none'}, registered is {epoch}",
                hint="apply nothing before it has caught up with the registration",
            )

    async def _remove(self, removed: Sequence[PartitionId]) -> None:
        names: list[TopicPartition] = []
        for partition_id in removed:
            damaged = self.table.damaged.pop(partition_id, None)
            if damaged is not None:
                names.append(damaged.name)
            partition = self.table.hosted.get(partition_id)
            if partition is not None:
                await partition.idle()
                del self.table.hosted[partition_id]
                partition.remove()
                names.append(partition.name)
        if names:
            await self.in_executor(lambda: [self.logs.delete(name) for name in names])

    async def _place(self, assignment: Assignment) -> None:
        partition = self.table.hosted.get(assignment.id)
        if partition is None:
            partition = await self._create(assignment)
        if partition is not None:
            await partition.idle()
            partition.apply(assignment)

    async def _create(self, assignment: Assignment) -> Partition | None:
        name = TopicPartition(assignment.topic, assignment.id.partition)
        self.table.damaged.pop(assignment.id, None)
        try:
            log = self.logs.get(name)
        except StorageError as damage:
            if self._counts(assignment):
                logger.warning("%s cannot be used here: %s", name, damage)
                self.table.damaged[assignment.id] = Damaged(name, damage)
                return None
            kept = await self.in_executor(lambda: self.logs.set_aside(name))
            logger.warning("%s is copied anew; what was here is kept as %s", name, kept)
            log = None
        if log is not None and not _belongs(log, assignment):
            kept = await self.in_executor(lambda: self.logs.set_aside(name))
            logger.warning("%s here is of another topic of that name; kept as %s", name, kept)
            log = None
        settings = self.view.topic_settings(assignment.topic)
        partition = Partition(assignment, self, log=log, settings=settings)
        self.table.hosted[assignment.id] = partition
        return partition

    def _counts(self, assignment: Assignment) -> bool:
        """Whether what we have may be what is left of records that were acknowledged."""
        is_led = assignment.leader not in (NO_LEADER, self.broker_id)
        return not is_led or self.broker_id in (*assignment.isr, *assignment.elr)

    async def _configure(self, topics: frozenset[str]) -> None:
        chosen = {topic: self.view.topic_settings(topic) for topic in sorted(topics)}
        await self._each(
            lambda each: each.name.topic in chosen,
            lambda each: each.configure(chosen[each.name.topic]),
        )

    async def _brokers_changed(self, brokers: frozenset[int]) -> None:
        def concerns(partition: Partition) -> bool:
            assignment = partition.state.assignment
            return assignment is not None and not brokers.isdisjoint(assignment.replicas)

        await self._each(lambda each: each.is_leader and concerns(each), Partition.brokers_changed)

    async def _each(
        self, chosen: Callable[[Partition], bool], act: Callable[[Partition], None]
    ) -> None:
        turns = Turns()
        for partition in list(self.table):
            if chosen(partition):
                act(partition)
            await turns.share()

    # -- requests

    def produce(self, request: ProduceRequest, on_done: OnProduced) -> Cancellable | None:
        return self._produces.produce(request, on_done)

    def fetch(self, request: FetchRequest, on_done: OnFetched) -> Cancellable | None:
        return self.fetches.fetch(request, on_done)

    def fetch_range(self, request: RangeRequest) -> AsyncIterator[RangePiece]:
        return fetch_range(self.table, self.clock, request)

    def list_offsets(self, queries: Sequence[OffsetQuery]) -> list[OffsetAnswer]:
        return self._offsets.list_offsets(queries)

    def epoch_ends(self, queries: Sequence[EpochQuery]) -> list[EpochAnswer]:
        return self._offsets.epoch_ends(queries)

    def ends(self, request: EndsRequest, on_done: OnEnds) -> Cancellable | None:
        return self._offsets.ends(request, on_done)

    def delete_records(self, request: DeleteRequest, on_done: OnDeleted) -> Cancellable | None:
        return self._offsets.delete_records(request, on_done)

    def estimate_bytes(self, queries: Sequence[RangeQuery]) -> list[RangeAnswer]:
        return self._offsets.estimate_bytes(queries)

    async def describe_replicas(
        self, partitions: Sequence[PartitionId] | None = None, *, digest: DigestOf = False
    ) -> list[ReplicaInfo]:
        """Digests are computed off the loop."""
        return await describe(self.table, partitions, digest, self.in_executor)

    def counts(self) -> Counts:
        roles = [(each, each.state.role) for each in self.table]
        leading = [(each, role) for each, role in roles if isinstance(role, Leading)]
        return Counts(
            replicas=len(roles),
            leaders=len(leading),
            under_replicated=sum(len(r.isr.members) <= len(r.followers) for _, r in leading),
            under_min_isr=sum(len(r.isr.members) < p.state.needed_isr for p, r in leading),
            at_min_isr=sum(len(r.isr.members) == p.state.needed_isr for p, r in leading),
            isr_shrinks=self.isr_counts.shrinks,
            isr_expands=self.isr_counts.expands,
            parked=dict(self.purgatory.counts),
            sessions=len(self.fetches.sessions),
            isr_changes=len(self._alters),
            fetchers=len(self._fetchers),
            damaged=len(self.table.damaged),
        )

    def isr_sizes(self) -> dict[TopicPartition, int]:
        """Of the partitions that this broker leads."""
        roles = [(each.name, each.state.role) for each in self.table]
        return {name: len(role.isr.members) for name, role in roles if isinstance(role, Leading)}

    def set_replication_rates(self, *, leader: int | None, follower: int | None) -> None:
        """leader. and follower.replication.throttled.rate, bytes a second; None: no limit."""
        self.fetches.throttle.bytes_per_second = leader
        self._follower_throttle.bytes_per_second = follower

    # -- host of the partitions

    def broker(self, broker_id: int) -> BrokerInfo | None:
        return self.table.view.broker(broker_id)

    def session_alive(self, now_ms: int) -> bool:
        return self._gate.session_alive(now_ms)

    @property
    def told_fenced(self) -> bool:
        return self._gate.told_fenced

    def propose(self, partition: Partition, change: IsrChange) -> None:
        self._alters.propose(partition, change)

    def follow(self, partition: Partition) -> None:
        role = partition.state.role
        if not isinstance(role, Following) or self._is_leaving(partition):
            return
        fetcher = self._fetchers.get(role.leader)
        if fetcher is None:
            fetcher = self._fetchers[role.leader] = SourceFetcher(
                self._connect(role.leader),
                self._identity,
                settings=self.settings,
                throttle=self._follower_throttle,
            )
            self._new_fetchers.put_nowait((role.leader, fetcher))
        fetcher.add(partition)

    def _is_leaving(self, partition: Partition) -> bool:
        """We are about to stop, and nobody counts on our copy any more."""
        here, assignment = self.broker(self.broker_id), partition.state.assignment
        stopping = here is not None and here.shutting_down
        return stopping and assignment is not None and self.broker_id not in assignment.isr

    def unfollow(self, partition: Partition) -> None:
        for fetcher in self._fetchers.values():
            fetcher.remove(partition.id)

    def _retire_fetchers(self) -> None:
        """A broker of which we follow nothing may be gone for ever."""
        for source, fetcher in list(self._fetchers.items()):
            if not fetcher:
                self._fetchers.pop(source).retire()

    def _identity(self) -> ReplicaIdentity:
        return ReplicaIdentity(self.broker_id, self._broker_epoch())

    def in_executor(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._disk, work)

    def fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    # -- in the background

    async def run(self) -> None:
        """Until cancelled; an exception means that this process must end."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._raise_failure(), name="failures")
            tasks.create_task(self._alters.run(), name="isr changes")
            tasks.create_task(self.housekeeping.run(), name="housekeeping")
            while True:
                source, fetcher = await self._new_fetchers.get()
                tasks.create_task(fetcher.run(), name=f"fetch from broker {source}")

    async def _raise_failure(self) -> None:
        await asyncio.shield(self._failure)

    async def close(self, broker_epoch: int | None = None) -> bool:
        """After `run` has ended: answer what is parked, flush and close all logs. With the broker
        epoch of a registration that is properly over, the stop is marked as clean. Whether it was.
        """
        await self._stop()
        epoch = UNKNOWN_BROKER_EPOCH if broker_epoch is None else broker_epoch
        return await asyncio.to_thread(self.logs.close, epoch)

    async def abandon(self) -> None:
        """Let go of the logs as if the process had ended: for tests of what comes after that."""
        await self._stop()
        for log_dir in self.logs.dirs:
            log_dir.release()

    async def _stop(self) -> None:
        self.purgatory.time_out_all()
        self.fetches.sessions.close()
        for fetcher in self._fetchers.values():
            fetcher.close()
        for partition in self.table:
            await partition.idle()
        await asyncio.to_thread(self._disk.shutdown)
        await asyncio.to_thread(self.housekeeping.close)
        if self._failure.done():
            self._failure.exception()  # seen by whoever ran `run`
        else:
            self._failure.cancel()


def _belongs(log: Log, assignment: Assignment) -> bool:
    return log.topic_id is not None and log.topic_id.raw == assignment.id.topic_id
