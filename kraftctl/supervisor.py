"""The process that owns a local cluster: it starts the nodes, and they end with it.

`kraftctl up` is one in the foreground; `kraftctl up -d` leaves one behind. Other commands reach it
through its control socket.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import FrameType, TracebackType
from typing import Self

from kraftctl.control import ControlServer, socket_path
from kraftctl.exit_codes import Conflict
from kraftctl.output import Json
from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster
from kraftlog.local.layout import BROKER, CONTROLLER, FILE, Layout, PortTaken, check_ports, load

SERVE_SECONDS = 0.2
ORPHAN_SECONDS = 5.0
POLL_SECONDS = 0.01
LOCK = "supervisor.lock"
EPHEMERAL = "ephemeral"
"""A file that says: this directory goes when the cluster stops."""
NODES = 3

_OF_A_NODE = re.compile(r"[bc]\d+(\.log)?|resolve")


@dataclass(frozen=True, slots=True)
class Shape:
    """What `up` was asked for; None: what there is, or the default."""

    directory: str
    controllers: int | None = None
    brokers: int | None = None
    timing: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    base_port: int | None = None
    combined: bool = False
    ephemeral: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Shape":
        return cls(**json.loads(text))


class _Asked(BaseException):
    """Somebody asked the supervisor to end; nothing on the way may take it for an error."""


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Only one supervisor for one cluster."""
    make_directory(directory)
    with open(os.path.join(directory, LOCK), "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(
                f"the cluster in {directory} runs already", hint="kraftctl ps shows it"
            ) from None
        yield


def make_directory(directory: str) -> None:
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise Conflict(
            f"{directory} cannot be made: {error.strerror}",
            hint="XDG_DATA_HOME says where clusters live",
        ) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise Conflict(f"{directory} cannot be written to", hint="who may? `ls -ld` shows that")


def supervise(shape: Shape, on_ready: Callable[[Json], None]) -> None:
    """Run a cluster until SIGTERM, SIGINT or the request `down`; then stop it in order.

    KeyboardInterrupt: it was told to stop before it was ready. Nothing of it runs then, and of a
    cluster that was to be new nothing stays.
    """
    with locked(shape.directory):
        signals = _Signals()
        with signals, contextlib.suppress(_Asked):
            _run(shape, lambda described: signals.ready(on_ready, described))
        if signals.count and not signals.is_ready:
            _wait_for_children()
            raise KeyboardInterrupt


def _wait_for_children() -> None:
    """A node that was just being made when the signal came is nobody's. Its pipe is closed, and it
    ends by itself.
    """
    deadline = time.monotonic() + ORPHAN_SECONDS
    with contextlib.suppress(ChildProcessError):  # there is none
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(POLL_SECONDS)


def _run(shape: Shape, on_ready: Callable[[Json], None]) -> None:
    if is_ephemeral(shape.directory):
        _empty(shape.directory)  # left by one that had no time to clean up
    layout = load(shape.directory)
    if layout is not None:
        _adapt(layout, shape)
    is_there = layout is not None
    try:
        with _cluster(shape) as cluster:
            _remember(cluster.layout, shape, is_new=not is_there)
            is_there = True
            Supervisor(cluster).serve(on_ready)
    except PortTaken as error:
        raise _taken(error) from None
    finally:
        if not is_there:
            _empty(shape.directory)
        elif is_ephemeral(shape.directory):
            shutil.rmtree(shape.directory)


def _cluster(shape: Shape) -> LocalCluster:
    return LocalCluster(
        NODES if shape.controllers is None else shape.controllers,
        NODES if shape.brokers is None else shape.brokers,
        data=shape.directory,
        config=shape.config,
        profile=shape.timing or "fast",
        metrics=True,
        base_port=shape.base_port,
    )


def _adapt(layout: Layout, shape: Shape) -> None:
    """Bring what is there to what was asked for; Conflict where that cannot be."""
    refuse_other_controllers(len(layout.of_role(CONTROLLER)), shape.controllers)
    if shape.ephemeral or (shape.combined and not layout.combined):
        flag = "--ephemeral" if shape.ephemeral else "--combined"
        raise Conflict(
            f"{flag} is for a new cluster, and {layout.directory} holds one",
            hint="another one: --name NAME; or remove this one: kraftctl purge",
        )
    refuse_fewer(len(layout.of_role(BROKER)), shape.brokers)
    layout.profile = shape.timing or layout.profile
    try:
        check_ports(layout.members)
        while len(layout.of_role(BROKER)) < (shape.brokers or 0):
            layout.add(BROKER, metrics=True)
    except PortTaken as error:
        raise _taken(error) from None
    layout.save()


def refuse_other_controllers(have: int, wanted: int | None) -> None:
    if wanted not in (None, have):
        raise Conflict(
            f"there are {have} controllers, and {wanted} were asked for",
            hint="one more joins by hand: kraftctl quorum join; or another cluster: --name NAME",
        )


def refuse_fewer(have: int, wanted: int | None) -> None:
    if wanted is not None and wanted < have:
        raise Conflict(
            f"there are {have} brokers, and {wanted} were asked for",
            hint="to take one out: kraftctl node drain ID, then kraftctl node decommission ID",
        )


def _remember(layout: Layout, shape: Shape, *, is_new: bool) -> None:
    if is_new and shape.combined:
        layout.combined = True
        layout.save()
    if is_new and shape.ephemeral:
        with open(os.path.join(layout.directory, EPHEMERAL), "w", encoding="utf-8"):
            pass


def _taken(error: PortTaken) -> Conflict:
    return Conflict(error.message, hint=f"{error.hint}; of a new cluster: kraftctl up --any-port")


def is_ephemeral(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, EPHEMERAL))


def _empty(directory: str) -> None:
    """Remove a cluster that never was; what its supervisor said stays."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if _OF_A_NODE.fullmatch(name) and os.path.isdir(path):
            shutil.rmtree(path)
        elif _OF_A_NODE.fullmatch(name) or name in (FILE, EPHEMERAL):
            os.unlink(path)


class _Signals:
    """The first one ends the cluster: in order once it is ready, before that at once. The second
    one does not wait for the order. More change nothing: the end is near.
    """

    def __init__(self) -> None:
        self.count = 0
        self.is_ready = False
        self._before = contextlib.ExitStack()

    def ready(self, on_ready: Callable[[Json], None], described: Json) -> None:
        on_ready(described)
        self.is_ready = True

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1 or (self.count == 2 and self.is_ready):
            raise _Asked

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before.callback(signal.signal, number, signal.signal(number, self._ask))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._before.close()


class Supervisor:
    """What can be asked of it while the cluster runs."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._is_over = False

    def serve(self, on_ready: Callable[[Json], None]) -> None:
        server = ControlServer(socket_path(self._cluster.directory, os.environ), self.handle)
        try:
            on_ready(self._describe())
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
        names = self._names(arguments)
        if operation in actions:
            for name in names:
                actions[operation](name)
        elif operation == "add-broker":
            names = [self._cluster.add_broker()]
        elif operation == "down":
            self._is_over = True
        elif operation != "ps":
            raise ConfigError(f"the supervisor cannot {operation!r}")
        if operation in ("start", "restart", "resume", "add-broker"):
            self._wait(names)
        return self._describe()

    def _wait(self, names: Collection[str]) -> None:
        """Until the cluster is healthy; while others are down, until these serve."""
        others = [each for each in self._cluster.nodes if each not in names]
        are_up = all(map(self._cluster.is_running, others))
        self._cluster.wait_healthy(only=() if are_up else names)

    def _names(self, arguments: Mapping[str, Json]) -> list[str]:
        named = arguments.get("nodes")
        asked = [str(name) for name in named] if isinstance(named, list) else []
        names = [each for name in asked for each in self._cluster.layout.expand(name)]
        return names or self._cluster.nodes

    def _describe(self) -> Json:
        cluster = self._cluster
        return {
            "cluster_id": cluster.cluster_id,
            "directory": os.path.realpath(cluster.directory),
            "bootstrap": cluster.bootstrap,
            "ephemeral": is_ephemeral(cluster.directory),
            "supervisor": os.getpid(),
            "at": time.time(),
            "nodes": [self._node(name) for name in cluster.nodes],
        }

    def _node(self, name: str) -> Json:
        cluster = self._cluster
        is_running = cluster.is_running(name)
        return {
            "name": name,
            "machine": f"n{name[1:]}" if cluster.layout.combined else None,
            "role": "controller" if name in cluster.controllers else "broker",
            "node_id": cluster.node_id(name),
            "address": cluster.address(name),
            "metrics": cluster.metrics_address(name),
            "running": is_running,
            "pid": cluster.pid(name) if is_running else None,
            "log": os.path.join(cluster.directory, f"{name}.log"),
        }
