from pathlib import Path

from brokers.backend import DataPlane
from tests.brokers.brokers import Cluster
from tests.loops import run


def test_the_replica_manager_is_a_data_plane(tmp_path: Path) -> None:
    """A type checker compares the signatures; here they are called."""

    async def story() -> None:
        async with Cluster(tmp_path, count=1) as cluster:
            data: DataPlane = cluster.brokers[1].manager
            assert list(data.list_offsets([])) == []
            assert list(data.epoch_ends([])) == []
            assert list(data.estimate_bytes([])) == []
            assert list(await data.describe_replicas()) == []

    run(story())
