"""Batches to Arrow arrays and back, against the records themselves."""

import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._codec import Codec
from kraftlog._codec_types import (
    INT64_MAX,
    INT64_MIN,
    BinaryColumn,
    HeaderColumn,
    LongColumn,
)
from kraftlog.arrow import arrow_columns, encode_arrow_batch, to_arrow
from kraftlog.errors import CorruptRecord, InvalidRecord, RecordTooLarge
from kraftlog.record_batch import BatchOptions, Record, RecordBatch, encode_batch, encode_values
from kraftlog.types import Compression, TimestampType
from tests.kraftlog.batches import (
    EXAMPLE,
    NOW,
    PURE,
    batch_options,
    both_twins,
    every_compression,
    fields,
    native,
    needs_native,
    outcome,
    record_lists,
    times,
    using,
)

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of(batch: pa.RecordBatch) -> list[Record]:
    """The records of an Arrow batch, by way of Arrow's own conversion."""
    batch.validate(full=True)
    micros = batch.column("timestamp").cast(pa.int64()).to_pylist()
    return [
        Record(
            row["offset"],
            micro // 1_000,
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row, micro in zip(batch.drop_columns("timestamp").to_pylist(), micros, strict=True)
    ]


@both_twins
@every_compression
@given(st.lists(record_lists(max_size=5), max_size=4), batch_options())
def test_columns_hold_the_records_of_many_batches(
    twin: Codec, compression: Compression, lists: list[list[Record]], options: BatchOptions
) -> None:
    options["compression"] = compression
    options["is_control"] = False
    expected: list[Record] = []
    with using(twin):
        columns = arrow_columns()
        for records in lists:
            batch = RecordBatch(encode_batch(records, **options))
            assert batch.to_arrow_columns(columns) == len(records)
            expected += batch.records()
        assert columns.rows == len(expected)
        found = to_arrow(columns.finish())
        assert rows_of(found) == expected
        assert rows_of(to_arrow(columns.finish())) == []
    assert found.schema.names == ["offset", "timestamp", "key", "value", "headers"]
    assert found.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")


@both_twins
def test_nulls_are_counted(twin: Codec) -> None:
    with using(twin):
        columns = arrow_columns()
        RecordBatch(encode_batch(EXAMPLE)).to_arrow_columns(columns)
        found = to_arrow(columns.finish())
    assert found.column("key").to_pylist() == [None, b"key", b""]
    assert [found.column(name).null_count for name in ("key", "value", "headers")] == [1, 1, 0]


@both_twins
@given(record_lists(), st.integers(-2, 40), st.integers(-2, 40))
def test_only_the_offsets_asked_for(
    twin: Codec, records: list[Record], first: int, last: int
) -> None:
    base = records[0].offset
    from_offset, to_offset = max(0, base + first), max(0, base + last)
    with using(twin):
        columns = arrow_columns()
        batch = RecordBatch(encode_batch(records))
        added = batch.to_arrow_columns(columns, from_offset, to_offset)
        found = rows_of(to_arrow(columns.finish()))
    assert found == [record for record in records if from_offset <= record.offset < to_offset]
    assert added == len(found)


@both_twins
def test_control_batches_add_nothing(twin: Codec) -> None:
    with using(twin):
        columns = arrow_columns()
        batch = RecordBatch(encode_batch(EXAMPLE, is_control=True))
        assert batch.to_arrow_columns(columns) == 0


@both_twins
def test_a_damaged_batch_adds_nothing(twin: Codec) -> None:
    good = encode_batch(EXAMPLE)
    damaged = good[:-1] + b"\x7e"
    with using(twin):
        columns = arrow_columns()
        RecordBatch(good).to_arrow_columns(columns)
        with pytest.raises(CorruptRecord, match="batch at offset 7: records section, byte"):
            RecordBatch(damaged).to_arrow_columns(columns)
        RecordBatch(good).to_arrow_columns(columns)
        assert rows_of(to_arrow(columns.finish())) == EXAMPLE * 2


@both_twins
def test_columns_that_are_full_keep_what_they_have(twin: Codec) -> None:
    data = sum(len(part or b"") for record in EXAMPLE for part in record[2:4])
    data += sum(len(k.encode()) + len(v or b"") for record in EXAMPLE for k, v in record.headers)
    with using(twin):
        columns = arrow_columns(2 * data)
        batch = RecordBatch(encode_batch(EXAMPLE))
        batch.to_arrow_columns(columns)
        batch.to_arrow_columns(columns)
        assert columns.data_bytes == 2 * data
        with pytest.raises(RecordTooLarge):
            batch.to_arrow_columns(columns)
        assert rows_of(to_arrow(columns.finish())) == EXAMPLE * 2
        assert batch.to_arrow_columns(columns) == 3


@both_twins
@pytest.mark.parametrize("timestamp", [INT64_MIN, INT64_MAX // 1_000 + 1, INT64_MAX])
def test_a_time_that_microseconds_cannot_hold(twin: Codec, timestamp: int) -> None:
    with using(twin):
        batch = RecordBatch(encode_values([b""], timestamp=timestamp))
        with pytest.raises(CorruptRecord, match="timestamp does not fit microseconds"):
            batch.to_arrow_columns(arrow_columns())


@both_twins
def test_append_time_is_that_of_every_row(twin: Codec) -> None:
    with using(twin):
        columns = arrow_columns()
        data = encode_batch(EXAMPLE, timestamp_type=TimestampType.APPEND)
        RecordBatch(data).to_arrow_columns(columns)
        found = to_arrow(columns.finish()).column("timestamp").to_pylist()
    assert found == [EPOCH + timedelta(milliseconds=NOW + 70)] * 3


T = TypeVar("T")


def sliced(values: Sequence[T], kind: pa.DataType, before: Sequence[T]) -> pa.Array:
    """An array whose rows begin in the middle of its buffers."""
    return pa.array([*before, *values, *before], kind)[len(before) : len(before) + len(values)]


def header_rows(records: Sequence[Record]) -> list[list[dict[str, object]]]:
    return [[{"key": key, "value": value} for key, value in r.headers] for r in records]


@both_twins
@every_compression
@given(record_lists(dense=True), batch_options(), st.integers(0, 9))
def test_arrays_give_the_batch_of_their_rows(
    twin: Codec, compression: Compression, records: list[Record], options: BatchOptions, skip: int
) -> None:
    options["compression"] = compression
    junk: list[bytes | None] = [b"junk", None] * skip
    junk_headers: list[list[dict[str, object]]] = [[{"key": "k", "value": None}], []] * skip
    with using(twin):
        data = encode_arrow_batch(
            sliced([record.value for record in records], pa.binary(), junk),
            timestamp=0,
            keys=sliced([record.key for record in records], pa.binary(), junk),
            timestamps=sliced(
                [record.timestamp for record in records], pa.timestamp("ms", tz="UTC"), [1] * skip
            ),
            headers=sliced(header_rows(records), HEADERS, junk_headers),
            base_offset=records[0].offset,
            **options,
        )
        assert bytes(data) == encode_batch(records, **options)


@both_twins
@given(st.lists(st.tuples(st.none() | times, fields), min_size=2, max_size=9), st.data())
def test_some_rows_of_arrays(
    twin: Codec, rows: list[tuple[int | None, bytes | None]], data: st.DataObject
) -> None:
    """Microseconds are cut to milliseconds, downwards, and a row without a time gets one."""
    start = data.draw(st.integers(0, len(rows) - 1))
    stop = data.draw(st.integers(start + 1, len(rows)))
    micros = [None if time is None else time * 1_000 + 999 for time, _ in rows]
    expected = [
        Record(offset, NOW if time is None else time, None, value)
        for offset, (time, value) in enumerate(rows[start:stop])
    ]
    with using(twin):
        batch = encode_arrow_batch(
            pa.array([value for _, value in rows], pa.binary()),
            timestamp=NOW,
            timestamps=pa.array(micros, pa.timestamp("us")),
            start=start,
            stop=stop,
        )
        assert bytes(batch) == encode_batch(expected)


@both_twins
def test_text_is_bytes(twin: Codec) -> None:
    with using(twin):
        data = encode_arrow_batch(
            pa.array(["\u00e9t\u00e9", None]), timestamp=NOW, keys=pa.array(["k", ""])
        )
        expected = [Record(0, NOW, b"k", "\u00e9t\u00e9".encode()), Record(1, NOW, b"", None)]
        assert RecordBatch(data).records() == expected


@both_twins
def test_headers_may_be_null_or_all_empty(twin: Codec) -> None:
    values = pa.array([b"a", b"b", b"c"])
    some = pa.array([None, [{"key": "k", "value": b"v"}], None], HEADERS)
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 2], pa.int32()), some.values.take([0, 0]), mask=pa.array([True] * 3)
    )
    with using(twin):
        found = [
            [record.headers for record in RecordBatch(batch).records()]
            for batch in (
                encode_arrow_batch(values, timestamp=NOW, headers=some),
                encode_arrow_batch(values, timestamp=NOW, headers=hidden),
                encode_arrow_batch(values, timestamp=NOW, headers=pa.array([[]] * 3, HEADERS)),
                encode_arrow_batch(values, timestamp=NOW, headers=pa.nulls(3, HEADERS)),
            )
        ]
    nothing: list[object] = [(), (), ()]
    assert found == [[(), (("k", b"v"),), ()], nothing, nothing, nothing]


@both_twins
@pytest.mark.parametrize(
    "entry", [None, {"key": None, "value": b"v"}], ids=["null header", "null key"]
)
def test_a_header_needs_a_key(twin: Codec, entry: dict[str, bytes | None] | None) -> None:
    with using(twin), pytest.raises(InvalidRecord, match="record 0: header key is not valid text"):
        encode_arrow_batch(
            pa.array([b""]), timestamp=NOW, headers=pa.array([[entry]], type=HEADERS)
        )


BINARY_HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))


@both_twins
def test_a_header_key_is_text(twin: Codec) -> None:
    column = pa.array([[{"key": b"\xff", "value": None}]], BINARY_HEADERS)
    with using(twin), pytest.raises(InvalidRecord, match="record 0: header key is not valid text"):
        encode_arrow_batch(pa.array([b""]), timestamp=NOW, headers=column)


one = pa.array([b"x"])
encode = partial(encode_arrow_batch, timestamp=NOW)
WRONG: list[tuple[str, Callable[[], object]]] = [
    ("values have type large_binary", lambda: encode(one.cast(pa.large_binary()))),
    ("values have type binary_view", lambda: encode(one.cast(pa.binary_view()))),
    ("values have type int64", lambda: encode(pa.array([1]))),
    ("keys have type int32", lambda: encode(one, keys=pa.array([1], pa.int32()))),
    ("timestamps have type timestamp", lambda: encode(one, timestamps=seconds())),
    ("headers have type", lambda: encode(one, headers=pa.array([["x"]]))),
    ("headers have type", lambda: encode(one, headers=one)),
    ("header keys and values have type int64", lambda: encode(one, headers=wrong_headers())),
    ("rows 0 to 1 of 0 keys", lambda: encode(one, keys=pa.array([], pa.binary()))),
    ("rows 0 to 0 of 0 values", lambda: encode(pa.array([], pa.binary()))),
    ("rows 0 to 2 of 1 values", lambda: encode(one, stop=2)),
    ("rows -1 to 1 of 1 values", lambda: encode(one, start=-1)),
    ("a delete horizon is set by compaction", lambda: encode(one, delete_horizon_ms=1)),
    ("1 records up to offset -1", lambda: encode(one, base_offset=-1)),
]


def seconds() -> pa.Array:
    return pa.array([1], pa.timestamp("s"))


def wrong_headers() -> pa.Array:
    return pa.array([[{"key": "k", "value": 1}]])


@pytest.mark.parametrize(("why", "call"), WRONG, ids=[why for why, _ in WRONG])
def test_arrays_that_are_refused(why: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidRecord, match=why):
        call()


@both_twins
def test_times_too_far_apart(twin: Codec) -> None:
    column = pa.array([INT64_MIN, INT64_MAX])
    with using(twin), pytest.raises(InvalidRecord, match="record 1: timestamp out of range"):
        encode_arrow_batch(pa.array([b"", b""]), timestamp=0, timestamps=column)


ROWS = 6
firsts = st.sampled_from([0, 1, 2])
validities = st.sampled_from([None, b"\xff\xff", b"\xb6\x6d", b"\x00\xff"])


@st.composite
def int32_offsets(draw: st.DrawFn, entries: int, top: int) -> bytes:
    """Offsets that grow; one in five columns has others, or fewer."""
    count = entries + 1
    if draw(st.integers(0, 4)):
        numbers = sorted(draw(st.lists(st.integers(0, top), min_size=count, max_size=count)))
    else:
        numbers = draw(st.lists(st.integers(-1, top + 2), min_size=1, max_size=count))
    return struct.pack(f"={len(numbers)}i", *numbers)


@st.composite
def binary_columns(draw: st.DrawFn, entries: int = ROWS + 2) -> BinaryColumn:
    """Mostly right, sometimes with a number that points anywhere."""
    data = draw(st.sampled_from([b"0123456789", b"0123456789", b"\xe2\x82\xac\xe2\x82\xac", b""]))
    return BinaryColumn(draw(int32_offsets(entries, 9)), data, draw(validities), draw(firsts))


@st.composite
def header_columns(draw: st.DrawFn) -> HeaderColumn:
    entries = 5
    keys, values = draw(binary_columns(entries + 2)), draw(binary_columns(entries + 2))
    return HeaderColumn(
        draw(int32_offsets(ROWS + 2, entries)),
        keys._replace(validity=draw(st.sampled_from([None, None, keys.validity]))),
        values,
        draw(firsts),
    )


@st.composite
def long_columns(draw: st.DrawFn) -> LongColumn:
    count = draw(st.sampled_from([ROWS + 2, ROWS + 2, 3]))
    longs = st.one_of(times, times, st.integers(INT64_MIN, INT64_MAX))
    numbers = draw(st.lists(longs, min_size=count, max_size=count))
    return LongColumn(struct.pack(f"={count}q", *numbers), draw(validities), draw(firsts))


@needs_native
@given(
    binary_columns(),
    st.none() | binary_columns(),
    st.none() | long_columns(),
    st.none() | header_columns(),
    st.tuples(
        st.sampled_from([0, 1, 3]),
        st.sampled_from([3, 4, ROWS]),
        st.sampled_from([1, 1000, 7]),
        st.sampled_from([0, 61]),
    ),
)
def test_any_columns_do_the_same_with_both_twins(
    values: BinaryColumn,
    keys: BinaryColumn | None,
    timestamps: LongColumn | None,
    header_column: HeaderColumn | None,
    numbers: tuple[int, int, int, int],
) -> None:
    start, stop, ticks_per_ms, reserve = numbers
    ours, oracle = (
        outcome(
            codec.encode_arrow,
            values,
            start=start,
            stop=stop,
            timestamp=NOW,
            keys=keys,
            timestamps=timestamps,
            ticks_per_ms=ticks_per_ms,
            headers=header_column,
            reserve=reserve,
        )
        for codec in (native(), PURE)
    )
    assert ours == oracle


GOOD = BinaryColumn(bytes(16), b"", b"\xff")
TIMES = LongColumn(bytes(24))
NONSENSE: list[tuple[str, Callable[[Codec], object]]] = [
    ("rows -1 to 1, reserve 0", lambda codec: rows(codec, start=-1)),
    ("rows 2 to 1, reserve 0", lambda codec: rows(codec, start=2)),
    ("rows 0 to 1, reserve -1", lambda codec: rows(codec, reserve=-1)),
    ("ticks_per_ms is 0", lambda codec: rows(codec, ticks_per_ms=0)),
    ("value starts at -1", lambda codec: rows(codec, GOOD._replace(first=-1))),
    ("value offsets has 16 bytes, 20 are needed", lambda codec: rows(codec, stop=4)),
    ("value validity has 0 bytes, 1 are", lambda codec: rows(codec, GOOD._replace(validity=b""))),
    ("timestamps has 24 bytes", lambda codec: rows(codec, timestamps=TIMES._replace(first=3))),
    ("timestamps starts at -1", lambda codec: rows(codec, timestamps=TIMES._replace(first=-1))),
    ("timestamps validity has 0 bytes", lambda c: rows(c, timestamps=TIMES._replace(validity=b""))),
    ("headers starts at -1", lambda codec: rows(codec, headers=HeaderColumn(b"", GOOD, GOOD, -1))),
    ("headers offsets has 4 bytes", lambda c: rows(c, headers=HeaderColumn(bytes(4), GOOD, GOOD))),
]


def rows(
    codec: Codec,
    values: BinaryColumn = GOOD,
    *,
    start: int = 0,
    stop: int = 1,
    reserve: int = 0,
    ticks_per_ms: int = 1,
    timestamps: LongColumn | None = None,
    headers: HeaderColumn | None = None,
) -> object:
    return codec.encode_arrow(
        values,
        start=start,
        stop=stop,
        timestamp=0,
        reserve=reserve,
        ticks_per_ms=ticks_per_ms,
        timestamps=timestamps,
        headers=headers,
    )


@both_twins
@pytest.mark.parametrize(("why", "call"), NONSENSE, ids=[why for why, _ in NONSENSE])
def test_columns_that_cannot_be(twin: Codec, why: str, call: Callable[[Codec], object]) -> None:
    with pytest.raises(ValueError, match=why):
        call(twin)


def test_only_who_wants_arrow_imports_it() -> None:
    script = "import sys, kraftlog.arrow; sys.exit('pyarrow' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
