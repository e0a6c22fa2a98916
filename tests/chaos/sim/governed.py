"""Small clusters with a controller and brokers, without faults."""

from collections.abc import Callable

from chaos.sim.metadata_cluster import MetadataCluster
from chaos.sim.options import Options
from chaos.sim.partitions_cluster import PartitionsCluster
from tests.chaos.sim.clusters import run_until

ONE_OF_EACH = Options(kind="metadata", voters=1, brokers=3)


def all_unfenced(cluster: MetadataCluster) -> bool:
    brokers = cluster.metadata.image.brokers.values()
    return len(list(brokers)) == 3 and not any(each.is_fenced for each in brokers)


def start_scripted(seed: int = 1) -> MetadataCluster:
    cluster = MetadataCluster(seed, ONE_OF_EACH)
    cluster.start()
    run_until(cluster, lambda: all_unfenced(cluster))
    return cluster


def start_real(seed: int = 1, *, options: Options = ONE_OF_EACH) -> PartitionsCluster:
    cluster = PartitionsCluster(seed, options)
    cluster.start()
    run_until(cluster, lambda: all_unfenced(cluster))
    return cluster


def until(cluster: MetadataCluster, reached: Callable[[], bool]) -> None:
    run_until(cluster, reached)
