from pathlib import Path

import pytest

from kraftlog.clock import SystemClock
from kraftlog.drill_hooks import CLOCK_JUMP, HOOKS_VARIABLE, hooks_directory, server_clock
from kraftlog.errors import ConfigError


@pytest.mark.parametrize("environment", [{}, {HOOKS_VARIABLE: ""}])
@pytest.mark.parametrize("listen", ["127.0.0.1:9092", "0.0.0.0:9092"])
def test_nothing_reaches_into_a_server_that_nobody_drills(
    environment: dict[str, str], listen: str
) -> None:
    assert hooks_directory(environment, listen) is None


@pytest.mark.parametrize("listen", ["127.0.0.1:9092", "localhost:0", "[::1]:9092", "127.9.9.9:1"])
def test_a_server_on_this_machine_may_be_drilled(tmp_path: Path, listen: str) -> None:
    assert hooks_directory({HOOKS_VARIABLE: str(tmp_path)}, listen) == str(tmp_path)


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:9092", "[::]:9092", "10.0.0.1:9092", "broker.example:9092", ":9092", ""]
)
def test_a_server_that_others_can_reach_refuses(tmp_path: Path, listen: str) -> None:
    with pytest.raises(ConfigError, match=HOOKS_VARIABLE):
        hooks_directory({HOOKS_VARIABLE: str(tmp_path)}, listen)


def test_a_directory_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no directory"):
        hooks_directory({HOOKS_VARIABLE: str(tmp_path / "x")}, "127.0.0.1:1")


def test_a_drill_sets_the_wall_clock_and_not_the_monotonic_one(tmp_path: Path) -> None:
    assert type(server_clock(None)) is SystemClock
    clock, right = server_clock(str(tmp_path)), SystemClock()
    hour = 3_600_000
    for text, jump in (("", 0), (str(hour), hour), (str(-hour), -hour), ("0", 0)):
        (tmp_path / CLOCK_JUMP).write_text(text)
        before = right.wall_ms()
        assert before <= clock.wall_ms() - jump <= right.wall_ms()
        assert right.monotonic_ms() <= clock.monotonic_ms() <= right.monotonic_ms()
