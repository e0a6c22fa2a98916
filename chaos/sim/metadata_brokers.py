"""Brokers without data: they register, are heard, change ISRs, and do all of it wrongly at times.

A scripted broker is one life of a process. It speaks the real wire and follows the real log; what
it says about ISRs is drawn by lot, since the controller must withstand any of it: members that are
fenced, epochs that are over, the broker epoch of an earlier life.
"""

from random import Random
from typing import Protocol

from chaos.sim.metadata_machine import FollowerMachine
from chaos.sim.metadata_rpc import Caller, Reply, Request
from chaos.sim.node import SimNode
from chaos.sim.sightings import Sightings
from kraftlog._check import invariant
from kraftlog.error_codes import code_name
from kraftlog.errors import ErrorCode
from kraftlog.rpc import common_pb2, controller_pb2
from kraftlog.types import Uuid
from metadata_log.decide.features import SUPPORTED
from metadata_log.image import Image
from metadata_log.records import PartitionState

HEARTBEAT_MS = 150.0
RETRY_MS = 50.0
ISR_CHANGE_MS = (50.0, 500.0)
PORT = 9092
DIRECTORY_BASE = 1_000
"""The first ids are reserved."""

_ACCEPTED_WITH_NEWS = ErrorCode.NEW_LEADER_ELECTED


def log_dir_of(node: SimNode) -> Uuid:
    number = int.from_bytes(node.key.directory_id.raw, "big") + DIRECTORY_BASE
    return Uuid(number.to_bytes(16, "big"))


def registration(
    node: SimNode, incarnation: Uuid, previous_epoch: int | None
) -> controller_pb2.RegisterBrokerRequest:
    return controller_pb2.RegisterBrokerRequest(
        broker_id=node.node_id,
        incarnation_id=incarnation.raw,
        endpoint=common_pb2.Endpoint(host=node.name, port=PORT),
        rack=f"rack{node.node_id % 2}",
        log_dir_ids=[log_dir_of(node).raw],
        previous_broker_epoch=previous_epoch,
        features=[
            controller_pb2.FeatureRange(
                name=each.name, min_level=each.min_level, max_level=each.max_level
            )
            for each in SUPPORTED.values()
        ],
    )


class BrokerWorld(Protocol):
    """What a scripted broker needs of its cluster."""

    sightings: Sightings
    is_over: bool

    def caller_for(self, node: SimNode) -> Caller: ...
    def controllers(self) -> list[SimNode]: ...
    def take_clean_epoch(self, node: SimNode) -> int | None: ...
    def stop_cleanly(self, node: SimNode, epoch: int) -> None: ...


class ScriptedBroker:
    def __init__(
        self, world: BrokerWorld, node: SimNode, machine: FollowerMachine, dice: Random
    ) -> None:
        self._world = world
        self._node = node
        self._machine = machine
        self._dice = dice
        self._caller = world.caller_for(node)
        self._incarnation = Uuid(dice.randbytes(16))
        self._previous = world.take_clean_epoch(node)
        self._old_epochs: list[int] = []
        self._old_states: dict[tuple[Uuid, int], PartitionState] = {}
        self.epoch: int | None = None
        self.is_stopping = False
        self.lags_until = 0.0
        self._frozen_offset = 0

    def begin(self) -> None:
        self._register()
        self._plan_isr_change()

    @property
    def incarnation(self) -> Uuid:
        return self._incarnation

    @property
    def applied_offset(self) -> int:
        """What it says that it has applied: a busy one has applied less than it has."""
        driver = self._node.driver
        applied = driver.applier.applied_offset if driver else 0
        if self._node.world.schedule.now < self.lags_until:
            return self._frozen_offset
        self._frozen_offset = applied
        return applied

    def _ask(self, request: Request) -> SimNode | None:
        target = self._caller.choose(self._world.controllers(), self._dice.randrange)
        request.header.client_id = self._node.name
        return target

    def _soon(self, delay_ms: float) -> float:
        return delay_ms * self._dice.uniform(0.8, 1.2)

    # -- registration

    def _register(self) -> None:
        request = Request(
            register_broker=registration(self._node, self._incarnation, self._previous)
        )
        target = self._ask(request)
        life = self._node.life

        def on_reply(reply: Reply | None) -> None:
            if self._node.life != life:
                return
            if reply is None or reply.HasField("error"):
                self._node.in_this_life(self._soon(RETRY_MS), self._register)
                return
            self.epoch = self._previous = reply.register_broker.broker_epoch
            self._beat()

        if target is None:
            self._node.in_this_life(self._soon(RETRY_MS), self._register)
        else:
            self._caller.call(target, request, on_reply)

    # -- heartbeats

    def _beat(self) -> None:
        if self._node.paused:
            self._node.in_this_life(HEARTBEAT_MS, self._beat)
            return
        message = controller_pb2.HeartbeatRequest(
            broker_id=self._node.node_id,
            broker_epoch=self.epoch or 0,
            applied_offset=self.applied_offset,
            want_fence=False,
            want_shut_down=self.is_stopping,
        )
        request = Request(heartbeat=message)
        target = self._ask(request)
        life = self._node.life

        def on_reply(reply: Reply | None) -> None:
            if self._node.life != life:
                return
            if reply is not None and reply.error.code == ErrorCode.STALE_BROKER_EPOCH:
                self._old_epochs.append(self.epoch or 0)
                self._world.sightings.note("heartbeat of an old registration refused")
                self._register()
                return
            if reply is not None and reply.heartbeat.should_shut_down and self.is_stopping:
                self._world.sightings.note("broker stopped in good order")
                self._world.stop_cleanly(self._node, self.epoch or 0)
                return
            self._node.in_this_life(self._soon(HEARTBEAT_MS if reply else RETRY_MS), self._beat)

        if target is None:
            self._node.in_this_life(RETRY_MS, self._beat)
        else:
            self._caller.call(target, request, on_reply)

    # -- ISRs

    def _plan_isr_change(self) -> None:
        self._node.in_this_life(self._dice.uniform(*ISR_CHANGE_MS), self._change_isrs)

    def _change_isrs(self) -> None:
        if self._world.is_over:
            return
        self._plan_isr_change()
        if self.epoch is None or self._node.paused:
            return
        image = self._machine.image
        led = [
            (topic.id, number, state)
            for topic in image.sorted_topics()
            for number, state in enumerate(topic.partitions)
            if state.leader == self._node.node_id
        ]
        if not led:
            return
        chosen = self._dice.sample(led, min(len(led), self._dice.choice((1, 1, 2))))
        epoch = self.epoch
        if self._old_epochs and self._dice.random() < 0.1:
            epoch = self._dice.choice(self._old_epochs)
        message = controller_pb2.AlterPartitionsRequest(
            broker_id=self._node.node_id,
            broker_epoch=epoch,
            changes=[self._draw_change(image, *each) for each in chosen],
        )
        request = Request(alter_partitions=message)
        target = self._ask(request)
        if target is not None:
            self._caller.call(target, request, lambda reply: self._judge(message, reply))

    def _draw_change(
        self, image: Image, topic_id: Uuid, partition: int, state: PartitionState
    ) -> controller_pb2.IsrChange:
        basis = state
        if self._dice.random() < 0.15:
            basis = self._old_states.get((topic_id, partition), state)
        self._old_states[(topic_id, partition)] = state
        careless = self._dice.random() < 0.1
        members = [self._node.node_id]
        for replica in state.replicas:
            fit = careless or image.is_active(replica)
            if replica != self._node.node_id and fit and self._dice.random() < 0.7:
                members.append(replica)
        change = controller_pb2.IsrChange(
            topic_id=topic_id.raw,
            partition=partition,
            leader_epoch=basis.leader_epoch,
            partition_epoch=basis.partition_epoch,
        )
        for member in sorted(members):
            known = image.brokers.get(member)
            epoch = known.epoch if known else None
            if epoch is not None and self._dice.random() < 0.05:
                epoch -= 1
            change.isr.add(broker_id=member, broker_epoch=epoch)
        return change

    def _judge(self, asked: controller_pb2.AlterPartitionsRequest, reply: Reply | None) -> None:
        """M6, M9: what was computed from old epochs is refused, never merged."""
        if reply is None or reply.HasField("error"):
            return
        for change, result in zip(asked.changes, reply.alter_partitions.results, strict=True):
            code = result.error.code
            if code not in (ErrorCode.NONE, _ACCEPTED_WITH_NEWS):
                self._world.sightings.note(f"ISR refused: {code_name(code)}")
                continue
            steps = result.partition_epoch - change.partition_epoch
            facts = {"asked": change, "answer": result}
            invariant(steps in (0, 1), "M9 an ISR computed from an old partition", **facts)
