from collections import Counter
from collections.abc import Sequence
from random import Random
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import ConfigError, InvalidRequest
from kraftlog.partition_choice import Chooser, PartitionerChoice, check_partition, find_chooser
from kraftlog.partitioner import partition_of_key


def chooser(
    choice: PartitionerChoice, partitions: int, available: list[int] | None = None
) -> Chooser:
    made = find_chooser(choice, Random(1), 1_000)("t")
    made.resize(partitions, range(partitions) if available is None else available)
    return made


def spread(
    chooser: Chooser, keys: list[bytes] | list[bytes | None] | None, values: Sequence[bytes | None]
) -> list[int]:
    """The partition of each record."""
    places = chooser.spread(keys, values)
    assert places is not None
    found = sorted((place, partition) for partition in places for place in places[partition])
    assert [place for place, _ in found] == list(range(len(values)))
    assert all(each == sorted(each) for each in places.values())
    return [partition for _, partition in found]


# R31: the partition is the one given, else by the hash of the key, else sticky, round robin or a
# callable
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=50), st.integers(1, 20))
def test_keys_go_where_kafka_puts_them(keys: list[bytes], partitions: int) -> None:
    by_key = chooser("murmur2", partitions)
    expected = [partition_of_key(key, partitions) for key in keys]
    assert [by_key.choose(key, None, 1) for key in keys] == expected
    assert spread(by_key, keys, [None] * len(keys)) == expected


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=50), st.integers(1, 20))
def test_or_where_librdkafka_puts_them(keys: list[bytes], partitions: int) -> None:
    by_key = chooser("crc32", partitions)
    expected = [crc32(key) % partitions for key in keys]
    assert [by_key.choose(key, None, 1) for key in keys] == expected
    assert spread(by_key, keys, [None] * len(keys)) == expected


@pytest.mark.parametrize("name", ["murmur2", "crc32", "sticky"])
def test_without_a_key_a_batchs_worth_stays_together(name: str) -> None:
    sticky = chooser(name, 4)
    chosen = [sticky.choose(None, None, 100) for _ in range(100)]
    runs = [chosen[start : start + 10] for start in range(0, 100, 10)]
    assert all(len(set(run)) == 1 for run in runs)
    assert set(chosen) == {0, 1, 2, 3}
    assert sticky.spread(None, [b"x"]) is None


def test_many_with_and_without_keys() -> None:
    by_key = chooser("murmur2", 4)
    chosen = spread(by_key, [b"k", None, b"k"], [b"", b"", b""])
    assert chosen[0] == chosen[2] == partition_of_key(b"k", 4)


def test_sticky_avoids_partitions_without_a_leader() -> None:
    sticky = chooser("sticky", 4, [2])
    assert {sticky.choose(None, None, 500) for _ in range(50)} == {2}
    sticky.resize(4, [1])
    assert {sticky.choose(None, None, 500) for _ in range(50)} == {1}
    sticky.resize(4, [])
    assert {sticky.choose(None, None, 500) for _ in range(50)} == {0, 1, 2, 3}


def test_a_key_does_not_care_who_leads() -> None:
    expected = partition_of_key(b"k", 4)
    without = [number for number in range(4) if number != expected]
    assert chooser("murmur2", 4, without).choose(b"k", None, 1) == expected


def test_round_robin() -> None:
    robin = chooser("round_robin", 3)
    assert Counter(robin.choose(b"same", None, 1) for _ in range(30)) == {0: 10, 1: 10, 2: 10}
    assert Counter(spread(robin, None, [b""] * 30)) == {0: 10, 1: 10, 2: 10}


def test_a_function_of_the_users() -> None:
    def by_length(_topic: str, _key: bytes | None, value: bytes | None, partitions: int) -> int:
        return len(value or b"") % partitions

    by_size = chooser(by_length, 3)
    assert by_size.choose(None, b"12345", 1) == 2
    assert spread(by_size, None, [b"1", b"", b"12"]) == [1, 0, 2]
    with pytest.raises(InvalidRequest, match="partition 3 of t"):
        chooser(lambda *_: 3, 3).choose(None, None, 1)


def test_more_partitions() -> None:
    by_key = chooser("murmur2", 2)
    by_key.resize(7, range(7))
    assert by_key.choose(b"k", None, 1) == partition_of_key(b"k", 7)


def test_unknown_names() -> None:
    with pytest.raises(ConfigError, match="round_robin"):
        find_chooser("random", Random(1), 1)


@pytest.mark.parametrize("partition", [-1, 3, True, "0", 1.0])
def test_what_is_no_partition(partition: object) -> None:
    with pytest.raises(InvalidRequest, match="use 0 to 2"):
        check_partition("t", partition, 3)
    check_partition("t", 2, 3)
