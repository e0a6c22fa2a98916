"""That each is in the catalog; tests/drills runs them."""

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.scripts import disks


@pytest.mark.parametrize(
    "name",
    [
        "wipe-broker",
        "wipe-controller",
        "corrupt-tail",
        "corrupt-middle",
        "corrupt-quorum-state",
    ],
)
def test_its_steps_are_here(name: str) -> None:
    assert find_drill(name).steps is vars(disks)[name.replace("-", "_")]
