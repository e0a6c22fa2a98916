"""The real toxiproxy-server: where it is, and a process that keeps it.

    python -P -m chaos.toxiproxy.real --binary .tools/toxiproxy-server

It does not say where it listens and does not end with whoever started it. The keeper does both: it
chooses a port, prints {"address": ..., "pid": ...} once the server answers, and takes the server
with it when it ends, however it ends.
"""

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from kraftlog.errors import ConfigError
from kraftlog.local.layout import HOST, free_port

NAME = "toxiproxy-server"
TOOLS = ".tools"
TRIES = 5
READY_SECONDS = 40.0
_POLL_SECONDS = 0.02
_PR_SET_PDEATHSIG = 1


def find_binary() -> str:
    """On PATH, or where `make toxiproxy` puts it."""
    built = Path(__file__).resolve().parents[2] / TOOLS / NAME
    found = shutil.which(NAME) or shutil.which(NAME, path=str(built.parent))
    if found is None:
        raise ConfigError(
            f"{NAME} is neither on PATH nor in {TOOLS}/",
            hint="make toxiproxy builds it with Go; or use the backend embedded",
        )
    return found


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _start(binary: str) -> tuple["subprocess.Popen[bytes]", str]:
    port = free_port(set())
    process = subprocess.Popen(  # noqa: S603 - the program that was asked for
        [binary, "-host", HOST, "-port", str(port)],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LOG_LEVEL": "warn"},
        preexec_fn=_end_with_parent,  # noqa: PLW1509 - this process has one thread so far
    )
    return process, f"{HOST}:{port}"


def _answers(address: str) -> bool:
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{address}/version", timeout=1.0) as answer:
            return b"version" in answer.read(1_000)
    except (OSError, urllib.error.URLError):
        return False


def _become_ready(process: "subprocess.Popen[bytes]", address: str) -> bool:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if _answers(address):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def keep(binary: str) -> int:
    """Until the server ends, or we are told to."""
    signal.signal(signal.SIGTERM, _stop)
    for _ in range(TRIES):
        process, address = _start(binary)
        try:
            if _become_ready(process, address):
                sys.stdout.write(json.dumps({"address": address, "pid": process.pid}) + "\n")
                sys.stdout.flush()
                return process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
    sys.stderr.write(f"{binary} did not answer, in {TRIES} tries\n")
    return 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.toxiproxy.real", description=__doc__)
    parser.add_argument("--binary", required=True)
    return keep(parser.parse_args(arguments).binary)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
