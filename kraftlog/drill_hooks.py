"""How a drill reaches into a server: by a directory that KRAFTLOG_DRILL_HOOKS names.

    durable/         what a power cut would leave of the server's files (`storage/durable_copy.py`)
    disk/            how the disk fails now (`storage/faulty_disk.py`)
    clock-jump       by how many milliseconds the wall clock is wrong
    stall-metadata   while this file is there, a broker applies no metadata

They are there only if the drill makes them. A server that others could reach refuses the variable:
a drill is for a cluster on one machine, made to be broken.
"""

import asyncio
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

from kraftlog.clock import Clock, SystemClock
from kraftlog.errors import ConfigError

HOOKS_VARIABLE = "KRAFTLOG_DRILL_HOOKS"
DURABLE = "durable"
DISK, FAIL_SYNC, FULL, SLOW_SYNC = "disk", "fail-sync", "full", "slow-sync"
STALL = "stall-metadata"
CLOCK_JUMP = "clock-jump"
STALL_POLL_SECONDS = 0.02


def hooks_directory(environment: Mapping[str, str], listen: str) -> str | None:
    """None: no drill reaches into this server, as it should be."""
    directory = environment.get(HOOKS_VARIABLE)
    if not directory:
        return None
    if not _is_loopback(listen.rpartition(":")[0]):
        raise ConfigError(
            f"{HOOKS_VARIABLE} is set, and this server listens on {listen}",
            hint="drills are for servers on 127.0.0.1; unset the variable",
        )
    if not os.path.isdir(directory):
        raise ConfigError(f"{HOOKS_VARIABLE} names {directory}, which is no directory")
    return directory


class DrilledClock(SystemClock):
    """A wall clock that a drill sets; monotonic time is as it was, as on a real machine."""

    def __init__(self, hooks: str) -> None:
        self._path = Path(hooks, CLOCK_JUMP)

    def wall_ms(self) -> int:
        try:
            return super().wall_ms() + int(self._path.read_text())
        except (FileNotFoundError, ValueError):  # it may be on its way in
            return super().wall_ms()


def server_clock(hooks: str | None) -> Clock:
    return SystemClock() if hooks is None else DrilledClock(hooks)


async def wait_while_stalled(hooks: str | None) -> None:
    """Before a broker applies metadata. Without a drill it returns at once."""
    while hooks is not None and _is_there(os.path.join(hooks, STALL)):  # noqa: ASYNC110 - a file
        await asyncio.sleep(STALL_POLL_SECONDS)


def _is_there(path: str) -> bool:
    return os.path.exists(path)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
