"""After the faults: who is alive serves again, and every partition that can has a leader."""

from chaos.sim.atlas import Atlas
from chaos.sim.clients import Workload
from chaos.sim.faults import Faults
from chaos.sim.liveness import Liveness
from chaos.sim.metadata_cluster import MetadataCluster
from metadata_log.image import Image
from metadata_log.records import PartitionState


class MetadataLiveness(Liveness):
    def __init__(
        self, cluster: MetadataCluster, atlas: Atlas, faults: Faults, clients: Workload
    ) -> None:
        super().__init__(cluster, atlas, faults, clients)
        self._metadata = cluster

    def has_progressed(self) -> bool:
        return super().has_progressed() and self._serves_all()

    def has_settled(self) -> bool:
        return all(map(self._has_all, self.core))

    def _serves_all(self) -> bool:
        image, core = self._metadata.metadata.image, {node.node_id for node in self.core}
        for node in self._metadata.brokers():
            broker = image.brokers.get(node.node_id)
            if node.node_id in core and (broker is None or broker.is_fenced):
                return False
            if not node.is_up and broker is not None and not broker.is_fenced:
                return False
        return all(
            _is_led(image, state) for topic in image.topics.values() for state in topic.partitions
        )


def _is_led(image: Image, state: PartitionState) -> bool:
    return state.leader != -1 or not any(map(image.is_active, (*state.isr, *state.elr)))
