"""A quorum that governs real brokers."""

from collections.abc import Callable
from random import Random

from brokers.cluster import PartitionId
from chaos.sim.cluster import CLUSTER_ID
from chaos.sim.ledger import Ledger
from chaos.sim.metadata_cluster import MetadataCluster
from chaos.sim.metadata_machine import FollowerMachine
from chaos.sim.node import SimNode
from chaos.sim.options import Options
from chaos.sim.partitions_broker import RealBroker, SimControllerLink
from chaos.sim.partitions_loop import SimLoop
from chaos.sim.partitions_rules import PartitionRules
from metadata_log.records import Broker
from quorum.core.messages import VoterSet


class PartitionsCluster(MetadataCluster):
    def __init__(self, seed: int, options: Options, *, live_trace: bool = False) -> None:
        self.real: dict[int, RealBroker] = {}
        """The present life of each broker."""
        self._former: list[RealBroker] = []
        """Nobody takes the tasks of a dead process apart before the world ends."""
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

    # -- processes

    def start_broker(self, node: SimNode, machine: FollowerMachine) -> None:
        name = f"{self.seed} broker {node.node_id} {node.life} {node.key.directory_id}"
        loop = SimLoop(self.schedule, node.clock, Random(f"{name} loop"), node)
        caller = self.caller_for(node)
        link = SimControllerLink(loop, caller, self.controllers, Random(name))
        broker = RealBroker(node, machine, loop, link)
        broker.send = lambda target, data, take: self.send(node.node_id, target, data, take)
        broker.on_served = self.rules.on_served
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

    def committed_end(self, topic_id: bytes, partition: int) -> int:
        shared = self.rules.shared.get(PartitionId(topic_id, partition))
        return shared.ledger.end if shared else 0

    # -- disks

    def may_lose_data(self, node: SimNode) -> bool:
        """Whether somebody else has all that this broker has, in every partition."""
        lost_id, image = node.node_id, self.metadata.image
        for topic in image.topics.values():
            for number, state in enumerate(topic.partitions):
                holders = {*state.isr, *state.elr, *state.last_known_elr}
                place = PartitionId(topic.id.raw, number)
                sound = {
                    each for each in holders - {lost_id} if not self.rules.seen(place, each).lost
                }
                if lost_id in holders and not sound:
                    return False
        self.rules.data_lost(lost_id)
        return True
