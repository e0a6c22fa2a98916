"""The two twins of the codec do the same, byte for byte and error for error."""

import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kraftlog import _codec
from kraftlog._codec import ArrowColumns, Codec
from kraftlog._codec_types import INT32_MAX, INT64_MAX, INT64_MIN, SLOT_BYTES, Record
from kraftlog.errors import ConfigError, CorruptRecord, RecordTooLarge
from kraftlog.types import Buffer
from tests.kraftlog.batches import (
    EXAMPLE,
    NOW,
    PURE,
    Outcome,
    both_twins,
    fields,
    headers,
    int64s,
    native,
    needs_native,
    outcome,
    record_lists,
    times,
)

SEED = bytes(range(16))

# Times and offsets that records may not have are wanted here too.
any_times = st.one_of(
    st.integers(NOW - 9, NOW + 9), int64s, st.integers(INT64_MIN * 2, INT64_MAX * 2)
)
any_offsets = st.one_of(st.integers(0, 9), int64s, st.integers(INT64_MIN * 2, INT64_MAX * 2))


def both(call: Callable[[Codec], object]) -> Outcome:
    """The outcome of a call, which must be the same with either twin."""
    ours, oracle = outcome(call, native()), outcome(call, PURE)
    assert ours == oracle
    return ours


def section_of(records: list[Record]) -> bytes:
    """The records section of these, by the pure twin."""
    return PURE.encode_records(
        [record.value for record in records],
        base_offset=records[0].offset if records else 0,
        offsets=[record.offset for record in records],
        base_timestamp=records[0].timestamp if records else 0,
        timestamps=[record.timestamp for record in records],
        keys=[record.key for record in records],
        headers=[record.headers for record in records],
    )


Section = tuple[bytes, int]
mostly_right = st.sampled_from([True, True, True, False])


@st.composite
def sections(draw: st.DrawFn) -> Section:
    """A records section and its count; in every other a byte or the count is wrong, or all is."""
    records = draw(record_lists(max_size=5))
    data, count = bytearray(section_of(records)), len(records)
    if draw(mostly_right):
        return bytes(data), count
    match draw(st.integers(0, 3)):
        case 0:
            return draw(st.binary(max_size=40)), draw(st.integers(-1, 6))
        case 1:
            return bytes(data), draw(st.integers(-1, 6))
        case 2:
            return bytes(data[: draw(st.integers(0, len(data)))]), count
        case _:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
            return bytes(data), count


base_times = st.one_of(times, times, int64s)
column = st.lists(fields, max_size=4)


@needs_native
@given(
    st.lists(st.tuples(any_offsets, any_times, fields, fields, headers), max_size=4),
    st.integers(0, 5),
    int64s,
)
def test_encode_rows(rows: list[Record], base_offset: int, base_timestamp: int) -> None:
    offsets, timestamps, keys, values, record_headers = (
        zip(*rows, strict=True) if rows else ((),) * 5
    )
    both(
        lambda codec: codec.encode_records(
            values,
            base_offset=base_offset,
            offsets=offsets,
            base_timestamp=base_timestamp,
            timestamps=timestamps,
            keys=keys,
            headers=record_headers,
        )
    )


@needs_native
@given(column, column | st.none(), st.lists(any_times, max_size=4) | any_times)
@example([None], [], INT64_MAX + 1)
def test_encode_columns_that_may_not_match(
    values: list[bytes | None], keys: list[bytes | None] | None, timestamps: list[int] | int
) -> None:
    both(
        lambda codec: codec.encode_records(
            values, base_timestamp=NOW, timestamps=timestamps, keys=keys
        )
    )


@needs_native
@given(st.lists(any_offsets, max_size=3), any_times, any_times)
@example([-1], INT64_MAX + 1, NOW)
@example([0], INT64_MAX, INT64_MAX + 1)
def test_encode_with_one_time_for_all(offsets: list[int], time: int, base: int) -> None:
    both(
        lambda codec: codec.encode_records(
            [b"v"] * len(offsets), offsets=offsets, base_timestamp=base, timestamps=time
        )
    )


@needs_native
@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_any_buffer_is_encoded(make: Callable[[bytes], bytes]) -> None:
    kind, section, _ = both(
        lambda codec: codec.encode_records(
            [make(b"value")],
            base_timestamp=0,
            timestamps=0,
            keys=[make(b"")],
            headers=[[("key", make(b"header"))]],
        )
    )
    assert (kind, section) == ("gives", b"\x2c\0\0\0\0\x0avalue\x02\x06key\x0cheader")


@needs_native
def test_a_header_key_that_is_no_text() -> None:
    kind, message, _ = both(
        lambda codec: codec.encode_records(
            [b""], base_timestamp=0, timestamps=0, headers=[[("\ud800", None)]]
        )
    )
    assert (kind, message) == ("InvalidRecord", "record 0: header key is not valid text")


@needs_native
@given(sections(), base_times, st.sampled_from([-1, 3, 14, 14, 14]), st.none() | int64s)
def test_decode(
    section: Section, base_timestamp: int, last_offset_delta: int, append_time: int | None
) -> None:
    both(
        lambda codec: codec.decode_records(
            *section,
            base_offset=5,
            base_timestamp=base_timestamp,
            last_offset_delta=last_offset_delta,
            append_time=append_time,
        )
    )


@both_twins
@given(record_lists())
def test_what_was_encoded_is_decoded(twin: Codec, records: list[Record]) -> None:
    base = records[0]
    assert records == twin.decode_records(
        section_of(records),
        len(records),
        base_offset=base.offset,
        base_timestamp=base.timestamp,
        last_offset_delta=records[-1].offset - base.offset,
    )


@needs_native
@given(sections(), base_times)
def test_walk(section: Section, base_timestamp: int) -> None:
    both(lambda codec: codec.walk_records(*section, base_timestamp=base_timestamp))


@needs_native
@given(sections(), st.integers(-(2**40), 2**40) | int64s)
def test_shift(section: Section, shift: int) -> None:
    both(lambda codec: codec.shift_timestamps(*section, shift=shift))


@needs_native
@given(
    st.lists(sections(), max_size=4),
    st.integers(0, 200) | st.just(INT32_MAX),
    base_times,
    st.integers(0, 20) | st.just(INT64_MAX),
)
def test_columns(
    parts: list[Section], limit_bytes: int, base_timestamp: int, to_offset: int
) -> None:
    """Also those that refuse a section, and then take the next."""

    def gather(codec: Codec) -> object:
        columns = codec.ArrowColumns(limit_bytes)
        outcomes = [
            outcome(
                columns.append,
                *section,
                base_offset=3,
                base_timestamp=base_timestamp,
                last_offset_delta=14,
                from_offset=4,
                to_offset=to_offset,
            )
            for section in parts
        ]
        return outcomes, columns.rows, columns.data_bytes, columns.finish(), columns.finish()

    both(gather)


@needs_native
def test_a_section_that_failed_leaves_no_bits_behind() -> None:
    """Also none past the last row, where Arrow would not look."""
    nulls = native().encode_records([None] * 3, base_timestamp=0, timestamps=0)
    values = native().encode_records([b""] * 3, base_timestamp=0, timestamps=0)

    def gather(codec: Codec) -> object:
        columns = codec.ArrowColumns()
        _append(columns, nulls, 3)
        failed = outcome(_append, columns, values + b"x", 3)
        return failed[0], columns.finish()

    assert both(gather)[0] == "gives"


@needs_native
@given(
    sections(),
    st.integers(1, 8),
    st.integers(-1, 4),
    st.sampled_from([0, 2, INT64_MAX - 40, INT64_MAX - 2, INT64_MAX]),
)
def test_offset_map(section: Section, slots: int, limit: int, base_offset: int) -> None:
    def compact(codec: Codec) -> object:
        table = bytearray(slots * SLOT_BYTES)
        put = outcome(
            codec.offset_map_put,
            table,
            SEED,
            *section,
            base_offset=base_offset,
            from_offset=1,
            limit=limit,
        )
        known = [codec.offset_map_get(table, SEED, key) for key in (b"", b"key", b"x" * 63)]
        kept = [
            outcome(
                codec.retain_records,
                table,
                SEED,
                *section,
                base_offset=base_offset,
                drop_tombstones=drop,
            )
            for drop in (True, False)
        ]
        return put, known, kept

    both(compact)


@needs_native
@pytest.mark.parametrize(
    ("table_bytes", "seed"), [(0, SEED), (SLOT_BYTES + 1, SEED), (SLOT_BYTES, b"short")]
)
def test_an_offset_map_that_cannot_be(table_bytes: int, seed: bytes) -> None:
    kind, _, _ = both(lambda codec: codec.offset_map_get(bytearray(table_bytes), seed, b"key"))
    assert kind == "ValueError"


@needs_native
@given(st.binary(max_size=40))
def test_murmur2(key: bytes) -> None:
    assert native().murmur2(key) == PURE.murmur2(bytearray(key))


@needs_native
@pytest.mark.parametrize("limit_bytes", [-1, INT32_MAX + 1])
def test_columns_have_a_limit(limit_bytes: int) -> None:
    assert both(lambda codec: codec.ArrowColumns(limit_bytes))[0] == "ValueError"


def _append(columns: ArrowColumns, data: Buffer, count: int) -> int:
    return columns.append(data, count, base_offset=0, base_timestamp=0, last_offset_delta=INT32_MAX)


@needs_native
def test_columns_serve_one_thread_at_a_time() -> None:
    """The GIL is released while a section is decoded, so another thread can come by."""
    values: list[bytes | None] = [b"x"] * 300_000
    data = native().encode_records(values, base_timestamp=0, timestamps=0)
    columns = native().ArrowColumns()
    added: list[int] = []
    refused: list[str] = []

    def work() -> None:
        for _ in range(4):
            try:
                added.append(_append(columns, data, len(values)))
            except RuntimeError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert columns.rows == sum(added) == len(added) * len(values)
    assert len(added) + len(refused) == 12
    assert set(refused) <= {"another thread is using these columns"}


@needs_native
def test_bytes_that_change_meanwhile_do_no_harm() -> None:
    """The GIL is released, so another thread may write into a buffer that is being read."""
    values: list[bytes | None] = [b"value"] * 2_000
    codec, rows = native(), len(values)
    headers = [[("key", b"header")]] * rows
    data = bytearray(
        codec.encode_records(values, base_timestamp=0, timestamps=0, keys=values, headers=headers)
    )
    done = threading.Event()

    def scribble() -> None:
        position = 0
        while not done.is_set():
            position = (position + 7_919) % len(data)
            before, data[position] = data[position], 0x7F
            data[position] = before

    writer = threading.Thread(target=scribble)
    writer.start()
    table = bytearray(64 * SLOT_BYTES)
    put, retain = codec.offset_map_put, codec.retain_records
    for _ in range(50):
        outcome(_append, codec.ArrowColumns(), data, rows)
        outcome(codec.shift_timestamps, data, rows, shift=2**40)
        outcome(put, table, SEED, data, rows, base_offset=0, from_offset=0, limit=64)
        outcome(retain, table, SEED, data, rows, base_offset=0, drop_tombstones=True)
        outcome(codec.walk_records, data, rows, base_timestamp=0)
    done.set()
    writer.join()
    codec.walk_records(data, rows, base_timestamp=0)


def _use_everything(codec: Codec) -> None:
    """Each function once, and once so that it fails late."""
    section = section_of(EXAMPLE)
    damaged = section[:-1] + b"\x7e"
    for data in (section, damaged):
        outcome(
            codec.decode_records,
            data,
            3,
            base_offset=7,
            base_timestamp=NOW,
            last_offset_delta=3,
            append_time=2**40,
        )
        outcome(codec.walk_records, data, 3, base_timestamp=NOW)
        outcome(codec.shift_timestamps, data, 3, shift=2**40)
        columns = codec.ArrowColumns(200)
        outcome(_append, columns, data, 3)
        outcome(_append, columns, section, 3)
        columns.finish()
        table = bytearray(4 * SLOT_BYTES)
        put, retain = codec.offset_map_put, codec.retain_records
        outcome(put, table, SEED, data, 3, base_offset=7, from_offset=0, limit=9)
        outcome(retain, table, SEED, data, 3, base_offset=7, drop_tombstones=False)
    for timestamp in (NOW, INT64_MAX + 1):
        outcome(
            codec.encode_records,
            [b"v", None],
            base_timestamp=0,
            timestamps=[NOW, timestamp],
            keys=[bytearray(b"k"), None],
            headers=[[("key", bytearray(b"value"))], []],
        )


@needs_native
def test_nothing_leaks() -> None:
    _use_everything(native())
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(200):
            _use_everything(native())
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A leak of one object a round would be 200 times 16 bytes or more.
    assert after - before < 3_000


@both_twins
def test_columns_too_large_say_what_to_do(twin: Codec) -> None:
    columns = twin.ArrowColumns(10)
    with pytest.raises(RecordTooLarge) as caught:
        _append(columns, section_of(EXAMPLE), 3)
    assert caught.value.message == "columns would hold more than 10 bytes"
    assert caught.value.hint == "call finish() and start new ones"


@both_twins
def test_a_damaged_section_says_where(twin: Codec) -> None:
    with pytest.raises(CorruptRecord, match=r"^records section, byte 0: record length out of"):
        twin.walk_records(b"\x7e" + bytes(7), 1, base_timestamp=0)


WITHOUT_NATIVE = """
import sys
sys.modules["kraftlog._codec_native"] = None
import kraftlog.record_batch
import kraftlog.arrow
from kraftlog import _codec
print(_codec.codec.NAME)
"""


def _run(script: str, choice: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        env={_codec.CHOICE_VARIABLE: choice},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_pure_twin_gives_notice_once() -> None:
    ran = _run(WITHOUT_NATIVE)
    assert ran.stdout == "pure\n"
    assert ran.stderr.count("pure Python serves") == len(ran.stderr.splitlines()) == 1


def test_who_chose_the_pure_twin_needs_no_notice() -> None:
    ran = _run(WITHOUT_NATIVE, "pure")
    assert (ran.stdout, ran.stderr) == ("pure\n", "")


def test_who_chose_the_native_twin_gets_no_other() -> None:
    ran = _run(WITHOUT_NATIVE, "native")
    assert ran.returncode == 1
    assert "ConfigError: KRAFTLOG_CODEC=native, but the extension does not load" in ran.stderr


@needs_native
def test_the_native_twin_serves_where_it_is() -> None:
    assert _codec.load_codec("").NAME == _codec.load_codec("native").NAME == "native"
    assert _codec.load_codec("pure").NAME == "pure"


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ConfigError, match="KRAFTLOG_CODEC='fast' is not a codec"):
        _codec.load_codec("fast")
