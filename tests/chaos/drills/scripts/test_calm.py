"""That each is in the catalog; tests/drills runs them."""

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.scripts import calm


@pytest.mark.parametrize(
    "name",
    [
        "baseline",
    ],
)
def test_its_steps_are_here(name: str) -> None:
    assert find_drill(name).steps is vars(calm)[name.replace("-", "_")]
