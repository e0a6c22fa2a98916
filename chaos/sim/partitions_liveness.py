"""After the faults: every partition with enough replicas takes records again."""

from chaos.sim.atlas import Atlas
from chaos.sim.clients import Workload
from chaos.sim.faults import Faults
from chaos.sim.metadata_liveness import MetadataLiveness
from chaos.sim.partitions_clients import TOPICS, PartitionClients
from chaos.sim.partitions_cluster import PartitionsCluster


class PartitionsLiveness(MetadataLiveness):
    def __init__(
        self,
        cluster: PartitionsCluster,
        atlas: Atlas,
        faults: Faults,
        clients: Workload,
        *,
        data: PartitionClients,
    ) -> None:
        super().__init__(cluster, atlas, faults, clients)
        self._partitions = cluster
        self._data = data
        self._before: dict[tuple[str, int], int] = {}

    def heal(self) -> None:
        super().heal()
        self._before = self._data.progress()
        for broker in self._partitions.real.values():
            broker.lags_until = 0.0

    def has_progressed(self) -> bool:
        return super().has_progressed() and self._takes_records()

    def _takes_records(self) -> bool:
        image, core = self._partitions.metadata.image, {node.node_id for node in self.core}
        done = self._data.progress()
        for name in TOPICS:
            topic = image.topic(name)
            for number, state in enumerate(topic.partitions if topic else ()):
                able = state.leader in core and len(core & set(state.replicas)) >= 2
                key = (name, number)
                if able and done.get(key, 0) <= self._before.get(key, 0):
                    return False
        return True

    def check_end(self) -> None:
        super().check_end()
        for node in self.core:
            broker = self._partitions.real.get(node.node_id)
            if broker is not None:
                self._partitions.rules.check_end(broker)
