import pytest

from kraftctl.quorum_why import ago, told
from kraftlog.admin_types import Refused
from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import Run, invoke
from tests.kraftctl.test_schema_command import check
from tests.waiting import wait_until


def test_refusals_of_one_kind_are_one_line() -> None:
    notes = [Refused(102, ms, 7, "vote", "already voted", ours=True) for ms in (900, 300)]
    assert told(notes) == ["refused 102's vote in epoch 7, 0.3 s ago: already voted, 2 times"]
    theirs = Refused(103, 0, 8, "pre-vote", "leader alive", ours=False)
    assert told([theirs])[0].startswith("was refused by 103: its pre-vote in epoch 8")


def test_how_long_ago_is_readable() -> None:
    assert [ago(ms) for ms in (20, 90_000, 200_000, 10_000_000, 3 * 86_400_000)] == [
        "0.0 s ago",
        "90.0 s ago",
        "3 min ago",
        "2 h ago",
        "3 d ago",
    ]


@pytest.mark.slow
def test_a_quorum_that_is_led_has_no_cause(kraftctl: Run) -> None:
    why = kraftctl("quorum", "why", "-o", "json")
    assert (why.code, why.pick("leader"), why.pick("cause")) == (0, 101, "")
    check(why, "quorum why")


@pytest.mark.slow
def test_a_lost_majority_is_told_with_who_hears_whom() -> None:
    with LocalCluster(3, 0) as three:
        nodes = ",".join(map(three.address, three.controllers))
        led = invoke("quorum", "why", "-b", nodes)
        assert led.code == 0
        assert "HEARD OF" in led.out
        three.kill("c1")
        three.kill("c2")

        def is_lost() -> bool:
            ran = invoke("quorum", "why", "-b", nodes, "-o", "json")
            return ran.code == 3 and ran.pick("leaderless_ms") is not None

        wait_until(is_lost, "no leader")
        document = invoke("quorum", "why", "-b", nodes, "-o", "json")
        check(document, "quorum why")
        assert document.pick("reachable") == [103]
        assert document.pick("votes", 0, "node") == 103
        assert [document.pick("heard", place, "peer") for place in (0, 1)] == [101, 102]
        why = invoke("quorum", "why", "-b", nodes)
        assert "NO LEADER for" in why.out
        assert "Cause: a majority is 2 of 3 voters, and 1 answers" in why.out
        assert "Fix:   start 101 (" in why.out
