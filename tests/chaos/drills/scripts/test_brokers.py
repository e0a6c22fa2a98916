"""That each is in the catalog; tests/drills runs them."""

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.scripts import brokers


@pytest.mark.parametrize(
    "name",
    [
        "kill-partition-leader",
        "stop-partition-leader",
        "pause-broker",
        "broker-loses-controllers",
        "ack-loss",
    ],
)
def test_its_steps_are_here(name: str) -> None:
    assert find_drill(name).steps is vars(brokers)[name.replace("-", "_")]
