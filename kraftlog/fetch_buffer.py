"""What was fetched and not yet read, and where the reader is: the half of a consumer that its
caller runs.

One lock guards it. The loop puts whole batches in, the caller takes them out and decodes them; the
loop is woken when a partition has room again, never for a record. A `seek` begins a new generation
of its partition, so that what was asked for before it is dropped when it arrives.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kraftlog.errors import InvalidRequest, KraftError
from kraftlog.offsets import Offset
from kraftlog.record_batch import RecordBatch
from kraftlog.types import TopicPartition

UNKNOWN_OFFSET = -1


class PartitionState:
    """One assigned partition."""

    __slots__ = (
        "batches",
        "buffered_bytes",
        "error",
        "fetch_offset",
        "generation",
        "high_watermark",
        "is_queued",
        "is_stuck",
        "last_epoch",
        "paused",
        "place",
        "position",
        "start",
    )

    def __init__(self, place: TopicPartition, start: Offset | None) -> None:
        self.place = place
        self.start: Offset | None = start
        """Where to begin; None once the offset of that is known."""
        self.generation = 0
        self.position = UNKNOWN_OFFSET
        """The offset that the caller gets next."""
        self.fetch_offset = UNKNOWN_OFFSET
        """The offset that is fetched next."""
        self.last_epoch: int | None = None
        """Of the last batch fetched."""
        self.high_watermark = UNKNOWN_OFFSET
        self.batches: deque[RecordBatch] = deque()
        self.buffered_bytes = 0
        self.paused = False
        self.error: KraftError | None = None
        self.is_stuck = False
        """The error stays until the caller seeks."""
        self.is_queued = False
        """It stands in the line of those that have something to read."""

    def move(self, start: Offset) -> None:
        self.start = start
        self.generation += 1
        self.position = self.fetch_offset = UNKNOWN_OFFSET
        self.last_epoch = None
        self.error = None
        self.is_stuck = False
        self.batches.clear()
        self.buffered_bytes = 0


class Taken(NamedTuple):
    """A batch that is the caller's now; what lies before `position` was read already."""

    state: PartitionState
    generation: int
    batch: RecordBatch
    position: int


class FetchBuffer:
    def __init__(
        self,
        *,
        partition_bytes: int,
        total_bytes: int,
        on_room: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        """`on_room` tells the loop, `on_news` the caller; both may come from the other's thread."""
        self._lock = threading.Lock()
        self._partition_bytes = partition_bytes
        self._total_bytes = total_bytes
        self._on_room = on_room
        self._on_news = on_news
        self._states: dict[TopicPartition, PartitionState] = {}
        self._line: deque[PartitionState] = deque()
        self._buffered = 0

    # -- for the caller

    def take(self) -> Taken | None:
        """The next batch, of each partition in turn; an error of a partition is raised."""
        with self._lock:
            taken = self._take_next()
        if taken is not None and self._has_room_again(taken):
            self._on_room()
        return taken

    def _take_next(self) -> Taken | None:
        while self._line:
            state = self._line.popleft()
            state.is_queued = False
            if self._states.get(state.place) is not state or state.paused:
                continue
            if state.batches:
                batch = state.batches.popleft()
                self._free(state, batch.size)
                self._queue(state)
                return Taken(state, state.generation, batch, state.position)
            if state.error is not None:
                raise self._error_of(state)
        return None

    def _error_of(self, state: PartitionState) -> KraftError:
        error = state.error or KraftError(f"{state.place} has no error")
        if not state.is_stuck:
            state.error = None
        self._queue(state)
        return error

    def _has_room_again(self, taken: Taken) -> bool:
        buffered = taken.state.buffered_bytes
        return buffered < self._partition_bytes <= buffered + taken.batch.size or (
            self._buffered < self._total_bytes <= self._buffered + taken.batch.size
        )

    def give_back(self, taken: Taken, position: int) -> None:
        """The caller has read a batch only up to here: it comes first again."""
        with self._lock:
            state = taken.state
            if state.generation != taken.generation:
                return
            state.position = position
            state.batches.appendleft(taken.batch)
            state.buffered_bytes += taken.batch.size
            self._buffered += taken.batch.size
            if state.is_queued:
                self._line.remove(state)
            state.is_queued = True
            self._line.appendleft(state)

    def has_read(self, taken: Taken, position: int) -> None:
        """The caller has read so far."""
        with self._lock:
            if taken.state.generation == taken.generation:
                taken.state.position = position

    def is_current(self, taken: Taken) -> bool:
        """Whether nothing was done to the partition meanwhile that makes a batch wrong."""
        with self._lock:
            state = taken.state
            is_assigned = self._states.get(state.place) is state
            return is_assigned and state.generation == taken.generation and not state.paused

    def state(self, place: TopicPartition) -> PartitionState:
        state = self._states.get(place)
        if state is None:
            raise InvalidRequest(
                f"{place} is not assigned to this consumer", hint="assign it, or its topic, first"
            )
        return state

    def seek(self, place: TopicPartition, start: Offset) -> None:
        with self._lock:
            state = self.state(place)
            self._buffered -= state.buffered_bytes
            state.move(start)
        self._on_room()

    def pause(self, places: Iterable[TopicPartition]) -> None:
        with self._lock:
            for state in [self.state(place) for place in places]:
                state.paused = True

    def resume(self, places: Iterable[TopicPartition]) -> None:
        with self._lock:
            for state in [self.state(place) for place in places]:
                state.paused = False
                self._queue(state)
        self._on_room()
        self._on_news()

    @property
    def assigned(self) -> list[TopicPartition]:
        with self._lock:
            return sorted(self._states)

    @property
    def paused(self) -> list[TopicPartition]:
        with self._lock:
            return sorted(place for place, state in self._states.items() if state.paused)

    def known_position(self, place: TopicPartition) -> list[int]:
        """The position of a partition, or nothing while it is not known."""
        with self._lock:
            state = self.state(place)
            if state.position != UNKNOWN_OFFSET:
                return [state.position]
            if state.error is not None:
                raise state.error
            return []

    def assign(self, starts: Mapping[TopicPartition, Offset | KraftError]) -> None:
        """Read exactly these; those that are assigned already go on where they are. An error in
        place of a start is told until the caller seeks.
        """
        with self._lock:
            for place in [place for place in self._states if place not in starts]:
                gone = self._states.pop(place)
                self._buffered -= gone.buffered_bytes
                gone.move(Offset.START)
            for place, start in starts.items():
                if place not in self._states:
                    self._states[place] = self._new_state(place, start)
        self._on_room()
        self._on_news()

    def _new_state(self, place: TopicPartition, start: Offset | KraftError) -> PartitionState:
        if isinstance(start, Offset):
            return PartitionState(place, start)
        state = PartitionState(place, None)
        state.error, state.is_stuck = start, True
        self._queue(state)
        return state

    # -- for the loop

    def unplaced(self) -> list[tuple[PartitionState, int, Offset]]:
        """Partitions whose start is not an offset yet, with their generations."""
        with self._lock:
            return [
                (state, state.generation, state.start)
                for state in self._states.values()
                if state.start is not None and state.error is None
            ]

    def place_at(self, state: PartitionState, generation: int, offset: int) -> None:
        """The start of a partition is this offset."""
        with self._lock:
            if state.generation == generation:
                state.start = None
                state.position = state.fetch_offset = offset
        self._on_news()

    def fetchable(self) -> Sequence[PartitionState]:
        """Partitions with a position and with room for more."""
        with self._lock:
            if self._buffered >= self._total_bytes:
                return []
            return [
                state
                for state in self._states.values()
                if state.fetch_offset != UNKNOWN_OFFSET
                and not state.paused
                and state.error is None
                and state.buffered_bytes < self._partition_bytes
            ]

    def put(
        self,
        state: PartitionState,
        asked: tuple[int, int],
        batches: list[RecordBatch],
        *,
        watermark: int,
    ) -> None:
        """What a fetch brought that asked for an offset in a generation. It is dropped if a seek
        has overtaken it, or a fetch from another broker while the partition moved.
        """
        with self._lock:
            if (state.generation, state.fetch_offset) != asked:
                return
            state.high_watermark = max(state.high_watermark, watermark)
            if batches:
                size = sum(batch.size for batch in batches)
                state.batches.extend(batches)
                state.buffered_bytes += size
                self._buffered += size
                state.fetch_offset = batches[-1].next_offset
                state.last_epoch = batches[-1].leader_epoch
                self._queue(state)
        if batches:
            self._on_news()

    def restart(self, state: PartitionState, generation: int, start: Offset) -> None:
        """Begin the partition elsewhere, once what is fetched already has been dropped."""
        with self._lock:
            if state.generation == generation:
                self._buffered -= state.buffered_bytes
                state.move(start)

    def fail(
        self, state: PartitionState, generation: int, error: KraftError, *, stuck: bool
    ) -> None:
        """The caller hears of it when it has read what came before."""
        with self._lock:
            if state.generation != generation:
                return
            state.error, state.is_stuck = error, stuck
            self._queue(state)
        self._on_news()

    def _queue(self, state: PartitionState) -> None:
        if not state.is_queued and (state.batches or state.error is not None):
            state.is_queued = True
            self._line.append(state)

    def _free(self, state: PartitionState, size: int) -> None:
        state.buffered_bytes -= size
        self._buffered -= size
