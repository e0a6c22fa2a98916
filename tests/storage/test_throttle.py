"""A byte rate kept by pauses, on a clock that the pauses themselves move."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.clock import ManualClock
from kraftlog.errors import ConfigError
from storage.throttle import BURST_MS, Throttle


def paced(bytes_per_second: float) -> tuple[Throttle, ManualClock]:
    """A throttle whose pauses pass on the clock that it reads."""
    clock = ManualClock()

    def pause(seconds: float) -> None:
        assert seconds > 0
        clock.advance(math.ceil(seconds * 1_000))

    return Throttle(bytes_per_second, clock=clock, pause=pause), clock


@given(
    rate=st.integers(1_000, 10_000_000),
    work=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 500)), max_size=30),
)
def test_over_any_stretch_the_rate_is_kept_but_for_one_burst(
    rate: int, work: list[tuple[int, int]]
) -> None:
    throttle, clock = paced(rate)
    for first in range(len(work)):
        begin, spent = clock.monotonic_ms(), 0
        for count, idle_ms in work[first:]:
            throttle.spend(count)
            spent += count
            assert spent <= rate / 1_000 * (clock.monotonic_ms() - begin + BURST_MS) + 1
            clock.advance(idle_ms)


def test_work_below_the_rate_never_pauses() -> None:
    clock = ManualClock()
    pauses: list[float] = []
    throttle = Throttle(1_000, clock=clock, pause=pauses.append)
    for _ in range(100):
        clock.advance(50)
        throttle.spend(50)
    assert pauses == []


def test_a_rest_is_not_saved_up() -> None:
    throttle, clock = paced(1_000)
    throttle.spend(1)
    clock.advance(3_600_000)
    begin = clock.monotonic_ms()
    throttle.spend(1_000)
    assert clock.monotonic_ms() - begin == 1_000 - BURST_MS


def test_without_a_rate_nothing_pauses() -> None:
    pauses: list[float] = []
    throttle = Throttle(clock=ManualClock(), pause=pauses.append)
    throttle.spend(1 << 60)
    throttle.spend(1 << 60)
    assert pauses == []


@pytest.mark.parametrize("rate", [0, -1.0, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ConfigError, match=r"log\.cleaner\.io\.max\.bytes\.per\.second"):
        Throttle(rate)
