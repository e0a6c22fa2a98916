"""One small cluster for all nonsense: it has to be as it was after each."""

from collections.abc import Iterator

import pytest

from tests.bad_input.victim import Victim, open_victim


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that use the cluster run in one process, so that there is one."""
    for item in items:
        if "victim" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("bad input"))
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def victim() -> Iterator[Victim]:
    with open_victim() as opened:
        yield opened


@pytest.fixture
def unharmed(victim: Victim) -> Iterator[Victim]:
    """The same, and afterwards it holds, knows and needs what it did before."""
    before = victim.state()
    usage = victim.usage()
    yield victim
    assert victim.state() == before
    victim.expect_no_more_than(usage)
