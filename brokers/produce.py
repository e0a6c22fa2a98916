"""Produce: append a batch to each of several partitions, and answer when it is safe enough.

    acks=0    answered only where it is refused, so that who sent it looks for the leader again
    acks=1    when it is in our log; where copies must be flushed, when it is flushed here
    acks=all  when it is below the high watermark: every in-sync replica has fetched it in this
              leader epoch, and there are at least min.insync.replicas of them

Records are appended in the call itself, so requests keep their order. Only the first ones of a
partition wait, all in their order, until its log is made. A retry that is in the log already waits
for the same as the batch itself did, and gets its offset.
"""

from collections.abc import Callable
from functools import partial

from brokers.partition import Partition
from brokers.partition_table import PartitionTable
from brokers.purgatory import Cancellable, Parked, Purgatory, Waiter
from brokers.refusals import Refused, invalid_acks, produce_timed_out
from brokers.requests import (
    ACKS_ALL,
    NO_OFFSET,
    ProducePart,
    ProduceReply,
    ProduceRequest,
    ProduceResult,
)
from kraftlog._check import invariant
from kraftlog.clock import Clock
from kraftlog.errors import KraftError
from kraftlog.record_batch import RecordBatch
from kraftlog.types import TimestampType
from storage.log import Appended

ACKS = (0, 1, ACKS_ALL)
OPEN_TIMEOUT_MS = 30_000
"""With acks=0 nobody waits, but the first record of a partition does, for its log."""

OnProduced = Callable[[ProduceReply], None]


class Produces:
    """All produce requests of a broker."""

    def __init__(self, table: PartitionTable, purgatory: Purgatory, *, clock: Clock) -> None:
        self.table = table
        self.purgatory = purgatory
        self.clock = clock

    def produce(self, request: ProduceRequest, on_done: OnProduced) -> Cancellable | None:
        """Append all, and call `on_done` once, perhaps before this returns."""
        if request.acks not in ACKS:
            on_done(_refuse_all(request, invalid_acks(request.acks)))
            return None
        try:
            parked = self.purgatory.park("produce")
        except KraftError as error:
            on_done(_refuse_all(request, error))
            return None
        operation = _Produce(self, request, parked, on_done)
        operation.begin()
        return None if parked.is_over else parked


class _Produce:
    def __init__(
        self, service: Produces, request: ProduceRequest, parked: Parked, on_done: OnProduced
    ) -> None:
        self._service = service
        self._request = request
        self._parked = parked
        self._on_done = on_done
        self._results: list[ProduceResult] = []
        self._waiting: dict[int, tuple[Partition, Waiter]] = {}
        self._opening: dict[int, Partition] = {}
        self._begun = False

    def begin(self) -> None:
        self._results = [ProduceResult(part.partition) for part in self._request.parts]
        for number, part in enumerate(self._request.parts):
            self._take(number, part)
        self._begun = True
        if self._waiting or self._opening:
            timeout_ms = self._request.timeout_ms if self._request.acks else OPEN_TIMEOUT_MS
            self._parked.wait(timeout_ms, on_timeout=self._time_out, on_end=self._give_up)
        else:
            self._finish()

    def _take(self, number: int, part: ProducePart) -> None:
        result = self._results[number]
        try:
            self._append(number, part)
        except Refused as refused:
            result.error, result.leader = refused.error, refused.leader
        except KraftError as error:
            result.error = error

    def _append(self, number: int, part: ProducePart) -> None:
        partition = self._service.table.find(part.partition)
        if partition.log is None:
            partition.check_leader()
            self._opening[number] = partition
            partition.data.when_open(partial(self._opened, number, part))
            return
        appended, data = partition.append(part.records, self._request.acks)
        result = self._results[number]
        result.base_offset = appended.base_offset
        result.log_start_offset = partition.start_offset
        if partition.settings.log.timestamp_type is TimestampType.APPEND and not appended.duplicate:
            result.append_time = RecordBatch(data).max_timestamp
        self._wait_for(number, partition, appended)

    def _opened(self, number: int, part: ProducePart, error: KraftError | None) -> None:
        """The first record of a partition waited for its log. Nobody overtook it."""
        if self._parked.is_over:
            return
        del self._opening[number]
        if error is None:
            self._take(number, part)
        self._results[number].error = error or self._results[number].error
        self._finish_if_done()

    def _wait_for(self, number: int, partition: Partition, appended: Appended) -> None:
        needed = appended.last_offset + 1
        if self._request.acks == ACKS_ALL and partition.high_watermark < needed:
            queue = partition.at_high_watermark
        elif self._must_flush(partition) and partition.state.flushed_offset < needed:
            queue = partition.flushed
        else:
            return
        waiter = queue.add(needed, partial(self._reached, number))
        self._waiting[number] = (partition, waiter)

    def _must_flush(self, partition: Partition) -> bool:
        return self._request.acks == 1 and partition.settings.flush_before_ack

    def _reached(self, number: int, error: KraftError | None) -> None:
        """A partition has what it takes, or never will."""
        partition, _ = self._waiting.pop(number)
        result = self._results[number]
        try:
            if error is None and self._request.acks != ACKS_ALL:
                partition.check_serving(self._service.clock.monotonic_ms())
        except Refused as refused:
            error = refused.error
        result.error = error
        if error is not None:
            result.leader = partition.leader_hint
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self._begun and not self._waiting and not self._opening:
            self._finish()

    def _time_out(self) -> None:
        unfinished = {number: partition for number, (partition, _) in self._waiting.items()}
        for number, partition in (unfinished | self._opening).items():
            self._results[number].error = produce_timed_out(
                partition.name, self._request.timeout_ms
            )
        self._answer()

    def _give_up(self) -> None:
        for _, waiter in self._waiting.values():
            waiter.give_up()

    def _finish(self) -> None:
        if self._parked.end():
            self._answer()

    def _answer(self) -> None:
        for each in self._results:
            # An answer without an error is a promise, so nothing may become one by being left out.
            done = each.error is not None or each.base_offset != NO_OFFSET
            invariant(done, "a batch was neither appended nor refused", partition=each.partition)
        is_silent = self._request.acks == 0 and all(each.error is None for each in self._results)
        self._on_done(ProduceReply(() if is_silent else self._results))


def _refuse_all(request: ProduceRequest, error: KraftError) -> ProduceReply:
    return ProduceReply([ProduceResult(part.partition, error=error) for part in request.parts])
