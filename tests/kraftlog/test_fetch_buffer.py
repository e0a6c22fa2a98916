import pytest

from kraftlog.errors import InvalidRequest, KraftError, OffsetOutOfRange
from kraftlog.fetch_buffer import FetchBuffer, PartitionState, Taken
from kraftlog.offsets import Offset
from kraftlog.record_batch import RecordBatch, encode_values
from kraftlog.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(base_offset: int, records: int = 10, size: int = 10) -> RecordBatch:
    values = [b"x" * size] * records
    return RecordBatch(encode_values(values, timestamp=1, base_offset=base_offset, leader_epoch=3))


class Bench:
    def __init__(self, *, partition_bytes: int = 1_000, total_bytes: int = 10_000) -> None:
        self.rooms = 0
        self.news = 0
        self.buffer = FetchBuffer(
            partition_bytes=partition_bytes,
            total_bytes=total_bytes,
            on_room=self._room,
            on_news=self._news,
        )

    def _room(self) -> None:
        self.rooms += 1

    def _news(self) -> None:
        self.news += 1

    def assign(self, *places: TopicPartition) -> list[PartitionState]:
        """Partitions that are read from offset 0."""
        self.buffer.assign(dict.fromkeys(places, Offset.START))
        for state, generation, start in self.buffer.unplaced():
            assert start == Offset.START
            self.buffer.place_at(state, generation, 0)
        return [self.buffer.state(place) for place in places]

    def put(self, state: PartitionState, *batches: RecordBatch, watermark: int = 100) -> None:
        asked = (state.generation, state.fetch_offset)
        self.buffer.put(state, asked, list(batches), watermark=watermark)

    def take(self) -> Taken:
        taken = self.buffer.take()
        assert taken is not None
        return taken


def test_a_partition_gets_its_position_first() -> None:
    bench = Bench()
    bench.buffer.assign({A: Offset.END})
    ((state, generation, start),) = bench.buffer.unplaced()
    assert (start, bench.buffer.fetchable()) == (Offset.END, [])
    assert bench.buffer.known_position(A) == []
    bench.buffer.place_at(state, generation, 42)
    assert bench.buffer.known_position(A) == [42]
    assert list(bench.buffer.fetchable()) == [state]
    assert bench.buffer.unplaced() == []


def test_batches_come_out_in_order_and_partitions_take_turns() -> None:
    bench = Bench()
    a, b = bench.assign(A, B)
    bench.put(a, batch(0), batch(10))
    bench.put(b, batch(0))
    taken = [bench.take() for _ in range(3)]
    assert [(each.state.place, each.batch.base_offset) for each in taken] == [
        (A, 0),
        (B, 0),
        (A, 10),
    ]
    assert bench.buffer.take() is None
    assert (a.fetch_offset, b.fetch_offset, a.last_epoch) == (20, 10, 3)
    assert a.high_watermark == 100


def test_the_position_is_the_callers() -> None:
    bench = Bench()
    (a,) = bench.assign(A)
    bench.put(a, batch(0), batch(10))
    taken = bench.take()
    assert (taken.position, a.position) == (0, 0)
    bench.buffer.has_read(taken, 10)
    assert (a.position, bench.take().position) == (10, 10)


def test_a_batch_that_is_given_back_comes_first_again() -> None:
    bench = Bench()
    a, b = bench.assign(A, B)
    bench.put(a, batch(0))
    bench.put(b, batch(0))
    taken = bench.take()
    bench.buffer.give_back(taken, 4)
    again = bench.take()
    assert (again.state, again.position) == (a, 4)


def test_a_full_partition_is_not_fetched_until_it_is_read() -> None:
    bench = Bench(partition_bytes=200)
    (a,) = bench.assign(A)
    bench.put(a, batch(0, size=5))
    assert list(bench.buffer.fetchable()) == [a]
    bench.put(a, batch(10, size=5))
    assert bench.buffer.fetchable() == []
    rooms = bench.rooms
    bench.take()
    assert bench.rooms == rooms + 1
    assert list(bench.buffer.fetchable()) == [a]
    bench.take()
    assert bench.rooms == rooms + 1, "there was room already"


def test_all_partitions_together_are_bounded_too() -> None:
    bench = Bench(total_bytes=400)
    a, b = bench.assign(A, B)
    bench.put(a, batch(0), batch(10))
    assert bench.buffer.fetchable() == []
    bench.take()
    assert list(bench.buffer.fetchable()) == [a, b]


# R37 seek: nothing from before it comes after it.
def test_a_seek_drops_what_was_fetched_and_what_is_under_way() -> None:
    bench = Bench()
    (a,) = bench.assign(A)
    bench.put(a, batch(0))
    asked = (a.generation, a.fetch_offset)
    taken = bench.take()
    bench.buffer.seek(A, Offset.at(70))
    bench.buffer.put(a, asked, [batch(10)], watermark=100)
    bench.buffer.has_read(taken, 10)
    bench.buffer.give_back(taken, 5)
    assert not bench.buffer.is_current(taken)
    assert bench.buffer.take() is None
    assert bench.buffer.known_position(A) == []
    assert [start for _, _, start in bench.buffer.unplaced()] == [Offset.at(70)]
    bench.buffer.place_at(a, asked[0], 10)
    assert bench.buffer.known_position(A) == [], "found before the seek"


def test_of_two_answers_to_one_question_one_is_dropped() -> None:
    bench = Bench()
    (a,) = bench.assign(A)
    asked = (a.generation, a.fetch_offset)
    for _ in range(2):  # the partition moved: its old and its new leader both answer
        bench.buffer.put(a, asked, [batch(0)], watermark=100)
    bench.take()
    assert bench.buffer.take() is None


# R37: pause, resume
def test_a_paused_partition_keeps_what_it_has() -> None:
    bench = Bench()
    (a,) = bench.assign(A)
    bench.put(a, batch(0))
    bench.buffer.pause([A])
    assert bench.buffer.paused == [A]
    assert bench.buffer.take() is None
    assert bench.buffer.fetchable() == []
    bench.buffer.resume([A])
    assert bench.buffer.paused == []
    assert bench.take().batch.base_offset == 0


def test_an_error_is_told_after_what_came_before_it() -> None:
    bench = Bench()
    (a,) = bench.assign(A)
    bench.put(a, batch(0))
    bench.buffer.fail(a, a.generation, KraftError("once"), stuck=False)
    assert bench.take().batch.base_offset == 0
    with pytest.raises(KraftError, match="once"):
        bench.buffer.take()
    assert bench.buffer.take() is None


def test_some_errors_stay_until_the_caller_seeks() -> None:
    bench = Bench()
    (a,) = bench.assign(A)
    bench.buffer.fail(a, a.generation, OffsetOutOfRange("gone"), stuck=True)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRange):
            bench.buffer.take()
    assert bench.buffer.fetchable() == []
    bench.buffer.seek(A, Offset.at(5))
    assert bench.buffer.take() is None


def test_a_partition_may_begin_with_an_error() -> None:
    bench = Bench()
    bench.buffer.assign({A: OffsetOutOfRange("no offset")})
    assert bench.buffer.unplaced() == []
    for _ in range(2):
        with pytest.raises(OffsetOutOfRange):
            bench.buffer.take()
    with pytest.raises(OffsetOutOfRange):
        bench.buffer.known_position(A)


def test_an_assignment_replaces_the_one_before() -> None:
    bench = Bench()
    a, b = bench.assign(A, B)
    bench.put(a, batch(0))
    bench.put(b, batch(0))
    taken = bench.take()
    bench.buffer.assign({B: Offset.END})
    assert bench.buffer.assigned == [B]
    assert bench.buffer.state(B) is b, "it goes on where it is"
    assert not bench.buffer.is_current(taken)
    assert bench.take().state is b
    with pytest.raises(InvalidRequest, match="t-0 is not assigned"):
        bench.buffer.seek(A, Offset.START)


def test_a_restart_is_a_seek_of_the_loops() -> None:
    bench = Bench()
    (a,) = bench.assign(A)
    bench.put(a, batch(0))
    bench.buffer.restart(a, a.generation + 1, Offset.END)
    assert bench.buffer.unplaced() == []
    bench.buffer.restart(a, a.generation, Offset.END)
    assert [start for _, _, start in bench.buffer.unplaced()] == [Offset.END]
    assert bench.buffer.take() is None
