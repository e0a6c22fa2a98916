"""What a broker has on its disk."""

from pathlib import Path

from brokers.cluster import PartitionId
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.storage.logs import small_segments


@async_test
async def test_all_replicas_have_the_same_digest(tmp_path: Path) -> None:
    # P3
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", log=small_segments(500))
        for number in range(20):
            await cluster.produce(topic, b"%d" % number * 20)
        await cluster.replicated(topic)
        found = {}
        for broker in cluster.brokers.values():
            (info,) = await broker.manager.describe_replicas(digest=True)
            assert (info.topic, info.high_watermark, info.end_offset) == ("t", 20, 20)
            assert info.log_dir == str(tmp_path / f"b{broker.id}")
            assert info.is_leader is (broker.id == 1)
            assert info.size_bytes > 0
            found[broker.id] = info.digest
        assert len(set(found.values())) == 1
        await cluster.produce(topic, b"more")
        await cluster.replicated(topic)
        (later,) = await cluster.brokers[2].manager.describe_replicas([topic], digest=True)
        assert later.digest not in (None, found[2])


@async_test
async def test_replicas_that_are_not_at_the_same_offset_have_something_in_common(
    tmp_path: Path,
) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager = cluster.brokers[1].manager

        async def digest_of(start: int, end: int) -> int | None:
            ranges = {topic: (start, end)}
            (info,) = await manager.describe_replicas([topic], digest=ranges)
            return info.digest

        for _ in range(3):
            await cluster.produce(topic, b"x")
        (whole,) = await manager.describe_replicas(digest=True)
        before = await digest_of(0, 3)
        assert before == whole.digest
        await cluster.produce(topic, b"more")
        assert await digest_of(0, 3) == before
        assert await digest_of(0, 4) != before
        assert await digest_of(2, 2) == 0
        assert await digest_of(0, 5) is None, "not all of it is committed"
        (other,) = await manager.describe_replicas(digest={PartitionId(b"?" * 16, 0): (0, 1)})
        assert other.digest is None


@async_test
async def test_an_empty_partition_and_one_that_is_elsewhere(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager = cluster.brokers[1].manager
        (info,) = await manager.describe_replicas(digest=True)
        assert (info.size_bytes, info.log_dir, info.digest) == (0, "", 0)
        (plain,) = await manager.describe_replicas([topic, PartitionId(b"?" * 16, 0)])
        assert plain.digest is None
