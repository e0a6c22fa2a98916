"""When a follower counts as caught up."""

from hypothesis import given
from hypothesis import strategies as st

from brokers.progress import NEVER_MS, FollowerFetch, Progress, SessionClock

LAG_MS = 100


def fetch(offset: int, *, epoch: int = 1, clock: SessionClock | None = None) -> FollowerFetch:
    return FollowerFetch(2, epoch, offset, 0, clock)


def test_whoever_asks_for_the_end_is_caught_up_as_of_now() -> None:
    progress = Progress().after_fetch(fetch(7), leader_end=7, now_ms=50)
    assert (progress.end_offset, progress.caught_up_ms, progress.broker_epoch) == (7, 50, 1)


def test_whoever_asks_for_the_end_of_then_was_caught_up_then() -> None:
    progress = Progress().after_fetch(fetch(3), leader_end=5, now_ms=10)
    assert progress.caught_up_ms == NEVER_MS
    progress = progress.after_fetch(fetch(5), leader_end=9, now_ms=20)
    assert progress.caught_up_ms == 10


def test_another_run_of_the_broker_begins_with_nothing() -> None:
    progress = Progress().after_fetch(fetch(5), leader_end=5, now_ms=10)
    progress = progress.after_fetch(fetch(5, epoch=2), leader_end=9, now_ms=20)
    assert progress.caught_up_ms == NEVER_MS


def test_a_follower_with_everything_is_caught_up_however_long_ago_it_fetched() -> None:
    progress = Progress().after_fetch(fetch(5), leader_end=5, now_ms=0)
    assert progress.is_caught_up(5, now_ms=10**9, lag_ms=LAG_MS)
    assert progress.is_caught_up(6, now_ms=LAG_MS, lag_ms=LAG_MS)
    assert not progress.is_caught_up(6, now_ms=LAG_MS + 1, lag_ms=LAG_MS)


def test_an_idle_partition_takes_the_time_of_its_session() -> None:
    clock = SessionClock()
    clock.heard(0)
    progress = Progress().after_fetch(fetch(5, clock=clock), leader_end=5, now_ms=0)
    clock.heard(900)
    grown = progress.before_growth(5)
    assert (grown.caught_up_ms, grown.fetched_ms, grown.leader_end) == (900, 900, 5)
    dropped = progress.without_session()
    clock.heard(2_000)
    assert dropped.before_growth(5).caught_up_ms == 900


def test_a_fetch_proves_only_that_it_was_sent_after_the_reply_before_it() -> None:
    clock = SessionClock()
    clock.heard(10)
    assert clock.proven_ms == NEVER_MS
    clock.replied(20)
    assert clock.proven_ms == NEVER_MS
    clock.heard(5_000)  # it may have lain in a buffer for all that time
    assert (clock.heard_ms, clock.proven_ms) == (5_000, 20)


steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 60)), max_size=30)


@given(steps)
def test_as_if_all_ends_had_been_noted(moves: list[tuple[int, int, int]]) -> None:
    """Against the definition: caught up at t means to have, at some fetch, all that the leader had
    at t. Our two rules may be late by one fetch, never too generous.
    """
    progress, now, leader_end, offset = Progress(), 0, 0, 0
    ends = [(0, 0)]  # since when the leader had which end
    best = NEVER_MS
    for appended, taken, ms in moves:
        now += ms
        if appended:
            leader_end += appended
            ends.append((now, leader_end))
        now += 1
        offset = min(offset + taken, leader_end)
        later = [since for since, end in ends if end > offset]
        best = max(best, later[0] - 1 if later else now)
        progress = progress.after_fetch(fetch(offset), leader_end=leader_end, now_ms=now)
        assert progress.caught_up_ms <= best
        if offset == leader_end:
            assert progress.caught_up_ms == now
