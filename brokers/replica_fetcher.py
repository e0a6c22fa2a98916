"""Following: one task and one fetch at a time for each broker that leads something we replicate.

The fetch of a source covers all partitions that it leads, in an incremental session: a request
names only those whose position changed, which is also how the source learns what we have. So the
next fetch leaves only when everything of the last reply is in our log, and flushed where copies
count only then.

    a reply with         we
    records              append them, if they follow what we have by now, and nothing has changed
    diverging            cut our log where the epochs part, and ask again; what else the reply says
                         of that partition is not true for us yet (KAFKA-14704)
    OFFSET_OUT_OF_RANGE  cut to the leader's end if ours is beyond it, begin anew at its start if
                         ours ends before that (KAFKA-9491)
    FENCED_LEADER_EPOCH  leave the partition alone until metadata tells of its new leader
    another error        ask again after a pause, which grows; the other partitions go on

A partition that pauses is taken out of the session, so that it costs its source nothing.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.replication_throttle import ReplicationThrottle, names
from brokers.requests import (
    NEW_SESSION_EPOCH,
    NO_SESSION,
    FetchPart,
    FetchReply,
    FetchRequest,
    FetchResult,
    ReplicaIdentity,
)
from brokers.settings import REPLY_BYTES_MAX, ReplicaSettings
from brokers.turns import Turns
from kraftlog.errors import CorruptRecord, ErrorCode, KraftError, StorageError
from kraftlog.types import EpochEnd

logger = logging.getLogger(__name__)

REQUEST_PARTS_MAX = 1_000
CHUNK_BATCHES = 64
"""So many batches are appended in one turn of the event loop."""
FIRST_PAUSE_PART = 20
INT32_MAX = 2**31 - 1

_SESSION_LOST = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
_BATCH = struct.Struct(">qii")  # base offset, length, leader epoch
_LENGTH_PREFIX_BYTES = 12

OnFetchReply = Callable[[FetchReply | None], None]


class SourceLink(Protocol):
    """A stream of requests to one broker."""

    def send(self, request: FetchRequest, *, timeout_ms: int, on_reply: OnFetchReply) -> None:
        """`on_reply` is called once: with the reply, or with None if none came in time."""
        ...

    async def run(self) -> None:
        """Keep the stream open until cancelled."""
        ...


@dataclass(slots=True, eq=False)
class Followed:
    """One partition of a source."""

    partition: Partition
    epoch: int
    asked: FetchPart | None = None
    """The position that the session has; None: it is not asked for at present."""
    failures: int = 0

    @property
    def is_current(self) -> bool:
        state = self.partition.state
        return state.leader_epoch == self.epoch and not self.partition.is_removed

    def position(self, max_bytes: int) -> FetchPart:
        partition = self.partition
        return FetchPart(
            partition.id,
            partition.end_offset,
            self.epoch,
            partition.data.last_epoch,
            partition.start_offset,
            max_bytes,
            partition.high_watermark,
        )


class SourceFetcher:
    """Fetches from one broker. `broker_epoch` tells our present registration."""

    def __init__(
        self,
        link: SourceLink,
        identity: Callable[[], ReplicaIdentity],
        *,
        settings: ReplicaSettings,
        throttle: ReplicationThrottle,
    ) -> None:
        self._link = link
        self._throttle = throttle
        self._identity = identity
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._followed: dict[PartitionId, Followed] = {}
        self._dirty: dict[PartitionId, None] = {}
        self._named: set[PartitionId] = set()
        """What the session has."""
        self._forgotten: dict[PartitionId, None] = {}
        self._session_id = NO_SESSION
        self._session_epoch = NEW_SESSION_EPOCH
        self._refused_session = False  # the source has no room: every fetch names everything
        self._known_as: ReplicaIdentity | None = None  # the registration that the session is of
        self._changed = asyncio.Event()
        self._is_retired = False
        self._parked: FetchRequest | None = None
        self._wake_planned = False
        self._paused: list[tuple[float, int, Followed]] = []
        self._pauses = 0
        self._pause_timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._followed)

    # -- what to follow

    def add(self, partition: Partition) -> None:
        """Follow a partition, or follow it in its new leader epoch."""
        self._followed[partition.id] = Followed(partition, partition.state.leader_epoch)
        self._ask_for(partition.id)

    def remove(self, partition: PartitionId) -> None:
        followed = self._followed.pop(partition, None)
        if followed is not None:
            self._forget(followed)

    def _ask_for(self, partition: PartitionId) -> None:
        self._dirty[partition] = None
        self._changed.set()
        if self._parked is not None and not self._wake_planned:
            self._wake_planned = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        """Have the source answer the fetch that it has parked: we have more to ask."""
        self._wake_planned = False
        parked, self._parked = self._parked, None
        if parked is None or parked.session_id == NO_SESSION:
            return
        wake = FetchRequest(replica=parked.replica, session_id=parked.session_id, wake=True)
        try:
            self._link.send(wake, timeout_ms=self._settings.fetch_timeout_ms, on_reply=_ignore)
        except KraftError as error:
            logger.debug("the source is not woken: %s", error)

    def _forget(self, followed: Followed) -> None:
        """Take it out of the session."""
        followed.asked = None
        partition = followed.partition.id
        self._dirty.pop(partition, None)
        if partition in self._named:
            self._named.discard(partition)
            self._forgotten[partition] = None

    # -- the task

    async def run(self) -> None:
        """Until cancelled, or retired."""
        async with asyncio.TaskGroup() as tasks:
            link = tasks.create_task(self._link.run(), name="link")
            await self._fetch_on()
            link.cancel()

    async def _fetch_on(self) -> None:
        failures = 0
        while await self._has_work():
            self._check_identity()
            request = self._next_request()
            reply = await self._exchange(request)
            if reply is not None and reply.error is None:
                failures = 0
                await self._process(reply)
                continue
            self._lose_session()
            failures += 1
            if failures > 1 or not _is_session_lost(reply):
                await asyncio.sleep(self._pause_ms(failures) / 1000)

    def _check_identity(self) -> None:
        """After a new registration the session would go on speaking for the old one."""
        identity = self._identity()
        if identity != self._known_as:
            self._known_as = identity
            self._lose_session()

    async def _has_work(self) -> bool:
        """Waits for some; False if none will come."""
        while not self._dirty and not self._named and not self._is_retired:
            self._changed.clear()
            await self._changed.wait()
        return not self._is_retired

    def _next_request(self) -> FetchRequest:
        parts = []
        for partition in list(self._dirty)[:REQUEST_PARTS_MAX]:
            del self._dirty[partition]
            followed = self._followed[partition]
            if not self._is_flushed(followed):
                continue
            followed.asked = followed.position(self._settings.fetch_partition_bytes)
            parts.append(followed.asked)
            self._named.add(partition)
            self._forgotten.pop(partition, None)
        is_new = self._session_epoch == NEW_SESSION_EPOCH
        forgotten, self._forgotten = self._forgotten, {}
        return FetchRequest(
            replica=self._identity(),
            max_wait_ms=0 if self._is_hasty(is_new=is_new) else self._settings.fetch_wait_ms,
            min_bytes=1,
            max_bytes=REPLY_BYTES_MAX,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            parts=parts,
            forgotten=() if is_new else tuple(forgotten),
        )

    def _is_hasty(self, *, is_new: bool) -> bool:
        """Not to be parked. The first fetch is not: only its answer tells the session's id."""
        return bool(self._dirty) or (is_new and not self._refused_session)

    def _is_flushed(self, followed: Followed) -> bool:
        """To ask for an offset says that we have all below it. Where that must mean flushed, it is
        asked for later.
        """
        partition = followed.partition
        if partition.is_flushed:
            return True
        self._forget(followed)
        partition.when_flushed(lambda: self._ask_again(followed))
        return False

    def _ask_again(self, followed: Followed) -> None:
        if self._followed.get(followed.partition.id) is followed and followed.is_current:
            self._ask_for(followed.partition.id)

    async def _exchange(self, request: FetchRequest) -> FetchReply | None:
        answer: asyncio.Future[FetchReply | None] = self._loop.create_future()

        def take(reply: FetchReply | None) -> None:
            if not answer.done():
                answer.set_result(reply)

        timeout_ms = request.max_wait_ms + self._settings.fetch_timeout_ms
        self._parked = request if request.max_wait_ms else None
        try:
            self._link.send(request, timeout_ms=timeout_ms, on_reply=take)
            return await answer
        except KraftError as error:
            logger.info("a fetch was not sent: %s", error)
            return None
        finally:
            self._parked = None

    def _lose_session(self) -> None:
        self._session_id, self._session_epoch = NO_SESSION, NEW_SESSION_EPOCH
        self._forgotten.clear()
        for partition in self._named:
            self._followed[partition].asked = None
            self._dirty[partition] = None
        self._named.clear()

    # -- replies

    async def _process(self, reply: FetchReply) -> None:
        self._session_id = reply.session_id
        self._refused_session = reply.session_id == NO_SESSION
        if reply.session_id == NO_SESSION:
            self._lose_session()
        else:
            self._session_epoch = self._session_epoch % INT32_MAX + 1
        appended: list[Partition] = []
        turns = Turns()
        for result in reply.parts:
            followed = self._followed.get(result.partition)
            if followed is None:
                self._forgotten[result.partition] = None
            elif followed.is_current and followed.asked is not None:
                await self._take(followed, followed.asked, result)
                appended.append(followed.partition)
            await turns.share()
        for partition in appended:
            await partition.wait_flushed()

    async def _take(self, followed: Followed, asked: FetchPart, result: FetchResult) -> None:
        partition = followed.partition
        try:
            if result.error is not None:
                await self._take_error(followed, result)
            elif result.diverging is not None:
                await self._part_ways(followed, result.diverging)
            elif partition.end_offset == asked.offset:
                await _append(followed, result)
                followed.failures = 0
                self._pay_for(followed, len(result.records))
        except (CorruptRecord, StorageError) as error:
            logger.warning("%s: what was fetched cannot be appended: %s", partition.name, error)
            self._pause(followed)
            return
        if self._followed.get(partition.id) is followed and followed.asked is asked:
            now = followed.position(asked.max_bytes)
            if (now.offset, now.last_fetched_epoch, now.log_start_offset) != (
                asked.offset,
                asked.last_fetched_epoch,
                asked.log_start_offset,
            ):
                self._dirty[partition.id] = None

    async def _take_error(self, followed: Followed, result: FetchResult) -> None:
        partition, error = followed.partition, result.error
        if error is None:
            return
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and result.end_offset >= 0:
            await self._return_to_range(followed, result)
        elif error.code == ErrorCode.FENCED_LEADER_EPOCH:
            logger.info("%s is left alone until metadata comes: %s", partition.name, error)
            self._forget(followed)
        else:
            logger.debug("%s: %s", partition.name, error)
            self._pause(followed)

    async def _part_ways(self, followed: Followed, leader: EpochEnd) -> None:
        partition = followed.partition
        if partition.log is None:
            self._pause(followed)  # an empty log parts from nothing: nonsense, or a race
            return
        offset = truncation_point(partition.log, leader)
        logger.info(
            "%s parts from its leader, whose epoch %d ends at %d: %d is cut to %d",
            partition.name,
            leader.epoch,
            leader.end_offset,
            partition.end_offset,
            offset,
        )
        await partition.truncate_to(offset)

    async def _return_to_range(self, followed: Followed, result: FetchResult) -> None:
        partition = followed.partition
        start, end = result.log_start_offset, result.end_offset
        logger.warning(
            "%s ends at %d, its leader has [%d, %d]",
            partition.name,
            partition.end_offset,
            start,
            end,
        )
        if end < partition.end_offset:
            await partition.truncate_to(end)
        elif start > partition.end_offset:
            await partition.restart_at(start)
        else:
            self._pause(followed)  # it has moved into range meanwhile: ask again

    # -- pauses

    def _pay_for(self, followed: Followed, count: int) -> None:
        """A copy to a new place rests when it was too quick."""
        partition, identity = followed.partition, self._identity()
        listed = partition.settings.follower_throttled
        assignment = partition.state.assignment
        in_sync = assignment is not None and identity.broker_id in assignment.isr
        if count and not in_sync and names(listed, partition.id.partition, identity.broker_id):
            self._throttle.spend(count)
            if wait_ms := self._throttle.wait_ms():
                self._rest(followed, wait_ms)

    def _pause_ms(self, failures: int) -> int:
        longest = self._settings.fetch_backoff_ms
        return min(longest, longest // FIRST_PAUSE_PART << min(failures - 1, 10))

    def _pause(self, followed: Followed) -> None:
        followed.failures += 1
        self._rest(followed, self._pause_ms(followed.failures))

    def _rest(self, followed: Followed, ms: int) -> None:
        self._forget(followed)
        self._pauses += 1
        due = self._loop.time() + ms / 1000
        heappush(self._paused, (due, self._pauses, followed))
        self._set_pause_timer()

    def _set_pause_timer(self) -> None:
        if self._pause_timer is not None:
            self._pause_timer.cancel()
        self._pause_timer = None
        if self._paused:
            self._pause_timer = self._loop.call_at(self._paused[0][0], self._end_pauses)

    def _end_pauses(self) -> None:
        now = self._loop.time()
        while self._paused and self._paused[0][0] <= now:
            self._ask_again(heappop(self._paused)[2])
        self._set_pause_timer()

    def retire(self) -> None:
        """Nothing is followed here any more, and will not be: end when what is begun is done."""
        self._is_retired = True
        self._changed.set()
        self.close()

    def close(self) -> None:
        if self._pause_timer is not None:
            self._pause_timer.cancel()


async def _append(followed: Followed, result: FetchResult) -> None:
    """Append what came, some batches in each turn, as long as the leader epoch is the same."""
    partition = followed.partition
    if result.records and partition.log is None:
        await partition.data.open()
    latest = partition.log.latest_epoch if partition.log else None
    is_first = True
    for chunk in split_batches(result.records, (-1 if latest is None else latest, followed.epoch)):
        if not is_first:
            await asyncio.sleep(0)
        if not followed.is_current:
            return
        partition.append_fetched(chunk)
        is_first = False
    partition.heard_leader(result.high_watermark, result.log_start_offset)


def split_batches(records: bytes, epochs: tuple[int, int]) -> Iterator[memoryview]:
    """Whole batches, CHUNK_BATCHES at a time. CorruptRecord where an epoch goes down or is above
    that of the leader: the CRC does not cover it (KAFKA-18723).
    """
    latest, highest = epochs
    view, begin, position, count = memoryview(records), 0, 0, 0
    while position < len(records):
        if len(records) - position < _BATCH.size:
            raise CorruptRecord(f"{len(records) - position} bytes are not a batch")
        offset, length, epoch = _BATCH.unpack_from(records, position)
        if length <= 0 or not (latest <= epoch <= highest or epoch == -1):
            raise CorruptRecord(
                f"batch at offset {offset} has length {length} and leader epoch {epoch},"
                f" after {latest} and up to {highest}"
            )
        latest = max(latest, epoch)
        position += _LENGTH_PREFIX_BYTES + length
        count += 1
        if count % CHUNK_BATCHES == 0:
            yield view[begin:position]
            begin = position
    if begin < len(records):
        yield view[begin:]


class EpochLog(Protocol):
    """A log that knows where its epochs end."""

    @property
    def end_offset(self) -> int: ...

    def end_for_epoch(self, epoch: int) -> EpochEnd | None: ...


def truncation_point(log: EpochLog, leader: EpochEnd) -> int:
    """Where to cut our log, whose leader says that one of its epochs ends there.

    If we do not know that epoch, the largest smaller one that we know is all that can be common;
    the next fetch tells whether it is.
    """
    own = log.end_for_epoch(leader.epoch)
    if own is None:
        return min(leader.end_offset, log.end_offset)
    if own.epoch != leader.epoch:
        return min(own.end_offset, log.end_offset)
    return min(own.end_offset, leader.end_offset, log.end_offset)


def _is_session_lost(reply: FetchReply | None) -> bool:
    return reply is not None and reply.error is not None and reply.error.code in _SESSION_LOST


def _ignore(reply: FetchReply | None) -> None:
    """A wake has no answer of its own."""
