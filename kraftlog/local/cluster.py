"""A cluster on this machine: controllers and brokers, each a process of its own."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from kraftlog.config_keys import ALL_KEYS, Scope
from kraftlog.durations import Duration, to_seconds
from kraftlog.errors import ConfigError, LeaderNotAvailable, TimeoutError_
from kraftlog.local.faults import Breakable
from kraftlog.local.layout import (
    BROKER,
    CONTROLLER,
    Layout,
    Member,
    is_locked,
    load,
    read_cluster_id,
)
from kraftlog.local.probe import BROKER_SERVICE, CONTROLLER_SERVICE, ClusterNow, Probe
from kraftlog.local.process import NodeFailed, NodeProcess
from kraftlog.local.ways import Ways
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    from kraftlog.admin import Admin
    from kraftlog.consumer import Consumer
    from kraftlog.consumer_options import ConsumerArguments
    from kraftlog.producer import Producer
    from kraftlog.producer_options import ProducerArguments

POLL_SECONDS = 0.02
LEADER_SECONDS = 5.0
FORM_POLL_SECONDS = 0.005
REPLICATION_FACTOR = 3

Options = Mapping[str, str | int | float | bool]


class LocalCluster(Breakable):
    """Starts when it is entered and leaves nothing behind when it is left.

    With `data` it lives in that directory, which stays and can be started again; without, in a
    temporary one that goes. Nodes are named: c1, c2, ... are controllers, b1, b2, ... brokers.
    """

    def __init__(
        self,
        controllers: int = 3,
        brokers: int = 3,
        *,
        data: str | None = None,
        config: Options | None = None,
        profile: str = "fast",
        metrics: bool = False,
        base_port: int | None = None,
        faults: bool = False,
        timeout: Duration = "60s",
    ) -> None:
        """`config` are keys as in a configuration file: each goes to whoever reads it. Nodes listen
        above `base_port`, or wherever it is free. With `faults` ways between nodes can be cut
        (`partition`, `isolate`, `heal`). `timeout` is how long the start may take.
        """
        if controllers < 1 or brokers < 0:
            raise ConfigError(
                f"{controllers} controllers and {brokers} brokers",
                hint="there is at least one controller",
            )
        self._shape = (controllers, brokers)
        self._profile = profile
        self._metrics = metrics
        self._base_port = base_port
        self._config = _checked(config or {})
        self._faults = faults
        self._given = data
        self._timeout = to_seconds(timeout, "timeout")
        self._layout: Layout | None = None
        self._processes: dict[str, NodeProcess] = {}
        self._extra: dict[str, dict[str, str]] = {}
        """Keys of single nodes."""
        self._wanted: set[str] = set()
        """The nodes that are meant to run."""
        self._isolated: set[str] = set()

    # -- the whole

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> Self:
        """All nodes, until they are healthy."""
        try:
            layout = self._layout = self._open()
            self._ways = Ways() if self._faults else None
            self._lay_ways()
            for member in layout.members:
                self._prepare(member)
            if layout.cluster_id is None:
                self._form(layout)
                layout.save()
            for member in layout.members:
                self._begin(member)
            self.wait_healthy(self._timeout)
        except BaseException:
            self.close()
            raise
        return self

    def _open(self) -> Layout:
        directory = self._given or tempfile.mkdtemp(prefix="kraftlog-")
        directory = os.path.abspath(directory)
        os.makedirs(directory, exist_ok=True)
        known = load(directory)
        if known is not None:
            known.config = self._config or known.config
            return known
        layout = Layout(directory, [], self._config, self._profile, base_port=self._base_port)
        controllers, brokers = self._shape
        for role, count in ((CONTROLLER, controllers), (BROKER, brokers)):
            for _ in range(count):
                layout.add(role, metrics=self._metrics)
        return layout

    def _form(self, layout: Layout) -> None:
        """Make the controllers' directories those of one new cluster. The first controller does it
        before it runs; the other nodes get ready meanwhile.
        """
        members = layout.of_role(CONTROLLER)
        voters = [
            f"--voter={each.node_id}={layout.data_path(each)}@{each.address}" for each in members
        ]
        first = self._process(members[0].name)
        first.arguments = self._arguments(members[0])
        first.begin(["form", "-o", "json", *voters])
        self._wanted.add(members[0].name)
        deadline = time.monotonic() + self._timeout
        others = [layout.data_path(each) for each in members[1:]]
        while layout.cluster_id is None or any(map(is_locked, others)):
            # Its id is in the last directory that is formatted; then all of them are let go.
            layout.cluster_id = read_cluster_id(layout.data_path(members[-1]))
            if not first.is_running:
                raise first.failure(f"has ended with {first.exit_code}")
            if time.monotonic() >= deadline:
                raise TimeoutError_(f"no cluster was formed within {self._timeout:g} s")
            time.sleep(FORM_POLL_SECONDS)

    def stop(self) -> dict[str, int]:
        """SIGTERM to all: the brokers first, so that controllers are there to hear of it. Their
        exit codes.
        """
        codes: dict[str, int] = {}
        for role in (BROKER, CONTROLLER):
            running = [
                each.name for each in self.layout.of_role(role) if self.is_running(each.name)
            ]
            for name in running:
                self._wanted.discard(name)
                self._wake(name)
                self._process(name).signal(signal.SIGTERM)
            codes |= {name: self._process(name).wait() for name in running}
        return codes

    def close(self) -> None:
        """End all nodes now, and remove the data unless it was given a directory to stay in."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()
        self._wanted.clear()
        self._isolated.clear()
        if self._layout is not None:
            self._take_ways_back()
        if self._layout is not None and self._given is None:
            shutil.rmtree(self._layout.directory, ignore_errors=True)
            self._layout = None

    # -- what it is

    @property
    def layout(self) -> Layout:
        if self._layout is None:
            raise NodeFailed("the cluster was not started", hint="use it in a with statement")
        return self._layout

    @property
    def cluster_id(self) -> str:
        return self.layout.cluster_id or ""

    @property
    def directory(self) -> str:
        """Where all data and logs are."""
        return self.layout.directory

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, for clients."""
        return ",".join(member.address for member in self.layout.of_role(BROKER))

    @property
    def controllers(self) -> list[str]:
        return [member.name for member in self.layout.of_role(CONTROLLER)]

    @property
    def brokers(self) -> list[str]:
        return [member.name for member in self.layout.of_role(BROKER)]

    @property
    def nodes(self) -> list[str]:
        return [*self.controllers, *self.brokers]

    def address(self, name: str) -> str:
        return self.layout.find(name).address

    def metrics_address(self, name: str) -> str | None:
        """Where a node shows its metrics, if it was asked to."""
        port = self.layout.find(name).metrics_port
        return None if port is None else f"127.0.0.1:{port}"

    def node_id(self, name: str) -> int:
        return self.layout.find(name).node_id

    def name_of(self, node_id: int) -> str:
        for member in self.layout.members:
            if member.node_id == node_id:
                return member.name
        raise ConfigError(f"no node of this cluster has id {node_id}")

    def pid(self, name: str) -> int:
        return self._process(name).pid

    def is_running(self, name: str) -> bool:
        process = self._processes.get(self.layout.find(name).name)
        return process is not None and process.is_running

    def exit_code(self, name: str) -> int | None:
        return self._process(name).exit_code

    def logs(self, name: str) -> str:
        """Everything that a node has said."""
        return self._process(name).log()

    def data_path(self, name: str) -> str:
        return self.layout.data_path(self.layout.find(name))

    # -- one node

    def kill(self, name: str) -> None:
        """kill -9."""
        self._wanted.discard(name)
        self._process(name).kill()

    def pause(self, name: str) -> None:
        """Freeze a node: it keeps its connections and does nothing."""
        self._wanted.discard(name)
        self._process(name).pause()

    def resume(self, name: str) -> None:
        self._process(name).resume()
        self._wanted.add(name)

    def stop_node(self, name: str) -> int:
        """SIGTERM; a broker lets others take over first. Its exit code."""
        self._wanted.discard(name)
        self._wake(name)
        process = self._process(name)
        process.signal(signal.SIGTERM)
        return process.wait()

    def start_node(self, name: str) -> None:
        """Start one that is down, on its old port and data. `wait_healthy` waits for it."""
        member = self.layout.find(name)
        self._wanted.discard(name)  # it may have ended by itself
        self._launch(member)

    def restart(self, name: str) -> None:
        """Stop in order, if it runs, and start again."""
        if self.is_running(name):
            self.stop_node(name)
        self.start_node(name)

    def add_broker(self, config: Options | None = None) -> str:
        """One more broker; its name. `wait_healthy` waits for it."""
        member = self.layout.add(BROKER, metrics=self._metrics)
        self.layout.save()
        self._lay_ways()
        self._launch(member, _checked(config or {}))
        return member.name

    def _wake(self, name: str) -> None:
        if self._process(name).is_paused:
            self._process(name).resume()

    def _process(self, name: str) -> NodeProcess:
        self.layout.find(name)
        process = self._processes.get(name)
        if process is None:
            raise NodeFailed(f"{name} was never started")
        return process

    def _launch(self, member: Member, config: Mapping[str, str] | None = None) -> None:
        self._prepare(member, config)
        self._begin(member)

    def _prepare(self, member: Member, config: Mapping[str, str] | None = None) -> None:
        """A process that does its imports and waits."""
        process = self._processes.get(member.name)
        if process is None:
            process = self._processes[member.name] = self._make(member)
            self._extra[member.name] = dict(config or {})
        process.prepare()

    def _begin(self, member: Member) -> None:
        if member.name not in self._wanted:
            process = self._processes[member.name]
            process.arguments = self._arguments(member)
            process.begin()
            self._wanted.add(member.name)

    def _make(self, member: Member) -> NodeProcess:
        layout = self.layout
        if not os.path.exists(layout.resolve_path(member.name)):
            layout.write_resolve(member.name, {})
        return NodeProcess(
            member.name,
            "quorum" if member.role == CONTROLLER else "brokers",
            (),
            layout.log_path(member),
            layout.variables(member.name),
        )

    def _arguments(self, member: Member) -> list[str]:
        layout = self.layout
        peers = ",".join(each.address for each in layout.of_role(CONTROLLER))
        arguments = ["run", "--listen", member.address, "--profile", layout.profile]
        arguments += ["--peers", peers, "--node-id", str(member.node_id)]
        if member.metrics_port is not None:
            arguments += ["--metrics", f"127.0.0.1:{member.metrics_port}"]
        if member.role == CONTROLLER:
            arguments += ["--directory", layout.data_path(member)]
        else:
            arguments += ["--log-dirs", layout.data_path(member), "--cluster-id", self.cluster_id]
        factor = min(REPLICATION_FACTOR, max(1, len(layout.of_role(BROKER))))
        defaults = {"default.replication.factor": str(factor)}
        config = defaults | layout.config | self._extra.get(member.name, {})
        return [*arguments, *_key_flags(member.role, config)]

    # -- how it is

    def wait_healthy(
        self, timeout: Duration = "30s", *, in_sync: bool = False, only: Collection[str] = ()
    ) -> None:
        """Until every node that is meant to run answers, all brokers know each other, and every
        partition has a leader; with `in_sync` also until every replica that is up is in sync. Until
        `only` these answer, if some are named.
        """
        seconds = to_seconds(timeout, "timeout")
        with Probe() as probe:
            self._wait(lambda: self._trouble(probe, only, in_sync=in_sync), seconds)

    def _wait(self, trouble: Callable[[], str | None], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (why := trouble()) is not None:
            if time.monotonic() >= deadline:
                raise TimeoutError_(f"not healthy within {seconds:g} s: {why}")
            time.sleep(POLL_SECONDS)

    @property
    def _reachable(self) -> set[str]:
        """Those meant to run, and to be in touch with each other."""
        return self._wanted - self._isolated

    def _trouble(self, probe: Probe, only: Collection[str], *, in_sync: bool) -> str | None:
        """Why the cluster is not healthy yet; None: it is."""
        members = [self.layout.find(name) for name in sorted(only or self._reachable)]
        for member in members:
            if not self._processes[member.name].is_running:
                code = self._processes[member.name].exit_code
                raise self._processes[member.name].failure(f"has ended with {code}")
            service = CONTROLLER_SERVICE if member.role == CONTROLLER else BROKER_SERVICE
            if not probe.is_serving(member.address, service):
                return f"{member.name} does not serve"
        brokers = [member for member in members if member.role == BROKER and not only]
        return next(self._disagreements(probe, brokers, in_sync=in_sync), None)

    def _disagreements(
        self, probe: Probe, brokers: Iterable[Member], *, in_sync: bool
    ) -> Iterator[str]:
        expected = {member.node_id for member in brokers}
        for member in brokers:
            now = probe.look(member.address)
            if now is None:
                yield f"{member.name} does not answer"
            elif not expected <= now.brokers:
                yield f"{member.name} misses brokers {sorted(expected - now.brokers)}"
            elif now.controller_id is None:
                yield f"{member.name} knows no controller"
            elif now.leaderless():
                yield f"{now.leaderless()[0]} has no leader"
            elif in_sync and now.out_of_sync():
                yield f"{now.out_of_sync()[0]} has replicas that are not in sync"

    def wait_topic(self, topic: str, timeout: Duration = "30s") -> None:
        """Until every broker that is meant to run knows a topic and who leads its partitions."""
        with Probe() as probe:
            self._wait(lambda: self._unaware(probe, topic), to_seconds(timeout, "timeout"))

    def _unaware(self, probe: Probe, topic: str) -> str | None:
        for name in sorted(self._reachable.intersection(self.brokers)):
            now = probe.look(self.address(name))
            if now is None or not now.leads(topic):
                return f"{name} does not know who leads {topic}"
        return None

    def look(self) -> ClusterNow:
        """The cluster as some broker sees it."""
        up = [name for name in self.brokers if name in self._reachable and self.is_running(name)]
        with Probe() as probe:
            for name in up:
                now = probe.look(self.address(name))
                if now is not None:
                    return now
        raise LeaderNotAvailable("no broker answers", hint="is one running?")

    def leader(self, topic: str, partition: int = 0) -> str:
        """The broker that leads a partition. What was created just now may take a moment to be
        known, and a leader that is gone a moment to be replaced.
        """
        deadline = time.monotonic() + LEADER_SECONDS
        while True:
            now = self.look().partitions.get(TopicPartition(topic, partition))
            if now is not None and now.leader_id >= 0:
                return self.name_of(now.leader_id)
            if time.monotonic() >= deadline:
                raise LeaderNotAvailable(f"{topic}-{partition} has no leader")
            time.sleep(POLL_SECONDS)

    def controller(self) -> str:
        """The active controller."""
        controller_id = self.look().controller_id
        if controller_id is None:
            raise LeaderNotAvailable("no controller is active")
        return self.name_of(controller_id)

    # -- clients

    def producer(self, **options: "Unpack[ProducerArguments]") -> "Producer[bytes, bytes]":
        """A producer of plain bytes; for other serializers give `bootstrap` to one of your own."""
        from kraftlog.producer import Producer  # noqa: PLC0415 - only who asks pays for it

        return Producer(self.bootstrap, **options)

    def consumer(
        self, *topics: str, **options: "Unpack[ConsumerArguments]"
    ) -> "Consumer[bytes, bytes]":
        from kraftlog.consumer import Consumer  # noqa: PLC0415

        return Consumer(*topics, bootstrap_servers=self.bootstrap, **options)

    def admin(self) -> "Admin":
        from kraftlog.admin import Admin  # noqa: PLC0415

        return Admin(self.bootstrap)


def _checked(config: Options) -> dict[str, str]:
    """Keys that some node reads, and their values as text."""
    known = {name for role in (BROKER, CONTROLLER) for name in _names(role)}
    checked: dict[str, str] = {}
    for name, value in config.items():
        if name not in known:
            raise ConfigError(
                f"{name} is no configuration key of a node",
                hint="`kraftlog.config.explain` tells about a key",
            )
        checked[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked


def _names(role: str) -> set[str]:
    scope = Scope.CONTROLLER if role == CONTROLLER else Scope.BROKER
    return {key.names[scope] for key in ALL_KEYS if scope in key.names}


def _key_flags(role: str, config: Mapping[str, str]) -> list[str]:
    """Those keys that this kind of node reads."""
    read = [f"{name}={config[name]}" for name in sorted(_names(role).intersection(config))]
    return [part for setting in read for part in ("-X", setting)]
