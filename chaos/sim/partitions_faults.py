"""What goes wrong with real brokers, at the moments at which it matters most to their records."""

from collections.abc import Sequence
from random import Random

from brokers.requests import IsrChange
from chaos.sim.metadata_faults import BrokerFaults
from chaos.sim.network import Link
from chaos.sim.node import SimNode
from chaos.sim.partitions_cluster import PartitionsCluster

STRANDED_MS = (200.0, 3_000.0)
HALF_JOINED_MS = (2_000.0, 3_500.0)
"""Longer than a replica may lag, shorter than the metadata of its leader may."""
EXILED_MS = (4_000.0, 7_000.0)
"""Long enough to be fenced, and to have had to notice."""


class PartitionFaults(BrokerFaults):
    def __init__(self, cluster: PartitionsCluster) -> None:
        super().__init__(cluster)
        self._partitions = cluster
        self._acts["strandings"] = self._strand
        self._join_dice = cluster.dice("half_joins")
        self._joined_at = -HALF_JOINED_MS[1]
        self._acts["exiles"] = self._exile
        self._exiled_until = 0.0

    def begin(self) -> None:
        super().begin()
        if self._partitions.options.strength("half_joins"):
            self._partitions.on_alter = self._join_half

    def _strand(self, _node: SimNode, dice: Random) -> None:
        """Who follows a leader is not heard by it any more, or it by them, while clients reach it:
        what they leave there nobody else has. In the end it dies, or all is as before.
        """
        leading = [each for each in self._partitions.brokers() if self._leads(each)]
        if not leading:
            return
        node = dice.choice(leading)
        everybody = dice.random() < 0.5
        others = [
            each.node_id
            for each in self._partitions.nodes
            if each is not node and (everybody or each.is_broker)
        ]
        links: list[Link] = [(each, node.node_id) for each in others]
        if dice.random() < 0.5:
            links += [(node.node_id, each) for each in others]
        dies = dice.random() < 0.6

        def end() -> None:
            if dies and node.is_up and not self._cluster.is_over:
                self._crash(node, dice)

        self._cut("is stranded", node, links, dice.uniform(*STRANDED_MS))
        self._partitions.schedule.later(dice.uniform(*STRANDED_MS), end)

    def _leads(self, node: SimNode) -> bool:
        image = self._partitions.metadata.image
        return node.is_up and any(
            state.leader == node.node_id
            for topic in image.topics.values()
            for state in topic.partitions
        )

    def _exile(self, _node: SimNode, dice: Random) -> None:
        """A leader and one who follows it hear each other and their clients, and nobody else: both
        are fenced, and what the one tells the other proves nothing.
        """
        image, now = self._partitions.metadata.image, self._partitions.schedule.now
        pairs = [
            (state.leader, member)
            for topic in image.sorted_topics()
            for state in topic.partitions
            for member in state.isr
            if member != state.leader != -1
        ]
        if not pairs or now < self._exiled_until:
            return
        pair, for_ms = dice.choice(pairs), dice.uniform(*EXILED_MS)
        self._exiled_until = now + for_ms
        rest = [each.node_id for each in self._partitions.nodes if each.node_id not in pair]
        links: list[Link] = [(one, other) for one in pair for other in rest]
        links += [(other, one) for one, other in links]
        leader = next(each for each in self._partitions.nodes if each.node_id == pair[0])
        self._cut(f"and n{pair[1]} are exiled", leader, links, for_ms)

    def _join_half(self, node: SimNode, changes: Sequence[IsrChange]) -> None:
        """A leader has asked for somebody to join, hears neither that it is done nor any other
        news of the controllers, and the one that joins hears no more of the leader.
        """
        joining = {
            each
            for change in changes
            for each in change.ids - set(self._partitions.isr(change.partition))
        }
        now, dice = self._partitions.schedule.now, self._join_dice
        is_busy = self._cluster.is_over or now < self._joined_at + HALF_JOINED_MS[1]
        chance = self._partitions.options.strength("half_joins")
        if not joining or is_busy or dice.random() >= chance:
            return
        self._joined_at = now
        links: list[Link] = [
            (each.node_id, node.node_id) for each in self._partitions.controllers()
        ]
        links += [(node.node_id, each) for each in sorted(joining)]
        self._cut("does not hear who joins", node, links, dice.uniform(*HALF_JOINED_MS))

    def _cut(self, what: str, node: SimNode, links: list[Link], for_ms: float) -> None:
        self._partitions.trace.add(f"{node.name} {what}", links)
        network = self._partitions.network
        block = network.block(links)
        self._partitions.schedule.later(for_ms, lambda: network.mend(block))
