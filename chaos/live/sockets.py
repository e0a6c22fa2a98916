"""Proof that the proxies are on every edge: who has which connection, from /proc.

A drill that cuts an edge which nobody uses tests nothing and passes. So before the first fault, and
after the last, no process may have a connection to the real port of another.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraftlog.errors import KraftError

_OPEN_STATES = {"01", "02"}  # established, and the SYN is sent
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


class ProxyBypassed(KraftError):
    """A process talks to another around the proxies: its faults would not be felt."""


@dataclass(frozen=True, slots=True)
class Connection:
    local_port: int
    remote_port: int
    inode: int


def connections(table: str) -> Iterator[Connection]:
    """Open connections of a table as the kernel prints it."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) >= 10 and fields[3] in _OPEN_STATES:
            yield Connection(_port(fields[1]), _port(fields[2]), int(fields[9]))


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def socket_inodes(pid: int) -> set[int]:
    """The sockets of a process; none if it is gone."""
    found: set[int] = set()
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return found
    for name in names:
        try:
            target = os.readlink(f"{directory}/{name}")
        except OSError:
            continue  # closed while we look
        if target.startswith("socket:["):
            found.add(int(target[8:-1]))
    return found


def bypasses(processes: Mapping[str, int], ports: Mapping[int, str]) -> list[str]:
    """Every connection of these processes to the real port of another node."""
    tables = [each for path in _TABLES for each in connections(_read(path))]
    found: list[str] = []
    for name, pid in processes.items():
        inodes = socket_inodes(pid)
        found += [
            f"{name} (process {pid}) is connected to port {each.remote_port} of "
            f"{ports[each.remote_port]} itself"
            for each in tables
            if each.inode in inodes and ports.get(each.remote_port, name) != name
        ]
    return found


def check_no_bypass(processes: Mapping[str, int], ports: Mapping[int, str]) -> None:
    found = bypasses(processes, ports)
    if found:
        raise ProxyBypassed(
            f"{len(found)} connections go around the proxies: {found[0]}",
            hint="every dial asks kraftlog.resolver; find the one that does not",
        )


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""
