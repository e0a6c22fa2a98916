"""The names of partition directories."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.types import TopicPartition
from storage.partition_names import (
    NAME_CHARS_MAX,
    PARTITION_MAX,
    delete_name,
    is_delete_name,
    parse_partition_name,
    stray_name,
)

topics = st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True).filter(
    lambda topic: topic not in (".", "..")
)
partitions = st.builds(TopicPartition, topics, st.integers(0, PARTITION_MAX))


@given(partitions)
def test_every_partition_is_found_by_its_name(partition: TopicPartition) -> None:
    assert parse_partition_name(str(partition)) == partition


@given(st.text(max_size=20))
def test_a_name_is_that_of_one_partition_or_of_none(name: str) -> None:
    partition = parse_partition_name(name)
    assert partition is None or str(partition) == name


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-3", TopicPartition("orders", 3)),
        ("a-b-0", TopicPartition("a-b", 0)),
        ("a-1-2", TopicPartition("a-1", 2)),
        ("--1", TopicPartition("-", 1)),
        ("t-2147483647", TopicPartition("t", 2**31 - 1)),
    ],
)
def test_the_last_dash_parts_topic_and_partition(name: str, partition: TopicPartition) -> None:
    assert parse_partition_name(name) == partition


@pytest.mark.parametrize(
    "name",
    [
        "",
        "orders",
        "orders-",
        "-3",
        "orders-03",
        "orders--",
        "orders-x",
        "orders-+3",
        "orders-3 ",
        "orders-3\n",
        "orders-\u0663",
        "t-2147483648",
        "t-99999999999",
        "..-0",
        ".-0",
        "a/b-0",
        "a b-0",
        "x" * 250 + "-0",
        "meta.properties",
        "lost+found",
        "replication-offset-checkpoint",
        "orders-3.9f86d081884c7d659a2feaa0c55ad015-delete",
        "orders-3.9f86d081884c7d659a2feaa0c55ad015-stray",
        "orders-3.9f86d081884c7d659a2feaa0c55ad015-future",
    ],
)
def test_other_names_are_nobodys(name: str) -> None:
    assert parse_partition_name(name) is None


@given(partitions)
def test_a_name_for_deletion_is_new_and_known_as_such(partition: TopicPartition) -> None:
    name = delete_name(partition)
    assert is_delete_name(name)
    assert parse_partition_name(name) is None
    assert len(name) <= NAME_CHARS_MAX
    assert name != delete_name(partition)
    parts = re.fullmatch(rf"(.+)-{partition.partition}\.[0-9a-f]{{32}}-delete", name)
    assert parts is not None
    assert partition.topic.startswith(parts[1])
    assert parts[1] == partition.topic or len(name) == NAME_CHARS_MAX


@given(partitions)
def test_a_stray_name_is_never_taken_for_one_to_delete(partition: TopicPartition) -> None:
    name = stray_name(partition)
    assert name.endswith("-stray")
    assert not is_delete_name(name)
    assert parse_partition_name(name) is None
    assert len(name) <= NAME_CHARS_MAX


@pytest.mark.parametrize(
    "name",
    [
        "orders-3-delete",
        "orders-3.9f86-delete",
        "orders-3.9f86d081884c7d659a2feaa0c55ad015-deleted",
        "orders.9f86d081884c7d659a2feaa0c55ad015-delete",
        "my-photos-delete",
    ],
)
def test_what_we_did_not_rename_is_not_deleted(name: str) -> None:
    assert not is_delete_name(name)
