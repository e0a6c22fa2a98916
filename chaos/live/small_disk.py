"""A data directory on a file system of its own that is small enough to be filled: a tmpfs."""

import errno
import os
import shutil
import subprocess
from io import FileIO
from pathlib import Path

from kraftlog.errors import KraftError

FILLER = "filler"
CHUNK = b"\0" * (64 << 10)


class CannotMount(KraftError):
    """This user, or this machine, may not."""


def missing() -> str:
    """Why there can be none here; empty: there can."""
    if os.geteuid() != 0:
        return "mounting a small file system needs root"
    return "" if shutil.which("mount") else "there is no mount command"


def move(directory: Path, size_bytes: int) -> None:
    """Put the data of a node that is down onto a small file system, at the same place."""
    aside = directory.with_name(f"{directory.name}.aside")
    shutil.copytree(directory, aside, dirs_exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(directory)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise CannotMount(f"no tmpfs at {directory}: {done.stderr.strip()}", hint="are you root?")
    shutil.copytree(aside, directory, dirs_exist_ok=True)
    shutil.rmtree(aside)


def fill(directory: Path) -> None:
    """Not a byte is left."""
    with (directory / FILLER).open("ab", buffering=0) as file:
        for chunk in (CHUNK, b"\0"):
            _write_until_full(file, chunk)


def _write_until_full(file: FileIO, chunk: bytes) -> None:
    try:
        while file.write(chunk):
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def empty(directory: Path) -> None:
    (directory / FILLER).unlink(missing_ok=True)
