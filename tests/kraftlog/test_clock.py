from kraftlog.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_reads_milliseconds() -> None:
    clock: Clock = SystemClock()
    before = clock.monotonic_ms()
    assert clock.monotonic_ms() >= before
    year_2020, year_2200 = 1_577_836_800_000, 7_258_118_400_000
    assert year_2020 < clock.wall_ms() < year_2200


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(monotonic_ms=10, wall_ms=1_000)
    reader: Clock = clock
    assert (reader.monotonic_ms(), reader.wall_ms()) == (10, 1_000)
    clock.advance(5)
    assert (reader.monotonic_ms(), reader.wall_ms()) == (15, 1_005)


def test_the_wall_clock_can_jump_back_and_timers_do_not_notice() -> None:
    clock = ManualClock(wall_ms=1_000)
    clock.jump_wall(-600)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (0, 400)
