"""One run with a controller and brokers that have no data: see `world`."""

from chaos.sim.atlas import Atlas
from chaos.sim.clients import Workload
from chaos.sim.cluster import Cluster
from chaos.sim.faults import Faults
from chaos.sim.liveness import Liveness
from chaos.sim.metadata_clients import AdminClients
from chaos.sim.metadata_cluster import MetadataCluster
from chaos.sim.metadata_faults import BrokerFaults
from chaos.sim.metadata_liveness import MetadataLiveness
from chaos.sim.world import World


class MetadataWorld(World):
    def make_cluster(self, seed: int, *, live_trace: bool) -> Cluster:
        self._metadata = MetadataCluster(seed, self.options, live_trace=live_trace)
        return self._metadata

    def make_clients(self) -> Workload:
        return AdminClients(self._metadata)

    def make_liveness(self, atlas: Atlas, faults: Faults, clients: Workload) -> Liveness:
        self._broker_faults = BrokerFaults(self._metadata)
        return MetadataLiveness(self._metadata, atlas, faults, clients)

    def run(self) -> None:
        self._broker_faults.begin()
        super().run()
