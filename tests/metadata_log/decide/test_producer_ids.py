import pytest

from kraftlog.errors import StaleEpoch
from metadata_log.decide.producer_ids import ProducerIdBlock, allocate_producer_ids
from tests.metadata_log.clusters import Cluster


def test_blocks_never_overlap() -> None:
    cluster = Cluster([1, 2])
    blocks = [
        cluster.decided(
            allocate_producer_ids(cluster.image, broker, cluster.image.brokers[broker].epoch)
        )
        for broker in (1, 2, 1)
    ]
    assert blocks == [ProducerIdBlock(first, 1_000) for first in (0, 1_000, 2_000)]


def test_an_old_incarnation_gets_none() -> None:
    cluster = Cluster([1])
    with pytest.raises(StaleEpoch):
        allocate_producer_ids(cluster.image, 1, cluster.image.brokers[1].epoch - 1)
