"""A cluster on a stage: behind proxies, under load, watched, and with hands to break it."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Self

from chaos.history import HistoryWriter, Json
from chaos.live import hooks
from chaos.live.edges import CLIENT, Edges, Proxies
from chaos.live.load import Load
from chaos.live.run_directory import RunDirectory
from chaos.live.sockets import check_no_bypass
from chaos.live.timing import Timing
from chaos.live.watch import Watcher
from kraftlog.admin_types import NewTopic
from kraftlog.errors import KraftError, TimeoutError_
from kraftlog.local import LocalCluster, NodeFailed
from kraftlog.local.layout import BROKER, CONTROLLER, Layout
from kraftlog.local.probe import BROKER_SERVICE, CONTROLLER_SERVICE, Probe
from kraftlog.local.process import PYTHON, environment
from kraftlog.resolver import RESOLVE_VARIABLE

TOPIC = "orders"
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.01
WARM_SECONDS = 1.5

Say = Callable[[str, str], None]
"""Text and kind: good, bad, act or plain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    timing: Timing
    seed: int = 1
    controllers: int = 3
    brokers: int = 3
    partitions: int = 3
    replication_factor: int = 3
    config: Mapping[str, str] = field(default_factory=dict)
    topic_config: Mapping[str, str] = field(default_factory=dict)
    hooks: tuple[str, ...] | None = None
    warm_seconds: float = WARM_SECONDS
    duration: float | None = None
    """For drills that may take any time."""


class Stage:
    """Opened by a with statement; when that is left, nothing of it runs any more."""

    def __init__(
        self, directory: RunDirectory, proxies: Proxies, options: StageOptions, say: Say
    ) -> None:
        self.directory = directory
        self.options = options
        self.timing = options.timing
        self.dice = Random(options.seed)  # noqa: S311 - a seed that replays
        self.measured: dict[str, float] = {}
        self.failures: list[str] = []
        """What a drill found wrong, beside its numbers."""
        self._say = say
        self._exits = ExitStack()
        self.history = self._exits.enter_context(HistoryWriter(directory.history))
        self.edges = Edges(proxies)
        self.layout = self._lay_out()
        self.cluster = LocalCluster(
            options.controllers,
            options.brokers,
            data=str(directory.cluster),
            profile=options.timing.profile,
            timeout=PATIENCE_SECONDS,
        )
        self.checks_edges = True
        """False only where there are no proxies."""
        self._down: set[str] = set()
        self._paused: set[str] = set()

    def _lay_out(self) -> Layout:
        """Where everybody will listen, so that the proxies are there before the first dial."""
        options = self.options
        directory = str(self.directory.cluster)
        os.makedirs(directory, exist_ok=True)
        layout = Layout(directory, [], dict(options.config), options.timing.profile)
        for role, count in ((CONTROLLER, options.controllers), (BROKER, options.brokers)):
            for _ in range(count):
                layout.add(role, metrics=False)
        if options.hooks is not None:
            hooks.lay(layout, options.hooks)
        layout.save()
        return layout

    # -- the whole

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> None:
        self.phase("start")
        self.edges.lay(self.layout)
        self._exits.callback(self.cluster.close)
        self.cluster.start()
        self.layout = self.cluster.layout
        self._exits.enter_context(_variable(self.cluster.client_environment))
        self._create_topic()
        self.load = Load(self.cluster.bootstrap, TOPIC, self.options.partitions, self.history)
        self.load.start()
        self._exits.callback(self.load.abandon)
        if not self.load.wait_for_acks(0.0, PATIENCE_SECONDS):
            raise TimeoutError_("nothing was acknowledged before the first fault")
        self.check_edges(with_clients=True)
        self.watcher = self._make_watcher()
        self.watcher.start()
        self._exits.callback(self.watcher.stop)
        self.controller()
        self.say(f"{len(self.edges.names)} edges, each through its proxy; load runs", "good")
        self.phase("warm")
        self.run_for(self.options.warm_seconds)
        self.phase("faults")

    def _create_topic(self) -> None:
        options = self.options
        topic = NewTopic(
            TOPIC,
            partitions=options.partitions,
            replication_factor=options.replication_factor,
            configs={"min.insync.replicas": "2", **options.topic_config},
        )
        with self.cluster.admin() as admin:
            admin.create_topics([topic]).raise_for_errors()
        self.cluster.wait_healthy(PATIENCE_SECONDS, in_sync=True)

    def _make_watcher(self) -> Watcher:
        cluster = self.cluster
        return Watcher(
            {name: cluster.address(name) for name in cluster.controllers},
            {name: cluster.address(name) for name in cluster.brokers},
            cluster.name_of,
            self.history,
        )

    def close(self) -> None:
        self._exits.close()

    # -- what is told

    def say(self, text: str, kind: str = "plain") -> None:
        self._say(text, kind)

    def phase(self, name: str) -> None:
        self.history.event("phase", phase=name)

    def fault(self, fault: str, target: str, **facts: Json) -> float:
        """Write down that something breaks now; the moment."""
        now = time.monotonic()
        self.history.event("fault", fault=fault, target=target, **facts)
        self.say(f"{fault} {target}", "act")
        return now

    def healed(self, fault: str, target: str) -> float:
        now = time.monotonic()
        self.history.event("heal", fault=fault, target=target)
        return now

    def measure(self, name: str, value: float) -> None:
        """One number of the drill; where it comes more than once, the worst stands."""
        self.measured[name] = max(value, self.measured.get(name, value))
        self.say(f"{name} {value:.3f}")

    def expect(self, what: str, *, holds: bool) -> None:
        """A claim of the drill that is not a number."""
        if not holds:
            self.failures.append(what)
        self.say(what if holds else f"NOT: {what}", "good" if holds else "bad")

    # -- time

    @staticmethod
    def run_for(seconds: float) -> None:
        """Let the load run."""
        time.sleep(seconds)

    @staticmethod
    def wait(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError_(f"{what}: not within {seconds:g} s")
            time.sleep(POLL_SECONDS)

    def wait_for_writes(self, since: float) -> None:
        """Until every partition acknowledges again."""
        if not self.load.wait_for_acks(since, PATIENCE_SECONDS):
            raise TimeoutError_(f"no acknowledgement within {PATIENCE_SECONDS:g} s")

    # -- who does what

    @property
    def epoch(self) -> int:
        reign = self.watcher.newest()
        return reign.epoch if reign else 0

    def controller(self) -> str:
        """The active controller, once there is one."""
        self.wait(lambda: self.watcher.newest() is not None, "a controller leads")
        reign = self.watcher.newest()
        return reign.leader if reign else ""

    def controller_followers(self) -> list[str]:
        return [name for name in self.cluster.controllers if name != self.controller()]

    def leader(self, partition: int = 0) -> str:
        """The broker that leads a partition of the topic, by the newest metadata."""
        self.wait(lambda: self.watcher.leader(TOPIC, partition) >= 0, "the partition has a leader")
        return self.cluster.name_of(self.watcher.leader(TOPIC, partition))

    def wait_controller(self, epoch: int, since: float) -> float:
        """Until a leader of a later epoch has committed; how long that took."""
        self.wait(lambda: self.watcher.controller_after(epoch) is not None, "a new controller")
        reign = self.watcher.controller_after(epoch)
        if reign is None or reign.committed_at is None:
            raise TimeoutError_("no new controller")
        self.say(f"{reign.leader} leads epoch {reign.epoch}", "good")
        return reign.committed_at - since

    def wait_fenced(self, name: str, since: float) -> float:
        """Until a broker is fenced in committed metadata; how long that took."""
        node_id = self.cluster.node_id(name)
        self.wait(lambda: self.watcher.fenced_at(node_id, since) is not None, f"{name} is fenced")
        return (self.watcher.fenced_at(node_id, since) or since) - since

    def wait_listening(self, name: str) -> float:
        """Until a node that was started answers; the moment."""
        with Probe() as probe:
            service = CONTROLLER_SERVICE if name in self.cluster.controllers else BROKER_SERVICE
            address = self.cluster.address(name)
            self.wait(lambda: probe.is_serving(address, service), f"{name} serves")
        return time.monotonic()

    def try_create(self, topic: str, seconds: float) -> bool:
        """A change of the metadata, recorded; whether it was acknowledged."""
        operation = self.history.invoke("admin", "create_topic", {"topic": topic})
        try:
            with self.cluster.admin() as admin:
                made = admin.create_topics([NewTopic(topic, partitions=1)], timeout=seconds)
                made.raise_for_errors()
        except KraftError as error:
            self.history.unknown(operation, f"{error.code_name}: {error.message}")
            return False
        self.history.ok(operation, {})
        return True

    # -- processes

    def kill(self, name: str) -> float:
        begun = self.fault("kill -9", name)
        self._down.add(name)
        self.cluster.kill(name)
        return begun

    def stop(self, name: str) -> float:
        begun = self.fault("SIGTERM", name)
        self._down.add(name)
        self.cluster.stop_node(name)
        return begun

    def pause(self, name: str) -> float:
        begun = self.fault("SIGSTOP", name)
        self._paused.add(name)
        self.cluster.pause(name)
        return begun

    def resume(self, name: str) -> float:
        self._paused.discard(name)
        self.cluster.resume(name)
        return self.healed("SIGSTOP", name)

    def start(self, name: str) -> float:
        self._down.discard(name)
        self.cluster.start_node(name)
        return self.healed("down", name)

    def note_ended(self, name: str) -> None:
        """A node that has ended by itself, as it should."""
        self._down.add(name)
        self.cluster.kill(name)

    def add_broker(self) -> str:
        """One more, behind proxies of its own like all."""
        self.fault("scale out", "broker")
        name = f"b{len(self.cluster.brokers) + 1}"
        self.layout.write_resolve(name, self.edges.routes)
        if self.cluster.add_broker() != name:
            raise TimeoutError_(f"the new broker is not {name}")
        # It needs longer for its first dial than this takes.
        self.edges.add(self.layout, self.layout.find(name))
        self.watcher.add_broker(name, self.cluster.address(name))
        return name

    def format_controller(self, name: str) -> None:
        """Make an empty directory that of an observer of this cluster."""
        arguments = ["quorum", "format", "--directory", self.cluster.data_path(name)]
        arguments += ["--node-id", str(self.cluster.node_id(name))]
        arguments += ["--cluster-id", self.cluster.cluster_id]
        done = subprocess.run(  # noqa: S603 - our own program
            [*PYTHON, *arguments], env=environment({}), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NodeFailed(f"{name} cannot be formatted: {done.stderr.strip()}")

    def expect_refusal(self, name: str, words: str) -> None:
        """A node that was started refuses to run, and says why."""
        self.wait(lambda: not self.cluster.is_running(name), f"{name} refuses to run")
        self.note_ended(name)
        said = self.cluster.logs(name).splitlines()[-10:]
        reason = next((line for line in said if words in line), "")
        self.expect(f"{name} refuses, and names {words}", holds=bool(reason))
        self.say(reason)

    # -- insides

    def stall(self, name: str) -> float:
        """A broker goes on with all but applying metadata."""
        begun = self.fault("stall metadata", name)
        hooks.stall(self.layout, name)
        return begun

    def resume_metadata(self, name: str) -> float:
        hooks.resume(self.layout, name)
        return self.healed("stall metadata", name)

    def break_disk(self, name: str, how: str, text: str = "") -> float:
        """From now on it fails as `storage/faulty_disk.py` says."""
        begun = self.fault(how, name)
        hooks.break_disk(self.layout, name, how, text)
        return begun

    def mend_disk(self, name: str, how: str) -> float:
        hooks.mend_disk(self.layout, name, how)
        return self.healed(how, name)

    def jump_clock(self, name: str, jump_ms: int) -> float:
        begun = self.fault("clock jump", name, jump_ms=jump_ms)
        hooks.jump_clock(self.layout, name, jump_ms)
        return begun

    def right_clock(self, name: str) -> float:
        hooks.jump_clock(self.layout, name, 0)
        return self.healed("clock jump", name)

    def cut_power(self) -> float:
        """Of all nodes at one moment: what they had not synced is gone."""
        begun = self.fault("power loss", "all nodes")
        for name in self.cluster.nodes:
            self.cluster.pause(name)
        for name in self.cluster.nodes:
            self.cluster.kill(name)
            hooks.lose_power(self.layout, name)
            self._down.add(name)
        return begun

    def power_on(self) -> float:
        begun = self.healed("power loss", "all nodes")
        for name in sorted(self._down):
            self.cluster.start_node(name)
        self._down.clear()
        return begun

    # -- edges

    def cut(self, source: str, target: str) -> float:
        begun = self.fault("cut", f"{source}->{target}")
        self.edges.cut(source, target)
        return begun

    def isolate(self, node: str) -> float:
        """Nobody reaches it, and it reaches nobody; clients neither."""
        begun = self.fault("isolate", node)
        self.edges.isolate(node, [*self.cluster.nodes, CLIENT])
        return begun

    def spoil(self, fault: str, source: str, target: str) -> float:
        begun = self.fault(fault, f"{source}->{target}")
        self.edges.spoil(fault, source, target)
        return begun

    def heal_edges(self) -> float:
        self.edges.heal()
        return self.healed("edges", "all")

    def check_edges(self, *, with_clients: bool = False) -> None:
        """No process may talk to another around the proxies. Our own process is looked at only
        before the watcher starts, which dials directly on purpose.
        """
        if not self.checks_edges:
            return
        up = [name for name in self.cluster.nodes if self.cluster.is_running(name)]
        processes = {name: self.cluster.pid(name) for name in up}
        if with_clients:
            processes[CLIENT] = os.getpid()
        ports = {each.port: each.name for each in self.layout.members}
        check_no_bypass(processes, ports)

    # -- the end

    def heal(self) -> None:
        """All as it was; how long it takes until all replicas are in sync is measured."""
        self.phase("heal")
        begun = self.heal_edges()
        for name in sorted(self._paused):
            self.resume(name)
        for name in sorted(self._down):
            self.start(name)
        self.cluster.wait_healthy(PATIENCE_SECONDS, in_sync=True)
        self.wait_for_writes(begun)
        self.measured["converge"] = time.monotonic() - begun
        self.say(f"all in sync {self.measured['converge']:.2f} s after the heal", "good")

    def finish(self) -> None:
        """Stop the load and read everything back."""
        self.check_edges()
        self.phase("final")
        self.load.stop()
        self.load.read_back()
        self.measured["elections"] = float(max(0, len(self.watcher.reigns) - 1))
        self.failures += self.watcher.doubles
        self.watcher.stop()
        self.cluster.stop()


@contextmanager
def _variable(variables: Mapping[str, str]) -> Iterator[None]:
    """Our own clients dial through the proxies, too."""
    before = os.environ.get(RESOLVE_VARIABLE)
    os.environ[RESOLVE_VARIABLE] = variables[RESOLVE_VARIABLE]
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(RESOLVE_VARIABLE, None)
        else:
            os.environ[RESOLVE_VARIABLE] = before
