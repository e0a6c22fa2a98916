import threading
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.accumulator import (
    RECORD_OVERHEAD_BYTES,
    Accumulator,
    AccumulatorSettings,
    BufferFull,
    Columns,
    PartitionQueue,
    TopicWanted,
)
from kraftlog.errors import InvalidRequest, KraftError, RecordTooLarge
from kraftlog.partition_choice import PartitionerChoice, find_chooser
from kraftlog.record_batch import HEADER_BYTES, RecordBatch, encode_columns
from kraftlog.records import Headers
from kraftlog.send_window import Batch

BATCH_BYTES = 1_000


class Bench:
    """An accumulator with two partitions, a clock that stands still, and its wakings counted."""

    def __init__(
        self,
        *,
        buffer_bytes: int = 1 << 20,
        partitions: int = 2,
        partitioner: PartitionerChoice = "murmur2",
    ) -> None:
        self.now = 0.0
        self.wakings = 0
        settings = AccumulatorSettings(
            batch_bytes=BATCH_BYTES,
            buffer_bytes=buffer_bytes,
            record_bytes_max=5_000,
            linger=1.0,
            max_in_flight=5,
            idempotent=True,
        )
        chooser = find_chooser(partitioner, Random(1), BATCH_BYTES)
        self.accumulator = Accumulator(settings, chooser, self._wake, lambda: self.now)
        self.accumulator.set_partitions("t", partitions, range(partitions))

    def _wake(self) -> None:
        self.wakings += 1

    def queue(self, partition: int = 0) -> PartitionQueue:
        return next(q for q in self.accumulator.active() if q.partition == partition)

    def drain(self) -> dict[int, list[Batch]]:
        """All batches, by partition."""
        drained: dict[int, list[Batch]] = {}
        for queue in self.accumulator.active():
            while (batch := self.accumulator.take(queue)) is not None:
                drained.setdefault(queue.partition, []).append(batch)
        return drained


values = st.none() | st.binary(max_size=300)
keys = st.none() | st.sampled_from([b"a", b"b", b"c"])
headers = st.sampled_from([(), (("h", b"x"),), (("h", None), ("ü", b"yy"))])


# R31: batches are made per partition
@given(st.lists(st.tuples(values, keys, headers), max_size=60))
def test_records_stay_in_order_and_batches_fit(
    records: list[tuple[bytes | None, bytes | None, Headers]],
) -> None:
    bench = Bench()
    for number, (value, key, pairs) in enumerate(records):
        future = bench.accumulator.append("t", value, key, timestamp=number, headers=pairs)
        assert not future.done()
    seen: list[int] = []
    for partition, batches in bench.drain().items():
        for batch in batches:
            timestamps = batch.delivery.timestamps
            assert batch.count == len(timestamps) == len(batch.keys) == len(batch.values)
            encoded = encode_columns(
                batch.values, timestamps=timestamps, keys=batch.keys, headers=batch.headers
            )
            assert len(encoded) <= HEADER_BYTES + batch.size
            assert batch.count == 1 or batch.size <= BATCH_BYTES
            for record in RecordBatch(encoded).records():
                assert (record.value, record.key, record.headers) == records[record.timestamp]
                seen.append(record.timestamp)
            assert batch.delivery.partition == partition
        in_partition = [t for batch in batches for t in batch.delivery.timestamps]
        assert in_partition == sorted(in_partition)
    assert sorted(seen) == list(range(len(records)))


@given(
    st.lists(st.tuples(values, keys, headers), max_size=60),
    st.sampled_from(["murmur2", "sticky", "round_robin"]),
    st.lists(st.sampled_from([None, 0, 1]), min_size=60, max_size=60) | st.none(),
)
def test_many_at_once_are_the_same_records(
    records: list[tuple[bytes | None, bytes | None, Headers]],
    partitioner: str,
    given_partitions: list[int | None] | None,
) -> None:
    bench = Bench(partitioner=partitioner)
    columns = Columns(
        [value for value, _, _ in records],
        list(range(len(records))),
        [key for _, key, _ in records],
        [pairs for _, _, pairs in records],
        None if given_partitions is None else given_partitions[: len(records)],
    )
    groups = bench.accumulator.group("t", columns)
    bench.accumulator.extend("t", groups)
    places: dict[int, int] = {}
    for partition, batches in bench.drain().items():
        for batch in batches:
            timestamps = batch.delivery.timestamps
            found = zip(
                timestamps,
                batch.values,
                batch.keys,
                batch.headers or [()] * batch.count,
                strict=True,
            )
            for number, value, key, pairs in found:
                assert (value, key, pairs) == records[number]
                places[number] = partition
            assert batch.count == 1 or batch.size <= BATCH_BYTES
            assert timestamps == sorted(timestamps)
    assert sorted(places) == list(range(len(records)))
    for number, wanted in enumerate(given_partitions or ()):
        assert wanted is None or number not in places or places[number] == wanted
    for group in groups:
        located = [
            run.delivery.timestamps[index]
            for run in group.runs
            for index in range(run.first, run.first + run.rows)
        ]
        assert located == list(group.inputs)


def test_a_key_always_has_the_same_partition_both_ways() -> None:
    bench = Bench(partitions=7)
    for number in range(20):
        bench.accumulator.append("t", b"", b"%d" % number, timestamp=number)
    one_by_one = {
        t: p for p, found in bench.drain().items() for b in found for t in b.delivery.timestamps
    }
    many = Bench(partitions=7)
    columns = Columns([b""] * 20, list(range(20)), [b"%d" % number for number in range(20)])
    many.accumulator.extend("t", many.accumulator.group("t", columns))
    at_once = {
        t: p for p, found in many.drain().items() for b in found for t in b.delivery.timestamps
    }
    assert one_by_one == at_once


def test_the_loop_is_woken_by_batches_not_by_records() -> None:
    bench = Bench(partitions=1)
    for _ in range(5):
        bench.accumulator.append("t", b"", None, timestamp=0)
    assert bench.wakings == 1
    bench.accumulator.active()
    bench.accumulator.append("t", b"", None, timestamp=0)
    assert bench.wakings == 1, "the batch it is in has been noticed"
    bench.accumulator.append("t", b"x" * BATCH_BYTES, None, timestamp=0)
    assert bench.wakings == 2, "the first is full"


def test_a_batch_is_ready_when_full_or_after_linger_or_by_a_flush() -> None:
    bench = Bench(partitions=1)
    bench.now = 10.0
    bench.accumulator.append("t", b"", None, timestamp=0)
    queue = bench.queue()
    assert bench.accumulator.ready_at(queue) == 11.0
    assert len(bench.accumulator.start_flush()) == 1
    assert bench.accumulator.ready_at(queue) == 0.0
    bench.accumulator.end_flush()
    assert bench.accumulator.ready_at(queue) == 11.0
    bench.accumulator.append("t", b"x" * BATCH_BYTES, None, timestamp=0)
    assert bench.accumulator.ready_at(queue) == 0.0
    bench.accumulator.take(queue)
    assert bench.accumulator.ready_at(queue) == 11.0
    bench.accumulator.take(queue)
    assert bench.accumulator.ready_at(queue) is None
    assert bench.accumulator.take(queue) is None


# R33: buffer memory
def test_a_full_buffer_refuses_until_a_batch_is_answered() -> None:
    bench = Bench(buffer_bytes=2 * (RECORD_OVERHEAD_BYTES + 100), partitions=1)
    for _ in range(2):
        bench.accumulator.append("t", b"x" * 100, None, timestamp=0)
    with pytest.raises(BufferFull):
        bench.accumulator.append("t", b"x" * 100, None, timestamp=0)
    told = threading.Event()
    bench.accumulator.when_room(told.set)
    batch = bench.accumulator.take(bench.queue())
    assert batch is not None
    with pytest.raises(BufferFull):
        bench.accumulator.append("t", b"x" * 100, None, timestamp=0)
    batch.delivery.keep(0)
    bench.accumulator.release(batch)
    assert told.is_set()
    assert bench.accumulator.buffered_bytes == 0
    bench.accumulator.append("t", b"x" * 100, None, timestamp=0)


def test_many_go_on_where_the_buffer_was_full() -> None:
    size = RECORD_OVERHEAD_BYTES + 100
    bench = Bench(buffer_bytes=3 * size, partitions=1)
    groups = bench.accumulator.group("t", Columns([b"x" * 100] * 8, list(range(8))))
    seen: list[int] = []
    for _ in range(2):
        with pytest.raises(BufferFull):
            bench.accumulator.extend("t", groups)
        for batch in bench.drain()[0]:
            seen += batch.delivery.timestamps
            batch.delivery.keep(0)
            bench.accumulator.release(batch)
    bench.accumulator.extend("t", groups)
    seen += [t for batch in bench.drain()[0] for t in batch.delivery.timestamps]
    assert seen == list(range(8))


def test_one_record_larger_than_the_buffer_still_goes() -> None:
    bench = Bench(buffer_bytes=10)
    bench.accumulator.append("t", b"x" * 100, None, timestamp=0)


# R33: largest request
def test_a_record_that_is_too_large_is_refused_at_once() -> None:
    bench = Bench()
    with pytest.raises(RecordTooLarge, match="5000"):
        bench.accumulator.append("t", b"x" * 5_000, None, timestamp=0)
    with pytest.raises(RecordTooLarge):
        bench.accumulator.group("t", Columns([b"", b"x" * 5_000], [0, 0]))
    bench.accumulator.append("t", b"x" * 4_000, None, timestamp=0)


def test_topics_and_partitions_have_to_be_known() -> None:
    bench = Bench()
    with pytest.raises(TopicWanted):
        bench.accumulator.append("u", b"", None, timestamp=0)
    with pytest.raises(TopicWanted):
        bench.accumulator.group("u", Columns([b""], [0]))
    with pytest.raises(InvalidRequest):
        bench.accumulator.append("t", b"", None, timestamp=0, partition=2)
    with pytest.raises(InvalidRequest):
        bench.accumulator.group("t", Columns([b""], [0], partitions=[2]))
    bench.accumulator.set_partitions("t", 3, range(3))
    bench.accumulator.append("t", b"", None, timestamp=0, partition=2)
    assert bench.accumulator.knows("t")
    assert not bench.accumulator.knows("u")


def test_a_topic_made_again_with_fewer_partitions() -> None:
    bench = Bench(partitions=4)
    bench.accumulator.append("t", b"", None, timestamp=0, partition=3)
    bench.accumulator.set_partitions("t", 2, range(2))
    with pytest.raises(InvalidRequest):
        bench.accumulator.append("t", b"", None, timestamp=0, partition=3)
    assert len(bench.drain()[3]) == 1


def test_a_topic_that_is_gone_has_to_be_asked_for_again() -> None:
    bench = Bench()
    bench.accumulator.append("t", b"", None, timestamp=0, partition=1)
    bench.accumulator.forget("t")
    assert not bench.accumulator.knows("t")
    with pytest.raises(TopicWanted):
        bench.accumulator.append("t", b"", None, timestamp=0)
    with pytest.raises(TopicWanted):
        bench.accumulator.group("t", Columns([b""], [0]))
    bench.accumulator.set_partitions("t", 2, range(2))
    bench.accumulator.append("t", b"", None, timestamp=0, partition=1)
    assert [batch.count for batch in bench.drain()[1]] == [2]


def test_an_idle_partition_is_forgotten() -> None:
    bench = Bench()
    bench.accumulator.append("t", b"", None, timestamp=0, partition=1)
    queue = bench.queue(1)
    bench.accumulator.take(queue)
    assert bench.accumulator.active() == []
    assert [batch.count for _, batch in bench.accumulator.unsent()] == []


def test_what_is_unsent_can_be_taken_out() -> None:
    bench = Bench()
    for partition in (0, 1):
        bench.accumulator.append("t", b"x" * 900, None, timestamp=0, partition=partition)
        bench.accumulator.append("t", b"x" * 900, None, timestamp=0, partition=partition)
    assert [queue.partition for queue, _ in bench.accumulator.unsent()] == [0, 0, 1, 1]


def test_after_the_end_nothing_is_taken_and_nobody_waits() -> None:
    bench = Bench(buffer_bytes=500)
    groups = bench.accumulator.group("t", Columns([b"x"] * 3, 0))
    bench.accumulator.append("t", b"x" * 400, None, timestamp=0)
    waiting = threading.Event()
    bench.accumulator.when_room(waiting.set)
    bench.accumulator.end(KraftError("over"))
    assert waiting.is_set()
    bench.accumulator.set_partitions("t", 2, range(2))
    for send in (
        lambda: bench.accumulator.append("t", b"x", None, timestamp=0),
        lambda: bench.accumulator.append("new", b"x", None, timestamp=0),
        lambda: bench.accumulator.append_encoded("t", 0, bytearray(100), [0]),
        lambda: bench.accumulator.group("t", Columns([b"x"], 0)),
        lambda: bench.accumulator.extend("t", groups),
    ):
        with pytest.raises(KraftError, match="over"):
            send()
    assert [len(batches) for batches in bench.drain().values()] == [1]
