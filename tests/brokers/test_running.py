"""The process around a broker: signals, and how it ends."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftlog.types import Uuid

pytestmark = pytest.mark.slow

CLUSTER = str(Uuid(b"cluster id......"))
SECONDS = 60


@contextmanager
def broker(path: Path, *flags: str, code: str = "") -> Iterator["subprocess.Popen[str]"]:
    """A broker whose controllers do not answer. `code` is run in its process first."""
    arguments = ["run", "--log-dirs", str(path / "d"), "--cluster-id", CLUSTER, "--node-id", "1"]
    arguments += ["--peers", "127.0.0.1:1", "--listen", "127.0.0.1:0", "-o", "json", *flags]
    program = f"import sys\n{code}\nfrom brokers.cli import main\nsys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    guard = threading.Timer(SECONDS, process.kill)
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


def wait_open(process: "subprocess.Popen[str]") -> str:
    """Until it has said where it listens."""
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_stop_closes_the_logs_and_is_no_failure(tmp_path: Path) -> None:
    with broker(tmp_path) as process:
        assert '"node_id": 1' in wait_open(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert (tmp_path / "d" / ".kafka_cleanshutdown").exists()


def test_an_interrupt_is_told_from_a_stop(tmp_path: Path) -> None:
    with broker(tmp_path) as process:
        wait_open(process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert (tmp_path / "d" / ".kafka_cleanshutdown").exists()


def test_without_a_controller_it_ends_after_a_while_and_says_why(tmp_path: Path) -> None:
    with broker(tmp_path, "-X", "initial.broker.registration.timeout.ms=200ms") as process:
        out, _ = process.communicate()
        assert process.returncode == 4
    assert '"code": "NETWORK_EXCEPTION"' in out


BREAK = """
from brokers.lifecycle import Lifecycle
from kraftlog._check import invariant
async def broken(self):
    invariant(False, "water runs uphill", metres=7)
Lifecycle.register = broken
"""


def test_a_broken_invariant_ends_it_at_once_with_its_facts(tmp_path: Path) -> None:
    with broker(tmp_path, code=BREAK) as process:
        _, err = process.communicate()
        assert process.returncode == 70
    assert "water runs uphill: metres=7" in err
    assert not (tmp_path / "d" / ".kafka_cleanshutdown").exists()
