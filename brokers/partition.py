"""One replica of a partition that runs: its state (brokers/partition_state.py) over its log.

Everything here is for the thread of the event loop, and synchronous between a check and the act
that it guards. While its log is being opened or cut, off the loop, `idle` is awaited before
anything else may change it.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

from brokers.cluster import Assignment, BrokerLookup, PartitionId
from brokers.effects import (
    BelowMinIsr,
    Effect,
    MoveHighWatermark,
    Propose,
    StartFollowing,
    StartLeading,
    StopFollowing,
    StopLeading,
)
from brokers.isr_counts import IsrCounts, committed_isr
from brokers.partition_log import PartitionLog
from brokers.partition_state import Leading, LogEnds, PartitionState
from brokers.progress import FollowerFetch
from brokers.purgatory import OffsetQueue
from brokers.refusals import (
    LeaderHint,
    cut_off,
    fenced,
    fenced_epoch,
    no_epoch,
    not_enough_after_append,
    not_enough_replicas,
    not_leader,
    out_of_range,
    unknown_epoch,
)
from brokers.requests import ACKS_ALL, FetchPart, IsrChange, IsrResult
from brokers.settings import ReplicaSettings, TopicSettings
from kraftlog.clock import Clock
from kraftlog.errors import NotYetSupported, StorageError
from kraftlog.record_batch import RecordBatch
from kraftlog.types import Buffer, EpochEnd, TopicPartition, Uuid
from storage.log import Appended, Log
from storage.log_dirs import LogDirs

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Host(BrokerLookup, Protocol):
    """The broker around its partitions."""

    broker_id: int
    clock: Clock
    settings: ReplicaSettings
    logs: LogDirs
    isr_counts: IsrCounts
    unsettled: set["Partition"]
    """Leaders that time alone may change: to be looked at again and again."""

    def session_alive(self, now_ms: int) -> bool: ...

    @property
    def told_fenced(self) -> bool: ...

    def propose(self, partition: "Partition", change: IsrChange) -> None: ...

    def follow(self, partition: "Partition") -> None: ...

    def unfollow(self, partition: "Partition") -> None: ...

    def in_executor(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run work that waits for the disk."""
        ...

    def fail(self, error: BaseException) -> None:
        """Something is wrong beyond this request: the process must end."""
        ...


class Watcher(Protocol):
    """Wants to know when there is more to read."""

    def end_moved(self) -> None: ...

    def high_watermark_moved(self) -> None: ...

    def start_moved(self) -> None: ...

    def role_changed(self) -> None: ...


class Partition:
    __slots__ = (
        "__weakref__",
        "_host",
        "at_high_watermark",
        "at_low_watermark",
        "data",
        "flushed",
        "id",
        "is_removed",
        "name",
        "settings",
        "state",
        "watchers",
    )

    def __init__(
        self, assignment: Assignment, host: Host, *, log: Log | None, settings: TopicSettings
    ) -> None:
        self.id: PartitionId = assignment.id
        self.name = TopicPartition(assignment.topic, assignment.id.partition)
        self.settings = settings
        self.data = PartitionLog(
            self.name,
            Uuid(assignment.id.topic_id),
            log,
            logs=host.logs,
            in_executor=host.in_executor,
            on_failure=host.fail,
        )
        self.data.configure(settings.log)
        self.is_removed = False
        self.state = PartitionState(
            partition=assignment.id,
            broker_id=host.broker_id,
            brokers=host,
            lag_ms=host.settings.replica_lag_ms,
            log=_ends(log),
            min_insync=settings.min_insync_replicas,
            flush_before_ack=settings.flush_before_ack,
            name=self.name,
        )
        self.watchers: dict[Watcher, None] = {}
        self.at_high_watermark = OffsetQueue()
        """Produce requests with acks=all."""
        self.flushed = OffsetQueue()
        """Produce requests with acks=1 where a copy counts only when it is flushed."""
        self.at_low_watermark = OffsetQueue()
        """Requests to delete records."""
        self._host = host

    def __repr__(self) -> str:
        return f"Partition({self.name})"

    # -- what others ask

    @property
    def log(self) -> Log | None:
        """None before the first record."""
        return self.data.log

    @property
    def start_offset(self) -> int:
        return self.data.start_offset

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    @property
    def end_offset(self) -> int:
        return self.state.end_offset

    @property
    def is_leader(self) -> bool:
        return isinstance(self.state.role, Leading)

    @property
    def leader_hint(self) -> LeaderHint | None:
        return self.state.leader_hint

    def check_epoch(self, leader_epoch: int | None) -> None:
        """Raises Refused where the sender's leader epoch is not ours."""
        current = self.state.leader_epoch
        if leader_epoch is None or leader_epoch == current:
            return
        if leader_epoch < current:
            raise fenced_epoch(self.name, leader_epoch, current, self.leader_hint)
        raise unknown_epoch(self.name, leader_epoch, current)

    def check_leader(self, leader_epoch: int | None = None) -> Leading:
        self.check_epoch(leader_epoch)
        role = self.state.role
        if not isinstance(role, Leading):
            raise not_leader(self.name, self._host.broker_id, self.leader_hint)
        return role

    def check_serving(self, now_ms: int) -> None:
        """Raises Refused where we cannot know whether we still count (brokers/gate.py)."""
        window_ms = self._host.settings.heard_window_ms
        if not self.is_in_session(now_ms) and not self.state.is_sure_to_lead(now_ms, window_ms):
            raise cut_off(self.name, self._host.broker_id)

    def is_in_session(self, now_ms: int) -> bool:
        """Whether the controller counts on us, as far as we know."""
        return self._host.session_alive(now_ms)

    # -- metadata

    async def idle(self) -> None:
        """Until nobody opens or cuts the log."""
        await self.data.idle()

    def apply(self, assignment: Assignment) -> None:
        before = committed_isr(self.state)
        self._carry_out(self.state.apply(assignment, self._now_ms()))
        self._host.isr_counts.note(before, self.state)
        self._release_deletions()

    def brokers_changed(self) -> None:
        self._carry_out(self.state.brokers_changed(self._now_ms()))
        self._release_deletions()

    def altered(self, change: IsrChange, result: IsrResult) -> None:
        before = committed_isr(self.state)
        self._carry_out(self.state.altered(change, result, self._now_ms()))
        self._host.isr_counts.note(before, self.state)

    def configure(self, settings: TopicSettings) -> None:
        """Let new topic configs take effect. Where copies are to be flushed from now on, what is
        there is flushed first.
        """
        turned_on = settings.flush_before_ack and not self.settings.flush_before_ack
        self.settings = settings
        self.data.configure(settings.log)
        if turned_on and self.state.flushed_offset < self.end_offset:
            self.request_flush()
        else:
            self._set_policy()

    def _set_policy(self) -> None:
        self._carry_out(
            self.state.set_policy(
                min_insync=self.settings.min_insync_replicas,
                flush_before_ack=self.settings.flush_before_ack,
                now_ms=self._now_ms(),
            )
        )

    def remove(self) -> None:
        """The partition is no longer ours. Whoever waits for it hears so."""
        self.is_removed = True
        self._host.unfollow(self)
        self._host.unsettled.discard(self)
        self._fail_waiting()
        self._role_changed()

    # -- effects

    def _now_ms(self) -> int:
        return self._host.clock.monotonic_ms()

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case MoveHighWatermark(offset):
                    self._move_high_watermark(offset)
                case Propose(change):
                    self._host.propose(self, change)
                case BelowMinIsr(isr, needed):
                    self.at_high_watermark.fail_all(not_enough_after_append(self.name, isr, needed))
                case StartLeading(epoch, start_offset):
                    self._start_leading(epoch, start_offset)
                case StopLeading():
                    self._host.unsettled.discard(self)
                    self._fail_waiting()
                    self._role_changed()
                case StartFollowing(_, _):
                    self._start_following()
                case StopFollowing():
                    self._host.unfollow(self)

    def _move_high_watermark(self, offset: int) -> None:
        if self.log is not None:
            self.log.high_watermark = offset
        self.at_high_watermark.release(offset)
        for watcher in list(self.watchers):
            watcher.high_watermark_moved()

    def _start_leading(self, epoch: int, start_offset: int) -> None:
        logger.debug("%s: leading epoch %d from offset %d", self.name, epoch, start_offset)
        if self.log is not None:
            self.log.epochs.assign(epoch, start_offset)
        self._host.unsettled.add(self)
        self._role_changed()

    def _start_following(self) -> None:
        if self.log is not None:
            # An epoch of ours in which nothing was written never was, for the new leader.
            self.log.epochs.truncate_from_end(self.log.end_offset)
        self._host.follow(self)
        self._role_changed()

    def _role_changed(self) -> None:
        for watcher in list(self.watchers):
            watcher.role_changed()

    def _fail_waiting(self) -> None:
        gone = not_leader(self.name, self._host.broker_id, self.leader_hint)
        for queue in (self.at_high_watermark, self.flushed, self.at_low_watermark):
            queue.fail_all(gone.error)

    # -- as leader

    def append(self, records: Buffer, acks: int) -> tuple[Appended, bytearray]:
        """Append a client's batch, and return where it went and the bytes as they are in the log.

        Only once there is a log (`data.when_open`). Raises Refused, or the KraftError of a batch
        that is not fit for the log.
        """
        role = self.check_leader()
        if self._host.told_fenced:
            raise fenced(self.name, self._host.broker_id)
        if acks != ACKS_ALL:
            self.check_serving(self._now_ms())
        elif len(role.isr.members) < self.state.needed_isr:
            raise not_enough_replicas(self.name, len(role.isr.members), self.state.needed_isr)
        data, log = bytearray(records), self.data.opened()
        _check_not_transactional(data)
        try:
            appended = log.append_from_client(data, leader_epoch=self.state.leader_epoch)
        except StorageError as error:
            # A leader that can only refuse keeps away one that could append: let others lead.
            if not self.is_removed:
                self._host.fail(error)
            raise
        if not appended.duplicate:
            self._grown(log)
        return appended, data

    def _grown(self, log: Log) -> None:
        effects = self.state.appended(log.end_offset, self._now_ms())
        if self.settings.flush_before_ack:
            self.request_flush()
        if self.is_leader:
            self._host.unsettled.add(self)
        for watcher in list(self.watchers):
            watcher.end_moved()
        self._carry_out(effects)

    def follower_fetched(self, part: FetchPart, fetch: FollowerFetch) -> None:
        """A replica asks for an offset, and so has all below. Raises Refused, or returns without
        counting it where its log parts from ours.
        """
        if part.leader_epoch is None:
            raise no_epoch(self.name, fetch.replica_id)
        self.check_leader(part.leader_epoch)
        self.state.check_replica(fetch.replica_id, fetch.broker_epoch)
        if self.find_divergence(part.offset, part.last_fetched_epoch) is not None:
            return
        self.check_in_log(part.offset)
        self._sync_start()
        self._carry_out(self.state.fetched(fetch, self._now_ms()))
        self._release_deletions()

    def _release_deletions(self) -> None:
        """A replica has dropped records, or is not waited for any more."""
        if self.at_low_watermark:
            self.at_low_watermark.release(self.state.low_watermark())

    def check(self) -> None:
        """Time has passed."""
        self._carry_out(self.state.check(self._now_ms()))
        if self.state.is_settled():
            self._host.unsettled.discard(self)

    # -- reading

    def check_in_log(self, offset: int) -> None:
        if not self.start_offset <= offset <= self.end_offset:
            raise out_of_range(self.name, offset, self.start_offset, self.end_offset)

    def find_divergence(self, offset: int, last_epoch: int | None) -> EpochEnd | None:
        """Where the log of someone who is at `offset`, after a record of `last_epoch`, parts from
        ours; None if it does not. Refused if it is below our start, parted or not (KAFKA-12996).
        """
        if last_epoch is None:
            return None
        end = self.epoch_end(last_epoch)
        if end is None or offset < self.start_offset:
            raise out_of_range(self.name, offset, self.start_offset, self.end_offset)
        return end if end.epoch < last_epoch or end.end_offset < offset else None

    def epoch_end(self, epoch: int) -> EpochEnd | None:
        """The end of the largest epoch up to `epoch` that is known here."""
        return self.data.epoch_end(epoch, self.state.leader_epoch)

    # -- as follower

    def append_fetched(self, data: Buffer) -> None:
        """Batches as the leader has them, from our end on. Only once there is a log."""
        log = self.data.opened()
        log.append_fetched(data)
        self._grown(log)

    def heard_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """The leader answered, and its log and ours do not part."""
        if self.log is not None and self.start_offset < log_start_offset <= self.end_offset:
            self.log.advance_start(log_start_offset)
        self._sync_start()
        self._carry_out(self.state.heard_leader(high_watermark))

    async def truncate_to(self, offset: int) -> None:
        """Cut our log, as a follower whose log parts from the leader's."""
        if self.log is None:
            return
        if offset < self.high_watermark:
            logger.warning(
                "%s is cut at offset %d, below its high watermark %d: the leader was elected"
                " without it",
                self.name,
                offset,
                self.high_watermark,
            )
        await self.data.truncate_to(offset)
        self.state.truncated(self.data.end_offset)

    async def restart_at(self, offset: int) -> None:
        """Drop our whole log: the leader's begins after its end."""
        await self.data.restart_at(offset)
        self.state.restarted(self.data.end_offset)

    # -- the start of the log

    def delete_below(self, offset: int) -> None:
        """As leader, drop all below `offset`, which is committed."""
        if self.log is not None and offset > self.start_offset:
            self.log.advance_start(offset)
            self.note_start()

    def note_start(self) -> None:
        """Records were dropped from the start of the log, perhaps by retention."""
        self._sync_start()
        for watcher in list(self.watchers):
            watcher.start_moved()

    def _sync_start(self) -> None:
        if self.log is not None and self.log.start_offset > self.state.start_offset:
            self.state.start_moved(self.log.start_offset)

    # -- flushing

    def request_flush(self) -> None:
        """Flush all that is there by now."""
        self.data.flush(self._flush_done)

    @property
    def is_flushed(self) -> bool:
        """Whether our copy counts as it is."""
        unflushed = self.state.flushed_offset < self.end_offset
        return not (self.settings.flush_before_ack and unflushed)

    def when_flushed(self, call: Callable[[], None]) -> None:
        """Call once all that is here by now is flushed, or will not be."""
        self.flushed.add(self.end_offset, lambda _error: call())
        self.request_flush()

    async def wait_flushed(self) -> None:
        """Until our copy counts."""
        if not self.is_flushed:
            done = asyncio.Event()
            self.when_flushed(done.set)
            await done.wait()

    def _flush_done(self, error: BaseException | None) -> None:
        if self.is_removed:
            return
        if error is not None:
            self._host.fail(error)
            return
        # Not what the flush returned: the log may have been cut since.
        self._carry_out(self.state.flushed(self.data.flushed_offset, self._now_ms()))
        if self.settings.flush_before_ack and not self.state.flush_before_ack:
            self._set_policy()
        self.flushed.release(self.state.flushed_offset)


def _check_not_transactional(data: bytearray) -> None:
    """Nothing would ever end its transaction."""
    batch = RecordBatch(data)
    if batch.is_transactional:
        batch.check_for_produce()
        raise NotYetSupported("transactions are not there yet", hint="send without one for now")


def _ends(log: Log | None) -> LogEnds:
    if log is None:
        return LogEnds()
    return LogEnds(log.start_offset, log.high_watermark, log.flushed_offset, log.end_offset)
