import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.live import leftovers
from kraftlog.resolver import RESOLVE_VARIABLE
from tests.waiting import wait_until


@contextmanager
def sleeper(directory: Path | None) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that waits for ever; of a run, if a directory is given."""
    environment = dict(os.environ)
    environment.pop(RESOLVE_VARIABLE, None)
    if directory is not None:
        environment[RESOLVE_VARIABLE] = str(directory / "cluster" / "resolve" / "b1.json")
    code = "import signal; signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        wait_until(lambda: b"signal.pause" in cmdline(process.pid), "it runs")
        yield process
    finally:
        process.kill()
        process.wait()


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_paused_process_of_the_run_is_ended_and_no_other(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    with sleeper(mine) as of_run, sleeper(other) as of_other, sleeper(None) as noted:
        of_run.send_signal(signal.SIGSTOP)
        leftovers.note_pid(str(mine), noted.pid)
        assert set(leftovers.find(str(mine)).processes) == {of_run.pid, noted.pid}
        assert leftovers.remove(str(mine))
        assert of_run.wait(40) == noted.wait(40) == -signal.SIGKILL
        assert of_other.poll() is None
        assert not leftovers.find(str(mine))


def test_a_pid_that_was_given_to_another_process_is_left_alone(tmp_path: Path) -> None:
    with sleeper(None) as process:
        started = leftovers.start_time(process.pid)
        assert started is not None
        stale = [[process.pid, started - 1]]
        (tmp_path / leftovers.PIDS_FILE).write_text(json.dumps(stale))
        assert not leftovers.remove(str(tmp_path))
        assert leftovers.is_alive(process.pid, started)
        assert not leftovers.is_alive(process.pid, None)


@pytest.mark.parametrize("text", ["", "{}", "[[1]]", "[1]"])
def test_a_damaged_list_of_pids_names_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / leftovers.PIDS_FILE).write_text(text)
    assert not leftovers.find(str(tmp_path))


def test_a_mount_below_the_run_is_undone(tmp_path: Path) -> None:
    place = tmp_path / "full"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount")
    assert leftovers.find(str(tmp_path)).mounts == (str(place),)
    leftovers.remove(str(tmp_path))
    assert not os.path.ismount(place)
