"""A local cluster from `up` to `purge`, as a user would."""

import os
import shutil
import signal
import urllib.request
from pathlib import Path

import pytest

from tests.kraftctl.conftest import Ran, Run, invoke
from tests.kraftctl.processes import is_alive
from tests.kraftctl.promised_metrics import check_promised
from tests.kraftctl.test_schema_command import check
from tests.waiting import wait_until


def _check_metrics(ps: Ran) -> None:
    # R45
    check(ps, "ps")
    nodes = ps.pick("nodes")
    assert isinstance(nodes, list)
    for node in nodes:
        with urllib.request.urlopen(f"http://{node['metrics']}/metrics", timeout=40) as reply:
            text = reply.read().decode()
        check_promised(str(node["role"]), text)
        if node["role"] == "controller":
            assert "kraftlog_raft_current_epoch 1" in text
            assert 'kraftlog_raft_state{state="leader"} 1' in text
            assert "kraftlog_raft_election_seconds_count" in text
            assert "kraftlog_controller_active 1" in text
            assert 'kraftlog_cluster_brokers{state="active"} 2' in text
            assert "kraftlog_cluster_partitions_offline 0" in text
        else:
            assert "kraftlog_metadata_lag_records" in text
            leads = node["name"] == "b1"
            isr = 'kraftlog_partition_isr_size{partition="0",topic="t"} 1'
            assert (isr in text) == leads
            assert "kraftlog_partitions_under_replicated 0" in text
            assert "# TYPE kraftlog_partition_isr_size gauge" in text


def _check_logs(run: Run) -> None:
    found = run("logs", "b1", "--grep", "is (un)?fenced", "-o", "json")
    check(found, "logs")
    assert "is unfenced" in str(found.pick(0, "line"))
    assert run("logs", "b1", "--since", "1h", "-n", "1").out.count("\n") == 1
    assert run("logs", "b1", "--since", "0s").out == ""
    assert run("logs", "--grep", "(").code == 2
    assert (run("logs", "b9").code, run("restart", "b9").code) == (5, 5)
    assert run("logs", "--follow", "-o", "json").code == 2  # it would never end


def _check_a_broker_leaves(run: Run) -> None:
    drained = run("node", "drain", "1", "-o", "json")
    check(drained, "node drain")
    assert (drained.code, drained.pick("moved")) == (0, ["t-0"])
    assert "undo: kraftctl partition reassign --plan " in drained.err
    back = drained.err.rpartition("--plan ")[2].splitlines()[0]
    assert run("partition", "reassign", "--plan", back).code == 0
    assert run("node", "drain", "2").code == 0
    check(run("node", "decommission", "2", "-o", "json"), "node decommission")


def _check_restart_beside_a_dead_one(run: Run) -> None:
    for name in ("c1", "b1"):
        os.kill(int(run("ps", "--pid", name).out), signal.SIGKILL)
    for name in ("c1", "b1"):  # the partition of t has no leader until the second one
        restarted = run("restart", name)
        assert restarted.code == 0, restarted.err
    assert run("health", "--wait", "--for", "green").code == 0


@pytest.mark.slow
def test_a_local_cluster_lives(tmp_path: Path) -> None:
    # R49
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}

    def run(*arguments: str, stdin: str = "") -> Ran:
        return invoke(*arguments, stdin=stdin, env=env)

    assert run("ps").code == 5
    assert run("down").code == 5
    started = run("up", "-d", "-c", "1", "-n", "1", "--any-port", "--topic", "t:1:1", "-o", "json")
    try:
        assert started.code == 0, started.err
        check(started, "up")
        assert run("up", "-d").code == 0  # again: nothing to do
        assert run("produce", "t", stdin="kept\n").code == 0
        assert run("up", "-n", "2").code == 0
        assert [line.split()[0] for line in run("ps").out.splitlines()[1:]] == ["c1", "b1", "b2"]
        _check_metrics(run("ps", "-o", "json"))
        assert run("up", "-n", "1").code == 6
        assert run("up", "-c", "3").code == 6
        check(run("restart", "b2", "-o", "json"), "restart")
        _check_restart_beside_a_dead_one(run)
        _check_logs(run)
        _check_a_broker_leaves(run)
        assert run("purge", "-y").code == 6  # it runs
    finally:
        assert run("down").code == 0
    assert run("up", "-d").code == 0  # and comes back with its data
    try:
        assert run("consume", "t", "--from", "start", "-n", "1").out == "kept\n"
    finally:
        check(run("down", "-o", "json"), "down")
    assert run("purge").code == 7
    check(run("purge", "-y", "-o", "json"), "purge")
    assert run("purge", "-y").code == 5


@pytest.mark.slow
def test_a_cluster_comes_back_after_its_machine_was_switched_off(tmp_path: Path) -> None:
    """All processes end at once, and what is kept for a session only is gone."""
    runtime = tmp_path / "run"
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_RUNTIME_DIR": str(runtime)}

    def run(*arguments: str, stdin: str = "") -> Ran:
        return invoke(*arguments, stdin=stdin, env=env)

    up = run("up", "-d", "-c", "3", "-n", "2", "--any-port", "--topic", "t:1:2", "-o", "json")
    assert up.code == 0, up.err
    try:
        assert run("produce", "t", stdin="kept\n").code == 0
        before = run("ps", "-o", "json")
        _switch_off(before)
        shutil.rmtree(runtime)
        runtime.mkdir()
        assert run("ps").code == 5
        again = run("up", "-d", "-o", "json")
        assert again.code == 0, again.err
        assert again.pick("cluster_id") == up.pick("cluster_id")
        assert run("health", "--wait", "--within", "40s").code == 0
        assert run("consume", "t", "--from", "start", "-n", "1").out == "kept\n"
        assert run("produce", "t", stdin="more\n").code == 0
    finally:
        run("down")


def _switch_off(ps: Ran) -> None:
    nodes, supervisor = ps.pick("nodes"), ps.pick("supervisor")
    assert isinstance(nodes, list)
    assert isinstance(supervisor, int)
    pids = [supervisor, *(node["pid"] for node in nodes)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    wait_until(lambda: not any(map(is_alive, pids)), "the end of all")
