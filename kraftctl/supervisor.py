"""The process that owns a local cluster: it starts the nodes, and they end with it.

`kraftctl up` is one in the foreground; `kraftctl up -d` leaves one behind. Other commands reach it
through its control socket.
"""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType

from kraftctl.control import ControlServer, socket_path
from kraftctl.exit_codes import Conflict
from kraftctl.output import Json
from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster

SERVE_SECONDS = 0.2
LOCK = "supervisor.lock"


@dataclass(frozen=True, slots=True)
class Shape:
    """What `up` was asked for."""

    directory: str
    controllers: int = 3
    brokers: int = 3
    profile: str = "fast"
    config: Mapping[str, str] = field(default_factory=dict)


class _Asked(Exception):
    """Somebody asked the supervisor to end."""


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Only one supervisor for one cluster."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, LOCK), "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(
                f"the cluster in {directory} runs already", hint="kraftctl ps shows it"
            ) from None
        yield


def supervise(shape: Shape, on_ready: Callable[[LocalCluster], None]) -> None:
    """Run a cluster until SIGTERM, SIGINT or the request `down`; then stop it in order."""
    with locked(shape.directory):
        cluster = LocalCluster(
            shape.controllers,
            shape.brokers,
            data=shape.directory,
            config=shape.config,
            profile=shape.profile,
            metrics=True,
        )
        with _signals(), contextlib.suppress(_Asked), cluster:
            Supervisor(cluster).serve(lambda: on_ready(cluster))


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    def ask(_number: int, _frame: FrameType | None) -> None:
        raise _Asked

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Supervisor:
    """What can be asked of it while the cluster runs."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._is_over = False

    def serve(self, on_ready: Callable[[], None]) -> None:
        server = ControlServer(socket_path(self._cluster.directory, os.environ), self.handle)
        try:
            on_ready()
            while not self._is_over:
                server.serve_one(SERVE_SECONDS)
        finally:
            server.close()
            self._cluster.stop()

    def handle(self, operation: str, arguments: Mapping[str, Json]) -> Json:
        actions: dict[str, Callable[[str], object]] = {
            "kill": self._cluster.kill,
            "pause": self._cluster.pause,
            "resume": self._cluster.resume,
            "stop": self._cluster.stop_node,
            "start": self._cluster.start_node,
            "restart": self._cluster.restart,
        }
        if operation in actions:
            for name in self._names(arguments):
                actions[operation](name)
        elif operation == "add-broker":
            self._cluster.add_broker()
        elif operation == "down":
            self._is_over = True
        elif operation != "ps":
            raise ConfigError(f"the supervisor cannot {operation!r}")
        if operation in ("start", "restart", "resume", "add-broker"):
            self._cluster.wait_healthy()
        return self._describe()

    def _names(self, arguments: Mapping[str, Json]) -> list[str]:
        named = arguments.get("nodes")
        names = [str(name) for name in named] if isinstance(named, list) else []
        for name in names:
            self._cluster.address(name)  # a name that is none is refused before anything happens
        return names or self._cluster.nodes

    def _describe(self) -> Json:
        cluster = self._cluster
        return {
            "cluster_id": cluster.cluster_id,
            "directory": cluster.directory,
            "bootstrap": cluster.bootstrap,
            "supervisor": os.getpid(),
            "at": time.time(),
            "nodes": [self._node(name) for name in cluster.nodes],
        }

    def _node(self, name: str) -> Json:
        cluster = self._cluster
        is_running = cluster.is_running(name)
        return {
            "name": name,
            "role": "controller" if name in cluster.controllers else "broker",
            "node_id": cluster.node_id(name),
            "address": cluster.address(name),
            "metrics": cluster.metrics_address(name),
            "running": is_running,
            "pid": cluster.pid(name) if is_running else None,
            "log": os.path.join(cluster.directory, f"{name}.log"),
        }
