"""What a broker does again and again."""

from dataclasses import replace
from pathlib import Path

from storage.checkpoint import read_offsets
from storage.files import OsFiles
from storage.log_config import LogConfig
from storage.log_dir import HIGH_WATERMARKS_FILE
from tests.brokers.aio import async_test
from tests.brokers.brokers import FAST, Cluster, values_in
from tests.loops import until
from tests.storage.keyed import keyed
from tests.storage.logs import small_segments


@async_test
async def test_high_watermarks_are_written_down(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a", b"b")
        name = cluster.brokers[2].partition(topic).name
        path = str(tmp_path / "b2" / HIGH_WATERMARKS_FILE)
        await until(lambda: read_offsets(OsFiles(), path).get(name) == 2)


@async_test
async def test_retention_drops_what_is_old_and_readers_hear_of_it(tmp_path: Path) -> None:
    # R26
    async with Cluster(tmp_path, count=1) as cluster:
        config = small_segments(300, retention_bytes=600, file_delete_delay_ms=0)
        topic = await cluster.create("t", replicas=(1,), log=config)
        for number in range(20):
            await cluster.produce(topic, b"%d" % number * 30)
        manager = cluster.brokers[1].manager
        assert await manager.housekeeping.apply_retention() > 0
        partition = cluster.brokers[1].partition(topic)
        assert partition.start_offset == partition.state.start_offset > 0
        assert partition.log is not None
        assert partition.log.size <= 900
        assert await manager.housekeeping.apply_retention() == 0


@async_test
async def test_a_compacted_topic_keeps_the_last_of_each_key(tmp_path: Path) -> None:
    # R30
    async with Cluster(tmp_path, count=1) as cluster:
        config = LogConfig(
            segment_bytes=400, compact=True, delete=False, min_cleanable_dirty_ratio=0.01
        )
        topic = await cluster.create("t", replicas=(1,), log=config)
        for number in range(30):
            data = keyed((b"k%d" % (number % 3), b"%d" % number))
            assert (await cluster.produce_batch(topic, data)).error is None
        manager = cluster.brokers[1].manager
        assert not await manager.housekeeping.clean_once()  # nothing is flushed yet
        await manager.housekeeping.flush_closed_segments()
        assert await manager.housekeeping.clean_once()
        left = [value for value in values_in(cluster.brokers[1], topic) if value]
        assert len(left) < 15
        assert {b"27", b"28", b"29"} <= set(left)


@async_test
async def test_all_of_it_happens_by_itself_and_as_often_as_it_is_told(tmp_path: Path) -> None:
    # R26 R30
    often = replace(FAST, retention_check_ms=20, cleaner_backoff_ms=20, flush_check_ms=20)
    async with Cluster(tmp_path, count=1, settings=often) as cluster:
        old = small_segments(300, retention_bytes=600, file_delete_delay_ms=0)
        short = await cluster.create("t", replicas=(1,), log=old)
        keys = LogConfig(
            segment_bytes=400, compact=True, delete=False, min_cleanable_dirty_ratio=0.01
        )
        compacted = await cluster.create("u", replicas=(1,), log=keys)
        for number in range(30):
            await cluster.produce(short, b"%d" % number * 30)
            data = keyed((b"k%d" % (number % 3), b"%d" % number))
            assert (await cluster.produce_batch(compacted, data)).error is None
        broker = cluster.brokers[1]
        await until(lambda: broker.partition(short).start_offset > 0, "retention")
        await until(lambda: len(values_in(broker, compacted)) < 15, "compaction")


@async_test
async def test_only_closed_segments_are_flushed(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,), log=small_segments(300))
        await cluster.produce(topic, b"a")
        housekeeping = cluster.brokers[1].manager.housekeeping
        log = cluster.brokers[1].partition(topic).log
        assert log is not None
        await housekeeping.flush_closed_segments()
        assert log.flushed_offset == 0
        for _ in range(5):
            await cluster.produce(topic, b"x" * 100)
        await housekeeping.flush_closed_segments()
        assert log.flushed_offset == 6
        flushed = log.segments
        await housekeeping.flush_closed_segments()
        assert log.segments == flushed


@async_test
async def test_leaders_whose_replicas_have_everything_are_not_looked_at(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        unsettled = cluster.brokers[1].manager.unsettled
        await until(lambda: not unsettled)
        cluster.cut(1, 2)
        await cluster.produce(topic, b"b", acks=1)
        assert unsettled == {cluster.brokers[1].partition(topic)}
        await cluster.in_sync(topic, 1, 3)
        cluster.heal()
        await cluster.in_sync(topic, 1, 2, 3)
        await until(lambda: not unsettled)
