"""What a local cluster consists of: its nodes, where they listen, and where their data is.

cluster.json       this, so that a cluster in a directory of its own can be started again
c1/ b1/ ...        the directory of each node
c1.log b1.log ...  what each has said
resolve/c1.json    where each node's dials really go (`kraftlog.resolver`)
"""

import contextlib
import json
import os
import random
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from kraftlog.errors import ConfigError

CONTROLLER = "controller"
BROKER = "broker"
FIRST_CONTROLLER_ID = 101
FIRST_BROKER_ID = 1
FILE = "cluster.json"
HOST = "127.0.0.1"
CLIENTS = "clients"

# Below the ports that systems hand out to clients: one of those could be taken by a connection of
# anybody's while the process that listens on it is down.
PORTS = range(15_000, 32_000)


@dataclass(frozen=True, slots=True)
class Member:
    """One node: b1 is broker 1, c1 is controller 101."""

    name: str
    role: str
    node_id: int
    port: int
    metrics_port: int | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"


@dataclass(slots=True)
class Layout:
    directory: str
    members: list[Member]
    config: dict[str, str]
    profile: str
    cluster_id: str | None = None
    """None: not formed yet."""
    _ports: set[int] = field(default_factory=set)

    def of_role(self, role: str) -> list[Member]:
        return [member for member in self.members if member.role == role]

    def find(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        known = ", ".join(member.name for member in self.members)
        raise ConfigError(f"there is no node {name!r}", hint=f"there are {known}")

    def add(self, role: str, *, metrics: bool) -> Member:
        """One more node, on ports that nobody listens on."""
        number = len(self.of_role(role)) + 1
        first = FIRST_CONTROLLER_ID if role == CONTROLLER else FIRST_BROKER_ID
        member = Member(
            f"{role[0]}{number}",
            role,
            first + number - 1,
            self._free_port(),
            self._free_port() if metrics else None,
        )
        self.members.append(member)
        return member

    def _free_port(self) -> int:
        port = free_port(self._ports)
        self._ports.add(port)
        return port

    # -- paths

    def data_path(self, member: Member) -> str:
        return os.path.join(self.directory, member.name)

    def log_path(self, member: Member) -> str:
        return os.path.join(self.directory, f"{member.name}.log")

    def resolve_path(self, name: str) -> str:
        return os.path.join(self.directory, "resolve", f"{name}.json")

    def write_resolve(self, name: str, routes: Mapping[str, str]) -> None:
        """Where the dials of a node, or of clients, really go, from their next one on."""
        path = self.resolve_path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _replace(path, json.dumps(dict(routes), indent=1))

    # -- the file

    def save(self) -> None:
        document = {
            "cluster_id": self.cluster_id,
            "profile": self.profile,
            "config": self.config,
            "members": [asdict(member) for member in self.members],
        }
        _replace(os.path.join(self.directory, FILE), json.dumps(document, indent=1))


def load(directory: str) -> Layout | None:
    """The cluster that lives in a directory; None if none does."""
    path = os.path.join(directory, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        return Layout(
            directory,
            [Member(**member) for member in document["members"]],
            dict(document["config"]),
            document["profile"],
            document["cluster_id"],
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path} does not describe a local cluster: {error!r}",
            hint="give another directory, or remove this one",
        ) from None


def read_cluster_id(directory: str) -> str | None:
    """What a node's directory says; None if it is not formatted yet."""
    try:
        with open(os.path.join(directory, "meta.properties"), encoding="ascii") as file:
            entries = dict(line.strip().split("=", 1) for line in file if "=" in line)
    except FileNotFoundError:
        return None
    return entries.get("cluster.id")


def free_port(taken: set[int]) -> int:
    """A port that nobody listens on now."""
    for port in _some_ports():
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            if port not in taken:
                return port
    raise ConfigError("no port is free on this machine")


def _some_ports() -> Iterator[int]:
    dice = random.SystemRandom()
    for _ in range(1_000):
        yield dice.choice(PORTS)


def _replace(path: str, text: str) -> None:
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.replace(f"{path}.tmp", path)
