"""Requests that wait end once, whoever comes first."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.purgatory import DEAD_ENTRIES_MAX, Cancellable, OffsetQueue, Purgatory, Waiter, wait
from kraftlog.errors import KraftError, ThrottledError
from tests.brokers.aio import async_test


@async_test
async def test_only_the_first_ends_it() -> None:
    purgatory, ended, timed_out = Purgatory(10), [], []
    parked = purgatory.park("fetch")
    parked.wait(60_000, on_timeout=lambda: timed_out.append(1), on_end=lambda: ended.append(1))
    assert purgatory.counts == {"fetch": 1}
    assert parked.end()
    assert not parked.end()
    parked.time_out()
    assert (ended, timed_out, len(purgatory)) == ([1], [], 0)
    assert purgatory.counts == {"fetch": 0}


@async_test
async def test_time_runs_out() -> None:
    purgatory, done = Purgatory(10), asyncio.Event()
    parked = purgatory.park("fetch")
    parked.wait(1, on_timeout=done.set)
    await done.wait()
    assert parked.is_over
    assert not parked.end()


@async_test
async def test_one_that_is_given_up_is_not_answered() -> None:
    purgatory, answered, ended = Purgatory(10), [], []
    parked = purgatory.park("fetch")
    parked.wait(1, on_timeout=lambda: answered.append(1), on_end=lambda: ended.append(1))
    parked.cancel()
    parked.cancel()
    await asyncio.sleep(0.01)
    assert (answered, ended) == ([], [1])


@async_test
async def test_too_many_are_refused() -> None:
    purgatory = Purgatory(2)
    purgatory.park("fetch")
    second = purgatory.park("fetch")
    with pytest.raises(ThrottledError):
        purgatory.park("fetch")
    purgatory.park("produce")  # one kind does not keep out another
    second.end()
    purgatory.park("fetch")


@async_test
async def test_a_broker_that_stops_answers_all() -> None:
    purgatory = Purgatory(10)
    answered: list[int] = []
    for number in range(3):
        purgatory.park("fetch").wait(60_000, on_timeout=partial(answered.append, number))
    purgatory.time_out_all()
    assert sorted(answered) == [0, 1, 2]
    assert len(purgatory) == 0


@async_test
async def test_a_callback_can_be_awaited() -> None:
    def begin(done: Callable[[int], None]) -> Cancellable | None:
        done(7)
        done(8)
        return None

    assert await wait(begin) == 7


# -- waiting for an offset


def test_the_lowest_come_first_and_each_once() -> None:
    queue = OffsetQueue()
    seen: list[tuple[int, KraftError | None]] = []

    def note(offset: int, error: KraftError | None) -> None:
        seen.append((offset, error))

    for offset in (5, 3, 9, 3):
        queue.add(offset, partial(note, offset))
    queue.release(4)
    assert seen == [(3, None), (3, None)]
    queue.release(4)
    error = KraftError("no more")
    queue.fail_all(error)
    assert seen[2:] == [(5, error), (9, error)]
    assert len(queue) == 0


def test_whoever_gives_up_is_not_called() -> None:
    queue = OffsetQueue()
    seen: list[KraftError | None] = []
    waiter = queue.add(1, seen.append)
    waiter.give_up()
    waiter.give_up()
    assert len(queue) == 0
    queue.release(5)
    assert seen == []
    assert len(queue) == 0


def test_those_who_gave_up_take_no_room() -> None:
    queue = OffsetQueue()
    kept = queue.add(10**6, lambda _: None)
    for offset in range(10 * DEAD_ENTRIES_MAX):
        queue.add(offset, lambda _: None).give_up()
    assert len(queue._heap) <= DEAD_ENTRIES_MAX + 2
    assert len(queue) == 1
    assert kept.call is not None


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 20)),
            st.tuples(st.just("release"), st.integers(0, 20)),
            st.tuples(st.just("give up"), st.integers(0, 30)),
        ),
        max_size=60,
    )
)
def test_like_a_plain_list(steps: list[tuple[str, int]]) -> None:
    queue = OffsetQueue()
    called: list[int] = []
    waiting: dict[int, int] = {}
    waiters: list[Waiter] = []

    def note(name: int, _error: KraftError | None) -> None:
        called.append(name)

    for step, number in steps:
        if step == "add":
            name = len(waiters)
            waiting[name] = number
            waiters.append(queue.add(number, partial(note, name)))
        elif step == "release":
            called.clear()
            queue.release(number)
            due = [name for name, offset in waiting.items() if offset <= number]
            assert called == sorted(due, key=lambda name: (waiting[name], name))
            waiting = {name: offset for name, offset in waiting.items() if offset > number}
        elif number < len(waiters):
            waiters[number].give_up()
            waiting.pop(number, None)
        assert len(queue) == len(waiting)
