"""Producer state against a model that keeps everything."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kraftlog.errors import InvalidProducerEpoch, KraftError, OutOfOrderSequence
from kraftlog.record_batch import RecordBatch
from storage.model_disk import ModelDisk
from storage.producer_state import (
    REMEMBERED_BATCHES,
    SEQUENCE_MAX,
    Duplicate,
    ProducerStates,
)
from tests.storage.test_producer_state import PATH, batch, marker


@dataclass(frozen=True)
class Written:
    """One batch or marker of the log, as the model keeps it."""

    producer: int
    epoch: int
    first: int
    last: int
    offset: int
    end: int
    timestamp: int
    transactional: bool
    is_marker: bool = False


producers = st.integers(0, 2)
counts = st.integers(1, 4)


class HistoryMachine(RuleBasedStateMachine):
    """`log` is the whole history. `since` is where a producer's memory begins, by index in it."""

    @initialize()
    def begin(self) -> None:
        self.states = ProducerStates()
        self.disk = ModelDisk()
        self.log: list[Written] = []
        self.since: dict[int, int] = {}
        self.end = 0
        self.now = 0

    # What the model says

    def of(self, producer: int) -> list[Written]:
        since = self.since.get(producer, 0)
        return [each for each in self.log[since:] if each.producer == producer]

    def current(self, producer: int) -> list[Written]:
        """The data batches since the last change of epoch."""
        found: list[Written] = []
        for each in self.of(producer):
            if found and found[-1].epoch != each.epoch:
                found = []
            found.append(each)
        return [each for each in found if not each.is_marker]

    def open_since(self, producer: int) -> int | None:
        first = None
        for each in self.log:
            if each.producer == producer and each.is_marker:
                first = None
            elif each.producer == producer and each.transactional and first is None:
                first = each.offset
        return first

    def verdict(self, new: Written) -> Duplicate | type[KraftError] | None:
        known = self.of(new.producer)
        if not known:
            return None
        if new.epoch < known[-1].epoch:
            return InvalidProducerEpoch
        if new.epoch > known[-1].epoch:
            return None if new.first == 0 else OutOfOrderSequence
        current = self.current(new.producer)
        for each in current[-REMEMBERED_BATCHES:]:
            if (each.first, each.last) == (new.first, new.last):
                return Duplicate(each.offset, each.end - 1, each.timestamp)
        expected = (current[-1].last + 1) % 2**31 if current else 0
        return None if new.first == expected else OutOfOrderSequence

    # What happens

    def written(self, producer: int, epoch: int, first: int, count: int, txn: bool) -> Written:
        self.now += 1
        last = (first + count - 1) % 2**31
        end = self.end + count
        return Written(producer, epoch, first, last, self.end, end, self.now, txn)

    def append(self, new: Written, data: RecordBatch) -> None:
        self.states.update(data)
        self.log.append(new)
        self.end = new.end

    @rule(
        data=st.data(),
        producer=producers,
        count=counts,
        txn=st.booleans(),
        replicated=st.booleans(),
    )
    def send(
        self, data: st.DataObject, producer: int, count: int, txn: bool, replicated: bool
    ) -> None:
        known, current = self.of(producer), self.current(producer)
        epoch = max(
            0, (known[-1].epoch if known else 0) + data.draw(st.sampled_from([0, 0, 0, 1, -1]))
        )
        sequences = [0, 1, SEQUENCE_MAX, SEQUENCE_MAX - 1]
        sequences += [each.first for each in current] + [each.last for each in current]
        if current:
            sequences += [(current[-1].last + 1) % 2**31] * 6
        first = data.draw(st.sampled_from(sequences))
        if current and first != (current[-1].last + 1) % 2**31 and data.draw(st.booleans()):
            again = data.draw(st.sampled_from(current))
            first, count = again.first, again.end - again.offset
        new = self.written(producer, epoch, first, count, txn)
        self.judge(new, replicated=replicated)

    def judge(self, new: Written, *, replicated: bool) -> None:
        data = batch(
            new.offset,
            sequence=new.first,
            count=new.end - new.offset,
            epoch=new.epoch,
            producer=new.producer,
            transactional=new.transactional,
            timestamp=new.timestamp,
        )
        expected = self.verdict(new)
        try:
            found: Duplicate | type[KraftError] | None = self.states.check(data)
        except KraftError as error:
            found = type(error)
        assert found == expected
        if expected is None or replicated:
            self.append(new, data)

    @rule(producer=producers, raised=st.integers(0, 1))
    def end_transaction(self, producer: int, raised: int) -> None:
        known = self.of(producer)
        epoch = (known[-1].epoch if known else 0) + raised
        self.now += 1
        new = Written(
            producer,
            epoch,
            -1,
            -1,
            self.end,
            self.end + 1,
            self.now,
            transactional=True,
            is_marker=True,
        )
        self.append(new, marker(self.end, producer=producer, epoch=epoch, timestamp=self.now))

    @rule()
    def restart(self) -> None:
        """One batch of each producer is remembered, and what came after it."""
        self.states.snapshot(self.disk, PATH)
        self.states = ProducerStates()
        self.states.load(self.disk, PATH)
        for producer in range(3):
            current = self.current(producer)
            if current:
                self.since[producer] = at = self.log.index(current[-1])
                # Kafka's file has one time per producer: that of its newest batch or marker.
                newest = self.of(producer)[-1].timestamp
                self.log[at] = replace(current[-1], timestamp=newest)

    @precondition(lambda self: self.log)
    @rule(age=st.integers(1, 20))
    def expire(self, age: int) -> None:
        gone = [
            producer
            for producer in range(3)
            if self.of(producer)
            and self.now - self.of(producer)[-1].timestamp >= age
            and self.open_since(producer) is None
        ]
        assert self.states.expire(self.now, age) == gone
        for producer in gone:
            self.since[producer] = len(self.log)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "log"):
            return
        last = {
            producer: self.current(producer)[-1].end - 1
            for producer in range(3)
            if self.current(producer)
        }
        assert self.states.last_offsets() == last
        open_at = [
            first for producer in range(3) if (first := self.open_since(producer)) is not None
        ]
        assert self.states.first_unstable_offset() == min(open_at, default=None)
        assert len(self.states) == sum(bool(self.of(producer)) for producer in range(3))


TestHistoryMachine = HistoryMachine.TestCase
