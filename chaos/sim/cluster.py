"""The nodes and what surrounds them: time, network, disks, dice, and the checker that watches."""

from random import Random

from chaos.sim.checker import Checker
from chaos.sim.ledger import Ledger
from chaos.sim.machine import ListMachine, Machine
from chaos.sim.network import Network
from chaos.sim.node import SimNode
from chaos.sim.options import Options
from chaos.sim.schedule import NodeClock, Schedule
from chaos.sim.sightings import Sightings
from chaos.sim.trace import Trace
from kraftlog.types import Uuid
from quorum.core.config import FAST, RaftConfig
from quorum.core.messages import ReplicaKey, ReplicaRequest, Reply, Request, Voter, VoterSet
from quorum.core.raft import RaftCore
from storage.model_disk import ModelDisk

CLUSTER_ID = Uuid(bytes(15) + b"c")
FLUSH_MS = (0.2, 4.0)
SLOW_FLUSH_MS = (50.0, 700.0)
RESTART_MS = (10.0, 3_000.0)
FETCH_BYTES_MAX = 2_000
SNAPSHOT_CHUNK_BYTES = 700
BATCH_BYTES_MAX = 1_500


class Cluster:
    def __init__(self, seed: int, options: Options, *, live_trace: bool = False) -> None:
        self.seed = seed
        self.options = options
        self.schedule = Schedule(self.dice("schedule"))
        self.trace = Trace(self.schedule, live=live_trace)
        self.network = Network(self.dice("network"), options, self.schedule)
        self.sightings = Sightings()
        self.core_dice = self.dice("cores")
        self.node_dice = self.dice("nodes")
        self._disk_dice = self.dice("disks")
        self._slow_disk = options.strength("slow_disk")
        self._directories = 0
        self.nodes: list[SimNode] = []
        self.lost: set[ReplicaKey] = set()
        """Disks that are gone: nobody will ever answer for these keys again."""
        self.former_cores: list[RaftCore] = []
        """Of replicas whose disk is lost: what they last knew may still be on its way."""
        self.stays_down: set[int] = set()
        voters = self._form()
        self.checker = Checker(self.make_ledger(voters), self.sightings)

    def dice(self, name: str) -> Random:
        """Each has dice of its own, so that one fault more or less leaves the others alone."""
        return Random(f"{self.seed} {name}")

    # -- what kind of cluster it is

    def make_ledger(self, voters: VoterSet) -> Ledger:
        return Ledger(voters)

    def machine_of(self, node: SimNode) -> Machine:  # noqa: ARG002 - other clusters look at it
        return ListMachine()

    # -- nodes

    def _form(self) -> VoterSet:
        options = self.options
        first = [self._new_node(number) for number in range(1, options.voters + 1)]
        voters = VoterSet.of(Voter(node.key, node.endpoint) for node in first)
        for node in first:
            node.format(voters)
        for number in range(options.observers + options.brokers):
            node = self._new_node(options.voters + 1 + number)
            node.is_broker = number >= options.observers
            node.format(None)
        return voters

    def _new_node(self, node_id: int) -> SimNode:
        self._directories += 1
        key = ReplicaKey(node_id, Uuid(self._directories.to_bytes(16, "big")))
        drift = self.options.strength("clock_drift")
        clock = NodeClock(self.schedule, 1.0 + self._disk_dice.uniform(-drift, drift))
        node = SimNode(self, key, ModelDisk(seed=self._disk_dice.randrange(2**32)), clock)
        others = (each for each in self.nodes if each.node_id != node_id)
        self.nodes = sorted([*others, node], key=lambda each: each.node_id)
        return node

    def start(self) -> None:
        for node in self.nodes:
            node.start()

    def replace_disk(self, old: SimNode) -> SimNode:
        """The same machine with an empty disk: another replica, which knows no voters."""
        self.trace.add(f"{old.name} gets an empty disk")
        self.lost.add(old.key)
        if old.core:
            self.former_cores.append(old.core)
        if old.is_up:
            old.die()
        node = self._new_node(old.node_id)
        node.port, node.is_broker = old.port, old.is_broker
        node.format(None)
        node.start()
        return node

    def restart_later(self, node: SimNode) -> None:
        life = node.life

        def restart() -> None:
            is_current = node in self.nodes and node.life == life
            if is_current and node.node_id not in self.stays_down:
                node.start()

        self.schedule.later(self.node_dice.uniform(*RESTART_MS), restart)

    def node_at(self, endpoint: str) -> SimNode | None:
        return next((node for node in self.nodes if node.endpoint == endpoint), None)

    def may_crash(self, node: SimNode) -> bool:  # noqa: ARG002 - the quorum survives it
        return True

    @property
    def alive(self) -> list[SimNode]:
        return [node for node in self.nodes if node.is_up]

    @property
    def leaders(self) -> list[SimNode]:
        """All that think they lead, the newest epoch first."""
        leading = [node for node in self.nodes if node.is_leader]
        return sorted(leading, key=lambda node: -node.core.epoch if node.core else 0)

    @property
    def leader(self) -> SimNode | None:
        return next(iter(self.leaders), None)

    def calm_disks(self) -> None:
        self._slow_disk = 0.0
        for node in self.nodes:
            node.disk.crash_after = node.disk.kill_after = None
            node.dies_in = node.disk_error = None

    # -- what nodes ask for

    def config_of(self, node: SimNode) -> RaftConfig:
        return RaftConfig(
            cluster_id=CLUSTER_ID,
            key=node.key,
            endpoint=node.endpoint,
            timing=FAST,
            peers=tuple(each.endpoint for each in self.nodes if not each.is_broker),
            flush_always=not node.is_broker,
            fetch_bytes_max=FETCH_BYTES_MAX,
            snapshot_chunk_bytes=SNAPSHOT_CHUNK_BYTES,
            batch_bytes_max=BATCH_BYTES_MAX,
        )

    def disk_delay_ms(self) -> float:
        is_slow = self._disk_dice.random() < self._slow_disk
        return self._disk_dice.uniform(*(SLOW_FLUSH_MS if is_slow else FLUSH_MS))

    # -- what nodes tell

    def on_start(self, node: SimNode) -> None:
        """A process has begun."""

    def on_step(self, node: SimNode) -> None:
        self.checker.on_step(node)

    def on_death(self, node: SimNode) -> None:
        self.checker.on_death(node)
        self.restart_later(node)

    def on_damage(self, node: SimNode) -> None:
        self.sightings.note("damage found at start")
        self.replace_disk(node)

    def on_send(self, node: SimNode, request: ReplicaRequest) -> None:
        self.checker.on_send(node, request)

    def on_request(self, node: SimNode, request: Request) -> None:
        self.checker.on_request(node, request)

    def on_reply(self, node: SimNode, request: Request, reply: Reply) -> None:
        self.checker.on_reply(node, request, reply)

    def describe(self) -> list[str]:
        return [_describe(node) for node in self.nodes]


def _describe(node: SimNode) -> str:
    driver = node.driver
    if driver is None:
        return f"{node.name} down"
    core = driver.core
    return (
        f"{node.name} {type(core.role).__name__} epoch={core.epoch}"
        f" log=[{core.log.start_offset},{core.log.end_offset}) hw={core.high_watermark}"
        f" applied={driver.applier.applied_offset}"
        f" voters={[key.node_id for key in core.voters.keys]}{' paused' if node.paused else ''}"
    )
