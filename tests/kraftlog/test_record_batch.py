"""Record batches: what is written, what is read, and what is refused."""

import gc
import weakref
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._batch_format import MAX_TIMESTAMP_POSITION
from kraftlog._codec import Codec
from kraftlog._codec_types import INT32_MAX, INT64_MAX
from kraftlog.errors import CorruptRecord, InvalidRecord, InvalidTimestamp, RecordTooLarge
from kraftlog.record_batch import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    BatchOptions,
    Headers,
    Record,
    RecordBatch,
    encode_batch,
    encode_columns,
    encode_values,
    patch_append_time,
    patch_offsets,
    read_batches,
    whole_batches,
)
from kraftlog.types import NO_TIMESTAMP, Compression, TimestampType
from tests.kraftlog.batches import (
    EXAMPLE,
    NOW,
    batch_options,
    both_twins,
    every_compression,
    fields,
    record_lists,
    using,
    with_crc,
)

# One record of value "hello" at offset 0 and time 0, as the format's description has it.
HELLO = bytes.fromhex(
    "0000000000000000"  # base offset
    "0000003d"  # batch length
    "ffffffff"  # leader epoch
    "02"  # magic
    "6636fc59"  # crc
    "0000"  # attributes
    "00000000"  # last offset delta
    "0000000000000000"  # base timestamp
    "0000000000000000"  # max timestamp
    "ffffffffffffffff"  # producer id
    "ffff"  # producer epoch
    "ffffffff"  # base sequence
    "00000001"  # record count
    "16000000010a68656c6c6f00"  # length 11, attributes, deltas, null key, value, no headers
)

INT64 = Struct(">q")


@both_twins
def test_bytes_are_those_of_the_format(twin: Codec) -> None:  # R27
    with using(twin):
        assert encode_values([b"hello"], timestamp=0).hex() == HELLO.hex()
        assert RecordBatch(HELLO).records() == [Record(0, 0, None, b"hello", ())]


@both_twins
@every_compression
@given(record_lists(), batch_options())
def test_what_was_written_is_read(
    twin: Codec, compression: Compression, records: list[Record], options: BatchOptions
) -> None:
    options["compression"] = compression
    with using(twin):
        data = encode_batch(records, **options)
        batch = RecordBatch(b"before" + data + b"after", 6)
        batch.check_crc()
        read = batch.records()
    highest = max(record.timestamp for record in records)
    if options["timestamp_type"] is TimestampType.APPEND:
        records = [record._replace(timestamp=highest) for record in records]
    assert read == records
    assert bytes(batch.data) == data
    assert batch.size == len(data)
    assert (batch.base_offset, batch.last_offset) == (records[0].offset, records[-1].offset)
    assert batch.next_offset == batch.last_offset + 1
    assert (batch.count, batch.max_timestamp) == (len(records), highest)
    said = BatchOptions(
        compression=batch.compression,
        leader_epoch=batch.leader_epoch,
        timestamp_type=batch.timestamp_type,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )
    assert said == options


@given(st.lists(fields, min_size=1, max_size=5))
def test_values_alone_and_columns(values: list[bytes | None]) -> None:
    records = [Record(5 + row, NOW, None, value) for row, value in enumerate(values)]
    data = encode_batch(records)
    assert encode_values(values, timestamp=NOW, base_offset=5) == data
    assert encode_columns(values, timestamps=[NOW] * len(values), base_offset=5) == data


def test_a_view_copies_nothing() -> None:
    buffer = bytearray(encode_values([b"hello"], timestamp=NOW))
    batch = RecordBatch(buffer)
    buffer[-6:-1] = b"HELLO"
    assert batch.records()[0].value == b"HELLO"


@both_twins
def test_an_emptied_batch_keeps_its_offsets(twin: Codec) -> None:
    with using(twin):
        data = encode_batch([], base_offset=3, last_offset=9, compression=Compression.ZSTD)
        batch = RecordBatch(data)
        batch.check_crc()
        assert batch.records() == []
    assert (batch.base_offset, batch.next_offset, batch.count) == (3, 10, 0)
    assert batch.compression is Compression.NONE
    assert len(data) == HEADER_BYTES


def test_offsets_beyond_the_records() -> None:
    batch = RecordBatch(encode_batch(EXAMPLE, base_offset=2, last_offset=30))
    assert (batch.base_offset, batch.last_offset) == (2, 30)
    assert batch.records() == EXAMPLE


@pytest.mark.parametrize(
    ("base_offset", "last_offset"), [(8, None), (7, 9), (-1, None), (7, INT64_MAX)]
)
def test_offsets_that_do_not_hold_the_records(base_offset: int, last_offset: int | None) -> None:
    with pytest.raises(InvalidRecord, match="record"):
        encode_batch(EXAMPLE, base_offset=base_offset, last_offset=last_offset)


def test_an_empty_batch_needs_offsets() -> None:
    with pytest.raises(InvalidRecord, match="an empty batch needs both"):
        encode_batch([])
    with pytest.raises(InvalidRecord, match="an empty batch needs both"):
        encode_batch([], base_offset=5)


def test_a_field_out_of_range() -> None:
    with pytest.raises(InvalidRecord, match="batch at offset 7"):
        encode_batch(EXAMPLE, leader_epoch=INT32_MAX + 1)


def test_a_batch_too_large() -> None:
    with pytest.raises(RecordTooLarge, match="put fewer records in one"):
        encode_values([bytes(BATCH_BYTES_MAX)], timestamp=NOW)


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = RecordBatch(encode_batch(EXAMPLE, delete_horizon_ms=NOW + 10**9))
    assert batch.delete_horizon_ms == NOW + 10**9
    assert batch.records() == EXAMPLE
    assert RecordBatch(encode_batch(EXAMPLE)).delete_horizon_ms is None


@pytest.mark.parametrize(
    ("base_sequence", "rows", "last"), [(0, 3, 2), (INT32_MAX, 1, INT32_MAX), (INT32_MAX, 3, 1)]
)
def test_sequences_wrap(base_sequence: int, rows: int, last: int) -> None:
    data = encode_values(
        [b""] * rows, timestamp=0, producer_id=1, producer_epoch=0, base_sequence=base_sequence
    )
    assert RecordBatch(data).last_sequence == last
    assert RecordBatch(data).has_producer


def test_without_a_producer_there_is_no_sequence() -> None:
    assert RecordBatch(HELLO).last_sequence == -1
    assert not RecordBatch(HELLO).has_producer


def test_offsets_are_patched_without_touching_the_crc() -> None:
    data = bytearray(encode_batch(EXAMPLE))
    patch_offsets(memoryview(data), base_offset=100, leader_epoch=5)
    batch = RecordBatch(data)
    batch.check_crc()
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (100, 103, 5)
    assert [record.offset for record in batch.records()] == [100, 101, 103]


def test_append_time_is_that_of_every_record() -> None:
    data = bytearray(encode_batch(EXAMPLE, compression=Compression.LZ4))
    patch_append_time(data, NOW + 12_345)
    batch = RecordBatch(data)
    batch.check_crc()
    assert batch.timestamp_type is TimestampType.APPEND
    assert {record.timestamp for record in batch.records()} == {NOW + 12_345}


@both_twins
@every_compression
@given(record_lists(dense=True), batch_options())
def test_what_a_producer_sends_is_taken(
    twin: Codec, compression: Compression, records: list[Record], options: BatchOptions
) -> None:
    options["is_control"] = False
    options["timestamp_type"] = TimestampType.CREATE
    if options["producer_id"] < 0:
        options["is_transactional"] = False
    options["compression"] = compression
    with using(twin):
        data = bytearray(encode_batch(records, **options))
        patch_offsets(data, base_offset=0, leader_epoch=options["leader_epoch"])
        RecordBatch(data).check_for_produce()


def _from_zero(records: list[Record]) -> list[Record]:
    first = records[0].offset
    return [record._replace(offset=record.offset - first) for record in records]


REFUSED: list[tuple[str, Callable[[], bytes]]] = [
    ("base offset 1", lambda: encode_values([b""], timestamp=0, base_offset=1)),
    ("attributes 0x20", lambda: encode_values([b""], timestamp=0, is_control=True)),
    ("attributes 0x40", lambda: encode_values([b""], timestamp=0, delete_horizon_ms=1)),
    ("attributes 0x8", lambda: encode_values([b""], timestamp=0, timestamp_type=TimestampType(1))),
    ("0 records with last offset delta 1", lambda: encode_batch([], base_offset=0, last_offset=1)),
    ("3 records with last offset delta 3", lambda: encode_batch(_from_zero(EXAMPLE))),
    ("producer id 1, epoch -1", lambda: encode_values([b""], timestamp=0, producer_id=1)),
    ("producer id -1, epoch 0", lambda: encode_values([b""], timestamp=0, producer_epoch=0)),
    ("sequence 0", lambda: encode_values([b""], timestamp=0, base_sequence=0)),
    ("without a producer id", lambda: encode_values([b""], timestamp=0, is_transactional=True)),
]


@pytest.mark.parametrize(("why", "make"), REFUSED, ids=[why for why, _ in REFUSED])
def test_what_a_producer_may_not_send(why: str, make: Callable[[], bytes]) -> None:
    batch = RecordBatch(make())
    batch.check_crc()
    with pytest.raises(InvalidRecord, match=why):
        batch.check_for_produce()


@both_twins
def test_a_producer_sends_offsets_without_a_gap(twin: Codec) -> None:
    """Also where the header says so and the records do not."""
    dense = [Record(offset, NOW, None, b"") for offset in (0, 1, 2)]
    data = bytearray(encode_batch(dense))
    position = data.rindex(b"\x0c\0\0\x04")
    data[position + 3] = 6
    with using(twin), pytest.raises(InvalidRecord, match="offset delta out of order"):
        RecordBatch(with_crc(data)).check_for_produce()


@both_twins
@every_compression
def test_what_a_batch_says_of_its_timestamps(twin: Codec, compression: Compression) -> None:
    records = [Record(n, time, None, b"") for n, time in enumerate((NOW, NOW - 7, NOW + 5))]
    data = bytearray(encode_batch(records, compression=compression))
    with using(twin):
        found = RecordBatch(data).check_for_produce()
        oldest = NOW - 7 if compression is Compression.NONE else NOW  # the first is all it tells
        assert found == (oldest, NOW + 5)
        INT64.pack_into(data, MAX_TIMESTAMP_POSITION, NOW - 1)
        with pytest.raises(InvalidTimestamp):
            RecordBatch(with_crc(data)).check_for_produce()
        INT64.pack_into(data, MAX_TIMESTAMP_POSITION, NOW + 6)
        if compression is Compression.NONE:
            with pytest.raises(InvalidTimestamp, match=f"the newest record has {NOW + 5}"):
                RecordBatch(with_crc(data)).check_for_produce()


def test_records_may_have_no_timestamp() -> None:
    data = encode_values([b""], timestamp=NO_TIMESTAMP)
    assert RecordBatch(data).check_for_produce() == (NO_TIMESTAMP, NO_TIMESTAMP)


def test_a_producer_sends_a_good_crc() -> None:
    data = bytearray(HELLO)
    data[-2] ^= 1
    with pytest.raises(CorruptRecord, match="batch at offset 0: stored crc 0x"):
        RecordBatch(data).check_for_produce()


def test_a_compressed_batch_has_something_in_it() -> None:
    data = bytearray(encode_batch([], base_offset=0, last_offset=0))
    data[22] = Compression.ZSTD
    data[60] = 1
    with pytest.raises(InvalidRecord, match="no bytes for 1 records"):
        RecordBatch(with_crc(data)).check_for_produce()


def test_batches_follow_each_other() -> None:
    first, second = encode_batch(EXAMPLE), encode_values([b"hello"], timestamp=0, base_offset=11)
    offsets = [batch.base_offset for batch in read_batches(b"x" + first + second, 1)]
    assert offsets == [7, 11]
    assert list(read_batches(b"")) == []


def test_what_must_be_whole_may_not_end_inside_a_batch() -> None:
    both = encode_batch(EXAMPLE) + HELLO
    assert [batch.base_offset for batch in whole_batches(both)] == [7, 0]
    for missing in range(1, len(HELLO)):
        with pytest.raises(CorruptRecord, match=f"{len(HELLO) - missing} bytes are not a whole"):
            whole_batches(both[:-missing])
    with pytest.raises(CorruptRecord):
        whole_batches(b"")


def test_a_fetch_may_end_inside_a_batch() -> None:
    first, second = encode_batch(EXAMPLE), HELLO
    for cut in range(len(second)):
        found = list(read_batches(first + second[:cut]))
        assert [batch.base_offset for batch in found] == [7]


def test_a_cut_batch_must_make_sense_as_far_as_it_goes() -> None:
    cut = bytearray(HELLO[:20])
    cut[16] = 1
    with pytest.raises(CorruptRecord, match="has magic 1"):
        list(read_batches(cut))


def test_a_position_outside_the_buffer() -> None:
    for position in (-1, len(HELLO) + 1):
        with pytest.raises(CorruptRecord, match="is cut"):
            RecordBatch(HELLO, position)


def test_repr_names_offsets() -> None:
    assert "base_offset=7, last_offset=10, count=3" in repr(RecordBatch(encode_batch(EXAMPLE)))


def test_an_error_names_the_producer() -> None:
    data = bytearray(
        encode_values([b""], timestamp=0, producer_id=42, producer_epoch=0, base_sequence=0)
    )
    data[-1] ^= 1
    with pytest.raises(CorruptRecord, match="batch at offset 0 of producer 42"):
        RecordBatch(data).check_crc()


@both_twins
@every_compression
@given(record_lists(), batch_options(), st.none() | st.integers(0, 2**41))
def test_rebuilding_with_every_record_changes_no_record(
    twin: Codec,
    compression: Compression,
    records: list[Record],
    options: BatchOptions,
    horizon: int | None,
) -> None:
    options["compression"] = compression
    with using(twin):
        batch = RecordBatch(encode_batch(records, **options))
        rebuilt = RecordBatch(
            batch.rebuild(
                batch.records_data(),
                batch.count,
                max_timestamp=batch.max_timestamp,
                delete_horizon_ms=horizon,
            )
        )
        rebuilt.check_crc()
        assert rebuilt.records() == batch.records()
    assert rebuilt.delete_horizon_ms == horizon
    assert horizon is not None or bytes(rebuilt.data) == bytes(batch.data)


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Richer(Row):
    """A subclass with a __dict__: more than a tuple."""


@both_twins
@given(records=record_lists().filter(bool), start=st.integers(-2, 300))
def test_rows_of_another_type(twin: Codec, records: list[Record], start: int) -> None:
    from_offset = records[0].offset + start
    with using(twin):
        batch = RecordBatch(encode_batch(records))
        rows = batch.rows(Row, ("t", 3), from_offset)
        assert rows == [("t", 3, *each) for each in records if each.offset >= from_offset]
        assert {type(row) for row in rows} <= {Row}
        assert batch.rows(Record) == records


@both_twins
def test_rows_that_can_be_part_of_a_cycle_are_still_collected(twin: Codec) -> None:
    class Owner:
        row: object = None

    owner = Owner()
    seen = weakref.ref(owner)
    with using(twin):
        owner.row = RecordBatch(encode_values([b"x"], timestamp=1)).rows(Wide, (owner,))[0]
    del owner
    gc.collect()
    assert seen() is None


class Wide(NamedTuple):
    owner: object
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@both_twins
def test_a_type_that_is_more_than_a_tuple_is_refused(twin: Codec) -> None:
    with using(twin):
        batch = RecordBatch(encode_values([b"x"], timestamp=1))
        for row_type in (Richer, list, int):
            with pytest.raises(TypeError, match="more than a tuple"):
                batch.rows(row_type, ("t", 3))


def test_control_batches_have_no_rows() -> None:
    batch = RecordBatch(encode_values([b"marker"], timestamp=1, is_control=True))
    assert batch.rows(Record) == []
    assert len(batch.records()) == 1
