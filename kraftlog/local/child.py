"""Runs a server that ends with whoever started it: python -P -m kraftlog.local.child MODULE

Its standard input is a pipe that the parent holds open. On it come, in one line of JSON, the
arguments with which to run the module: a list of lists, since it may be run more than once, as long
as it succeeds. Until then the module's imports are done, so that several nodes get ready while the
first of them is still busy.

When the parent is gone, however it went, the pipe is closed: the server is told to stop, and a
little later it is ended. So nothing is left behind, not even by a test run that was killed.
"""

import contextlib
import importlib
import json
import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence

GRACE_SECONDS = 3.0
READ_BYTES = 64 << 10


def read_runs() -> list[list[str]]:
    """What the parent says; nothing if it is gone already."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, READ_BYTES)
        if not piece:
            return []
        line += piece
    runs: list[list[str]] = json.loads(line)
    return runs


def end_with_parent() -> None:
    """Blocks until the parent is gone."""
    while os.read(0, READ_BYTES):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def run_all(module: str, runs: Sequence[Sequence[str]]) -> None:
    """One after the other; the exit code is that of the last, or of the first that fails."""
    for place, arguments in enumerate(runs, start=1):
        sys.argv = [module, *arguments]
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            if end.code or place == len(runs):
                raise


def main(module: str) -> None:
    with contextlib.suppress(ModuleNotFoundError):  # not every module has one
        importlib.import_module(f"{module}.cli")
    runs = read_runs()
    if runs:
        threading.Thread(target=end_with_parent, name="parent", daemon=True).start()
        run_all(module, runs)


if __name__ == "__main__":
    main(sys.argv[1])
