"""Cleans up after a harness that is gone, however it went: python -P -m chaos.live.guard DIRECTORY

Nodes end with their harness by themselves (`kraftlog.local.child`), but not those that it had
paused, and no mount ever does. The guard holds a pipe of the harness; when that closes it ends and
unmounts what is left of the run, and then itself.
"""

import os
import subprocess
import sys

from chaos.live import leftovers
from kraftlog.local.process import PYTHON, environment


def start(directory: str) -> "subprocess.Popen[bytes]":
    """The guard of a run. Close its standard input and wait for it in the end."""
    return subprocess.Popen(  # noqa: S603 - our own program
        [*PYTHON, "chaos.live.guard", directory],
        env=environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # whoever ends the harness with its group leaves it alive
    )


def finish(guard: "subprocess.Popen[bytes]") -> None:
    if guard.stdin is not None:
        guard.stdin.close()
    guard.wait(leftovers.END_SECONDS * 3)


def main(directory: str) -> None:
    while os.read(0, 4096):
        pass
    leftovers.remove(directory)


if __name__ == "__main__":
    main(sys.argv[1])
