"""That each is in the catalog; tests/drills runs them."""

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.scripts import mixed


@pytest.mark.parametrize(
    "name",
    [
        "double-fault",
        "rolling-restart",
        "leader-chase",
        "rst-and-shred",
        "scale-out",
        "monkey",
    ],
)
def test_its_steps_are_here(name: str) -> None:
    assert find_drill(name).steps is vars(mixed)[name.replace("-", "_")]
