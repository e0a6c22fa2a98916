"""Leadership moves on purpose, and what is wrong with a quorum is explained."""

from collections.abc import Iterator

import pytest

from kraftctl.controllers import Belief
from kraftctl.quorum_commands import explain_trouble
from kraftlog.admin_types import QuorumDescription, Refused, ReplicaProgress, Voter
from kraftlog.errors import NetworkError
from kraftlog.local import LocalCluster
from kraftlog.types import Uuid
from tests.kraftctl.conftest import invoke
from tests.kraftctl.test_schema_command import check
from tests.waiting import wait_until

ID = Uuid(b"x" * 16)


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
    assert "Cause: a majority is 2 of 3 voters, and 1 answer" in why.out
    assert "Fix:   start" in why.out


def belief(node_id: int, *refusals: Refused, end: int = 10) -> QuorumDescription:
    voters = tuple(ReplicaProgress(Voter(each, ID), -1, None, None) for each in (101, 102, 103))
    return QuorumDescription(
        cluster_id=ID,
        node=Voter(node_id, ID),
        role="candidate",
        epoch=7,
        leader=None,
        high_watermark=5,
        applied_offset=5,
        end_offset=end,
        log_start_offset=0,
        voters=voters,
        observers=(),
        refusals=refusals,
    )


def refused(peer: int, why: str) -> Refused:
    return Refused(peer, 20, 7, "vote", why, ours=True)


def test_a_lost_majority_is_explained() -> None:
    found: dict[str, Belief] = {
        "a:1": belief(101),
        "b:1": NetworkError("refused"),
        "c:1": NetworkError("refused"),
    }
    cause, fix = explain_trouble(found)
    assert "majority is 2 of 3" in cause
    assert "b:1" in fix


def test_a_split_vote_is_explained() -> None:
    found: dict[str, Belief] = {
        "a:1": belief(101, refused(102, "already voted")),
        "b:1": belief(102, refused(101, "already voted")),
        "c:1": NetworkError("refused"),
    }
    cause, _ = explain_trouble(found)
    assert "split vote" in cause
    assert "101" in cause
    assert "102" in cause


def test_a_lagging_candidate_is_explained() -> None:
    found: dict[str, Belief] = {
        "a:1": belief(101, refused(102, "log behind"), end=20),
        "b:1": belief(102, end=10),
        "c:1": NetworkError("refused"),
    }
    cause, fix = explain_trouble(found)
    assert "102" in cause
    assert "behind" in cause
    assert "101" in fix
