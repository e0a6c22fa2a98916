"""Questions about offsets: ends, offsets by time, ends of epochs, sizes of ranges, deletion.

What counts as the end for clients is the high watermark. A new leader may for a moment know a lower
one than its predecessor told; until it has reached the start of its own epoch, the question is
refused as too early, so that no client sees an end go back (KIP-207).
"""

from collections.abc import Callable, Sequence
from functools import partial

from brokers.partition import Partition
from brokers.partition_table import PartitionTable
from brokers.purgatory import Cancellable, Parked, Purgatory, Waiter
from brokers.refusals import Refused, offset_not_available, out_of_range
from brokers.requests import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_OFFSET,
    DeleteAnswer,
    DeletePart,
    DeleteRequest,
    EndsAnswer,
    EndsPart,
    EndsRequest,
    EpochAnswer,
    EpochQuery,
    OffsetAnswer,
    OffsetQuery,
    RangeAnswer,
    RangeQuery,
)
from kraftlog.clock import Clock
from kraftlog.errors import KraftError, RequestTimedOut
from storage.log import Log
from storage.log_reader import TimestampedOffset
from storage.segment import Segment

OnEnds = Callable[[list[EndsAnswer]], None]
OnDeleted = Callable[[list[DeleteAnswer]], None]


class Offsets:
    """Answers about the partitions of a broker."""

    def __init__(self, table: PartitionTable, purgatory: Purgatory, *, clock: Clock) -> None:
        self.table = table
        self.purgatory = purgatory
        self.clock = clock

    def find_for_client(self, query: OffsetQuery | EndsPart | RangeQuery) -> Partition:
        """The partition, if clients may be told about it here and now. Raises Refused."""
        partition = self.table.find(query.partition)
        partition.check_leader(query.leader_epoch if isinstance(query, OffsetQuery) else None)
        partition.check_serving(self.clock.monotonic_ms())
        return partition

    # -- by time

    def list_offsets(self, queries: Sequence[OffsetQuery]) -> list[OffsetAnswer]:
        return [self._list_offset(query) for query in queries]

    def _list_offset(self, query: OffsetQuery) -> OffsetAnswer:
        try:
            partition = self.find_for_client(query)
            found = _offset_for(partition, query.timestamp)
        except Refused as refused:
            return OffsetAnswer(query.partition, error=refused.error, leader=refused.leader)
        except KraftError as error:
            return OffsetAnswer(query.partition, error=error)
        if found is None:
            return OffsetAnswer(query.partition, leader_epoch=partition.state.leader_epoch)
        return OffsetAnswer(query.partition, found.offset, found.timestamp, found.leader_epoch)

    # -- epochs

    def epoch_ends(self, queries: Sequence[EpochQuery]) -> list[EpochAnswer]:
        return [self._epoch_end(query) for query in queries]

    def _epoch_end(self, query: EpochQuery) -> EpochAnswer:
        try:
            partition = self.table.find(query.partition)
            partition.check_leader(query.current_leader_epoch)
            partition.check_serving(self.clock.monotonic_ms())
        except Refused as refused:
            return EpochAnswer(query.partition, error=refused.error, leader=refused.leader)
        return EpochAnswer(query.partition, partition.epoch_end(query.leader_epoch))

    # -- ends of many partitions

    def ends(self, request: EndsRequest, on_done: OnEnds) -> Cancellable | None:
        """Answer when any end is above the one that is known, or something is wrong, or time is
        up. Then all are told.
        """
        answers = [self._end(part) for part in request.parts]
        is_news = any(map(_is_news, answers, request.parts))
        if is_news or request.max_wait_ms <= 0 or not request.parts:
            on_done(answers)
            return None
        try:
            parked = self.purgatory.park("ends")
        except KraftError as error:
            on_done([EndsAnswer(part.partition, error=error) for part in request.parts])
            return None
        _Ends(self, request, parked, on_done).begin()
        return parked

    def answer_ends(self, request: EndsRequest) -> list[EndsAnswer]:
        return [self._end(part) for part in request.parts]

    def _end(self, part: EndsPart) -> EndsAnswer:
        try:
            partition = self.find_for_client(part)
            end = visible_end(partition)
        except Refused as refused:
            return EndsAnswer(part.partition, error=refused.error, leader=refused.leader)
        epoch = partition.state.leader_epoch
        return EndsAnswer(part.partition, partition.start_offset, end, epoch)

    # -- sizes

    def estimate_bytes(self, queries: Sequence[RangeQuery]) -> list[RangeAnswer]:
        """About how many bytes of log lie between two offsets, to an index interval or so."""
        return [self._estimate(query) for query in queries]

    def _estimate(self, query: RangeQuery) -> RangeAnswer:
        try:
            partition = self.find_for_client(query)
        except Refused as refused:
            return RangeAnswer(error=refused.error, leader=refused.leader)
        log = partition.log
        if log is None or query.from_offset >= query.to_offset:
            return RangeAnswer(0)
        begin = _position(log, max(query.from_offset, log.start_offset))
        return RangeAnswer(max(0, _position(log, query.to_offset) - begin))

    # -- deletion

    def delete_records(self, request: DeleteRequest, on_done: OnDeleted) -> Cancellable | None:
        """Drop what is below an offset, and answer when no live replica has it any more."""
        try:
            parked = self.purgatory.park("delete_records")
        except KraftError as error:
            on_done([DeleteAnswer(part.partition, error=error) for part in request.parts])
            return None
        _Delete(self, request, parked, on_done).begin()
        return None if parked.is_over else parked


class _Ends:
    """Waits for any of many ends to move."""

    def __init__(
        self, service: Offsets, request: EndsRequest, parked: Parked, on_done: OnEnds
    ) -> None:
        self._service = service
        self._request = request
        self._parked = parked
        self._on_done = on_done
        self._watched: list[Partition] = []

    def begin(self) -> None:
        for part in self._request.parts:
            partition = self._service.table.hosted.get(part.partition)
            if partition is not None:
                partition.watchers[self] = None
                self._watched.append(partition)
        self._parked.wait(self._request.max_wait_ms, on_timeout=self._answer, on_end=self._unwatch)

    def _unwatch(self) -> None:
        for partition in self._watched:
            partition.watchers.pop(self, None)

    def _answer(self) -> None:
        self._on_done(self._service.answer_ends(self._request))

    def high_watermark_moved(self) -> None:
        if self._parked.end():
            self._answer()

    role_changed = high_watermark_moved

    def end_moved(self) -> None:
        """Not committed yet."""

    def start_moved(self) -> None:
        """The end is where it was."""


class _Delete:
    """Waits for the replicas to drop records too."""

    def __init__(
        self, service: Offsets, request: DeleteRequest, parked: Parked, on_done: OnDeleted
    ) -> None:
        self._service = service
        self._request = request
        self._parked = parked
        self._on_done = on_done
        self._answers: list[DeleteAnswer] = []
        self._waiting: dict[int, tuple[Partition, Waiter]] = {}

    def begin(self) -> None:
        for number, part in enumerate(self._request.parts):
            self._answers.append(DeleteAnswer(part.partition))
            try:
                self._delete(number, part)
            except Refused as refused:
                self._answers[number].error = refused.error
                self._answers[number].leader = refused.leader
            except KraftError as error:
                self._answers[number].error = error
        if self._waiting:
            self._parked.wait(
                self._request.timeout_ms, on_timeout=self._time_out, on_end=self._give_up
            )
        elif self._parked.end():
            self._on_done(self._answers)

    def _delete(self, number: int, part: DeletePart) -> None:
        partition = self._service.table.find(part.partition)
        partition.check_leader()
        partition.check_serving(self._service.clock.monotonic_ms())
        end = partition.high_watermark
        offset = end if part.offset == NO_OFFSET else part.offset
        if not 0 <= offset <= end:
            raise out_of_range(partition.name, offset, partition.start_offset, end)
        partition.delete_below(offset)
        low = partition.state.low_watermark()
        self._answers[number].log_start_offset = low
        if low < offset:
            waiter = partition.at_low_watermark.add(offset, partial(self._reached, number))
            self._waiting[number] = (partition, waiter)

    def _reached(self, number: int, error: KraftError | None) -> None:
        partition, _ = self._waiting.pop(number)
        answer = self._answers[number]
        answer.log_start_offset, answer.error = partition.state.low_watermark(), error
        if not self._waiting and self._parked.end():
            self._on_done(self._answers)

    def _time_out(self) -> None:
        for number, (partition, _) in self._waiting.items():
            self._answers[number].error = RequestTimedOut(
                f"not all replicas of {partition.name} have dropped the records yet",
                hint="they will; the leader has",
            )
        self._on_done(self._answers)

    def _give_up(self) -> None:
        for _, waiter in self._waiting.values():
            waiter.give_up()


def visible_end(partition: Partition) -> int:
    """The high watermark, once this leader can vouch that it is no step back. Raises Refused."""
    role = partition.check_leader()
    if partition.high_watermark < role.epoch_start:
        raise offset_not_available(partition.name, role.epoch_start, partition.high_watermark)
    return partition.high_watermark


def _is_news(answer: EndsAnswer, part: EndsPart) -> bool:
    return answer.error is not None or answer.high_watermark > part.known_end


def _offset_for(partition: Partition, timestamp: int) -> TimestampedOffset | None:
    epoch = partition.state.leader_epoch
    if timestamp == LATEST_TIMESTAMP:
        return TimestampedOffset(visible_end(partition), NO_OFFSET, epoch)
    if timestamp == EARLIEST_TIMESTAMP:
        start = partition.start_offset
        first = partition.log.epochs.epoch_at(start) if partition.log else None
        return TimestampedOffset(start, NO_OFFSET, epoch if first is None else first)
    log = partition.log
    if log is None:
        return None
    if timestamp == MAX_TIMESTAMP:
        found = log.offset_of_max_timestamp()
    else:
        found = log.offset_for_time(timestamp)
    if found is not None and found.offset >= partition.high_watermark:
        visible_end(partition)  # too early to tell, perhaps
        return None
    return found


def _position(log: Log, offset: int) -> int:
    """Where an offset lies if all segments are laid end to end, as the sparse index has it."""
    position = 0
    for segment in log.segments:
        if segment.next_offset <= offset:
            position += segment.size
        elif segment.base_offset < offset:
            return position + _position_within(segment, offset)
        else:
            break
    return position


def _position_within(segment: Segment, offset: int) -> int:
    extent = segment.locate(offset)
    return segment.size if extent is None else extent.position
