from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.history import History, Operation, Outcome
from chaos.report.clients import (
    DOTS_MAX,
    SLICES_MAX,
    Dot,
    dots,
    failures,
    latencies,
    percentile,
    slice_seconds,
    slices,
    thinned,
)
from tests.chaos.report.runs import a_broken_leader, poll, send


def of(*operations: Operation, end: float = 10.0) -> History:
    return History(operations, (), end)


def test_a_dot_is_an_operation_that_somebody_waited_for() -> None:
    refused = replace(send(1, 2, 0.5, Outcome.FAIL), error="NOT_LEADER")
    found = dots(of(send(0, 1, 0.25), refused, poll(2, 3, 0)))
    assert [(dot.t, dot.seconds, str(dot.outcome)) for dot in found] == [
        (1, 0.25, "ok"),
        (2, 0.5, "fail"),
    ]
    assert found[0].words == str(found[0].operation)
    assert found[1].words.endswith("fail: NOT_LEADER")


def test_what_never_ended_lasted_until_the_run_did() -> None:
    (dot,) = dots(of(send(0, 4, None, Outcome.UNKNOWN)))
    assert dot.seconds == 6
    (row,) = latencies(of(send(0, 4, None, Outcome.UNKNOWN)))
    assert (row.outcome, row.most) == (Outcome.UNKNOWN, 6)


@given(st.lists(st.floats(0, 100), max_size=200), st.integers(1, 20))
def test_thinning_keeps_the_slowest_and_stays_below_its_limit(
    times: list[float], limit: int
) -> None:
    every = [Dot(send(number, number, 0), seconds) for number, seconds in enumerate(times)]
    kept = thinned(every, limit)
    assert len(kept) <= limit
    assert [dot.t for dot in kept] == sorted(dot.t for dot in kept)
    if every:
        assert max(dot.seconds for dot in kept) == max(times)
    if len(every) <= limit:
        assert kept == every


def test_what_ended_badly_is_never_thinned_away_by_what_ended_well() -> None:
    good = [send(number, number * 1e-3, 1e-3) for number in range(5 * DOTS_MAX)]
    bad = [send(10**6 + number, number, 1.0, Outcome.FAIL) for number in range(5)]
    found = dots(of(*good, *bad))
    assert sum(dot.outcome is Outcome.FAIL for dot in found) == 5
    assert len(found) == DOTS_MAX + 5


def test_latencies_by_operation_and_outcome() -> None:
    history = of(*(send(number, 1, number / 100) for number in range(1, 101)))
    (row,) = latencies(history)
    assert (row.op, row.outcome, row.count) == ("send", Outcome.OK, 100)
    assert (row.p50, row.p99, row.most) == pytest.approx((0.5, 0.99, 1.0))
    rows = latencies(a_broken_leader())
    assert [(each.op, str(each.outcome), each.count) for each in rows] == [
        ("send", "fail", 1),
        ("send", "ok", 87),
        ("send", "unknown", 2),
    ]


@given(st.lists(st.floats(0, 9), min_size=1), st.floats(0, 1))
def test_a_percentile_is_a_value_that_was_measured(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(each <= found for each in values) >= share * len(values) - 1e-9


def test_reasons_are_counted_the_commonest_first() -> None:
    late = [send(number, number, 0.1, Outcome.UNKNOWN) for number in (3, 2, 4)]
    history = of(send(0, 0, 1), send(1, 1, None, Outcome.UNKNOWN), *late)
    assert [(each.error, each.count, each.first) for each in failures(history)] == [
        ("REQUEST_TIMED_OUT: no answer", 3, 2),
        ("it never ended", 1, 1),
    ]
    assert failures(of(send(0, 0, 1))) == []


def test_a_second_in_which_nothing_ended_is_there_too() -> None:
    found = slices(of(send(0, 0, 0.5), send(1, 2.5, 0.1, Outcome.FAIL), end=3.2))
    assert [(each.begin, each.end, dict(each.counts)) for each in found] == [
        (0, 1, {Outcome.OK: 1}),
        (1, 2, {}),
        (2, 3, {Outcome.FAIL: 1}),
        (3, 4, {}),
    ]


@given(st.floats(0, 1e12))
def test_a_long_run_has_wider_slices_not_more(end: float) -> None:
    width = slice_seconds(end, SLICES_MAX)
    assert width >= 1
    assert end / width < SLICES_MAX
    assert str(f"{width:.0e}")[0] in "125"
    assert width == 1 or end / width >= SLICES_MAX / 3


def test_wide_slices_show_what_ended_in_each_second() -> None:
    history = of(*(send(number, number / 10, 0.01) for number in range(10_000)), end=1000.0)
    found = slices(history)
    assert (found[0].begin, found[0].end) == (0, 5)
    assert found[0].per_second == pytest.approx(10)
    assert sum(each.counts.total() for each in found) == 10_000
    assert len(found) == 201


def test_unseen_is_acknowledged_and_not_yet_read() -> None:
    history = of(
        send(0, 0.1, 0.1),
        send(1, 0.2, 0.1),
        send(2, 0.3, 0.1, Outcome.UNKNOWN),
        poll(10, 0.25, 1),  # before its acknowledgement: never unseen
        poll(11, 1.5, 2),  # nobody acknowledged it
        poll(12, 2.5, 0, 1),
        end=3.5,
    )
    assert [each.unseen for each in slices(history)] == [1, 1, 0, 0]


def test_a_lost_record_stays_unseen() -> None:
    assert [each.unseen for each in slices(of(send(0, 0.1, 0.1), end=2.0))] == [1, 1, 1]


def test_nothing_recorded_is_one_empty_slice() -> None:
    (only,) = slices(History(()))
    assert (only.counts.total(), only.unseen, only.per_second) == (0, 0, 0)
    assert dots(History(())) == []
    assert latencies(History(())) == []
