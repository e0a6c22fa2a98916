"""What every test stands on: the hypothesis profiles, and `--rewrite` for transcripts.

HYPOTHESIS_PROFILE chooses: `fast` while editing, `ci` (the default) is the same on every run and
every machine, `deep` searches long and differently each time. A failure prints a blob that
replays it.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine's other work than about our code.
UNTIMED = [HealthCheck.too_slow]

settings.register_profile(
    "fast", max_examples=20, deadline=None, print_blob=True, suppress_health_check=UNTIMED
)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    print_blob=True,
    derandomize=True,
    database=None,
    suppress_health_check=UNTIMED,
)
settings.register_profile(
    "deep", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=UNTIMED
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what happens into the transcripts; commit only lines that you can explain",
    )
