"""What a run may leave behind when its harness is killed: processes and mounts. They are found by
the directory of the run, which is in the environment of each process and the path of each mount;
what belongs to nobody's run is never touched.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from kraftlog.resolver import RESOLVE_VARIABLE

PIDS_FILE = "pids.json"
END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Leftovers:
    processes: tuple[int, ...]
    mounts: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.processes or self.mounts)


def start_time(pid: int) -> int | None:
    """When a process began, in ticks since boot: with the pid it names one process for ever."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def is_alive(pid: int, started: int | None) -> bool:
    return started is not None and start_time(pid) == started


def note_pid(directory: str, pid: int) -> None:
    """Remember a process that does not carry the run in its environment."""
    noted = dict(_noted(directory))
    started = start_time(pid)
    if started is not None:
        noted[pid] = started
    path = os.path.join(directory, PIDS_FILE)
    with open(f"{path}.tmp", "w", encoding="ascii") as file:
        json.dump([[pid, at] for pid, at in noted.items()], file)
    os.replace(f"{path}.tmp", path)


def _noted(directory: str) -> Iterator[tuple[int, int]]:
    try:
        with open(os.path.join(directory, PIDS_FILE), encoding="ascii") as file:
            yield from ((int(pid), int(at)) for pid, at in json.load(file))
    except (OSError, ValueError, TypeError, RecursionError):
        return


def find(directory: str) -> Leftovers:
    """What is still there of the run in this directory."""
    directory = os.path.realpath(directory)
    noted = {pid for pid, at in _noted(directory) if is_alive(pid, at)}
    return Leftovers(tuple(sorted(noted | set(_processes(directory)))), tuple(_mounts(directory)))


def _processes(directory: str) -> Iterator[int]:
    """Those that were told where the edges of this run are."""
    wanted = f"{RESOLVE_VARIABLE}={directory}{os.sep}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if any(each.startswith(wanted) for each in file.read().split(b"\0")):
                yield int(name)


def _mounts(directory: str) -> Iterator[str]:
    with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            place = line.split()[1].encode().decode("unicode_escape")
            if place.startswith(directory + os.sep):
                yield place


def remove(directory: str) -> Leftovers:
    """End and unmount all of it; what was found."""
    found = find(directory)
    for pid in found.processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # also one that is paused
    deadline = time.monotonic() + END_SECONDS
    while any(start_time(pid) for pid in found.processes) and time.monotonic() < deadline:
        time.sleep(0.02)
    for place in found.mounts:
        command = ["umount", "-l", place]
        subprocess.run(command, check=False, capture_output=True)  # noqa: S603
    return found
