import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import InvalidRequest
from kraftlog.partitioner import partition_of_key
from kraftlog.record_batch import RecordBatch
from kraftlog.types import Compression
from spark_connector.spread import Rows, encode, join, spread

keys = st.lists(st.none() | st.binary(max_size=12), min_size=1, max_size=60)


def rows_of(column: list[bytes | None], cut: int = 0) -> Rows:
    """With values that tell their place, and both columns cut out of longer ones."""
    filler: list[bytes | None] = [b"filler"] * cut
    values = pa.array([*filler, *(b"%d" % n for n in range(len(column)))], pa.binary())
    return Rows(values, pa.array([*filler, *column], pa.binary())).slice(cut, len(column))


@given(keys, st.integers(1, 9), st.integers(0, 3))
def test_a_key_goes_where_kafkas_producers_send_it(
    column: list[bytes | None], partitions: int, cut: int
) -> None:
    sticky = partitions - 1
    seen = []
    for partition, part in spread("t", rows_of(column, cut), partitions, sticky):
        assert part.keys is not None
        numbers = [int(value) for value in part.values.to_pylist()]
        assert numbers == sorted(numbers), "the order of a partition is kept"
        seen += numbers
        for number, key in zip(numbers, part.keys.to_pylist(), strict=True):
            assert key == column[number]
            if partition is not None:
                expected = sticky if key is None else partition_of_key(key, partitions)
                assert partition == expected
    assert sorted(seen) == list(range(len(column)))


def test_a_partition_column_comes_before_the_key() -> None:
    rows = rows_of([b"a", b"b", None])._replace(partitions=pa.array([2, None, None], pa.int32()))
    found = {
        partition: part.values.to_pylist()
        for partition, part in spread("t", rows, partitions=3, sticky=0)
    }
    by_key = partition_of_key(b"b", 3)
    assert found[2][0] == b"0"
    assert b"1" in found[by_key]
    assert b"2" in found[0]
    with pytest.raises(InvalidRequest, match="partition 2 of t, which has 2"):
        list(spread("t", rows, partitions=2, sticky=0))


@given(keys, st.integers(1, 400), st.integers(0, 3), st.sampled_from(list(Compression)))
def test_batches_have_all_rows_and_about_the_size(
    column: list[bytes | None], batch_bytes: int, cut: int, compression: Compression
) -> None:
    rows = rows_of(column, cut)
    found = []
    for data, count in encode(rows, timestamp=5, batch_bytes=batch_bytes, compression=compression):
        batch = RecordBatch(data)
        batch.check_for_produce()
        assert batch.count == count
        found += [(record.key, record.value, record.timestamp) for record in batch.records()]
        assert count == 1 or compression is not Compression.NONE or len(data) <= batch_bytes
    assert found == [(key, b"%d" % number, 5) for number, key in enumerate(column)]


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

headers = st.lists(
    st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=200))),
    min_size=1,
    max_size=40,
)


@given(headers, st.integers(80, 900), st.integers(0, 3))
def test_headers_of_any_size_make_no_batch_too_large(
    column: list[list[tuple[str, bytes | None]] | None], batch_bytes: int, cut: int
) -> None:
    filled = [*[[("cut", b"off")]] * cut, *column]
    values = pa.array([b"v"] * len(filled), pa.binary())
    rows = Rows(values, headers=pa.array(filled, HEADERS)).slice(cut, len(column))
    found = []
    for data, count in encode(
        rows, timestamp=5, batch_bytes=batch_bytes, compression=Compression.NONE
    ):
        assert count == 1 or len(data) <= batch_bytes
        found += [record.headers for record in RecordBatch(data).records()]
    assert found == [tuple(each or ()) for each in column]


def test_one_row_with_large_headers_stands_alone() -> None:
    large: list[list[tuple[str, bytes | None]] | None] = [*[[]] * 99, [("h", bytes(900))]]
    rows = Rows(pa.array([b"v"] * 100), headers=pa.array(large * 3, HEADERS).slice(100, 100))
    encoded = encode(rows, timestamp=5, batch_bytes=1_000, compression=Compression.NONE)
    found = [(count, len(data)) for data, count in encoded]
    assert [count for count, _ in found[-1:]] == [1]
    assert sum(count for count, _ in found) == 100
    assert max(size for _, size in found) <= 1_000


def test_batches_are_full() -> None:
    rows = Rows(pa.array([bytes(100)] * 10_000), pa.array([b"%08d" % n for n in range(10_000)]))
    batches = encode(rows, timestamp=5, batch_bytes=100_000, compression=Compression.NONE)
    *full, _ = [len(data) for data, _ in batches]
    assert min(full) > 97_000


def test_headers_travel() -> None:
    some = pa.array([[("a", b"1")], None, []], HEADERS)
    rows = Rows(pa.array(["x", "y", None]), headers=some)
    (encoded,) = encode(rows, timestamp=5, batch_bytes=9_999, compression=Compression.NONE)
    records = RecordBatch(encoded.data).records()
    assert [record.headers for record in records] == [(("a", b"1"),), (), ()]
    assert [record.value for record in records] == [b"x", b"y", None]


def test_parts_are_joined() -> None:
    both = join([rows_of([b"a"]), rows_of([b"b", None])])
    assert both.keys is not None
    assert both.keys.to_pylist() == [b"a", b"b", None]
    assert both.nbytes > 0
