"""A quorum that governs real brokers."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from brokers.cluster import PartitionId
from brokers.requests import IsrChange
from chaos.sim.cluster import CLUSTER_ID
from chaos.sim.ledger import Ledger
from chaos.sim.metadata_cluster import MetadataCluster
from chaos.sim.metadata_machine import FollowerMachine
from chaos.sim.node import SimNode
from chaos.sim.options import Options
from chaos.sim.partitions_broker import RealBroker, SimControllerLink
from chaos.sim.partitions_loop import SimLoop
from chaos.sim.partitions_rules import PartitionRules
from kraftlog.types import Uuid
from metadata_log.records import Broker
from quorum.core.messages import VoterSet

OnAlter = Callable[[SimNode, Sequence[IsrChange]], None]


class PartitionsCluster(MetadataCluster):
    def __init__(self, seed: int, options: Options, *, live_trace: bool = False) -> None:
        self.real: dict[int, RealBroker] = {}
        """The present life of each broker."""
        self._former: list[RealBroker] = []
        """Nobody takes the tasks of a dead process apart before the world ends."""
        self.on_alter: OnAlter = lambda _node, _changes: None
        """Somebody asks for another ISR."""
        super().__init__(seed, options, live_trace=live_trace)

    def make_ledger(self, voters: VoterSet) -> Ledger:
        ledger = super().make_ledger(voters)
        self.rules = PartitionRules(self, self.sightings)
        self.metadata.on_commit = self.rules.on_commit
        return ledger

    def now(self) -> float:
        return self.schedule.now

    def broker(self, broker_id: int) -> RealBroker | None:
        return self.real.get(broker_id)

    def isr(self, partition: PartitionId) -> Sequence[int]:
        topic = self.metadata.image.topics.get(Uuid(partition.topic_id))
        return topic.partitions[partition.partition].isr if topic else ()

    # -- processes

    def start_broker(self, node: SimNode, machine: FollowerMachine) -> None:
        name = f"{self.seed} broker {node.node_id} {node.life} {node.key.directory_id}"
        loop = SimLoop(self.schedule, node.clock, Random(f"{name} loop"), node)
        caller = self.caller_for(node)
        link = SimControllerLink(loop, caller, self.controllers, Random(name))
        broker = RealBroker(node, machine, loop, link)
        broker.send = lambda target, data, take: self.send(node.node_id, target, data, take)
        broker.on_served = self.rules.on_served
        broker.on_told_end = self.rules.on_told_end
        broker.on_alter = lambda changes: self.on_alter(node, changes)
        broker.on_clean_stop = lambda: node.in_this_life(0.0, node.die)

        def after_turn() -> None:
            self.rules.look(broker)
            broker.check_alive()

        loop.after_turn = after_turn
        self.real[node.node_id] = broker
        node.beside(lambda: broker.begin(CLUSTER_ID))

    def on_death(self, node: SimNode) -> None:
        broker = self.real.pop(node.node_id, None)
        if broker is not None:
            broker.loop.stop()
            self._former.append(broker)
        super().on_death(node)

    def take_apart(self) -> None:
        """The world has ended."""
        for broker in (*self.real.values(), *self._former):
            broker.take_apart()

    def let_lag(self, node: SimNode, until_ms: float) -> None:
        broker = self.real.get(node.node_id)
        if broker is not None:
            broker.lags_until = until_ms

    def ask_to_stop(self, node: SimNode) -> None:
        broker = self.real.get(node.node_id)
        if broker is not None:
            broker.loop.call_soon(broker.stop)

    def applied_by(self, broker: Broker) -> int | None:
        real = self.real.get(broker.id)
        if real is None or real.incarnation != broker.incarnation_id:
            return None
        return real.applied_offset

    # -- requests to brokers

    def send(self, sender: int, target: int, data: bytes, take: Callable[[bytes], None]) -> None:
        def deliver(raw: bytes) -> None:
            broker = self.real.get(target)
            if broker is not None:
                back = (target, sender)
                broker.receive(raw, lambda reply: self.network.transfer(back, reply, take))

        self.network.transfer((sender, target), data, deliver)

    # -- disks

    def may_crash(self, node: SimNode) -> bool:
        """Not while another one that counts has lost something. What two in sync are for is that
        one of them may end badly, and whoever was killed counts as badly as who lost something.
        """
        return not any(
            self.rules.seen(place, each).lost
            for place, others in self._beside(node.node_id)
            for each in others
        )

    def may_lose_data(self, node: SimNode) -> bool:
        """Whether others have all that this broker has, in every partition, and none of them has
        ended badly and is not back yet, or is about to.
        """
        if not self.may_crash(node):
            return False
        for _, others in self._beside(node.node_id):
            if not others or not all(self._is_steady(each) for each in others):
                return False
        self.rules.data_lost(node.node_id)
        return True

    def _beside(self, broker_id: int) -> Iterator[tuple[PartitionId, set[int]]]:
        """Where this broker may be elected, and who else."""
        for topic in self.metadata.image.topics.values():
            for number, state in enumerate(topic.partitions):
                holders = {*state.isr, *state.elr, *state.last_known_elr}
                if broker_id in holders:
                    yield PartitionId(topic.id.raw, number), holders - {broker_id}

    def _is_steady(self, broker_id: int) -> bool:
        broker, known = self.real.get(broker_id), self.metadata.image.brokers.get(broker_id)
        return (
            broker is not None
            and known is not None
            and (broker.incarnation == known.incarnation_id)
            and not broker.node.is_doomed
        )
