"""One run with the controller and real brokers that keep records: see `world`."""

from brokers import turns
from chaos.sim.atlas import Atlas
from chaos.sim.clients import Workload
from chaos.sim.cluster import Cluster
from chaos.sim.faults import Faults
from chaos.sim.liveness import Liveness
from chaos.sim.partitions_clients import PartitionClients
from chaos.sim.partitions_cluster import PartitionsCluster
from chaos.sim.partitions_faults import PartitionFaults
from chaos.sim.partitions_liveness import PartitionsLiveness
from chaos.sim.world import World

ENDLESS_NS = 1 << 62


class PartitionsWorld(World):
    def make_cluster(self, seed: int, *, live_trace: bool) -> Cluster:
        self._partitions = PartitionsCluster(seed, self.options, live_trace=live_trace)
        return self._partitions

    def make_clients(self) -> Workload:
        self._data = PartitionClients(self._partitions)
        return self._data

    def make_liveness(self, atlas: Atlas, faults: Faults, clients: Workload) -> Liveness:
        self._broker_faults = PartitionFaults(self._partitions)
        return PartitionsLiveness(self._partitions, atlas, faults, clients, data=self._data)

    def run(self) -> None:
        """The brokers share their loop by a real clock; here that would be chance."""
        before, turns.TURN_NS = turns.TURN_NS, ENDLESS_NS
        try:
            self._broker_faults.begin()
            super().run()
        finally:
            turns.TURN_NS = before
            self._partitions.take_apart()
