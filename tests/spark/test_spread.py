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
        assert count == 1 or 32 * count <= batch_bytes
    assert found == [(key, b"%d" % number, 5) for number, key in enumerate(column)]


def test_headers_travel() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[("a", b"1")], None, []], kind)
    rows = Rows(pa.array(["x", "y", None]), headers=headers)
    (encoded,) = encode(rows, timestamp=5, batch_bytes=9_999, compression=Compression.NONE)
    records = RecordBatch(encoded.data).records()
    assert [record.headers for record in records] == [(("a", b"1"),), (), ()]
    assert [record.value for record in records] == [b"x", b"y", None]


def test_parts_are_joined() -> None:
    both = join([rows_of([b"a"]), rows_of([b"b", None])])
    assert both.keys is not None
    assert both.keys.to_pylist() == [b"a", b"b", None]
    assert both.nbytes > 0
