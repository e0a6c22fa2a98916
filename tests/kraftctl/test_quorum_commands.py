from dataclasses import replace
from itertools import count

import pytest

from kraftctl import progress
from kraftctl.controllers import leader_of
from kraftctl.quorum_commands import belief_row
from kraftlog.admin_types import QuorumDescription, ReplicaProgress, Voter
from kraftlog.errors import KraftError, NetworkError
from kraftlog.types import Uuid
from quorum.client import QuorumClient
from quorum.core.messages import Refusal
from quorum.core.messages import Voter as QuorumVoter
from tests.kraftctl.conftest import Run, invoke

ID = Uuid(b"x" * 16)


def belief(node_id: int, role: str, epoch: int) -> QuorumDescription:
    return QuorumDescription(
        cluster_id=ID,
        node=Voter(node_id, ID),
        role=role,
        epoch=epoch,
        leader=None,
        high_watermark=1,
        applied_offset=1,
        end_offset=2,
        log_start_offset=0,
        voters=(),
        observers=(),
        refusals=(),
    )


def test_the_leader_is_that_of_the_newest_epoch() -> None:
    old, new = belief(1, "leader", 3), belief(2, "leader", 4)
    assert leader_of([old, new, NetworkError("x")]) is new
    assert leader_of([old, belief(2, "candidate", 4)]) is None  # deposed, and does not know it
    assert leader_of([]) is None


def test_one_that_does_not_answer_has_a_row_too() -> None:
    row = belief_row("a:1", NetworkError("refused"), None)
    assert (row[1], row[2], row[-1]) == ("a:1", "unreachable", "refused")


def test_what_the_leader_knows_of_each_is_beside_it() -> None:
    leader, other = belief(1, "leader", 3), belief(2, "follower", 3)
    progress = ReplicaProgress(Voter(2, ID, "b:1"), leader.end_offset - 1, 37, 37)
    leader = replace(leader, voters=(progress,))
    assert belief_row("b:1", replace(other, voted=Voter(1, ID)), leader)[6:] == (1, 37, 1, "")
    assert belief_row("a:1", leader, leader)[6:] == (None, None, None, "")
    assert belief_row("b:1", other, None)[6:] == (None, None, None, "")


@pytest.mark.slow
def test_the_quorum_is_shown(kraftctl: Run) -> None:
    status = kraftctl("quorum", "status", "--wait", "--voters", "1", "-o", "json")
    assert status.code == 0
    assert status.pick("leader") == 101
    assert "observer" in kraftctl("quorum", "replication").out
    why = kraftctl("quorum", "why", "-o", "json")
    assert (why.code, why.pick("leader")) == (0, 101)


@pytest.mark.slow
def test_voters_that_do_not_exist_are_refused(kraftctl: Run) -> None:
    ran = kraftctl("quorum", "remove", "77")
    assert (ran.code, "101" in ran.err) == (5, True)
    assert kraftctl("quorum", "add", "127.0.0.1:1", "--timeout", "1s").code == 4
    last = kraftctl("quorum", "remove", "101")
    assert (last.code, "it is the last voter" in last.err) == (6, True)
    controllers = kraftctl("quorum", "status", "-o", "json").pick("controllers")
    assert isinstance(controllers, list)
    again = kraftctl("quorum", "add", controllers[0]["address"])
    assert (again.code, "it is a voter already" in again.err) == (6, True)


@pytest.mark.slow
def test_a_newcomer_that_lags_is_waited_for_and_that_is_told(
    kraftctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, refused = QuorumClient.add_voter, count(1)

    async def add_late(self: QuorumClient, leader: str, cluster: Uuid, voter: QuorumVoter) -> None:
        if next(refused) < 3:
            raise KraftError(Refusal.NOT_CAUGHT_UP.text)
        await add(self, leader, cluster, voter)

    monkeypatch.setattr(QuorumClient, "add_voter", add_late)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    controllers = kraftctl("quorum", "status", "-o", "json").pick("controllers")
    assert isinstance(controllers, list)
    ran = kraftctl("quorum", "add", controllers[0]["address"])
    assert (ran.code, next(refused)) == (6, 4)  # it is a voter already
    lines = [line for line in ran.err.splitlines() if line.startswith("not caught up: its log")]
    assert len(lines) == 2


@pytest.mark.slow
def test_who_is_missing_is_said(kraftctl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    late = kraftctl("quorum", "status", "--wait", "--voters", "9", "--timeout", "1s")
    assert (late.code, "1 of 9 voters so far: 101" in late.err) == (4, True)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    told = kraftctl("quorum", "status", "--wait", "--voters", "9", "--timeout", "1s")
    assert "waiting: 1 of 9 voters so far: 101" in told.err.splitlines()
    nobody = invoke(
        "quorum", "status", "--wait", "--voters", "3", "-b", "127.0.0.1:1", "--timeout", "1s"
    )
    assert (nobody.code, "127.0.0.1:1" in nobody.err) == (4, True)
