import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import CorruptRecord, KraftError, OffsetOutOfRange, SerializationError
from kraftlog.fetch_buffer import FetchBuffer
from kraftlog.offsets import Offset
from kraftlog.record_batch import Record as BatchRecord
from kraftlog.record_batch import RecordBatch, encode_batch, encode_columns
from kraftlog.record_reader import OnError, RecordReader
from kraftlog.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(base_offset: int, *values: bytes, control: bool = False) -> RecordBatch:
    encoded = encode_columns(
        list(values),
        timestamps=[1000 + base_offset + number for number in range(len(values))],
        keys=[b"k"] * len(values),
        base_offset=base_offset,
        is_control=control,
    )
    return RecordBatch(encoded)


class Bench:
    """Batches that were fetched, and a reader of them."""

    def __init__(
        self,
        batches: dict[TopicPartition, list[RecordBatch]],
        *,
        position: int = 0,
        key: str = "bytes",
        value: str = "bytes",
        on_error: OnError = "raise",
    ) -> None:
        self.buffer = FetchBuffer(
            partition_bytes=1 << 20,
            total_bytes=1 << 20,
            on_room=lambda: None,
            on_news=lambda: None,
        )
        self.reader: RecordReader[object, object] = RecordReader(
            self.buffer,
            key_deserializer=key,
            value_deserializer=value,
            on_error=on_error,
            check_crcs=True,
        )
        self.buffer.assign({place: Offset.at(position) for place in batches})
        for state, generation, _ in self.buffer.unplaced():
            self.buffer.place_at(state, generation, position)
            asked = (generation, position)
            self.buffer.put(state, asked, batches[state.place], watermark=1000)

    def offsets(self, max_records: int = 100) -> list[int]:
        return [record.offset for record in self.reader.read(max_records)]

    def position(self) -> int:
        self.reader.note_position()
        return self.buffer.known_position(A)[0]


def test_a_record_is_all_that_was_sent() -> None:
    bench = Bench({A: [batch(5, b"a")]})
    (record,) = bench.reader.read(10)
    assert record == ("t", 0, 5, 1005, b"k", b"a", ())
    assert bench.position() == 6


@given(st.lists(st.integers(1, 7), max_size=8), st.lists(st.integers(1, 9), max_size=30))
def test_nothing_is_left_out_or_repeated(sizes: list[int], reads: list[int]) -> None:
    batches, total = [], 0
    for size in sizes:
        batches.append(batch(total, *[b"v"] * size))
        total += size
    bench = Bench({A: batches})
    seen: list[int] = []
    for wanted in reads:
        found = bench.offsets(wanted)
        assert len(found) <= wanted
        seen += found
        assert bench.position() == len(seen)
    seen += bench.offsets(1000)
    assert seen == list(range(total))


@given(st.lists(st.sampled_from(["read", "walk", "batch", "put back", "position"]), max_size=30))
def test_ways_of_reading_can_be_mixed(ways: list[str]) -> None:
    bench = Bench({A: [batch(start, *[b"v"] * 5) for start in range(0, 50, 5)]})
    seen: list[int] = []
    for way in [*ways, "rest"]:
        if way == "read":
            seen += bench.offsets(2)
        elif way == "walk":
            opened = bench.reader.current()
            for _, record in zip("xxx", bench.reader.walk(opened) if opened else (), strict=False):
                seen.append(record.offset)
        elif way == "batch":
            view = bench.reader.read_batch()
            seen += [record.offset for record in view.records()] if view else []
        elif way == "put back":
            bench.reader.put_back()
        elif way == "position":
            assert bench.position() == len(seen)
        else:
            seen += bench.offsets(100)
    assert seen == list(range(50))


def test_reading_begins_in_the_middle_of_a_batch() -> None:
    bench = Bench({A: [batch(0, *[b"v"] * 5)]}, position=3)
    assert bench.offsets() == [3, 4]


def test_control_batches_are_never_seen_but_passed() -> None:
    marker = batch(2, b"marker", control=True)
    bench = Bench({A: [batch(0, b"a", b"b"), marker, batch(3, b"c")]})
    assert bench.offsets() == [0, 1, 3]
    assert bench.position() == 4
    alone = Bench({A: [batch(0, b"m", control=True)]})
    assert alone.reader.read_batch() is None
    assert alone.position() == 1


def test_gaps_that_compaction_left_are_passed() -> None:
    kept = [BatchRecord(offset, 1, b"k", b"v", ()) for offset in (1, 4)]
    holey = RecordBatch(encode_batch(kept, base_offset=0, last_offset=9))
    bench = Bench({A: [holey, batch(10, b"x")]})
    assert bench.offsets(2) == [1, 4]
    assert bench.position() == 10


# R31 has serializers for one end, these are for the other.
def test_keys_and_values_are_deserialized() -> None:
    bench = Bench({A: [batch(0, b"1", b"[2]")]}, key="string", value="json")
    assert [(r.key, r.value) for r in bench.reader.read(10)] == [("k", 1), ("k", [2])]


def test_a_tombstone_is_not_deserialized() -> None:
    encoded = encode_columns([None], timestamps=1)
    bench = Bench({A: [RecordBatch(encoded)]}, key="json", value="json")
    (record,) = bench.reader.read(1)
    assert (record.key, record.value) == (None, None)


def test_what_does_not_deserialize_stops_the_reading_there() -> None:
    bench = Bench({A: [batch(0, b"1", b"2", b"x", b"4")]}, value="json")
    assert bench.offsets() == [0, 1]
    for _ in range(2):
        with pytest.raises(SerializationError, match=r"record 2 of t-0.*seek to 3"):
            bench.reader.read(10)
    assert bench.position() == 2


def test_or_is_left_out() -> None:
    bench = Bench({A: [batch(0, b"1", b"x", b"3")]}, value="json", on_error="skip")
    assert bench.offsets() == [0, 2]


def test_a_damaged_batch_is_told_by_its_offset_and_not_passed() -> None:
    damaged = bytearray(batch(2, b"abc").data)
    damaged[-3] ^= 1
    bench = Bench({A: [batch(0, b"a", b"b"), RecordBatch(damaged)]})
    assert bench.offsets() == [0, 1]
    for read in (bench.offsets, bench.reader.read_batch, bench.reader.current):
        with pytest.raises(CorruptRecord, match="offset 2"):
            read()
    assert bench.position() == 2


def test_what_was_read_before_an_error_comes_first() -> None:
    bench = Bench({A: [batch(0, b"a")], B: []})
    state = bench.buffer.state(B)
    bench.buffer.fail(state, state.generation, OffsetOutOfRange("gone"), stuck=False)
    assert bench.offsets() == [0]
    with pytest.raises(KraftError, match="gone"):
        bench.offsets()
    assert bench.offsets() == []


def test_an_error_of_elsewhere_is_forgotten_by_a_seek() -> None:
    bench = Bench({A: [batch(0, b"a")], B: []})
    state = bench.buffer.state(B)
    bench.buffer.fail(state, state.generation, OffsetOutOfRange("gone"), stuck=False)
    bench.offsets()
    bench.reader.forget_error()
    assert bench.offsets() == []


def test_a_walk_ends_when_the_caller_goes_elsewhere() -> None:
    bench = Bench({A: [batch(0, *[b"v"] * 5)]})
    opened = bench.reader.current()
    assert opened is not None
    walk = bench.reader.walk(opened)
    next(walk)
    bench.reader.put_back()
    assert list(walk) == []
    assert bench.offsets() == [1, 2, 3, 4]


def test_a_pause_keeps_what_was_not_handed_out() -> None:
    bench = Bench({A: [batch(0, *[b"v"] * 5)]})
    assert bench.offsets(2) == [0, 1]
    bench.buffer.pause([A])
    assert bench.offsets() == []
    bench.buffer.resume([A])
    assert bench.offsets() == [2, 3, 4]


# R37: whole batches, as columns
def test_a_batch_as_columns() -> None:
    pytest.importorskip("pyarrow")
    bench = Bench({A: [batch(0, b"a", b"b", b"c")]}, position=1)
    view = bench.reader.read_batch()
    assert view is not None
    assert (view.topic, view.partition, view.first_offset, view.next_offset) == ("t", 0, 1, 3)
    assert view.count_max == 3
    assert view.size_bytes > 3
    columns = view.to_arrow()
    assert columns.column("offset").to_pylist() == [1, 2]
    assert columns.column("value").to_pylist() == [b"b", b"c"]
    assert "t-0 1..2" in repr(view)


def test_integers_too() -> None:
    bench = Bench({A: [batch(0, struct.pack(">q", 2**40))]}, value="int64")
    assert [record.value for record in bench.reader.read(1)] == [2**40]
