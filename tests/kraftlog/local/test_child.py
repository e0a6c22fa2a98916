"""A node ends with whoever started it, however that one ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlog.local.process import NodeProcess
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SECONDS = 30.0

PARENT = """
import sys
from kraftlog.local.process import NodeProcess
node = NodeProcess("web", "http.server", ["--bind", "127.0.0.1", "0"], sys.argv[1])
node.start()
print(node.pid, flush=True)
sys.stdin.read()
"""


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] != "Z"
    except FileNotFoundError:
        return False


def test_a_killed_parent_leaves_nothing_behind(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-P", "-c", PARENT, str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert runs(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_until(lambda: not runs(child), "the child's end")


def test_an_exit_code_comes_through(tmp_path: Path) -> None:
    node = NodeProcess("broker", "brokers", ["run"], str(tmp_path / "log"))
    node.start()
    try:
        assert node.wait(SECONDS) == 2
    finally:
        node.close()
    assert "log.dirs is empty" in node.log()
