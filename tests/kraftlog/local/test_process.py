"""A process that is started, paused and ended; the modules it runs are the test's own."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftlog.local.process import NodeFailed, NodeProcess, environment
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SECONDS = 30.0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """Serves files until it is told to stop."""
    made = NodeProcess(
        "web", "http.server", ["--bind", "127.0.0.1", "0"], str(tmp_path / "web.log")
    )
    yield made
    made.close()


def state_of(pid: int) -> str:
    """As the system has it: R, S, T (stopped), Z."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]


def test_it_runs_until_it_is_killed(node: NodeProcess) -> None:
    with pytest.raises(NodeFailed, match="was never started"):
        node.kill()
    node.start()
    with pytest.raises(NodeFailed, match="runs already"):
        node.start()
    first = node.pid
    assert node.is_running
    node.kill()
    assert node.exit_code == -signal.SIGKILL
    node.start()
    assert node.pid != first


def test_it_can_be_paused(node: NodeProcess) -> None:
    node.start()
    node.pause()
    wait_until(lambda: state_of(node.pid) == "T", "the pause")
    assert node.is_paused
    node.resume()
    wait_until(lambda: state_of(node.pid) != "T", "its going on")
    node.close()
    assert not node.is_running


def test_what_it_says_is_kept_over_a_restart(tmp_path: Path) -> None:
    node = NodeProcess("n", "this", [], str(tmp_path / "n.log"))
    assert node.log() == ""
    counts = []
    for _ in range(2):
        node.start()
        assert node.wait(SECONDS) == 0
        counts.append(node.log().count("Beautiful is better than ugly."))
    assert counts[1] == 2 * counts[0] > 0
    assert "n went wrong; it said last:\n" in node.failure("went wrong").message


def test_a_wait_has_an_end(node: NodeProcess) -> None:
    node.start()
    with pytest.raises(NodeFailed, match=r"has not ended within 0\.1 s"):
        node.wait(0.1)


def test_nothing_of_ours_or_of_python_s_path_is_inherited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("KRAFTLOG_LOG_DIRS", "/elsewhere")
    monkeypatch.setenv("KRAFTLOG_CODEC", "pure")
    given = environment({"KRAFTLOG_RESOLVE": "/r"})
    assert "PYTHONPATH" not in given
    assert "KRAFTLOG_LOG_DIRS" not in given
    assert (given["KRAFTLOG_CODEC"], given["KRAFTLOG_RESOLVE"]) == ("pure", "/r")
    assert given["PATH"] == os.environ["PATH"]


def test_it_is_this_python(node: NodeProcess) -> None:
    node.start()
    command = Path(f"/proc/{node.pid}/cmdline")
    wait_until(lambda: command.read_bytes().startswith(sys.executable.encode()), "the program")
    assert command.read_bytes().split(b"\0")[1] == b"-P"


def test_it_gets_ready_and_waits_until_it_may_begin(tmp_path: Path) -> None:
    node = NodeProcess("n", "this", [], str(tmp_path / "n.log"))
    node.prepare()
    assert node.is_running
    node.begin([], [])
    assert node.wait(SECONDS) == 0
    assert "Beautiful is better than ugly." in node.log()


def test_the_first_run_that_fails_is_the_last(tmp_path: Path) -> None:
    node = NodeProcess("n", "brokers", ["run"], str(tmp_path / "n.log"))
    node.prepare()
    node.begin(["no-such-command"])
    assert node.wait(SECONDS) == 2
    assert node.log().count("usage:") == 1
