"""Bits that flip in what was durable."""

from random import Random

import pytest

from chaos.sim.damage import flip_flushed_bit
from tests.chaos.sim.clusters import append, elect, run_until, start


@pytest.mark.parametrize("seed", range(5))
def test_a_damaged_node_does_not_start(seed: int) -> None:  # Q15
    cluster = start(3)
    leader = elect(cluster)
    append(cluster, leader, b"v")
    assert leader.store is not None
    flushed = leader.store.log.flushed_offset
    leader.die()
    assert flip_flushed_bit(leader.disk, flushed, Random(seed))
    leader.is_damaged = True
    run_until(cluster, lambda: cluster.sightings["damage found at start"] == 1)
    assert leader.key in cluster.lost
    assert cluster.nodes[leader.node_id - 1] is not leader


def test_where_nothing_is_flushed_nothing_can_be_damaged() -> None:
    cluster = start(3)
    node = cluster.nodes[0]
    node.die()
    before = node.disk.list_sizes("/node/__cluster_metadata-0")
    assert not flip_flushed_bit(node.disk, 0, Random(1))
    assert node.disk.list_sizes("/node/__cluster_metadata-0") == before
