"""Partitions are chosen as Kafka's own producers choose them."""

import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import accumulate
from random import Random

import pytest
from aiokafka import partitioner as aiokafka_partitioner
from hypothesis import given
from hypothesis import strategies as st

from kraftlog._codec import Codec
from kraftlog._codec_types import INT32_MAX, BinaryColumn
from kraftlog.partitioner import STICKY_BYTES, Partitioner, partition_of_key
from tests.kraftlog.batches import (
    PURE,
    Outcome,
    both_twins,
    native,
    needs_native,
    outcome,
    using,
)

with warnings.catch_warnings():
    # kafka-python uses what the standard library has deprecated, which is no failure of ours.
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka_partitioner = import_module("kafka.partitioner.default")

# From the tests of Kafka's Java client.
MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@both_twins
@pytest.mark.parametrize(("key", "hashed"), MURMUR2.items())
def test_murmur2_is_that_of_java(twin: Codec, key: bytes, hashed: int) -> None:
    assert twin.murmur2(key) == hashed


@both_twins
@given(st.binary(max_size=40), st.integers(1, 5_000))
def test_a_key_goes_where_other_clients_send_it(twin: Codec, key: bytes, partitions: int) -> None:
    with using(twin):
        chosen = partition_of_key(key, partitions)
        assert Partitioner(Random(1)).partition("t", key, partitions, [0]) == chosen
    everyone = list(range(partitions))
    assert chosen == (kafka_partitioner.murmur2(key) & 0x7FFFFFFF) % partitions
    assert chosen == aiokafka_partitioner.DefaultPartitioner()(key, everyone, everyone)


def test_any_buffer_is_a_key() -> None:
    assert partition_of_key(bytearray(b"key"), 7) == partition_of_key(memoryview(b"key"), 7)


def test_records_without_a_key_stay_until_a_batch_is_full() -> None:
    partitioner = Partitioner(Random(1), sticky_bytes=100)
    visited: list[int] = []
    for _ in range(200):
        stays = {partitioner.partition("t", None, 1_000)}
        for _ in range(9):
            partitioner.sent("t", min(stays), 10)
            stays.add(partitioner.partition("t", None, 1_000))
        assert len(stays) == 1
        partitioner.sent("t", min(stays), 10)
        visited += stays
    assert len(set(visited)) > 100


def test_every_partition_gets_its_share() -> None:
    partitioner = Partitioner(Random(1), sticky_bytes=1)
    visits: Counter[int] = Counter()
    for _ in range(4_000):
        partition = partitioner.partition("t", None, 4)
        partitioner.sent("t", partition, 1)
        visits[partition] += 1
    assert set(visits) == {0, 1, 2, 3}
    assert min(visits.values()) > 800


def test_topics_do_not_share_a_partition() -> None:
    partitioner = Partitioner(Random(1), sticky_bytes=10)
    first, other = partitioner.partition("a", None, 10**6), partitioner.partition("b", None, 10**6)
    partitioner.sent("a", first, 10)
    assert partitioner.partition("a", None, 10**6) != first
    assert partitioner.partition("b", None, 10**6) == other


def test_a_partition_without_a_leader_is_left() -> None:
    partitioner = Partitioner(Random(1))
    stays = partitioner.partition("t", None, 8)
    others = [partition for partition in range(8) if partition != stays]
    moved = partitioner.partition("t", None, 8, others)
    assert moved != stays
    assert partitioner.partition("t", None, 8) == moved


def test_without_any_leader_all_are_as_good() -> None:
    assert Partitioner(Random(1)).partition("t", None, 3, []) in range(3)


def test_a_partition_that_is_gone_is_left() -> None:
    partitioner = Partitioner(Random(1))
    while partitioner.partition("t", None, 9) == 0:
        partitioner.sent("t", 0, STICKY_BYTES)
    assert partitioner.partition("t", None, 1) == 0


def test_bytes_with_a_key_fill_no_sticky_partition() -> None:
    partitioner = Partitioner(Random(1), sticky_bytes=10)
    stays = partitioner.partition("t", None, 10**6)
    partitioner.sent("t", stays + 1, 100)
    partitioner.sent("other", stays, 100)
    assert partitioner.partition("t", None, 10**6) == stays


@pytest.mark.parametrize("key", [None, b"key"])
@pytest.mark.parametrize("partitions", [0, -1])
def test_a_topic_has_partitions(key: bytes | None, partitions: int) -> None:
    with pytest.raises(ValueError, match="a topic with"):
        Partitioner(Random(1)).partition("t", key, partitions)


def test_a_batch_has_bytes() -> None:
    with pytest.raises(ValueError, match="sticky_bytes is 0"):
        Partitioner(Random(1), sticky_bytes=0)


# -- keys by the column


def both(call: Callable[[Codec], object]) -> Outcome:
    """The outcome of a call, which must be the same with either twin."""
    ours, oracle = outcome(call, native()), outcome(call, PURE)
    assert ours == oracle
    return ours


key_columns = st.lists(st.none() | st.binary(max_size=20), max_size=30)


def _key_column(keys: Sequence[bytes | None], first: int, *, nulls: bool) -> BinaryColumn:
    """With `first` rows before those that are meant."""
    filled = [*[b"before"] * first, *keys]
    offsets = array("i", [0, *accumulate(len(key or b"") for key in filled)])
    bits = sum((key is not None) << row for row, key in enumerate(filled))
    validity = bits.to_bytes((len(filled) + 7) // 8, "little") if nulls else None
    return BinaryColumn(offsets.tobytes(), b"".join(key or b"" for key in filled), validity, first)


@needs_native
@given(key_columns, st.integers(0, 9), st.integers(1, 5_000), st.booleans())
def test_a_column_of_keys_is_hashed_as_one_key_is(
    keys: list[bytes | None], first: int, partitions: int, nulls: bool
) -> None:
    column, otherwise = _key_column(keys, first, nulls=nulls), partitions - 1
    kind, found, _ = both(
        lambda codec: codec.partition_keys(
            column, rows=len(keys), partitions=partitions, otherwise=otherwise
        )
    )
    assert kind == "gives"
    expected = [
        otherwise if key is None and nulls else (PURE.murmur2(key or b"") & INT32_MAX) % partitions
        for key in keys
    ]
    assert isinstance(found, bytearray)
    assert array("i", bytes(found)).tolist() == expected


@needs_native
@given(st.lists(st.integers(-9, 40), max_size=12), st.integers(-2, 14), st.integers(-2, 14))
def test_offsets_of_keys_that_are_not_in_the_column(
    offsets: list[int], first: int, rows: int
) -> None:
    def partitions(codec: Codec, validity: bytes | None) -> object:
        column = BinaryColumn(array("i", offsets).tobytes(), bytes(range(30)), validity, first)
        return codec.partition_keys(column, rows=rows, partitions=7, otherwise=0)

    both(lambda codec: partitions(codec, None))
    both(lambda codec: partitions(codec, b"\xaa"))


@needs_native
@pytest.mark.parametrize(("partitions", "otherwise"), [(0, 0), (-1, 0), (INT32_MAX + 1, 0), (3, 3)])
def test_partitions_that_cannot_be(partitions: int, otherwise: int) -> None:
    column = _key_column([b"k"], 0, nulls=False)
    kind, _, _ = both(
        lambda codec: codec.partition_keys(
            column, rows=1, partitions=partitions, otherwise=otherwise
        )
    )
    assert kind == "ValueError"
