import fcntl
import json
import os
import socket
import time
from pathlib import Path

import pytest

from quorum.local import (
    ControllerProcess,
    LocalQuorum,
    ProcessFailed,
    _read_line,
    command_line,
    environment,
    free_port,
    run_command,
)

JOURNAL = ("--profile", "fast", "--state", "journal")


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", free_port()))


def test_the_environment_has_no_python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert "PYTHONPATH" not in environment()
    assert environment({"X": "1"})["X"] == "1"
    assert command_line(["run"])[1:] == ["-P", "-m", "quorum", "run"]


def test_a_line_is_read_however_many_files_are_open() -> None:
    read, write = os.pipe()
    high = fcntl.fcntl(read, fcntl.F_DUPFD, 1024)
    os.close(read)
    with os.fdopen(high) as stream, os.fdopen(write, "w") as sender:
        assert _read_line(stream, 0.0) == ""
        sender.write("here\n")
        sender.flush()
        assert _read_line(stream, 5.0) == "here\n"


@pytest.mark.slow
def test_modules_of_the_current_directory_do_not_take_our_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("storage", "kraftlog", "quorum", "grpc"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    result = run_command("--help")
    assert result.returncode == 0
    assert "usage: python -m quorum" in result.stdout
    assert result.stderr == ""


def state(node: ControllerProcess) -> str:
    """As the kernel sees it: R running, S sleeping, T stopped."""
    return Path(f"/proc/{node.pid}/stat").read_text().rpartition(")")[2].split()[0]


def is_alive(node: ControllerProcess) -> bool:
    return node.running


@pytest.mark.slow
def test_processes_are_started_paused_killed_and_stopped(tmp_path: Path) -> None:
    with LocalQuorum(str(tmp_path), nodes=1, arguments=JOURNAL).start() as one:
        (node,) = one
        assert is_alive(node)
        assert node.ready["endpoint"] == one.endpoints[0] == one.endpoint(101)
        assert node.ready["pid"] == node.pid
        node.pause()
        deadline = time.monotonic() + 30
        while state(node) != "T":
            assert time.monotonic() < deadline
        node.resume()
        node.kill()
        assert not is_alive(node)
        one.restart(101)
        assert is_alive(node)
        assert one.stop() == [0]
        assert not is_alive(node)
        one.restart(101)
    assert not is_alive(node)  # none outlives its cluster


@pytest.mark.slow
def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    node = ControllerProcess(["run", "--directory", str(tmp_path / "none")], log)
    with pytest.raises(ProcessFailed, match="was not started"):
        node.kill()
    node.start()
    with pytest.raises(ProcessFailed, match="is not formatted"):
        node.wait_ready()
    assert not node.running
    wrong = ControllerProcess(["dance"], log)
    wrong.start()
    with pytest.raises(ProcessFailed, match="is not ready"):
        wrong.wait_ready()
    wrong.close()
    assert "invalid choice" in Path(log).read_text()


@pytest.mark.slow
def test_a_cluster_that_cannot_be_formed(tmp_path: Path) -> None:
    LocalQuorum(str(tmp_path), nodes=1)
    with pytest.raises(ProcessFailed, match="form failed"):
        LocalQuorum(str(tmp_path), nodes=1)
    meta = (tmp_path / "c1" / "meta.properties").read_text()
    assert "node.id=101" in meta
    assert json.loads((tmp_path / "c1" / "__cluster_metadata-0" / "quorum-state").read_text())
    assert os.path.exists(tmp_path / "c1" / ".lock")
