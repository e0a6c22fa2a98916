"""One simulated node: the real driver and store on a model disk, with an outlet into the world.

A process can be killed, and a machine lose its power, between any two effects and inside any
operation on the disk. What was asked or planned in an earlier life of the process is void.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, Protocol

from chaos.sim.machine import Machine
from chaos.sim.network import Network
from chaos.sim.schedule import NodeClock, Schedule
from chaos.sim.sightings import Sightings
from chaos.sim.trace import Trace
from kraftlog._check import invariant
from kraftlog.errors import KraftError, LogDamaged, StorageError
from kraftlog.rpc import raft_pb2
from kraftlog.types import Buffer
from quorum.core.config import RaftConfig
from quorum.core.messages import Refusal, ReplicaKey, ReplicaRequest, Reply, Request, VoterSet
from quorum.core.raft import RaftCore
from quorum.driver import Driver
from quorum.snapshot_file import parse_name, snapshot_name
from quorum.store import Download, Store, format_store, log_directory
from quorum.wire import decode_reply, decode_request, encode_reply, encode_request
from storage.log_config import LogConfig
from storage.model_disk import ModelDisk, Operation, PowerCut, ProcessEnded

DIRECTORY = "/node"
LOG = LogConfig(
    segment_bytes=4096,
    index_interval_bytes=256,
    max_message_bytes=1 << 20,
    file_delete_delay_ms=1_000,
)
TICKS_MAX = 3
"""How often a node may be due again at once: prospective, candidate, leader."""
APPLY_DELAY_MS = (0.0, 2.0)
CHECK_MS = ((0.2, 4.0), (50.0, 1_500.0))
"""Of a small snapshot that was downloaded, and of a large one."""

Work = Callable[[Driver], None]
Outcome = int | Literal["refused", "unknown"]
"""What became of a proposal: the offset of its first record, or why there is none."""
OnProposed = Callable[[Outcome], None]
OnRead = Callable[[bool], None]
Answer = Callable[[bytes], None]


class Surroundings(Protocol):
    """What a node needs of the world, and tells it."""

    schedule: Schedule
    network: Network
    trace: Trace
    sightings: Sightings
    core_dice: Random
    node_dice: Random

    def config_of(self, node: "SimNode") -> RaftConfig: ...
    def machine_of(self, node: "SimNode") -> Machine: ...
    def node_at(self, endpoint: str) -> "SimNode | None": ...
    def disk_delay_ms(self) -> float: ...
    def on_start(self, node: "SimNode") -> None: ...
    def on_step(self, node: "SimNode") -> None: ...
    def on_death(self, node: "SimNode") -> None: ...
    def on_damage(self, node: "SimNode") -> None: ...
    def on_send(self, node: "SimNode", request: ReplicaRequest) -> None: ...
    def on_request(self, node: "SimNode", request: Request) -> None: ...
    def on_reply(self, node: "SimNode", request: Request, reply: Reply) -> None: ...


class SimNode:
    """A machine with one process on it, or none."""

    def __init__(
        self, world: Surroundings, key: ReplicaKey, disk: ModelDisk, clock: NodeClock
    ) -> None:
        self.world = world
        self.key = key
        self.node_id = key.node_id
        self.name = f"n{key.node_id}"
        self.disk = disk
        self.clock = clock
        self.port = 1
        self.is_broker = False
        self.is_damaged = False
        self.rotten: str | None = None
        """A snapshot that was damaged while the process ran: it may serve it, and not know it."""
        self.disk_error: tuple[Operation, int] | None = None
        """The next operation of this kind fails with this errno, in whatever step it comes."""
        self.dies_in: int | None = None
        """After this many effects the process is killed."""
        self.life = 0
        self.paused = False
        self.machine = world.machine_of(self)
        self.config: RaftConfig | None = None
        self.store: Store | None = None
        self.driver: Driver | None = None
        self.core: RaftCore | None = None
        """Also after death: what was last in memory."""
        self._tokens = 0
        self._forget()

    def _forget(self) -> None:
        self._waiting: list[Callable[[], None]] = []
        self._sent: set[int] = set()
        self._answers: dict[int, tuple[float, Callable[[Reply, Buffer], None]]] = {}
        self._proposals: dict[int, OnProposed] = {}
        self._reads: dict[int, OnRead] = {}
        self._wake_at = -1.0
        self._applies = False

    @property
    def endpoint(self) -> str:
        return f"{self.name}:{self.port}"

    @property
    def is_up(self) -> bool:
        return self.driver is not None

    @property
    def is_rotten(self) -> bool:
        """Whether the next start would find that snapshot."""
        return self.rotten is not None and self.rotten == newest_snapshot(self.disk)

    @property
    def is_doomed(self) -> bool:
        """Whether it will die by itself, in one of its next steps or operations."""
        return self.dies_in is not None or self.disk.kill_after is not None

    @property
    def is_leader(self) -> bool:
        return self.driver is not None and self.driver.core.is_leader

    # -- life

    def format(self, voters: VoterSet | None) -> None:
        self.disk.make_dir(DIRECTORY)
        self.disk.sync_dir("/")
        format_store(self.disk, DIRECTORY, self.clock, voters)

    def start(self) -> None:
        """Start the process. It may die in the attempt, or find its files damaged."""
        self.life += 1
        self.is_damaged = self.is_damaged or self.is_rotten
        self.world.trace.add(f"{self.name} starts")
        self.machine = self.world.machine_of(self)
        self._forget()
        if self._survives(self._begin):
            self.world.on_start(self)
            self._after_step()

    def _begin(self) -> None:
        self.config = self.world.config_of(self)
        self.store = Store(self.disk, DIRECTORY, self.clock, LOG)
        self.driver = Driver(
            self.config,
            self.store,
            self.machine,
            outlet=self,
            clock=self.clock,
            draw=self.world.core_dice.randrange,
        )
        self.core = self.driver.core

    def _survives(self, work: Callable[[], None]) -> bool:
        if self.disk_error:
            self.disk.fail_next(*self.disk_error)
        try:
            work()
        except PowerCut:
            self.world.sightings.note("power cut inside a disk operation")
            self.die(power=True)
        except ProcessEnded:
            self._note_end()
            self.die()
        except LogDamaged as error:
            invariant(self.is_damaged, "V3 a node cannot start", node=self.name, error=error)
            self.die()
            self.world.on_damage(self)
        except (KraftError, OSError) as error:
            planned = self.disk_error is not None and isinstance(error, StorageError | OSError)
            invariant(planned, "V3 a node ends by an error", node=self.name, error=error)
            self.world.trace.add(f"{self.name} ends", error)
            self.world.sightings.note("process ended by a disk error")
            self.die()
        else:
            self.disk.clear_faults()  # or they would hit whoever looks on
            return True
        return False

    def _note_end(self) -> None:
        if self.disk.kill_after is not None:
            self.world.sightings.note("process killed inside a disk operation")
        elif self.dies_in is not None:
            self.world.sightings.note("process killed between two effects")
        else:
            self.world.sightings.note("process ended by a disk error")

    def die(self, *, power: bool = False) -> None:
        """The process is gone. With `power` also what its disk had not made durable."""
        self.world.trace.add(f"{self.name} {'loses power' if power else 'dies'}")
        self.life += 1
        proposals, reads = self._proposals, self._reads
        self._forget()
        self.world.on_death(self)
        self.driver = self.store = None
        self.paused = False
        self.dies_in = self.disk_error = None
        self.disk.clear_faults()
        if power:
            self.disk.restart()
        else:
            self.disk.kill_process()
            self.disk.crash_after = None
        for on_proposed in proposals.values():
            on_proposed("unknown")
        for on_read in reads.values():
            on_read(False)

    def shut_down(self) -> None:
        """The orderly way: as after SIGTERM, once the leadership is given up."""
        if self.store and self._survives(self.store.close):
            self.die()

    def resume(self) -> None:
        """Whatever came during the pause is looked at now."""
        self.paused = False
        held, self._waiting = self._waiting, []
        for each in held:
            each()

    # -- steps

    def act(self, work: Work) -> None:
        """Do something in this process now, or when it wakes up from a pause."""
        life = self.life

        def run() -> None:
            driver = self.driver
            if driver is None or self.life != life:
                return
            if self._survives(lambda: self._step(driver, work)):
                self._after_step()

        if self.paused:
            self._waiting.append(run)
        else:
            run()

    def beside(self, work: Callable[[], None]) -> None:
        """The same, for what does not concern the driver."""
        life = self.life

        def run() -> None:
            if self.driver is not None and self.life == life:
                self._survives(work)

        if self.paused:
            self._waiting.append(run)
        else:
            run()

    def _step(self, driver: Driver, work: Work) -> None:
        work(driver)
        for _ in range(TICKS_MAX):
            if self.clock.monotonic_ms() < driver.core.wake_at_ms:
                return
            driver.tick()
        role = type(driver.core.role).__name__
        asleep = self.clock.monotonic_ms() < driver.core.wake_at_ms
        invariant(asleep, "V3 a node wakes again and again", node=self.name, role=role)

    def _after_step(self) -> None:
        self.world.on_step(self)
        if self.driver is None:
            return
        if self.driver.applier.has_work and not self._applies:
            self._applies = True
            self.in_this_life(self.world.node_dice.uniform(*APPLY_DELAY_MS), self._apply)
        delay_ms = self.clock.delay_until(self.driver.core.wake_at_ms)
        at = self.world.schedule.now + delay_ms
        if not self.world.schedule.now < self._wake_at <= at:
            self._wake_at = at
            self.in_this_life(delay_ms, lambda: self._wake(at))

    def _apply(self) -> None:
        self._applies = False
        self.act(lambda driver: driver.apply())

    def _wake(self, at: float) -> None:
        if self._wake_at == at:
            self.act(_only_look)

    def in_this_life(self, delay_ms: float, act: Callable[[], None]) -> None:
        """Later, unless the process has died meanwhile."""
        life = self.life
        self.world.schedule.later(delay_ms, lambda: act() if self.life == life else None)

    # -- the network

    def receive(self, raw: bytes, answer: Answer) -> None:
        """A request has come in; `answer` carries the reply back."""
        self._tokens += 1
        token = self._tokens

        def handle(driver: Driver) -> None:
            envelope = raft_pb2.RaftRequest.FromString(raw)
            request = decode_request(envelope)

            def reply_with(reply: Reply, records: Buffer) -> None:
                self.world.on_reply(self, request, reply)
                data = encode_reply(envelope.correlation_id, reply, records).SerializeToString()
                self.world.trace.add(f"{self.name} =>", reply, data)
                answer(data)

            self._answers[token] = (self.world.schedule.now, reply_with)
            self.world.on_request(self, request)
            driver.handle_request(token, request)

        self.act(handle)

    def _receive_reply(self, raw: bytes, life: int) -> None:
        envelope = raft_pb2.RaftReply.FromString(raw)
        self._answered(life, envelope.correlation_id, decode_reply(envelope))

    def _answered(self, life: int, request_id: int, reply: Reply | None) -> None:
        if life == self.life and request_id in self._sent:
            self._sent.discard(request_id)
            self.act(lambda driver: driver.handle_reply(request_id, reply))

    def unanswered_since(self) -> float:
        """When the oldest request came in that has no answer yet."""
        return min((at for at, _ in self._answers.values()), default=self.world.schedule.now)

    # -- clients

    def propose(self, proposals: Sequence[tuple[list[bytes], OnProposed]], *, epoch: int) -> None:
        """Propose all of these in one batch."""

        def propose(driver: Driver) -> None:
            tokens = []
            for values, on_proposed in proposals:
                self._tokens += 1
                self._proposals[self._tokens] = on_proposed
                tokens.append((self._tokens, values))
            try:
                driver.propose(tokens, epoch=epoch)
            except StorageError:
                raise
            except KraftError:
                for token, _ in tokens:
                    self._proposals.pop(token)("refused")

        self.act(propose)

    def read(self, on_read: OnRead) -> None:
        self.act(lambda driver: self.begin_read(driver, on_read))

    def begin_read(self, driver: Driver, on_read: OnRead) -> None:
        """From within a step of this process."""
        self._tokens += 1
        self._reads[self._tokens] = on_read
        driver.read(self._tokens)

    @property
    def open_operations(self) -> int:
        return len(self._proposals) + len(self._reads)

    # -- outlet of the driver

    def _pass_effect(self) -> None:
        """Between two effects: here the process may be killed."""
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                raise ProcessEnded("killed between two effects")

    def send(
        self, request_id: int, endpoint: str, request: ReplicaRequest, timeout_ms: int
    ) -> None:
        self._pass_effect()
        self.world.on_send(self, request)
        life = self.life
        self._sent.add(request_id)
        lost = timeout_ms / self.clock.rate
        self.in_this_life(lost, lambda: self._answered(life, request_id, None))
        data = encode_request(request_id, request).SerializeToString()
        self.world.trace.add(f"{self.name} -> {endpoint}", request, data)
        target = self.world.node_at(endpoint)
        if target:
            link = (self.node_id, target.node_id)
            self.world.network.transfer(
                link, data, lambda raw: self._deliver(endpoint, raw, life, request_id)
            )

    def _deliver(self, endpoint: str, raw: bytes, life: int, request_id: int) -> None:
        """A machine without the process answers at once that nobody listens, or not at all."""
        target = self.world.node_at(endpoint)
        if target and target.is_up:
            back = (target.node_id, self.node_id)
            transfer = self.world.network.transfer
            target.receive(
                raw,
                lambda data: transfer(back, data, lambda reply: self._receive_reply(reply, life)),
            )
        elif self.world.node_dice.random() < 0.5:
            self._answered(life, request_id, None)

    def reply(self, token: int, reply: Reply, records: Buffer) -> None:
        self._pass_effect()
        invariant(token in self._answers, "V3 a request is answered twice", reply=reply)
        _, reply_with = self._answers.pop(token)
        reply_with(reply, records)

    def start_flush(self) -> None:
        """It takes effect at some time while it runs, and is reported at its end."""
        self._pass_effect()
        takes_ms = self.world.disk_delay_ms()
        syncs_at_ms = takes_ms * self.world.node_dice.choice((0.0, self.world.node_dice.random()))
        version = self.core.log.version if self.core else 0
        flushed: list[int] = []
        self.in_this_life(
            syncs_at_ms, lambda: self.act(lambda driver: flushed.append(driver.flush()))
        )

        def finish(driver: Driver) -> None:
            if driver.core.log.version != version:
                self.world.sightings.note("flush ended after a cut")
            driver.flush_done(flushed[0])

        self.in_this_life(takes_ms, lambda: self.act(finish))

    def start_check(self, download: Download) -> None:
        """As with a flush, but a large file takes its time."""
        self._pass_effect()
        takes_ms = self.world.node_dice.uniform(*self.world.node_dice.choice(CHECK_MS))
        checks_at_ms = takes_ms * self.world.node_dice.random()
        self.in_this_life(
            checks_at_ms, lambda: self.act(lambda driver: driver.check_download(download))
        )
        self.in_this_life(takes_ms, lambda: self.act(lambda driver: driver.check_done(download)))

    def proposed(self, token: int, offset: int) -> None:
        self._pass_effect()
        self._proposals.pop(token)(offset)

    def proposal_failed(self, token: int, error: Refusal) -> None:
        self._pass_effect()
        invariant(error is Refusal.LEADERSHIP_LOST, "M3 failed for another reason", error=error)
        self._proposals.pop(token)("unknown")

    def read_ready(self, token: int) -> None:
        self._pass_effect()
        self._reads.pop(token)(True)

    def read_failed(self, token: int, error: Refusal) -> None:
        self._pass_effect()
        if error is Refusal.LEADERSHIP_LOST:
            self.world.sightings.note("read refused: leadership lost")
        self._reads.pop(token)(False)


def newest_snapshot(disk: ModelDisk) -> str | None:
    """The path of the one that a start reads, that of the first voters if there is no other."""
    directory = log_directory(DIRECTORY)
    found = [snapshot for name in disk.list_dir(directory) if (snapshot := parse_name(name))]
    return f"{directory}/{snapshot_name(max(found))}" if found else None


def _only_look(_driver: Driver) -> None:
    """What is due is done after every step anyway."""
