"""Moves that wait for somebody say so, and those that would wait for ever are not begun."""

import pytest

from kraftctl.moves import states_of, waiting_for
from kraftlog.local import LocalCluster
from tests.kraftctl.conftest import Ran, invoke
from tests.waiting import wait_until


def _run(cluster: LocalCluster, *words: str) -> Ran:
    return invoke(*words, "-b", cluster.bootstrap)


def _fence(cluster: LocalCluster, name: str) -> None:
    cluster.kill(name)

    def is_fenced() -> bool:
        brokers = _run(cluster, "node", "ls", "-o", "json").data
        assert isinstance(brokers, list)
        return any(each["why"] == "session timeout" for each in brokers)

    wait_until(is_fenced, "the controller has noticed")


@pytest.mark.slow
def test_who_holds_a_move_up_is_named() -> None:
    # R43
    with LocalCluster(1, 4) as cluster:
        for name, replicas in (("kept", "2"), ("single", "1")):
            created = _run(cluster, "topic", "create", name, "-p", "4", "-r", replicas)
            assert created.code == 0, created.err
        _fence(cluster, "b2")
        _a_drain_is_refused(cluster)
        _a_move_says_what_it_waits_for(cluster)
        cluster.start_node("b2")
        cluster.wait_healthy()
        assert _run(cluster, "node", "drain", "1", "--within", "60s").code == 0
        brokers = _run(cluster, "node", "ls", "-o", "json").data
        assert isinstance(brokers, list)
        assert [each["replicas"] for each in brokers if each["broker"] == 1] == [0]


def _a_drain_is_refused(cluster: LocalCluster) -> None:
    """Its partitions could not finish moving as long as broker 2 is down."""
    other = _run(cluster, "node", "drain", "1", "--within", "1h")  # it does not wait for that
    assert other.code == 6
    assert "broker 2 is fenced (session timeout) and is to stay a replica of" in other.err
    assert "kraftctl node drain 2" in other.err
    itself = _run(cluster, "node", "drain", "2", "--within", "60s")
    assert itself.code == 6
    assert "has no leader: there is nothing that could be copied" in itself.err
    assert _run(cluster, "partition", "reassign", "--status").out == "nothing moves\n"
    assert _run(cluster, "node", "drain", "2", "--dry-run").code == 0


def _a_move_says_what_it_waits_for(cluster: LocalCluster) -> None:
    target = ("kept:0", "--to", "2,3,4")
    moved = _run(cluster, "partition", "reassign", *target, "--within", "4s")
    assert moved.code == 4, moved.err
    words = "broker 2 in 1, which is fenced (session timeout)"
    assert f"waiting for {words}" in moved.err
    assert f"error: 1 of 1 partitions still move: they wait for {words}" in moved.err
    with cluster.admin() as admin:
        moves = admin.list_reassignments()
        assert waiting_for(moves, states_of(admin, ["kept"]), admin.describe_cluster()) == words
        assert waiting_for(moves, {}, admin.describe_cluster()) == ""
    assert _run(cluster, "partition", "reassign", "--cancel").code == 0
