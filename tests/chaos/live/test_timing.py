import pytest

from chaos.live.timing import timing_of
from kraftlog.errors import ConfigError


def test_profiles_differ() -> None:
    assert timing_of("fast").session == 1.5
    assert timing_of("kafka").of("fetch timeout") == 2.0


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match="use fast or kafka"):
        timing_of("slow")
    with pytest.raises(ConfigError, match="'lunch' is no timeout"):
        timing_of("fast").of("lunch")
