"""How a drill reaches into a server: by a directory that KRAFTLOG_DRILL_HOOKS names.

    durable/         what a power cut would leave of the server's files (`storage/durable_copy.py`)
    disk/            how the disk fails now (`storage/faulty_disk.py`)
    stall-metadata   while this file is there, a broker applies no metadata

They are there only if the drill makes them. A server that others could reach refuses the variable:
a drill is for a cluster on one machine, made to be broken.
"""

import asyncio
import ipaddress
import os
from collections.abc import Mapping

from kraftlog.errors import ConfigError

HOOKS_VARIABLE = "KRAFTLOG_DRILL_HOOKS"
DURABLE = "durable"
DISK, FAIL_SYNC, FULL, SLOW_SYNC = "disk", "fail-sync", "full", "slow-sync"
STALL = "stall-metadata"
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
