"""Where records become batches: the half of a producer that its callers run.

One lock guards it. Callers append, the sender on the loop takes batches out; the loop is woken when
a batch begins or is full, never for a record. A batch is ready when it is full, when it has waited
for `linger`, or when somebody flushes.

The bytes of all records that have no answer yet are bounded: beyond `buffer_bytes` an append is
refused with BufferFull, and whoever appends waits for room.
"""

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from operator import itemgetter

from kraftlog.cluster_view import NO_LEADERSHIP
from kraftlog.delivery import Delivery, DeliveryFuture, Run
from kraftlog.errors import KraftError, RecordTooLarge
from kraftlog.partition_choice import Chooser, MakeChooser, Places, check_partition
from kraftlog.record_batch import HEADER_BYTES
from kraftlog.records import Headers
from kraftlog.send_window import Batch, SendWindow

RECORD_OVERHEAD_BYTES = 32
"""Lengths, deltas and the count of headers take at most so much beside key and value."""
HEADER_OVERHEAD_BYTES = 10


class TopicWanted(Exception):
    """Nothing is known of the topic yet. Not an error: ask for it and append again."""


class BufferFull(Exception):
    """Not an error either: wait for room and append again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccumulatorSettings:
    batch_bytes: int
    buffer_bytes: int
    record_bytes_max: int
    linger: float
    """In seconds."""
    max_in_flight: int
    idempotent: bool


class PartitionQueue:
    """The batches of one partition. All but the window is under the accumulator's lock; the window
    belongs to the loop.
    """

    __slots__ = (
        "closed",
        "failures",
        "filling",
        "not_before",
        "partition",
        "seeks_leader",
        "sent_to",
        "topic",
        "topic_id",
        "window",
    )

    def __init__(self, topic: str, partition: int, window: SendWindow) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = b""
        self.filling: Batch | None = None
        self.closed: deque[Batch] = deque()
        self.window = window
        self.failures = 0
        self.not_before = 0.0
        self.sent_to = NO_LEADERSHIP
        self.seeks_leader = False
        """Whoever it was sent to may not lead any more: no rest once another one is known."""

    @property
    def is_idle(self) -> bool:
        return self.filling is None and not self.closed and not self.window.batches


@dataclass(slots=True)
class _Topic:
    chooser: Chooser
    partitions: int = 0
    """0: it does not exist, or no longer."""
    queues: list[PartitionQueue] = field(default_factory=list)
    """Of each partition that there ever was: a topic made anew may have fewer than before."""


@dataclass(slots=True)
class Columns:
    """Many records for one topic, as columns of equal length. None: no record has such a thing."""

    values: Sequence[bytes | None]
    timestamps: Sequence[int] | int
    """One for all, or each its own."""
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None
    partitions: Sequence[int | None] | None = None


class Group:
    """Records of one `extend` that go to one partition, or, if that is None, wherever they fit."""

    __slots__ = ("columns", "inputs", "largest", "partition", "position", "runs", "sizes")

    def __init__(self, partition: int | None, inputs: Sequence[int], columns: Columns) -> None:
        self.partition = partition
        self.inputs = inputs
        self.columns = columns
        sizes = _sizes(columns)
        self.largest = max(sizes)
        self.sizes = list(accumulate(sizes, initial=0))
        """The bytes of the first n records."""
        self.position = 0
        self.runs: list[Run] = []


class Accumulator:
    def __init__(
        self,
        settings: AccumulatorSettings,
        make_chooser: MakeChooser,
        wake: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        """`wake` is called from any thread; `now` is the loop's time, in seconds."""
        self._settings = settings
        self._batch_bytes = settings.batch_bytes
        self._buffer_bytes = settings.buffer_bytes
        self._append_bytes_max = settings.record_bytes_max - HEADER_BYTES
        self._make_chooser = make_chooser
        self._wake = wake
        self._now = now
        self._lock = threading.Lock()
        self._topics: dict[str, _Topic] = {}
        self._active: dict[PartitionQueue, None] = {}
        self._outstanding: dict[Delivery, None] = {}
        self._buffered = 0
        self._is_awake = False
        self._flushes = 0
        self._room: list[Callable[[], None]] = []
        self._ended: KraftError | None = None
        """Why nothing is taken any more; then no topic is known either."""

    # -- for callers, from any thread

    def append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        timestamp: int,
        headers: Headers = (),
        partition: int | None = None,
    ) -> DeliveryFuture:
        """Put a record into the batch of its partition."""
        size = RECORD_OVERHEAD_BYTES
        if value is not None:
            size += len(value)
        if key is not None:
            size += len(key)
        if headers:
            size += _headers_bytes(headers)
        with self._lock:
            known = self._topics.get(topic)
            if known is None or not known.partitions:
                raise self._ended or TopicWanted
            if size > self._append_bytes_max or self._buffered + size > self._buffer_bytes:
                self._check_room(size)
            if partition is None:
                partition = known.chooser.choose(key, value, size)
            else:
                check_partition(topic, partition, known.partitions)
            queue = known.queues[partition]
            batch = queue.filling
            if batch is None or batch.size + size > self._batch_bytes:
                batch = self._begin(queue)
            delivery = batch.delivery
            if headers or batch.headers is not None:
                _add_headers(batch, [headers])
            values = batch.values
            values.append(value)
            batch.keys.append(key)
            delivery.timestamps.append(timestamp)
            batch.size += size
            self._buffered += size
            return DeliveryFuture(delivery, len(values) - 1)

    def _check_room(self, size: int) -> None:
        settings = self._settings
        if HEADER_BYTES + size > settings.record_bytes_max:
            raise RecordTooLarge(
                f"a record of {size} bytes, and max_request_bytes is {settings.record_bytes_max}",
                hint="raise it together with the topic's max.message.bytes",
            )
        if self._buffered and self._buffered + size > settings.buffer_bytes:
            raise BufferFull

    def _begin(self, queue: PartitionQueue) -> Batch:
        if queue.filling is not None:
            queue.closed.append(queue.filling)
        batch = queue.filling = Batch(Delivery(queue.topic, queue.partition), self._now())
        self._outstanding[batch.delivery] = None
        self._active[queue] = None
        if not self._is_awake:
            self._is_awake = True
            self._wake()
        return batch

    def append_encoded(
        self, topic: str, partition: int, encoded: bytes | bytearray, timestamps: list[int]
    ) -> Delivery:
        """Put a whole batch, encoded without a producer, behind the others of its partition."""
        with self._lock:
            known = self._topics.get(topic)
            if known is None or not known.partitions:
                raise self._ended or TopicWanted
            check_partition(topic, partition, known.partitions)
            self._check_room(len(encoded) - HEADER_BYTES)
            queue = known.queues[partition]
            batch = self._begin(queue)
            queue.filling = None
            queue.closed.append(batch)
            batch.encoded = encoded
            batch.count = len(timestamps)
            batch.delivery.timestamps = timestamps
            batch.size = len(encoded)
            self._buffered += batch.size
            return batch.delivery

    # -- many at once

    def group(self, topic: str, columns: Columns) -> list[Group]:
        """Many records by their partitions, for `extend`."""
        with self._lock:
            known = self._topics.get(topic)
            if known is None or not known.partitions:
                raise self._ended or TopicWanted
            chosen = self._spread(topic, known, columns)
        groups = _split_columns(columns, chosen)
        largest = max((group.largest for group in groups), default=0)
        with self._lock:
            if HEADER_BYTES + largest > self._settings.record_bytes_max:
                self._check_room(largest)
        return groups

    def _spread(self, topic: str, known: _Topic, columns: Columns) -> Places | None:
        given = columns.partitions
        if given is None:
            return known.chooser.spread(columns.keys, columns.values)
        for partition in set(given):
            if partition is not None:
                check_partition(topic, partition, known.partitions)
        keys = columns.keys or [None] * len(given)
        places: Places = {}
        rows = zip(given, keys, columns.values, strict=True)
        for place, (partition, key, value) in enumerate(rows):
            if partition is None:
                partition = known.chooser.choose(key, value, len(value or b""))  # noqa: PLW2901
            places.setdefault(partition, []).append(place)
        return places

    def extend(self, topic: str, groups: Sequence[Group]) -> None:
        """Append what of these groups is not yet. After BufferFull call it again with the same."""
        with self._lock:
            known = self._topics.get(topic)
            if known is None:
                raise self._ended or TopicWanted
            for group in groups:
                while group.position < len(group.inputs):
                    self._append_run(known, group)

    def _append_run(self, known: _Topic, group: Group) -> None:
        """As many records as go into one batch."""
        start, sizes = group.position, group.sizes
        first_size = sizes[start + 1] - sizes[start]
        self._check_room(first_size)
        partition = group.partition
        if partition is None:
            partition = known.chooser.choose(None, None, 0)
        queue = known.queues[partition]
        batch = queue.filling
        if batch is None or batch.size + first_size > self._settings.batch_bytes:
            batch = self._begin(queue)
        room = min(
            self._settings.batch_bytes - batch.size, self._settings.buffer_bytes - self._buffered
        )
        stop = max(bisect_right(sizes, sizes[start] + room) - 1, start + 1)
        size = sizes[stop] - sizes[start]
        group.runs.append(Run(batch.delivery, len(batch.values), stop - start))
        _add_columns(batch, group.columns, start, stop)
        batch.size += size
        self._buffered += size
        if group.partition is None:
            known.chooser.choose(None, None, size)  # so much went there
        group.position = stop

    # -- waiting and flushing, from any thread

    def when_room(self, callback: Callable[[], None]) -> None:
        """Called once, from the loop, when records have been answered."""
        with self._lock:
            self._room.append(callback)

    def start_flush(self) -> list[Delivery]:
        """Nothing lingers until `end_flush`. Returns what has no answer yet."""
        with self._lock:
            self._flushes += 1
            self._is_awake = True
            outstanding = list(self._outstanding)
        self._wake()
        return outstanding

    def end_flush(self) -> None:
        with self._lock:
            self._flushes -= 1

    @property
    def buffered_bytes(self) -> int:
        return self._buffered

    def knows(self, topic: str) -> bool:
        known = self._topics.get(topic)
        return known is not None and known.partitions > 0

    # -- for the sender, on the loop

    def set_partitions(self, topic: str, partitions: int, available: Sequence[int]) -> None:
        """The topic has so many partitions, of which these have a leader."""
        with self._lock:
            if self._ended is not None:
                return
            known = self._topics.get(topic)
            if known is None:
                known = self._topics[topic] = _Topic(self._make_chooser(topic))
            for partition in range(len(known.queues), partitions):
                window = SendWindow(
                    self._settings.max_in_flight, idempotent=self._settings.idempotent
                )
                known.queues.append(PartitionQueue(topic, partition, window))
            known.partitions = partitions
            known.chooser.resize(partitions, available)

    def forget(self, topic: str) -> None:
        """It is gone: who appends to it has to ask for it again. What is queued stays, and so does
        what the producer's numbers are: it may come back.
        """
        with self._lock:
            self._topics[topic].partitions = 0

    def active(self) -> list[PartitionQueue]:
        """The partitions with something to do. What begins after this call wakes the loop again."""
        with self._lock:
            self._is_awake = False
            idle = [queue for queue in self._active if queue.is_idle]
            for queue in idle:
                del self._active[queue]
            return list(self._active)

    def ready_at(self, queue: PartitionQueue) -> float | None:
        """When the next batch of a partition may go; None if there is none."""
        with self._lock:
            if queue.closed or self._flushes:
                return 0.0 if queue.closed or queue.filling else None
            return queue.filling.created + self._settings.linger if queue.filling else None

    def take(self, queue: PartitionQueue) -> Batch | None:
        """The next batch of a partition, whether ready or not. It takes no more records."""
        with self._lock:
            if queue.closed:
                batch = queue.closed.popleft()
            elif queue.filling is not None:
                batch, queue.filling = queue.filling, None
            else:
                return None
            if batch.encoded is None:
                batch.count = len(batch.values)
            return batch

    def release(self, batch: Batch) -> None:
        """The batch has its answer: its bytes are free."""
        with self._lock:
            self._buffered -= batch.size
            batch.size = 0
            if batch.delivery.is_done:
                self._outstanding.pop(batch.delivery, None)
        self._tell_room()

    def _tell_room(self) -> None:
        with self._lock:
            waiting, self._room = self._room, []
        for callback in waiting:
            callback()

    def end(self, error: KraftError) -> None:
        """The producer is over: from now on an append is answered with this error, and so is who
        waits for room. What was appended before is there for `active` and `take`.
        """
        with self._lock:
            self._ended = error
            self._topics = {}
        self._tell_room()

    def unsent(self) -> Iterator[tuple[PartitionQueue, Batch]]:
        """All batches that were never sent, taken out; the producer is over."""
        for queue in self.active():
            while (batch := self.take(queue)) is not None:
                yield queue, batch


def _headers_bytes(headers: Headers) -> int:
    return sum(HEADER_OVERHEAD_BYTES + 4 * len(name) + len(value or b"") for name, value in headers)


def _lengths(column: Sequence[bytes | None]) -> list[int]:
    try:
        return list(map(len, column))  # type: ignore[arg-type]  # mostly none of them is None
    except TypeError:
        return [0 if each is None else len(each) for each in column]


def _sizes(columns: Columns) -> list[int]:
    overhead, sizes = RECORD_OVERHEAD_BYTES, _lengths(columns.values)
    if columns.keys is None:
        sizes = [overhead + size for size in sizes]
    else:
        lengths = zip(sizes, _lengths(columns.keys), strict=True)
        sizes = [overhead + size + of_key for size, of_key in lengths]
    if columns.headers is not None:
        sizes = [
            size + _headers_bytes(headers)
            for size, headers in zip(sizes, columns.headers, strict=True)
        ]
    return sizes


def _split_columns(columns: Columns, chosen: Places | None) -> list[Group]:
    if not columns.values:
        return []
    if chosen is None:
        return [Group(None, range(len(columns.values)), columns)]
    if len(chosen) == 1:
        return [Group(partition, places, columns) for partition, places in chosen.items()]
    return [
        Group(partition, places, _pick(columns, places)) for partition, places in chosen.items()
    ]


def _pick(columns: Columns, places: list[int]) -> Columns:
    # One index more than wanted, since with a single one itemgetter returns no tuple.
    pick = itemgetter(*places, places[0])
    return Columns(
        pick(columns.values)[:-1],
        columns.timestamps
        if isinstance(columns.timestamps, int)
        else pick(columns.timestamps)[:-1],
        None if columns.keys is None else pick(columns.keys)[:-1],
        None if columns.headers is None else pick(columns.headers)[:-1],
    )


def _add_columns(batch: Batch, columns: Columns, start: int, stop: int) -> None:
    if columns.headers is not None or batch.headers is not None:
        headers = columns.headers
        _add_headers(batch, [()] * (stop - start) if headers is None else headers[start:stop])
    batch.values.extend(columns.values[start:stop])
    keys = columns.keys
    batch.keys.extend([None] * (stop - start) if keys is None else keys[start:stop])
    times = columns.timestamps
    batch.delivery.timestamps.extend(
        repeat(times, stop - start) if isinstance(times, int) else times[start:stop]
    )


def _add_headers(batch: Batch, headers: Sequence[Headers]) -> None:
    """Before the values: those that are there already had none."""
    if batch.headers is None:
        batch.headers = [()] * len(batch.values)
    batch.headers.extend(headers)
