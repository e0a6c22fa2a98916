"""A range of a partition in pieces."""

from pathlib import Path

from brokers.cluster import PartitionId
from brokers.requests import RangePiece, RangeRequest
from kraftlog.errors import ErrorCode
from kraftlog.record_batch import read_batches
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster
from tests.storage.logs import small_segments


async def pieces(cluster: Cluster, request: RangeRequest) -> list[RangePiece]:
    manager = cluster.leader(request.partition).manager
    return [piece async for piece in manager.fetch_range(request)]


def offsets(found: list[RangePiece]) -> list[int]:
    batches = [each for piece in found for each in read_batches(piece.records)]
    return [record.offset for each in batches for record in each.records()]


@async_test
async def test_whole_batches_from_one_offset_to_another(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,), log=small_segments(600))
        for _ in range(10):
            await cluster.produce(topic, b"a", b"b", b"c")
        everything = await pieces(cluster, RangeRequest(topic, 0, 30))
        assert offsets(everything) == list(range(30))
        assert everything[-1].next_offset == 30
        inside = await pieces(cluster, RangeRequest(topic, 4, 11))
        assert offsets(inside) == list(range(3, 12))  # whole batches
        small = await pieces(cluster, RangeRequest(topic, 0, 30, message_bytes=100))
        assert len(small) == 10
        assert offsets(small) == list(range(30))
        nothing = await pieces(cluster, RangeRequest(topic, 7, 7))
        assert [(piece.records, piece.next_offset) for piece in nothing] == [(b"", 7)]


@async_test
async def test_a_range_must_be_there_and_committed(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        cluster.cut(1, 2)
        await cluster.produce(topic, b"b", acks=1)
        (early,) = await pieces(cluster, RangeRequest(topic, 0, 2))
        assert early.error is not None
        assert early.error.code == ErrorCode.OFFSET_NOT_AVAILABLE
        for begin, end in ((0, 3), (2, 1), (-1, 1)):
            (beyond,) = await pieces(cluster, RangeRequest(topic, begin, end))
            assert beyond.error is not None
            assert beyond.error.code == ErrorCode.OFFSET_OUT_OF_RANGE
        (old,) = await pieces(cluster, RangeRequest(topic, 0, 1, leader_epoch=7))
        assert old.error is not None
        assert old.error.code == ErrorCode.UNKNOWN_LEADER_EPOCH


@async_test
async def test_a_leader_that_is_lost_on_the_way_ends_it(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        for _ in range(3):
            await cluster.produce(topic, b"x" * 100)
        request = RangeRequest(topic, 0, 3, message_bytes=1)
        found: list[RangePiece] = []
        async for piece in cluster.brokers[1].manager.fetch_range(request):
            found.append(piece)
            await cluster.elect(topic, 2)
        assert found[0].error is None
        assert found[1].error is not None
        assert found[1].leader == (2, 1)
        assert len(found) == 2


@async_test
async def test_an_unknown_partition_is_an_error(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        manager = cluster.brokers[1].manager
        request = RangeRequest(PartitionId(b"?" * 16, 0), 0, 1)
        found = [piece async for piece in manager.fetch_range(request)]
        assert len(found) == 1
        assert found[0].error is not None
