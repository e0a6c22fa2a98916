"""Fetch: records of many partitions in one reply, for replicas and consumers.

A fetch first moves its reader in the session: for a replica, the offset that it asks for is the
acknowledgement of all below. Then it looks at the partitions that may have news. It is answered at
once if something cannot wait (an error, logs that part, a better replica to read from) or if there
are `min_bytes`; otherwise it is parked, and each piece of news has it look again, once per turn of
the event loop.

Replicas read to the end of the log, consumers to the high watermark. A higher high watermark alone
is news for a replica, but news that can wait a few milliseconds: usually records follow.

A reply has at most max_bytes, and never more than REPLY_BYTES_MAX, but for its first batch, which
comes whole. What found no room is looked at first the next time.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from brokers.fetch_sessions import FetchSession, FetchSessions, SessionPart
from brokers.partition import Partition
from brokers.partition_log import NOTHING
from brokers.partition_state import Leading
from brokers.partition_table import PartitionTable
from brokers.progress import FollowerFetch
from brokers.purgatory import Cancellable, Parked, Purgatory
from brokers.refusals import Refused, no_epoch
from brokers.replication_throttle import ReplicationThrottle, names
from brokers.requests import (
    NO_SESSION,
    FetchReply,
    FetchRequest,
    FetchResult,
    ReplicaIdentity,
)
from brokers.settings import REPLY_BYTES_MAX, ReplicaSettings
from brokers.turns import Turns
from kraftlog.clock import Clock
from kraftlog.errors import KraftError, StorageError
from storage.log_reader import LogSlice

REPLY_PARTS_MAX = 500

OnFetched = Callable[[FetchReply], None]


@dataclass(slots=True)
class Found:
    """What there is to say of one partition, its records not read yet."""

    part: SessionPart
    result: FetchResult
    records: LogSlice = NOTHING
    urgent: bool = False
    throttled: bool = False


@dataclass(slots=True)
class Collected:
    room: int
    found: list[Found] = field(default_factory=list)
    bytes: int = 0
    urgent: bool = False

    def add(self, each: Found) -> None:
        self.found.append(each)
        self.bytes += each.records.length
        self.room -= each.records.length
        self.urgent = self.urgent or each.urgent

    @property
    def is_full(self) -> bool:
        return len(self.found) >= REPLY_PARTS_MAX or (self.room <= 0 and self.bytes > 0)


class Fetches:
    """All fetches of a broker."""

    def __init__(
        self,
        table: PartitionTable,
        purgatory: Purgatory,
        *,
        settings: ReplicaSettings,
        clock: Clock,
    ) -> None:
        self.table = table
        self.purgatory = purgatory
        self.settings = settings
        self.clock = clock
        self.throttle = ReplicationThrottle(clock)
        self.sessions = FetchSessions(limit=settings.sessions_max, idle_ms=settings.session_idle_ms)

    def fetch(self, request: FetchRequest, on_done: OnFetched) -> Cancellable | None:
        """Begin a fetch. `on_done` is called once, perhaps before this returns."""
        try:
            if request.wake:
                self._wake(self.sessions.get(request))
                on_done(FetchReply(request.session_id))
                return None
            session = self.sessions.take(request, self.clock.monotonic_ms())
        except KraftError as error:
            on_done(FetchReply(error=error))
            return None
        operation = _Fetch(self, session, request, on_done)
        operation.begin()
        return None if operation.is_over else operation

    def _wake(self, session: FetchSession) -> None:
        if session.interrupt is not None:
            session.interrupt()


class _Fetch:
    """One fetch, from its arrival to its reply."""

    def __init__(
        self, service: Fetches, session: FetchSession, request: FetchRequest, on_done: OnFetched
    ) -> None:
        self.is_over = False
        self._service = service
        self._session = session
        self._request = request
        self._on_done = on_done
        self._loop = asyncio.get_running_loop()
        self._parked: Parked | None = None
        self._scheduled: asyncio.Handle | None = None
        self._late_news: asyncio.TimerHandle | None = None
        self._updates = self._move_readers()

    # -- its arrival

    def begin(self) -> None:
        session = self._session
        if session.interrupt is not None:
            session.interrupt()  # its reader has moved on
        session.clock.heard(self._service.clock.monotonic_ms())
        session.interrupt = self._answer
        self._update()

    def _update(self) -> None:
        """Move readers, a slice in each turn of the loop; then look."""
        if self.is_over:
            return
        if next(self._updates, None) is None:
            self._first_look()
        else:
            self._scheduled = self._loop.call_soon(self._update)

    def _move_readers(self) -> Iterator[bool]:
        """Yields where it has done enough for one turn."""
        session, replica = self._session, self._request.replica
        for partition in self._request.forgotten:
            session.forget(partition)
        turns = Turns()
        for want in self._request.parts:
            part = session.put(want)
            if replica is not None:
                self._acknowledge(part, replica)
            if turns.is_over:
                yield True
                turns.restart()

    def _acknowledge(self, part: SessionPart, replica: ReplicaIdentity) -> None:
        try:
            partition = self._service.table.find(part.id)
            part.watch(partition)
            self._note_position(part, partition, replica)
        except Refused:
            return  # it does not count, and the look that follows tells why

    def _note_position(
        self, part: SessionPart, partition: Partition, replica: ReplicaIdentity
    ) -> None:
        want = part.want
        partition.follower_fetched(
            want,
            FollowerFetch(
                replica.broker_id,
                replica.broker_epoch,
                want.offset,
                want.log_start_offset,
                self._session.clock,
            ),
        )
        part.is_noted = True

    # -- looking for news

    def _first_look(self) -> None:
        collected = self._collect()
        if self._is_ready(collected) or self._request.max_wait_ms <= 0 or not self._session.parts:
            self._reply(collected)
            return
        try:
            kind = "fetch" if self._request.replica is None else "replica_fetch"
            self._parked = self._service.purgatory.park(kind)
        except KraftError as error:
            self._finish(FetchReply(self._session.id, error=error))
            return
        self._parked.wait(self._request.max_wait_ms, on_timeout=self._answer)
        self._session.on_news = self._on_news
        self._wait_for_more(collected)

    def _on_news(self, urgent: bool) -> None:
        if not urgent:
            self._plan_late_news()
        elif self._scheduled is None:
            self._scheduled = self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._scheduled = None
        if self.is_over:
            return
        collected = self._collect()
        if self._is_ready(collected):
            self._reply(collected)
        else:
            self._wait_for_more(collected)

    def _wait_for_more(self, collected: Collected) -> None:
        if self._request.replica is not None and collected.found:
            self._plan_late_news()

    def _plan_late_news(self) -> None:
        if self._late_news is None and self._request.replica is not None:
            delay_ms = self._service.settings.high_watermark_news_ms
            self._late_news = self._loop.call_later(delay_ms / 1000, self._answer)

    def _is_ready(self, collected: Collected) -> bool:
        enough = collected.bytes >= max(self._request.min_bytes, 1)
        return collected.urgent or enough or collected.is_full

    def _collect(self) -> Collected:
        news = self._session.news
        collected = Collected(min(self._request.max_bytes, REPLY_BYTES_MAX))
        for part in list(news):
            found = self._look_at(part, collected)
            if found is None:
                del news[part]
            elif found.result.error is not None or found.urgent or _says_something(found):
                collected.add(found)
            if collected.is_full:
                break
        return collected

    def _look_at(self, part: SessionPart, collected: Collected) -> Found | None:
        """None: there is nothing to say, until the partition tells of something."""
        result = FetchResult(part.id)
        try:
            partition = self._service.table.find(part.id)
            part.watch(partition)
            if self._request.replica is not None:
                return self._look_as_replica(part, partition, collected)
            return self._look_as_consumer(part, partition, collected)
        except Refused as refused:
            result.error, result.leader = refused.error, refused.leader
            partition_here = self._service.table.hosted.get(part.id)
            if partition_here is not None:
                _describe(result, partition_here)
        except KraftError as error:
            result.error = error
        return Found(part, result, urgent=True)

    def _look_as_replica(
        self, part: SessionPart, partition: Partition, collected: Collected
    ) -> Found | None:
        want, replica = part.want, self._request.replica
        partition.check_leader(want.leader_epoch)
        if replica is not None:
            if want.leader_epoch is None:
                raise no_epoch(partition.name, replica.broker_id)
            partition.state.check_replica(replica.broker_id, replica.broker_epoch)
        found = Found(part, _describe(FetchResult(part.id), partition))
        found.result.diverging = partition.find_divergence(want.offset, want.last_fetched_epoch)
        if found.result.diverging is not None:
            found.urgent = True
            return found
        partition.check_in_log(want.offset)
        if replica is not None and not part.is_noted:
            # When it was asked for the metadata that it rests on was not here yet. Its replica was
            # not told, perhaps, and will not ask again: without this it could never join the ISR.
            self._note_position(part, partition, replica)
        found.throttled = replica is not None and self._is_throttled(partition, replica.broker_id)
        if found.throttled and (wait_ms := self._service.throttle.wait_ms()):
            again = partial(self._session.note, part, urgent=True)
            self._loop.call_later(wait_ms / 1000, again)
            return self._take(found, partition, want.offset, collected)
        return self._take(found, partition, partition.end_offset, collected)

    def _is_throttled(self, partition: Partition, replica_id: int) -> bool:
        listed, role = partition.settings.leader_throttled, partition.state.role
        here = self._service.table.broker_id
        if not listed or not isinstance(role, Leading) or replica_id in role.isr.maximal:
            return False
        return names(listed, partition.id.partition, here)

    def _look_as_consumer(
        self, part: SessionPart, partition: Partition, collected: Collected
    ) -> Found | None:
        want, rack = part.want, self._request.rack
        partition.check_epoch(want.leader_epoch)
        if not rack:
            partition.check_leader()
        partition.check_serving(self._service.clock.monotonic_ms())
        found = Found(part, _describe(FetchResult(part.id), partition))
        found.result.diverging = partition.find_divergence(want.offset, want.last_fetched_epoch)
        found.result.preferred_replica = self._closest(partition, want.offset) if rack else None
        if found.result.diverging is not None or found.result.preferred_replica is not None:
            found.urgent = True
            return found
        partition.check_in_log(want.offset)
        return self._take(found, partition, partition.high_watermark, collected)

    def _take(
        self, found: Found, partition: Partition, limit: int, collected: Collected
    ) -> Found | None:
        """With the records that there is room for. None if there is nothing new at all."""
        part, want = found.part, found.part.want
        records = partition.data.locate(
            want.offset, min(want.max_bytes, max(collected.room, 1)), limit
        )
        is_new = (
            records.length > 0
            or partition.high_watermark > part.told_high_watermark
            or partition.start_offset > part.told_start
        )
        if records.length <= collected.room or not collected.bytes:
            found.records = records
        return found if is_new else None

    def _closest(self, partition: Partition, offset: int) -> int | None:
        """A replica in the consumer's rack, in sync and with that offset, if we are not there.

        Without a session we cannot know: that replica has none either, perhaps, and would refuse.
        """
        role, rack, view = partition.state.role, self._request.rack, self._service.table.view
        here = view.broker(self._service.table.broker_id)
        is_here = here is not None and here.rack == rack
        in_session = partition.is_in_session(self._service.clock.monotonic_ms())
        if not isinstance(role, Leading) or is_here or not in_session:
            return None
        best, best_end = None, -1
        for replica_id, progress in sorted(role.followers.items()):
            info = view.broker(replica_id)
            has_it = progress.start_offset <= offset <= progress.end_offset
            near = info is not None and info.serves and info.rack == rack
            in_sync = replica_id in role.isr.members
            if near and in_sync and has_it and progress.end_offset > best_end:
                best, best_end = replica_id, progress.end_offset
        return best

    # -- its reply

    def _answer(self) -> None:
        """Now, with whatever there is."""
        if self.is_over:
            return
        for _ in self._updates:
            continue
        self._reply(self._collect())

    def _reply(self, collected: Collected) -> None:
        session = self._session
        results = []
        for found in collected.found:
            _read(found)
            if found.throttled:
                self._service.throttle.spend(found.records.length)
            found.part.told_high_watermark = found.result.high_watermark
            found.part.told_start = found.result.log_start_offset
            if found.part in session.news:  # to the end: others have their turn first
                session.news[found.part] = session.news.pop(found.part)
            results.append(found.result)
        if self._request.session_id == NO_SESSION and self._request.replica is None:
            results += self._others({found.part for found in collected.found})
        self._finish(FetchReply(session.id, results))

    def _others(self, told: set[SessionPart]) -> list[FetchResult]:
        """A full fetch of a consumer hears of every partition that it named."""
        others = [part for part in self._session.parts.values() if part not in told]
        here = [(part.id, self._service.table.hosted.get(part.id)) for part in others]
        return [_describe(FetchResult(name), each) for name, each in here if each is not None]

    def _finish(self, reply: FetchReply) -> None:
        self._release()
        self._session.clock.replied(self._service.clock.monotonic_ms())
        self._on_done(reply)

    def _release(self) -> None:
        self.is_over = True
        session = self._session
        session.on_news = session.interrupt = None
        if self._parked is not None:
            self._parked.end()
        for handle in (self._scheduled, self._late_news):
            if handle is not None:
                handle.cancel()
        if session.id == NO_SESSION:
            session.close()

    def cancel(self) -> None:
        """Whoever asked is gone."""
        if not self.is_over:
            self._release()


def _says_something(found: Found) -> bool:
    """Records without room are no reason to name a partition; a new high watermark is."""
    return (
        found.records.length > 0
        or found.result.high_watermark > found.part.told_high_watermark
        or found.result.log_start_offset > found.part.told_start
    )


def _describe(result: FetchResult, partition: Partition) -> FetchResult:
    result.high_watermark = partition.high_watermark
    result.log_start_offset = partition.start_offset
    result.end_offset = partition.end_offset
    return result


def _read(found: Found) -> None:
    try:
        found.result.records = found.records.read()
    except OSError as error:
        found.result.error = StorageError(f"cannot read records: {error}", hint="try again")
