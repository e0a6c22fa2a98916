"""Sessions of brokers: silence, lag, and the grace that a new controller gives."""

from quorum.sessions import Sessions

SESSION_MS = 1_500
LAG_MS = 4_500


def sessions() -> Sessions:
    return Sessions(session_ms=SESSION_MS, lag_ms=LAG_MS)


def beat(table: Sessions, broker_id: int, now_ms: int, *, applied: int, committed: int) -> None:
    table.touch(broker_id, applied_offset=applied, committed=committed, now_ms=now_ms)


def test_a_new_controller_gives_every_broker_a_full_session() -> None:
    table = sessions()
    table.begin([(1, 10), (2, 11)], committed=50, now_ms=100)
    assert list(table.silent(100 + SESSION_MS)) == []
    assert list(table.silent(101 + SESSION_MS)) == [1, 2]  # R6, M8


def test_the_longest_silent_broker_comes_first() -> None:
    table = sessions()
    table.begin([(1, 10), (2, 11), (3, 12)], committed=0, now_ms=0)
    beat(table, 1, 500, applied=1, committed=1)
    beat(table, 2, 200, applied=1, committed=1)
    assert list(table.silent(10_000)) == [3, 1, 2]
    beat(table, 3, 10_000, applied=1, committed=1)
    assert list(table.silent(10_000)) == [1, 2]
    assert table.is_alive(3, 10_000 + SESSION_MS)
    assert not table.is_alive(1, 10_000)
    assert not table.is_alive(9, 10_000)


def test_a_broker_lags_when_it_does_not_reach_what_was_committed_then() -> None:
    table = sessions()
    table.begin([(1, 10)], committed=100, now_ms=0)
    for now_ms in range(0, LAG_MS + 1, 500):
        beat(table, 1, now_ms, applied=99, committed=100 + now_ms)
    assert not table.is_lagging(1, LAG_MS)
    assert table.is_lagging(1, LAG_MS + 1)
    assert list(table.lagging(LAG_MS + 1)) == [1]
    assert not table.has_caught_up(1)


def test_a_broker_that_keeps_reaching_old_goals_does_not_lag() -> None:
    """The end moves on all the time; only what was committed when the time began counts."""
    table = sessions()
    table.begin([(1, 10)], committed=100, now_ms=0)
    for second in range(1, 30):
        beat(table, 1, 1_000 * second, applied=90 + 10 * second, committed=100 + 10 * second)
        assert not table.is_lagging(1, 1_000 * second)


def test_a_lagging_broker_catches_up_by_reaching_its_goal() -> None:
    table = sessions()
    table.begin([(1, 10)], committed=100, now_ms=0)
    assert table.is_lagging(1, LAG_MS + 1)
    beat(table, 1, LAG_MS + 1, applied=100, committed=500)
    assert not table.is_lagging(1, LAG_MS + 1)
    assert not table.has_caught_up(1)  # the next goal is 500
    beat(table, 1, LAG_MS + 2, applied=500, committed=500)
    assert table.has_caught_up(1)


def test_the_applied_offset_of_a_session_never_falls() -> None:
    table = sessions()
    table.begin([(1, 10)], committed=5, now_ms=0)
    beat(table, 1, 10, applied=9, committed=9)
    beat(table, 1, 20, applied=4, committed=9)
    session = table.find(1)
    assert session is not None
    assert session.applied_offset == 9
    assert table.lowest_applied([1, 7]) == 9
    assert table.lowest_applied([7]) is None


def test_the_next_check_is_due_when_something_can_end() -> None:
    table = sessions()
    assert table.next_check_ms(100) == 100 + SESSION_MS + 1
    table.begin([(1, 10)], committed=0, now_ms=0)
    assert table.next_check_ms(0) == SESSION_MS + 1
    beat(table, 1, 4_000, applied=0, committed=0)
    assert table.next_check_ms(4_000) == 4_000 + SESSION_MS + 1


def test_a_broker_that_is_long_dead_does_not_hide_the_others() -> None:
    table = sessions()
    table.begin([(1, 10), (2, 11)], committed=0, now_ms=0)
    beat(table, 2, 9_000, applied=0, committed=0)
    assert table.next_check_ms(9_100) == 9_000 + SESSION_MS + 1


def test_a_closed_session_is_forgotten() -> None:
    table = sessions()
    table.open(1, 10, committed=0, now_ms=0)
    table.close(1)
    table.close(1)
    assert table.find(1) is None
    assert list(table.silent(10_000)) == []


def test_how_far_brokers_are_is_known_of_those_that_were_heard() -> None:
    sessions = Sessions(session_ms=100, lag_ms=200)
    sessions.begin([(1, 5), (2, 6)], committed=10, now_ms=0)
    assert sessions.applied() == {}
    sessions.touch(2, applied_offset=7, committed=10, now_ms=1)
    assert sessions.applied() == {2: 7}
