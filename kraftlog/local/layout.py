"""What a local cluster consists of: its nodes, where they listen, and where their data is.

cluster.json       this, so that a cluster in a directory of its own can be started again
c1/ b1/ ...        the directory of each node
c1.log b1.log ...  what each has said
resolve/c1.json    where each node's dials really go (`kraftlog.resolver`)
hooks/c1/          only if a drill made it: how it reaches into a node (`kraftlog.drill_hooks`)
"""

import contextlib
import fcntl
import json
import os
import random
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from kraftlog.drill_hooks import HOOKS_VARIABLE
from kraftlog.errors import ConfigError, KraftError
from kraftlog.resolver import RESOLVE_VARIABLE

CONTROLLER = "controller"
BROKER = "broker"
FIRST_CONTROLLER_ID = 101
FIRST_BROKER_ID = 1
FILE = "cluster.json"
LOCK = ".lock"
LISTENING_SECONDS = 0.2
HOST = "127.0.0.1"
CLIENTS = "clients"

# Below the ports that systems hand out to clients: one of those could be taken by a connection of
# anybody's while the process that listens on it is down.
PORTS = range(15_000, 32_000)

# With a base port of 19000: controllers from 19001, brokers from 19101, and metrics 200 above.
BROKER_PORTS = 100
METRICS_PORTS = 200


class PortTaken(KraftError):
    """Another process listens where a node shall."""


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
    base_port: int | None = None
    """None: nodes listen wherever it is free."""
    combined: bool = False
    """c1 and b1 are meant to be one machine, n1."""
    _ports: set[int] = field(default_factory=set)

    def of_role(self, role: str) -> list[Member]:
        return [member for member in self.members if member.role == role]

    def find(self, name: str) -> Member:
        for member in self.members:
            if member.name == name:
                return member
        known = ", ".join(member.name for member in self.members)
        raise ConfigError(f"there is no node {name!r}", hint=f"there are {known}")

    def expand(self, name: str) -> list[str]:
        """The nodes that a name stands for: b1 for itself, n1 for c1 and b1 of a combined one. An
        id stands for its node.
        """
        pair = [f"c{name[1:]}", f"b{name[1:]}"]
        known = [member.name for member in self.members]
        if self.combined and name[:1] == "n" and set(pair) <= set(known):
            return pair
        name = next((each.name for each in self.members if str(each.node_id) == name), name)
        return [self.find(name).name]

    def add(self, role: str, *, metrics: bool) -> Member:
        """One more node, on ports that nobody listens on; PortTaken if they have to be others."""
        number = len(self.of_role(role)) + 1
        first = FIRST_CONTROLLER_ID if role == CONTROLLER else FIRST_BROKER_ID
        port, metrics_port = self._ports_for(role, number)
        member = Member(
            f"{role[0]}{number}", role, first + number - 1, port, metrics_port if metrics else None
        )
        if self.base_port is not None:
            check_ports([member])
        self.members.append(member)
        return member

    def _ports_for(self, role: str, number: int) -> tuple[int, int]:
        if self.base_port is None:
            return self._free_port(), self._free_port()
        port = self.base_port + number + (BROKER_PORTS if role == BROKER else 0)
        return port, port + METRICS_PORTS

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

    def hooks_path(self, name: str) -> str:
        """Where a drill reaches into a node (`kraftlog.drill_hooks`), if it made this directory."""
        return os.path.join(self.directory, "hooks", name)

    def variables(self, name: str) -> dict[str, str]:
        """What the process of a node has in its environment."""
        hooks = self.hooks_path(name)
        drilled = {HOOKS_VARIABLE: hooks} if os.path.isdir(hooks) else {}
        return {RESOLVE_VARIABLE: self.resolve_path(name), **drilled}

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
            "base_port": self.base_port,
            "combined": self.combined,
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
            document.get("base_port"),
            document.get("combined", False),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
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


def is_locked(directory: str) -> bool:
    """Whether a process owns a node's directory (`storage.files.OsLock`)."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, LOCK)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def check_ports(members: Iterable[Member]) -> None:
    """PortTaken if somebody listens where one of these shall."""
    for member in members:
        for port in filter(None, (member.port, member.metrics_port)):
            if not _is_free(port):
                raise PortTaken(
                    f"{HOST}:{port} is taken, and {member.name} shall listen there",
                    hint=f"who has it: ss -ltnp 'sport = :{port}'",
                )


def is_listening(member: Member) -> bool:
    """Whether a node takes connections already."""
    with contextlib.suppress(OSError):
        socket.create_connection((HOST, member.port), LISTENING_SECONDS).close()
        return True
    return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        # As the servers do: what a connection of the last run left behind is no listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return True
    return False


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
