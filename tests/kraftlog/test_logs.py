import json
import logging
import subprocess
import sys

import pytest

from kraftlog.errors import ConfigError
from kraftlog.logs import LINES_MAX, PERIOD_SECONDS, RateLimit, formatter


def line(message: str, *facts: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("brokers.fetch", level, "f.py", 1, message, facts, None)


def test_what_is_said_too_often_is_held_back_and_counted() -> None:
    now = [0.0]
    limit = RateLimit(lambda: now[0])
    shown = sum(limit.filter(line("t-%d lags", number)) for number in range(LINES_MAX + 5))
    assert shown == LINES_MAX
    assert limit.filter(line("another kind"))
    now[0] = PERIOD_SECONDS
    after = line("t-%d lags", 7)
    assert limit.filter(after)
    assert after.getMessage() == "t-7 lags (5 more like this were not shown)"
    again = line("t-%d lags", 8)
    assert limit.filter(again)
    assert again.getMessage() == "t-8 lags"


def test_debug_lines_are_never_held_back() -> None:
    limit = RateLimit(lambda: 0.0)
    assert all(limit.filter(line("x", level=logging.DEBUG)) for _ in range(LINES_MAX + 1))


def test_a_client_says_nothing_in_a_program_that_has_no_logging() -> None:
    says = "from kraftlog.logs import client_logger as c; c('kraftlog.x').warning('%d lags', 7)"
    shows = "import logging; logging.basicConfig(); "
    assert spoken_by(says) == []
    assert spoken_by(shows + says) == ["WARNING:kraftlog.x:7 lags"]
    again = "; [c('kraftlog.x').warning('%d lags', n) for n in range(100)]"
    assert len(spoken_by(shows + says + again)) == LINES_MAX


def spoken_by(program: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return ran.stderr.splitlines()


def test_lines_as_json() -> None:
    record = line("broker %d is fenced", 3)
    record.exc_info = (ValueError, ValueError("why"), None)
    found = json.loads(formatter("json").format(record))
    assert (found["level"], found["logger"]) == ("warning", "brokers.fetch")
    assert found["message"] == "broker 3 is fenced"
    assert "ValueError: why" in found["exception"]
    assert found["time"].endswith("+00:00")
    assert "WARNING" in formatter("text").format(line("x"))
    with pytest.raises(ConfigError, match="KRAFTLOG_LOG_FORMAT=xml"):
        formatter("xml")


def test_a_server_logs_that_way() -> None:
    code = (
        "import logging, os; from kraftlog.logs import start_logging\n"
        "start_logging({'KRAFTLOG_LOG_FORMAT': 'json'}, verbose=False)\n"
        "logging.info('a'); logging.debug('b')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [json.loads(each)["message"] for each in ran.stderr.splitlines()] == ["a"]
