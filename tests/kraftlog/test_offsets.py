from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import ConfigError, InvalidRequest, NotYetSupported
from kraftlog.offsets import Anchor, Offset, OffsetRange, to_offset

INT64_MAX = 2**63 - 1

offsets = st.builds(Offset, st.sampled_from(Anchor), st.integers(0, INT64_MAX))


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
    assert OffsetRange.parse(f"{first}:{end}") == OffsetRange(first, end)
    assert OffsetRange.parse(f"{first}:") == OffsetRange(first)
    assert OffsetRange.parse(f":{end}") == OffsetRange(Offset.START, end)
    assert OffsetRange.parse(str(first)) == OffsetRange(first)
    assert OffsetRange.parse(str(OffsetRange(first, end))) == OffsetRange(first, end)


def test_a_time_with_colons_is_one_end_of_a_range() -> None:
    first = Offset.at_time(datetime(2026, 1, 31, 9, 30, tzinfo=UTC))
    text = "@2026-01-31T09:30:00+00:00"
    assert OffsetRange.parse(f"{text}:end") == OffsetRange(first, Offset.END)
    assert OffsetRange.parse(f"{text}:") == OffsetRange(first)
    assert OffsetRange.parse("100:@2026-01-31T09:30:00") == OffsetRange(Offset.at(100), first)
