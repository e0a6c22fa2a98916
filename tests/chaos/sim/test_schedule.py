"""Virtual time."""

from functools import partial
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from chaos.sim.schedule import NodeClock, Schedule


def order_of(delays: list[float], seed: int) -> list[int]:
    schedule, order = Schedule(Random(seed)), list[int]()
    for number, delay_ms in enumerate(delays):
        schedule.later(delay_ms, partial(order.append, number))
    while schedule.is_due(1e9):
        schedule.step()
    return order


@given(st.lists(st.floats(0, 100), max_size=20), st.integers(0, 5))
def test_acts_happen_in_the_order_of_their_times(delays: list[float], seed: int) -> None:
    order = order_of(delays, seed)
    assert sorted(order) == list(range(len(delays)))
    assert [delays[number] for number in order] == sorted(delays)


def test_the_dice_decide_about_acts_of_the_same_moment() -> None:
    orders = {tuple(order_of([5.0] * 6, seed)) for seed in range(20)}
    assert len(orders) > 10
    assert order_of([5.0] * 6, 3) == order_of([5.0] * 6, 3)


def test_nothing_is_due_before_its_time() -> None:
    schedule = Schedule(Random(1))
    schedule.later(10, lambda: None)
    assert not schedule.is_due(9.9)
    assert schedule.is_due(10)
    schedule.step()
    assert (schedule.now, schedule.events) == (10, 1)


@given(st.floats(0.9, 1.1), st.floats(0, 1e6), st.integers(0, 2_000_000))
def test_a_clock_shows_the_time_that_was_waited_for(rate: float, now: float, ms: int) -> None:
    schedule = Schedule(Random(1))
    schedule.now = now
    clock = NodeClock(schedule, rate)
    before = clock.monotonic_ms()
    schedule.now += clock.delay_until(ms)
    assert clock.monotonic_ms() in (ms, max(ms, before))


def test_only_the_wall_clock_jumps() -> None:
    schedule = Schedule(Random(1))
    clock = NodeClock(schedule, 2.0)
    schedule.now = 50.0
    assert clock.monotonic_ms() == 100
    wall = clock.wall_ms()
    clock.jump_wall(-1_000)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (100, wall - 1_000)
