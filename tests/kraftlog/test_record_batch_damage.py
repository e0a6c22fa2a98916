"""Damaged batches give CorruptRecord: never a crash, a hang, much memory or a wrong record.

Half of these tests renew the CRC after the damage, so that the parser is attacked and not only the
CRC. Bytes that are then accepted are a batch, if another one; that it was read right is shown by
writing it again, which must give the same bytes.
"""

import struct
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._codec import Codec
from kraftlog._codec_types import INT32_MAX, INT64_MAX, INT64_MIN, Record
from kraftlog._pure_records import varint_bytes
from kraftlog.errors import CorruptRecord, InvalidRecord
from kraftlog.record_batch import (
    HEADER_BYTES,
    RecordBatch,
    encode_batch,
    encode_section,
    read_batches,
)
from kraftlog.types import Buffer, Compression
from tests.kraftlog.batches import (
    EXAMPLE,
    NATIVE,
    NOW,
    PURE,
    both_twins,
    every_compression,
    outcome,
    record_lists,
    using,
    with_crc,
)

OUTSIDE_CRC = {*range(8), *range(12, 16)}
"""Base offset and leader epoch, which the broker sets: the log checks them against its own."""

MB = 1 << 20


def read(data: Buffer) -> list[Record]:
    """As a careful reader does it."""
    batch = RecordBatch(data)
    batch.check_crc()
    return batch.records()


def spell(codec: Codec, batch: RecordBatch) -> bytes:
    """The records section, read and written again."""
    records = codec.decode_records(
        batch.records_data(),
        batch.count,
        base_offset=batch.base_offset,
        base_timestamp=batch.base_timestamp,
        last_offset_delta=batch.last_offset_delta,
    )
    return codec.encode_records(
        [record.value for record in records],
        base_offset=batch.base_offset,
        offsets=[record.offset for record in records],
        base_timestamp=batch.base_timestamp,
        timestamps=[record.timestamp for record in records],
        keys=[record.key for record in records],
        headers=[record.headers for record in records],
    )


def use_everywhere(codec: Codec, batch: RecordBatch) -> None:
    """Everything else that parses records, with bytes that may be anything."""
    section, count = batch.records_data(), batch.count
    outcome(batch.check_for_produce)
    outcome(batch.to_arrow_columns, codec.ArrowColumns())
    outcome(codec.shift_timestamps, section, count, shift=-NOW)
    table, seed, base = bytearray(24 * 4), bytes(16), batch.base_offset
    outcome(codec.offset_map_put, table, seed, section, count, base_offset=base, **MAP_OPTIONS)
    retain = codec.retain_records
    outcome(retain, table, seed, section, count, base_offset=base, drop_tombstones=False)


MAP_OPTIONS = {"from_offset": 0, "limit": 9}


def check_survives(codec: Codec, data: bytes) -> bool:
    """Whether the bytes were accepted, after everything was done with them."""
    with using(codec):
        try:
            batch = RecordBatch(data)
            section = batch.records_data()
        except CorruptRecord:
            return False
        use_everywhere(codec, batch)
        try:
            read(data)
        except CorruptRecord:
            return False
    assert spell(codec, batch) == bytes(section)
    return True


def check_attack(data: bytes) -> None:
    """Both twins survive, and agree."""
    accepted = check_survives(PURE, data)
    if NATIVE is not None:
        assert check_survives(NATIVE, data) == accepted
    if accepted and NATIVE is not None:
        with using(PURE):
            expected = read(data)
        with using(NATIVE):
            assert read(data) == expected


def flips(size: int) -> Iterator[tuple[int, int]]:
    return ((byte, 1 << bit) for byte in range(size) for bit in range(8))


@both_twins
@every_compression
def test_every_bit_flip(twin: Codec, compression: Compression) -> None:
    good = encode_batch(EXAMPLE, compression=compression, leader_epoch=3)
    values = [record[1:] for record in EXAMPLE]
    unnoticed: set[int] = set()
    with using(twin):
        for byte, mask in flips(len(good)):
            # What follows is there, so that a length that grew has something to run into.
            damaged = bytearray(good + good)
            damaged[byte] ^= mask
            kind, found, _ = outcome(read, damaged)
            if kind != "CorruptRecord":
                unnoticed.add(byte)
                assert isinstance(found, list)
                assert [record[1:] for record in found] == values
    assert unnoticed <= OUTSIDE_CRC


@every_compression
def test_every_bit_flip_with_a_new_crc(compression: Compression) -> None:
    good = encode_batch(EXAMPLE, compression=compression)
    for byte, mask in flips(len(good)):
        damaged = bytearray(good)
        damaged[byte] ^= mask
        check_attack(with_crc(damaged))


@both_twins
@every_compression
def test_every_cut(twin: Codec, compression: Compression) -> None:
    good = encode_batch(EXAMPLE, compression=compression)
    with using(twin):
        for cut in range(len(good)):
            with pytest.raises(CorruptRecord, match="is cut"):
                RecordBatch(good[:cut])
            assert list(read_batches(good[:cut])) == []


@every_compression
def test_every_cut_with_a_new_length_and_crc(compression: Compression) -> None:
    good = encode_batch(EXAMPLE, compression=compression)
    for cut in range(HEADER_BYTES, len(good)):
        damaged = bytearray(good[:cut])
        struct.pack_into(">i", damaged, 8, cut - 12)
        data = with_crc(damaged)
        for codec in filter(None, (PURE, NATIVE)):
            assert not check_survives(codec, data)


INT32_EXTREMES = [-(2**31), -(2**31) + 1, -2, -1, 0, 1, 2, 4, 7, INT32_MAX - 1, INT32_MAX]


@both_twins
@every_compression
@pytest.mark.parametrize("value", [*INT32_EXTREMES, 48, 49, 64 * MB, 64 * MB - 12])
def test_the_batch_length(twin: Codec, compression: Compression, value: int) -> None:
    damaged = bytearray(encode_batch(EXAMPLE, compression=compression) * 2)
    struct.pack_into(">i", damaged, 8, value)
    with using(twin):
        for data in (damaged, bytearray(with_crc(damaged))):
            with pytest.raises(CorruptRecord):
                read(data)
    # Such a length either is nonsense, or a batch that is not all there yet.
    reached = outcome(lambda: list(read_batches(damaged)))
    assert reached[0] == "CorruptRecord" or reached[1] == [] or value in {48, 49}


@both_twins
@every_compression
@pytest.mark.parametrize("value", INT32_EXTREMES)
def test_the_record_count(twin: Codec, compression: Compression, value: int) -> None:
    damaged = bytearray(encode_batch(EXAMPLE, compression=compression, last_offset=INT32_MAX))
    struct.pack_into(">i", damaged, 57, value)
    with using(twin), pytest.raises(CorruptRecord):
        read(with_crc(damaged))


@both_twins
@every_compression
@pytest.mark.parametrize("value", INT32_EXTREMES)
def test_the_last_offset_delta(twin: Codec, compression: Compression, value: int) -> None:
    damaged = bytearray(encode_batch(EXAMPLE, compression=compression))
    struct.pack_into(">i", damaged, 23, value)
    with using(twin):
        if value >= 3:
            assert read(with_crc(damaged)) == EXAMPLE  # as compaction leaves it
        else:
            with pytest.raises(CorruptRecord):
                read(with_crc(damaged))


@pytest.mark.parametrize("value", [INT64_MIN, -1, INT64_MAX - 3, INT64_MAX])
def test_a_base_offset_that_is_none(value: int) -> None:
    damaged = bytearray(encode_batch(EXAMPLE))
    struct.pack_into(">q", damaged, 0, value)
    with pytest.raises(CorruptRecord):
        read(damaged)


@both_twins
@pytest.mark.parametrize("value", [INT64_MIN, INT64_MAX])
def test_a_base_timestamp_that_carries_records_out_of_range(twin: Codec, value: int) -> None:
    damaged = bytearray(encode_batch(EXAMPLE))
    struct.pack_into(">q", damaged, 27, value)
    with using(twin), pytest.raises(CorruptRecord, match="timestamp out of range"):
        read(with_crc(damaged))


@pytest.mark.parametrize("attributes", [5, 6, 7, 0x80, 0x100, 0x4000, 0x8000])
def test_unknown_attributes(attributes: int) -> None:
    damaged = bytearray(encode_batch(EXAMPLE))
    struct.pack_into(">H", damaged, 21, attributes)
    with pytest.raises(CorruptRecord, match="unknown attributes"):
        read(with_crc(damaged))


# One record in parts: numbers are varints, bytes are themselves. The record's length is apart.
PARTS: list[int | bytes] = [
    b"\0",  # attributes
    5,  # timestamp delta
    0,  # offset delta
    3,  # key length
    b"key",
    6,  # value length
    b"value!",
    2,  # header count
    2,  # header key length
    b"h1",
    -1,  # header value length
    2,
    b"h2",
    4,
    b"data",
]
LENGTHS = [place for place, part in enumerate(PARTS) if isinstance(part, int)]

EXTREMES: list[bytes] = [
    *(varint_bytes(value) for value in INT32_EXTREMES),
    *(varint_bytes(value) for value in (3, 5, 6, -6, 2**31, -(2**31) - 1, INT64_MAX, INT64_MIN)),
    b"\x80\x00",  # 0, one byte too long
    b"\x80\x80\x80\x80\x00",
    b"\xff\xff\xff\xff\x1f",  # more than 32 bits in five bytes
    b"\xff" * 9 + b"\x03",  # more than 64 bits in ten
    b"\xff" * 11 + b"\x01",
    b"\xff" * 400,  # no end at all
    b"\x80",
    b"",
]


def record_with(place: int, spelled: bytes) -> bytes:
    """The body of the record, one of its numbers spelled so."""
    parts = [varint_bytes(part) if isinstance(part, int) else part for part in PARTS]
    parts[place] = spelled
    return b"".join(parts)


def batch_of(section: bytes, compression: Compression) -> bytes:
    return encode_section(
        section,
        1,
        range(8),
        base_timestamp=NOW,
        max_timestamp=NOW + 5,
        compression=compression,
    )


@every_compression
@pytest.mark.parametrize("spelled", EXTREMES, ids=lambda spelled: spelled[:11].hex() or "nothing")
def test_every_length_in_a_record(compression: Compression, spelled: bytes) -> None:
    tracemalloc.start()
    try:
        for place in LENGTHS:
            body = record_with(place, spelled)
            check_attack(batch_of(varint_bytes(len(body)) + body, compression))
            good_length = varint_bytes(len(record_with(0, b"\0")))
            check_attack(batch_of(good_length + body, compression))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MB


@every_compression
@pytest.mark.parametrize("spelled", EXTREMES, ids=lambda spelled: spelled[:11].hex() or "nothing")
def test_the_length_of_a_record(compression: Compression, spelled: bytes) -> None:
    body = record_with(0, b"\0")
    data = batch_of(spelled + body, compression)
    assert spelled != varint_bytes(len(body))
    for codec in filter(None, (PURE, NATIVE)):
        assert not check_survives(codec, data)


def test_the_record_in_parts_is_one() -> None:
    """The attacks above would prove little if they started from nonsense."""
    body = record_with(0, b"\0")
    data = batch_of(varint_bytes(len(body)) + body, Compression.NONE)
    headers = (("h1", None), ("h2", b"data"))
    assert read(data) == [Record(0, NOW + 5, b"key", b"value!", headers)]
    check_attack(data)


@both_twins
@pytest.mark.parametrize(
    "key", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2"]
)
def test_a_header_key_that_is_no_text(twin: Codec, key: bytes) -> None:
    parts = record_with(9, key).replace(b"\x04" + key, varint_bytes(len(key)) + key)
    with using(twin), pytest.raises(CorruptRecord, match="header key is not UTF-8"):
        read(batch_of(varint_bytes(len(parts)) + parts, Compression.NONE))


@every_compression
@given(record_lists(max_size=4), st.data())
def test_damage_at_random(
    compression: Compression, records: list[Record], data: st.DataObject
) -> None:
    section = bytearray(encode_batch(records, compression=compression))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(HEADER_BYTES - 4, len(section) - 1))
        removed = data.draw(st.integers(0, 3))
        section[position : position + removed] = data.draw(st.binary(max_size=3))
        if len(section) < HEADER_BYTES:
            return
    struct.pack_into(">i", section, 8, len(section) - 12)
    check_attack(with_crc(section))


@every_compression
@given(st.binary(max_size=80), st.integers(-1, 20), st.integers(0, 30))
def test_noise_for_records(
    compression: Compression, noise: bytes, count: int, last_offset_delta: int
) -> None:
    data = bytearray(encode_batch([], base_offset=0, last_offset=last_offset_delta) + noise)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, compression)
    struct.pack_into(">i", data, 57, count)
    check_attack(with_crc(data))


@given(st.binary(max_size=200))
def test_noise_for_a_batch(noise: bytes) -> None:
    try:
        RecordBatch(noise).check_for_produce()
    except (CorruptRecord, InvalidRecord):
        pass
    else:
        raise AssertionError("noise with a good crc")


@every_compression
def test_a_count_that_compressed_data_cannot_hold_costs_nothing(compression: Compression) -> None:
    """Room for records is made only once the data is there that they could be in."""
    damaged = bytearray(encode_batch(EXAMPLE, compression=compression, last_offset=INT32_MAX))
    struct.pack_into(">i", damaged, 57, INT32_MAX - 7)
    data = with_crc(damaged)
    tracemalloc.start()
    try:
        check_attack(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MB
