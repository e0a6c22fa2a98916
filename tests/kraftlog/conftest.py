from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kraftlog.toy_cluster import ToyCluster


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[ToyCluster]:
    """Two toy brokers and a topic `t` with two partitions, one led by each."""
    with ToyCluster(tmp_path, brokers=2) as cluster:
        cluster.add_topic("t", 2)
        yield cluster
