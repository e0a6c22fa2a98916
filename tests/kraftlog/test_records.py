from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import InvalidRecord
from kraftlog.records import (
    ConsumerRecord,
    Record,
    RecordMetadata,
    to_headers,
    to_timestamp_ms,
)
from kraftlog.types import TopicPartition


def test_headers_are_pairs_or_a_mapping() -> None:
    pairs = (("a", b"1"), ("b", None), ("a", b"2"))
    assert to_headers(pairs) == pairs
    named: dict[str, bytes | bytearray | memoryview | str | None] = {
        "a": "é",
        "b": bytearray(b"x"),
        "c": memoryview(b"y"),
    }
    assert to_headers(named) == (
        ("a", "é".encode()),
        ("b", b"x"),
        ("c", b"y"),
    )


@pytest.mark.parametrize("headers", [[(1, b"x")], [("a", 1)], [("\ud800", b"x")]])
def test_other_headers_are_refused(headers: list[tuple[str, bytes]]) -> None:
    with pytest.raises(InvalidRecord, match="header"):
        to_headers(headers)


@given(st.integers(0, 2**63 - 1))
def test_milliseconds_are_a_timestamp(ms: int) -> None:
    assert to_timestamp_ms(ms) == ms


def test_a_datetime_with_a_zone_is_one_too() -> None:
    assert to_timestamp_ms(datetime(2026, 1, 31, 0, 0, 0, 5000, tzinfo=UTC)) == 1769817600005


@pytest.mark.parametrize(
    "timestamp",
    [datetime(2026, 1, 31), -1, 2**63, True, 1.5],  # noqa: DTZ001  that is the point
)
def test_other_timestamps_are_refused(timestamp: int) -> None:
    with pytest.raises(InvalidRecord, match="timestamp"):
        to_timestamp_ms(timestamp)


def test_a_record_has_a_value_first() -> None:
    assert Record(b"v") == (b"v", None, (), None, None)


def test_what_was_read_knows_its_place_and_time() -> None:
    record = ConsumerRecord("t", 3, 7, 1769817600005, None, b"v")
    assert record.topic_partition == TopicPartition("t", 3)
    assert record.time == datetime(2026, 1, 31, 0, 0, 0, 5000, tzinfo=UTC)
    assert RecordMetadata("t", 3, 7, 0).topic_partition == TopicPartition("t", 3)
