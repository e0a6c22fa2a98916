from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import ConfigError, InvalidRequest, NotYetSupported
from kraftlog.offsets import Anchor, Offset, OffsetRange, PerPartition, to_offset
from kraftlog.types import TopicPartition

INT64_MAX = 2**63 - 1

# A duration is a number with a fraction: it is exact for some ten thousand years.
offsets = st.builds(Offset, st.sampled_from([*Anchor][:4]), st.integers(0, INT64_MAX)) | st.builds(
    Offset, st.just(Anchor.AGO), st.integers(0, 2**50)
)
zones = st.integers(-14 * 60, 14 * 60).map(lambda at: timezone(timedelta(minutes=at)))
moments = st.datetimes(
    datetime.fromisoformat("1971-01-01"),
    datetime.fromisoformat("2100-01-01"),
    timezones=st.one_of(st.none(), zones),
)
places = st.builds(TopicPartition, st.sampled_from(["a", "b-1", "c.d"]), st.integers(0, 3))


def forward(first: Offset, end: Offset) -> bool:
    """Whether nothing shows before a broker is asked that a range ends before it begins."""
    if first.anchor is not end.anchor:
        return True
    back = first.anchor in (Anchor.END, Anchor.AGO)
    return first.number >= end.number if back else first.number <= end.number


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("start", Offset.START),
        ("end", Offset.END),
        ("1200", Offset.at(1200)),
        ("+10", Offset.after_start(10)),
        ("-10", Offset.before_end(10)),
        ("@-1h", Offset.ago("1h")),
        ("@now", Offset(Anchor.AGO, 0)),
        ("@1769817600000", Offset.at_time(1769817600000)),
        ("@2026-01-31", Offset.at_time(datetime(2026, 1, 31, tzinfo=UTC))),
        ("@2026-01-31T00:00:00+00:00", Offset.at_time(1769817600000)),
    ],
)
def test_the_grammar(text: str, offset: Offset) -> None:
    assert Offset.parse(text) == offset


@pytest.mark.parametrize("text", ["", "begin", "1.5", "--1", "@", "@yesterday", "9" * 20, "@-x"])
def test_what_is_no_offset(text: str) -> None:
    with pytest.raises(ConfigError):
        Offset.parse(text)


def test_committed_needs_groups() -> None:
    with pytest.raises(NotYetSupported):
        Offset.parse("committed")


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(InvalidRequest):
        Offset.at(-1)


@given(offsets)
def test_text_and_back(offset: Offset) -> None:
    assert Offset.parse(str(offset)) == offset


@given(st.integers(0, 2**60), st.integers(0, 2**60))
def test_times_are_counted_from_now(now: int, ago: int) -> None:
    assert Offset(Anchor.AGO, ago).time_ms(now) == max(now - ago, 0)
    assert Offset.at_time(ago).time_ms(now) == ago
    assert Offset.at(ago).time_ms(now) is None


def test_every_form_that_a_user_may_give() -> None:
    assert to_offset(5) == to_offset("5") == to_offset(Offset.at(5))


@given(offsets, offsets)
def test_a_range_is_two_of_them(first: Offset, end: Offset) -> None:
    assert OffsetRange.parse(f"{first}:") == OffsetRange(first)
    assert OffsetRange.parse(f":{first}").end == first
    assert OffsetRange.parse(str(first)) == OffsetRange(first)
    if forward(first, end):
        found = OffsetRange.parse(f"{first}:{end}")
        assert (found.first, found.end) == (first, end)
        assert OffsetRange.parse(str(found)) == found
    else:
        with pytest.raises(ConfigError, match="ends before it begins"):
            OffsetRange.parse(f"{first}:{end}")


@given(moments, moments)
def test_a_time_with_colons_is_one_end_of_a_range(one: datetime, other: datetime) -> None:
    """Whichever of its own colons could as well stand between two places."""
    first, end = sorted([Offset.at_time(one), Offset.at_time(other)], key=lambda each: each.number)
    texts = {Offset.at_time(each): f"@{each.isoformat()}" for each in (one, other)}
    assert OffsetRange.parse(texts[first]) == OffsetRange(first)
    assert OffsetRange.parse(f"{texts[first]}:") == OffsetRange(first)
    assert OffsetRange.parse(f":{texts[end]}") == OffsetRange(Offset.START, end)
    assert OffsetRange.parse(f"{texts[first]}:{texts[end]}") == OffsetRange(first, end)
    assert OffsetRange.parse(f"{texts[first]}:end") == OffsetRange(first, Offset.END)


def test_a_time_to_the_minute_is_no_range() -> None:
    """`@2026-01-31T09` up to offset 30 would be one, too."""
    assert OffsetRange.parse("@2026-01-31T09:30").end is None


@given(st.text(alphabet="0123456789:@+-=,.TZhmsdtarnow ", max_size=24))
def test_whatever_is_written_is_understood_or_refused(text: str) -> None:
    for parse in (Offset.parse, OffsetRange.parse, of_ranges):
        with suppress(ConfigError):
            parse(text)


def of_ranges(text: str) -> PerPartition[OffsetRange]:
    return PerPartition.parse(text, OffsetRange.parse)


def test_where_one_offset_is_meant_a_range_is_named_as_such() -> None:
    with pytest.raises(ConfigError, match="'10:20' is a range"):
        Offset.parse("10:20")


@given(offsets, st.sets(places))
def test_one_for_all_partitions(offset: Offset, there: set[TopicPartition]) -> None:
    found = PerPartition.parse(str(offset), Offset.parse)
    assert found.of(there) == dict.fromkeys(there, offset)


@given(st.dictionaries(places, offsets, min_size=1), st.sets(places))
def test_one_for_each_partition_that_is_named(
    named: Mapping[TopicPartition, Offset], others: set[TopicPartition]
) -> None:
    text = ",".join(f"{at.topic}:{at.partition}={offset}" for at, offset in named.items())
    found = PerPartition.parse(text, Offset.parse)
    assert found.of(named.keys() | others) == named
    assert found.values == list(named.values())
    with pytest.raises(ConfigError, match="there is no"):
        found.of(list(named)[1:])


def test_a_partition_without_a_topic_is_that_of_any() -> None:
    both = [TopicPartition("a", 1), TopicPartition("b", 1), TopicPartition("b", 2)]
    found = PerPartition.parse("b:1=7, 1=5", Offset.parse).of(both)
    assert found == {both[0]: Offset.at(5), both[1]: Offset.at(7)}


@pytest.mark.parametrize("text", ["=5", "x=5", "a:=5", "1=", "1=5,", "1=5,1=6", "1=5:2=6", "-1=5"])
def test_what_names_no_partitions(text: str) -> None:
    with pytest.raises(ConfigError):
        PerPartition.parse(text, Offset.parse)
