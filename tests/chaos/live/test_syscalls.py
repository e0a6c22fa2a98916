import subprocess
import sys
from pathlib import Path

import pytest

from chaos.live import syscalls
from tests.waiting import wait_until

# Syncs again and again until it fails, and says how.
SYNCER = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while True:
    try:
        os.fdatasync(file)
    except OSError as error:
        sys.exit(error.errno)
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_syncs_of_a_running_process_fail(tmp_path: Path) -> None:
    if reason := syscalls.missing():
        pytest.skip(reason)
    process = subprocess.Popen([sys.executable, "-c", SYNCER, str(tmp_path / "file")])
    try:
        wait_until((tmp_path / "file").exists, "it syncs")
        with syscalls.failing_sync(process.pid, str(tmp_path)) as tracer:
            wait_until(
                lambda: process.poll() is not None or tracer.poll() is not None, "one has ended"
            )
            if process.poll() is None:
                pytest.skip("this user may trace no process")
        assert process.returncode == 5  # EIO
    finally:
        process.kill()
        process.wait()
