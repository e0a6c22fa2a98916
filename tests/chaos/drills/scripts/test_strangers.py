"""That each is in the catalog; tests/drills runs them."""

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.scripts import strangers


@pytest.mark.parametrize(
    "name",
    [
        "impostors",
    ],
)
def test_its_steps_are_here(name: str) -> None:
    assert find_drill(name).steps is vars(strangers)[name.replace("-", "_")]
