"""The metadata log as a broker follows it: folded into an image, and handed on in order.

`MetadataFollower` is the state machine of the observer: it replays what is committed as it comes.
`MetadataPublisher` hands the newest image, and what differs from the one before, to the data plane,
one change at a time. Nothing is handed on before `begin`: a broker that acted on an old image, one
of before its restart say, would delete or serve what has moved on long ago (KAFKA-14616).

A record that this version cannot read, or that does not fit the state, does not stop a broker. It
is left out, loudly: the log tells which, and the metric counts. An image with such a hole is not
written as a snapshot, for the log behind one may go: a newer version finds the record there.
"""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from itertools import count

from brokers.cluster import ClusterChange
from brokers.metadata_change import Gathered, cluster_change
from brokers.metadata_view import ImageView
from brokers.settings import ReplicationRates
from brokers.topic_settings import SettingsBook
from kraftlog.config import Config
from kraftlog.errors import StorageError
from metadata_log.codec import decode_record
from metadata_log.delta import advance, diff
from metadata_log.image import EMPTY, Image
from metadata_log.records import Record
from metadata_log.replay import RECORDS_AT_ONCE, Draft, load_by_pieces
from metadata_log.snapshot import write_values
from quorum.observer import CommittedBatch, Snapshot

logger = logging.getLogger(__name__)

Apply = Callable[[ImageView, ClusterChange], Awaitable[None]]


async def _at_once() -> None:
    pass


class MetadataFollower:
    """Replays the log. All calls come from the thread of the loop."""

    def __init__(self) -> None:
        self.image: Image = EMPTY
        self.gathered = Gathered()
        self.changed = asyncio.Event()
        self.errors = 0
        """Records that were left out."""
        self._holes = 0
        """Those of them that the present image lacks."""

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            records = [
                (offset, record)
                for offset, record in enumerate(map(self._decode, batch.values), batch.base_offset)
                if record is not None
            ]
            self._replay(records, whole=len(records) == len(batch.values))

    def _replay(self, records: Sequence[tuple[int, Record]], *, whole: bool) -> None:
        """One batch. Where a record of it is missing or does not fit, the others one by one."""
        if whole and records:
            try:
                self._advance([record for _, record in records], records[0][0])
            except StorageError:
                pass  # one by one it is found out which
            else:
                return
        for offset, record in records:
            try:
                self._advance([record], offset)
            except StorageError as error:
                self._leave_out(f"offset {offset}: {error}")

    def _advance(self, records: Iterable[Record], base_offset: int) -> None:
        self.image, delta = advance(self.image, records, base_offset)
        self.gathered.add(delta)
        self.changed.set()

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        errors_before = self.errors
        known = yield from self._decode_by_pieces(snapshot)
        try:
            image = yield from load_by_pieces(known, snapshot.id.end_offset)
        except StorageError:
            image = yield from load_by_pieces(self._fitting(known), snapshot.id.end_offset)
        before, self.image = self.image, image
        self._holes = self.errors - errors_before
        self.gathered.add(diff(before, image))
        self.changed.set()

    def _decode_by_pieces(self, snapshot: Snapshot) -> Generator[None, None, list[Record]]:
        known = []
        for number, value in enumerate(snapshot.values(), 1):
            record = self._decode(value)
            if record is not None:
                known.append(record)
            if number % RECORDS_AT_ONCE == 0:
                yield
        return known

    def _fitting(self, records: Sequence[Record]) -> Iterator[Record]:
        """Those records of a snapshot that fit together."""
        draft = Draft(EMPTY)
        for offset, record in enumerate(records):
            try:
                draft.apply(record, offset)
            except StorageError as error:
                self._leave_out(f"snapshot: {error}")
            else:
                yield record

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        logger.info("epoch %d of the quorum: %s leads", epoch, leader_id or "nobody we know of")

    def dump(self) -> Iterable[bytes]:
        if self._holes:
            raise StorageError(
                f"a snapshot would lack {self._holes} of the records of the metadata log",
                hint="upgrade this broker: a newer version may read what this one cannot",
            )
        return write_values(self.image)

    def take(self) -> Gathered:
        """What has come since the last call."""
        self.changed.clear()
        gathered, self.gathered = self.gathered, Gathered()
        return gathered

    def _decode(self, value: bytes) -> Record | None:
        try:
            return decode_record(value)
        except StorageError as error:
            self._leave_out(str(error))
            return None

    def _leave_out(self, what: str) -> None:
        self.errors += 1
        self._holes += 1
        logger.error("a metadata record is left out, this broker may be too old: %s", what)


class MetadataPublisher:
    """`run` belongs into a TaskGroup, after `begin`."""

    def __init__(
        self,
        follower: MetadataFollower,
        static: Config,
        *,
        consumed_offset: Callable[[], int] = lambda: 0,
        before_change: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        """`before_change` is awaited before anything new is handed on."""
        self._follower = follower
        self._before_change = before_change
        self.consumed_offset = consumed_offset
        """Tells how far the follower was given the log: all below."""
        self._apply: Apply | None = None
        self._broker_id = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = count()
        self._applied_offset = 0
        self._is_idle = False
        self.book = SettingsBook(static)
        self.view = ImageView(EMPTY, self.book)
        """What was handed on last."""

    @property
    def image(self) -> Image:
        return self.view.image

    def rates(self, broker_id: int) -> ReplicationRates:
        """How quickly throttled replicas may be copied, as the metadata has it now."""
        return self.book.rates(self.image, broker_id)

    @property
    def directory(self) -> ImageView:
        return self.view

    @property
    def applied_offset(self) -> int:
        """All below holds in the data plane. Never what is merely fetched (KAFKA-13836)."""
        if self._is_idle and not self._follower.gathered.has_news:
            self._applied_offset = self.consumed_offset()  # control records change nothing
        return self._applied_offset

    async def begin(self, broker_id: int, apply: Apply) -> None:
        """Hand on everything there is so far, as the first change. By now it must be complete."""
        self._broker_id, self._apply = broker_id, apply
        self._follower.take()
        gathered = Gathered()
        gathered.add(diff(EMPTY, self._follower.image))
        await self._publish(gathered)

    async def run(self) -> None:
        """Hand on what comes, until cancelled."""
        while True:
            await self._follower.changed.wait()
            await self._before_change()
            await self._publish(self._follower.take())

    async def _publish(self, gathered: Gathered) -> None:
        if self._apply is None:
            return
        self._is_idle = False
        image, consumed = self._follower.image, self.consumed_offset()
        change = await cluster_change(gathered, self.view.image, image, self._broker_id)
        self.view = ImageView(image, self.book)
        for topic in gathered.removed_topics.values():
            self.book.forget(topic.name)
        await self._apply(self.view, change)
        self._applied_offset, self._is_idle = consumed, True
        self._release(consumed)

    async def wait_applied(self, offset: int) -> None:
        """Until all below `offset` holds in the data plane."""
        if self.applied_offset >= offset:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (offset, next(self._order), done))
        await done

    def _release(self, applied: int) -> None:
        while self._waiting and self._waiting[0][0] <= applied:
            done = heapq.heappop(self._waiting)[2]
            if not done.done():
                done.set_result(None)
