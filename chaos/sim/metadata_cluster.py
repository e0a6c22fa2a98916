"""A quorum that governs: controllers on its voters and observers, brokers on the others."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from chaos.sim.cluster import CLUSTER_ID, Cluster
from chaos.sim.ledger import Ledger
from chaos.sim.machine import Machine
from chaos.sim.metadata_brokers import ScriptedBroker
from chaos.sim.metadata_ledger import MetadataLedger
from chaos.sim.metadata_machine import ControllerMachine, FollowerMachine
from chaos.sim.metadata_rpc import Caller, Reply, Request
from chaos.sim.metadata_rules import ImageRules
from chaos.sim.node import SimNode
from chaos.sim.options import Options
from kraftlog._check import invariant
from metadata_log.image import Image
from metadata_log.records import Broker
from quorum.core.config import RaftConfig
from quorum.core.messages import ReplicaKey, VoterSet

BATCH_BYTES_MAX = 32 << 10
FETCH_BYTES_MAX = 8 << 10

EPOCH_OF = {"heartbeat", "alter_partitions"}
"""Requests that name the registration they are made under."""


class MetadataCluster(Cluster):
    def __init__(self, seed: int, options: Options, *, live_trace: bool = False) -> None:
        self.broker_dice = Random(f"{seed} brokers")
        self.is_over = False
        self._clean_epochs: dict[ReplicaKey, int] = {}
        """Written down by brokers in their last clean stop; the next start reads it, once."""
        self.scripted: dict[int, ScriptedBroker] = {}
        """The present life of each broker."""
        super().__init__(seed, options, live_trace=live_trace)

    def make_ledger(self, voters: VoterSet) -> Ledger:
        rules = ImageRules(self.sightings, self)
        self.metadata = MetadataLedger(voters, rules, self.sightings)
        return self.metadata

    def machine_of(self, node: SimNode) -> Machine:
        if node.is_broker:
            return FollowerMachine()
        dice = Random(f"{self.seed} controller {node.node_id} {node.life} {node.key.directory_id}")
        return ControllerMachine(node, dice, CLUSTER_ID)

    def config_of(self, node: SimNode) -> RaftConfig:
        return replace(
            super().config_of(node),
            fetch_bytes_max=FETCH_BYTES_MAX,
            batch_bytes_max=BATCH_BYTES_MAX,
        )

    # -- processes

    def on_start(self, node: SimNode) -> None:
        machine = node.machine
        if isinstance(machine, ControllerMachine):
            node.in_this_life(0.0, machine.begin)
        elif isinstance(machine, FollowerMachine):
            self.start_broker(node, machine)

    def start_broker(self, node: SimNode, machine: FollowerMachine) -> None:
        dice = Random(f"{self.seed} broker {node.node_id} {node.life} {node.key.directory_id}")
        broker = self.scripted[node.node_id] = ScriptedBroker(self, node, machine, dice)
        broker.begin()

    def controllers(self) -> list[SimNode]:
        return [node for node in self.nodes if not node.is_broker]

    def brokers(self) -> list[SimNode]:
        return [node for node in self.nodes if node.is_broker]

    def take_clean_epoch(self, node: SimNode) -> int | None:
        return self._clean_epochs.pop(node.key, None)

    def stop_cleanly(self, node: SimNode, epoch: int) -> None:
        self._clean_epochs[node.key] = epoch
        node.shut_down()

    def let_lag(self, node: SimNode, until_ms: float) -> None:
        self.scripted[node.node_id].lags_until = until_ms

    def ask_to_stop(self, node: SimNode) -> None:
        self.scripted[node.node_id].is_stopping = True

    def may_lose_data(self, node: SimNode) -> bool:  # noqa: ARG002 - here they have none
        return True

    def applied_by(self, broker: Broker) -> int | None:
        scripted = self.scripted.get(broker.id)
        if scripted is None or scripted.incarnation != broker.incarnation_id:
            return None
        node = next(each for each in self.nodes if each.node_id == broker.id)
        return node.driver.applier.applied_offset if node.driver else None

    # -- calls

    def caller_for(self, node: SimNode) -> Caller:
        return self.caller(node.node_id, node.name)

    def caller(self, sender_id: int, name: str) -> Caller:
        return Caller(
            sender_id,
            name,
            schedule=self.schedule,
            network=self.network,
            trace=self.trace,
            receive=self._receive,
        )

    def _receive(self, node: SimNode, raw: bytes, answer: Callable[[bytes], None]) -> None:
        machine = node.machine
        if isinstance(machine, ControllerMachine):
            machine.receive(raw, answer, self._check_answer)

    def _check_answer(self, request: Request, reply: Reply, known: Image) -> None:
        """M6: who speaks for a registration that was over when the request came is refused."""
        what = request.WhichOneof("request")
        if what not in EPOCH_OF or reply.HasField("error"):
            return
        asked = request.heartbeat if what == "heartbeat" else request.alter_partitions
        broker = known.brokers.get(asked.broker_id)
        current = broker.epoch if broker else -1
        facts = {"request": what, "epoch": asked.broker_epoch, "current": current}
        is_current = asked.broker_epoch >= current and broker is not None
        invariant(is_current, "M6 an old broker epoch is accepted", **facts)
        if what == "alter_partitions":
            self._check_members(request, reply, known)

    def _check_members(self, request: Request, reply: Reply, known: Image) -> None:
        """M6: nobody joins an ISR as who it was before it registered again."""
        results = reply.alter_partitions.results
        for change, result in zip(request.alter_partitions.changes, results, strict=True):
            for member in change.isr if not result.HasField("error") else ():
                broker = known.brokers.get(member.broker_id)
                told = member.broker_epoch if member.HasField("broker_epoch") else None
                newer = broker is not None and told is not None and broker.epoch > told
                facts = {"member": member, "registered": broker, "isr": result.isr}
                invariant(not newer, "M6 an old broker epoch is in an ISR", **facts)
