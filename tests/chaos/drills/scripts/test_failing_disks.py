"""That each is in the catalog; tests/drills runs them."""

import pytest

from chaos.drills.catalog import find_drill
from chaos.drills.scripts import failing_disks


@pytest.mark.parametrize(
    "name", ["disk-full", "fsync-eio", "fsync-eio-strace", "no-space", "slow-disk"]
)
def test_its_steps_are_here_and_it_says_what_it_needs(name: str) -> None:
    drill = find_drill(name)
    assert drill.steps is vars(failing_disks)[name.replace("-", "_")]
    assert isinstance(drill.needs(), str)
