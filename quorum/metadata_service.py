"""The controller of a cluster, put together: state machine, broker watch, calls, gRPC service.

It is made before its node, which needs a state machine, and attached to it afterwards.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence

import grpc

from kraftlog.config import Config
from kraftlog.metrics import Registry
from kraftlog.types import Uuid
from metadata_log.decide import Draw
from quorum.admin_calls import AdminCalls
from quorum.broker_calls import BrokerCalls
from quorum.broker_watch import BrokerWatch
from quorum.config import watch_timing
from quorum.controller import Controller
from quorum.controller_service import APIS, Call, ControllerService, LeaderNow
from quorum.metrics import register_cluster, register_decisions, register_watch
from quorum.node import RaftNode
from quorum.read_calls import ReadCalls


class SystemDraw:
    """Chance from the operating system."""

    def __init__(self) -> None:
        self._dice = random.SystemRandom()

    def below(self, limit: int) -> int:
        return self._dice.randrange(limit)

    def uuid(self) -> Uuid:
        return Uuid.random()


def controller_calls(
    controller: Controller,
    watch: BrokerWatch,
    config: Config,
    *,
    cluster_id: Uuid,
    node_id: int,
    draw: Draw,
) -> Mapping[str, Call]:
    """Everything that can be asked of a controller, by the name of the request."""
    groups = (
        BrokerCalls(controller, watch, config, cluster_id),
        AdminCalls(controller, watch, config, draw),
        ReadCalls(controller, watch, config, cluster_id=cluster_id, node_id=node_id),
    )
    return {
        name: getattr(group, name)
        for group in groups
        for name in APIS.names
        if hasattr(group, name)
    }


class MetadataService:
    """Made, attached to a node, served, and kept running."""

    takes_proposals = False

    def __init__(self, node_id: int, cluster_id: Uuid, config: Config) -> None:
        self._node: RaftNode | None = None
        self._node_id = node_id
        self._cluster_id = cluster_id
        self.controller = Controller(node_id, leader_hint=self._leader_hint)
        self.watch = BrokerWatch(self.controller, watch_timing(config), config)
        self._config = config

    @property
    def machine(self) -> Controller:
        return self.controller

    def attach(self, node: RaftNode) -> None:
        self._node = node
        self.controller.attach(node, self.watch)

    def register_metrics(self, registry: Registry) -> None:
        register_cluster(registry, self.controller)
        register_decisions(registry, self.controller)
        register_watch(registry, self.controller, self.watch)

    def handlers(self) -> Sequence[grpc.GenericRpcHandler]:
        service = ControllerService(
            controller_calls(
                self.controller,
                self.watch,
                self._config,
                cluster_id=self._cluster_id,
                node_id=self._node_id,
                draw=SystemDraw(),
            ),
            cluster_id=self._cluster_id,
            now_ms=self.controller.ledger.now_ms,
            leader=self._leader,
        )
        return (service.handlers(),)

    async def run(self) -> None:
        """Until cancelled: look after the brokers when it is time."""
        ledger = self.controller.ledger
        while True:
            self.watch.tick()
            wait_ms = self.watch.next_tick_ms() - ledger.now_ms()
            await asyncio.sleep(max(wait_ms, 1) / 1000)

    # -- who leads

    def _leader(self) -> LeaderNow:
        if self._node is None:
            return LeaderNow(0, None)
        return LeaderNow(self._node.core.epoch, self._node.core.leader)

    def _leader_hint(self) -> str:
        leader = self._leader().leader
        if leader is None:
            return "no controller is known to be active: try again"
        return f"node {leader.key.node_id} at {leader.endpoint} is"
