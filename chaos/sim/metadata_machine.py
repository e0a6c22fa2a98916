"""The real controller, and the real follower of a broker, on a simulated node.

The controller has its queue, its two images, its sessions and its service; the node is its ledger,
as `quorum.node` is in a process. Requests and replies are the bytes of the wire.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from brokers.metadata import MetadataFollower
from chaos.sim.metadata_ledger import bare
from chaos.sim.node import Answer, SimNode
from kraftlog._check import invariant
from kraftlog.config import Config
from kraftlog.config_keys import Scope
from kraftlog.errors import KraftError, NotLeaderError
from kraftlog.rpc import controller_pb2
from kraftlog.types import Uuid
from metadata_log.codec import decode_record
from metadata_log.image import Image
from metadata_log.replay import load
from quorum.broker_watch import BrokerWatch
from quorum.controller import Controller
from quorum.controller_service import ControllerService, LeaderNow
from quorum.driver import Driver
from quorum.metadata_service import controller_calls
from quorum.sessions import WatchTiming
from quorum.snapshot_file import Snapshot
from quorum.state_machine import CommittedBatch

WATCH = WatchTiming(session_ms=1_500, lag_ms=4_500, rebalance_ms=3_000)
POST_MS = (0.0, 1.0)
STATIC = Config(Scope.CONTROLLER, {})

OnAnswer = Callable[[controller_pb2.ControllerRequest, controller_pb2.ControllerReply, Image], None]


class SimDraw:
    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def below(self, limit: int) -> int:
        return self._dice.randrange(limit)

    def uuid(self) -> Uuid:
        return Uuid(self._dice.randbytes(16))


class NodeLedger:
    """`quorum.controller.Ledger`: the node as its controller sees it."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._inbox: deque[Callable[[], None]] = deque()

    @property
    def driver(self) -> Driver:
        driver = self._node.driver
        if driver is None:
            raise NotLeaderError("the process has ended")
        return driver

    @property
    def end_offset(self) -> int:
        return self.driver.core.log.end_offset

    def now_ms(self) -> int:
        return self._node.clock.monotonic_ms()

    def post(self, work: Callable[[], None]) -> None:
        self._inbox.append(work)
        node = self._node
        node.in_this_life(node.world.node_dice.uniform(*POST_MS), lambda: node.act(self._work))

    def _work(self, _driver: Driver) -> None:
        if self._inbox:
            self._inbox.popleft()()

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        return self.driver.append(values, epoch=epoch)

    def read(self, on_done: Callable[[KraftError | None], None]) -> None:
        def on_read(is_ready: bool) -> None:
            on_done(None if is_ready else NotLeaderError("no read here"))

        # Through the inbox, as in the real node: its errors are none of whoever asked.
        self.post(lambda: self._node.begin_read(self.driver, on_read))


class ControllerMachine:
    """One life of a controller."""

    def __init__(self, node: SimNode, dice: Random, cluster_id: Uuid) -> None:
        self._node = node
        self.leader: tuple[int, int | None] = (-1, None)
        self.snapshots_loaded = 0
        self.controller = Controller(node.node_id, leader_hint=lambda: "ask the next one")
        self.watch = BrokerWatch(self.controller, WATCH, STATIC)
        self._ledger = NodeLedger(node)
        self.controller.attach(self._ledger, self.watch)
        calls = controller_calls(
            self.controller,
            self.watch,
            STATIC,
            cluster_id=cluster_id,
            node_id=node.node_id,
            draw=SimDraw(dice),
        )
        self._service = ControllerService(
            calls, cluster_id=cluster_id, now_ms=self._ledger.now_ms, leader=self._leader_now
        )

    def _leader_now(self) -> LeaderNow:
        core = self._node.core
        return LeaderNow(core.epoch, core.leader) if core else LeaderNow(0, None)

    # -- the state machine

    @property
    def digest(self) -> object:
        return bare(self.controller.committed)

    def dumped_digest(self) -> object:
        return bare(load(map(decode_record, self.dump()), 0))

    def dump(self) -> Iterable[bytes]:
        return self.controller.dump()

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        self.controller.handle_commit(batches)

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        yield from self.controller.handle_snapshot(snapshot)
        self.snapshots_loaded += 1

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        invariant(epoch >= self.leader[0], "Q10 epochs go back", epoch=epoch, was=self.leader)
        self.leader = (epoch, leader_id)
        self.controller.handle_leader_change(epoch, leader_id)

    # -- its turns

    def begin(self) -> None:
        self._node.act(lambda _driver: self._tick())

    def _tick(self) -> None:
        self.watch.tick()
        delay_ms = self._node.clock.delay_until(self.watch.next_tick_ms())
        self._node.in_this_life(max(delay_ms, 1.0), self.begin)

    def receive(self, raw: bytes, answer: Answer, on_answer: OnAnswer) -> None:
        """A request has come in; `on_answer` hears what it is told, before it is sent."""

        def handle(_driver: Driver) -> None:
            request = controller_pb2.ControllerRequest.FromString(raw)
            known = self.controller.committed

            def send(reply: controller_pb2.ControllerReply) -> None:
                on_answer(request, reply, known)
                answer(reply.SerializeToString(deterministic=True))

            self._service.dispatch(request, send)

        self._node.act(handle)


class FollowerMachine:
    """One life of a broker's copy of the metadata."""

    def __init__(self) -> None:
        self.leader: tuple[int, int | None] = (-1, None)
        self.snapshots_loaded = 0
        self.follower = MetadataFollower()

    @property
    def image(self) -> Image:
        return self.follower.image

    @property
    def digest(self) -> object:
        return bare(self.follower.image)

    def dumped_digest(self) -> object:
        return bare(load(map(decode_record, self.dump()), 0))

    def dump(self) -> Iterable[bytes]:
        return self.follower.dump()

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        self.follower.handle_commit(batches)
        invariant(self.follower.errors == 0, "M5 a broker leaves a record out")

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        yield from self.follower.handle_snapshot(snapshot)
        self.snapshots_loaded += 1

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        self.leader = (epoch, leader_id)
        self.follower.handle_leader_change(epoch, leader_id)
