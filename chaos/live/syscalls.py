"""System calls of a running process that fail, by strace: no line of the server knows of it."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.live import leftovers

ATTACH_SECONDS = 30.0
CALLS = "fsync,fdatasync"


def missing() -> str:
    """Why it cannot be done here; empty: it can."""
    return "" if shutil.which("strace") else "strace is not installed"


@contextmanager
def failing_sync(pid: int, run_directory: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Every sync of the process fails with EIO from now on. Gives the tracer."""
    command = ["strace", "-f", "-p", str(pid), "-e", f"trace={CALLS}"]
    command += ["-e", f"inject={CALLS}:error=EIO", "-o", "/dev/null"]
    tracer = subprocess.Popen(  # noqa: S603 - a process of ours is traced
        command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    leftovers.note_pid(run_directory, tracer.pid)
    try:
        yield tracer
    finally:
        tracer.terminate()
        tracer.wait(ATTACH_SECONDS)
