"""Leadership moves on purpose, and what is wrong with a quorum is explained."""

from collections.abc import Iterator

import pytest

from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import invoke
from tests.kraftctl.test_schema_command import check
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def three() -> Iterator[LocalCluster]:
    with LocalCluster(3, 0) as started:
        yield started


@pytest.mark.slow
def test_leadership_moves_and_a_lost_majority_is_explained(three: LocalCluster) -> None:
    nodes = ",".join(map(three.address, three.controllers))
    there = ("-b", nodes, "--timeout", "40s", "-o", "json")
    first = invoke("quorum", "status", "--wait", "--voters", "3", *there).pick("leader")
    assert isinstance(first, int)
    heir = 101 if first != 101 else 102
    moved = invoke("quorum", "transfer", str(heir), *there)
    assert (moved.code, moved.pick("leader")) == (0, heir)
    check(moved, "quorum transfer")
    down = invoke("quorum", "step-down", *there)
    assert down.code == 0
    check(down, "quorum step-down")
    assert invoke("quorum", "transfer", "77", *there).code == 5
    assert f"{heir} leads epoch" in invoke("quorum", "history", "-b", nodes).out
    three.kill("c1")
    three.kill("c2")
    wait_until(lambda: invoke("quorum", "why", "-b", nodes).code == 3, "no leader")
    why = invoke("quorum", "why", "-b", nodes)
    assert "Cause: a majority is 2 of 3 voters, and 1 answers" in why.out
    assert "Fix:   start" in why.out
