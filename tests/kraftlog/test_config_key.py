import pytest

from kraftlog import config_keys as keys
from kraftlog.config_key import environment_name, shorten
from kraftlog.errors import ConfigError
from kraftlog.types import TimestampType


def test_a_wrong_value_names_key_value_source_range_and_fix() -> None:
    with pytest.raises(ConfigError) as caught:
        keys.SEGMENT_BYTES.parse("1G", name="log.segment.bytes", source="file b1.toml")
    assert str(caught.value) == (
        "log.segment.bytes = '1G' (file b1.toml) must be a whole number from 14 to 2147483647"
        " (leave it out for the default, 1073741824)"
    )


def test_a_value_given_by_a_program_is_checked_too() -> None:
    keys.MESSAGE_TIMESTAMP_TYPE.check(TimestampType.APPEND, name="x")
    with pytest.raises(ConfigError, match=r"^x = 0 must be whole milliseconds of at least 1"):
        keys.SEGMENT_MS.check(0, name="x")


def test_a_long_value_is_shown_short() -> None:
    assert shorten("short") == "'short'"
    assert len(shorten("long" * 100)) == 80
    assert shorten(10**5_000) == "a int too long to show"


def test_the_name_in_the_environment() -> None:
    assert environment_name("log.segment.bytes") == "KRAFTLOG_LOG_SEGMENT_BYTES"
