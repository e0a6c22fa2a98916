"""That each is in the catalog; tests/drills runs them."""

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.scripts import controllers


@pytest.mark.parametrize(
    "name",
    [
        "kill-controller-leader",
        "stop-controller-leader",
        "pause-controller-leader",
        "partition-controller-leader",
        "controller-minority-one-way",
        "quorum-lost",
    ],
)
def test_its_steps_are_here(name: str) -> None:
    assert find_drill(name).steps is vars(controllers)[name.replace("-", "_")]
