from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.durations import Duration, limit_seconds, to_ms, to_seconds
from kraftlog.errors import ConfigError


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("5s", 5.0),
        ("250ms", 0.25),
        (" 1.5 h ", 5400.0),
        ("2m", 120.0),
        ("1d", 86400.0),
        (3, 3.0),
        (0.5, 0.5),
        (0, 0.0),
        (timedelta(minutes=2), 120.0),
    ],
)
def test_every_way_to_write_it(duration: Duration, seconds: float) -> None:
    assert to_seconds(duration, "linger") == seconds


@pytest.mark.parametrize(
    "wrong", ["", "5", "s", "-1s", "5 min", "٣s", -1, True, float("nan"), float("inf"), 10**400]
)
def test_what_is_no_duration(wrong: Duration) -> None:
    with pytest.raises(ConfigError, match="linger ="):
        to_seconds(wrong, "linger")


@given(st.integers(0, 10**9))
def test_milliseconds_stay_what_they_are(ms: int) -> None:
    assert to_ms(f"{ms}ms", "x") == ms
    assert to_ms(ms / 1000, "x") == ms


def test_a_little_is_not_nothing() -> None:
    assert to_ms("0.1ms", "x") == 1
    assert to_ms(0, "x") == 0


def test_no_limit() -> None:
    assert limit_seconds(None, "x") is None
    assert limit_seconds("1s", "x") == 1.0
