"""Leadership moves on purpose, and what is wrong with a quorum is explained."""

from collections.abc import Iterator

import pytest

from kraftctl import quorum_lead
from kraftlog.errors import RequestTimedOut
from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import invoke
from tests.kraftctl.test_schema_command import check
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def three() -> Iterator[LocalCluster]:
    with LocalCluster(3, 0) as started:
        yield started


@pytest.mark.slow
def test_an_heir_that_lags_is_waited_for(
    three: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = ",".join(map(three.address, three.controllers))
    there = ("-b", nodes, "-o", "json", "--timeout")
    leader = invoke("quorum", "status", "--wait", "--voters", "3", *there, "40s").pick("leader")
    heir = 101 if leader != 101 else 102
    name = three.name_of(heir)
    ask, refused = quorum_lead._ask, []

    def note_refusal(*arguments: object) -> None:
        try:
            ask(*arguments)  # type: ignore[arg-type] # whatever they are
        except RequestTimedOut as error:
            refused.append(error)
            if len(refused) == resume_after:
                three.resume(name)
            raise

    monkeypatch.setattr(quorum_lead, "_ask", note_refusal)
    resume_after = -1
    three.pause(name)
    wait_until(lambda: _silent_ms(there, heir) > 1_000, "its silence is noticed")
    late = invoke("quorum", "transfer", str(heir), "-b", nodes, "--timeout", "3s")
    assert (late.code, f"{heir} has not caught up" in late.err) == (4, True)
    assert refused
    refused.clear()
    resume_after = 2
    moved = invoke("quorum", "transfer", str(heir), *there, "40s")
    assert (moved.code, moved.pick("leader"), moved.pick("before")) == (0, heir, leader)


def _silent_ms(there: tuple[str, ...], node: int) -> int:
    rows = invoke("quorum", "replication", *there, "10s").data
    assert isinstance(rows, list)
    return next(int(row["last_fetch_ms"] or 0) for row in rows if row["node"] == node)


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
