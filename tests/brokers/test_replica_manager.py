"""Three brokers in one process: records reach all replicas, and survive what happens to them."""

from pathlib import Path

from brokers.cluster import PartitionId
from brokers.requests import ACKS_ALL
from kraftlog.errors import ErrorCode
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster, values_in
from tests.loops import until


@async_test
async def test_a_record_is_acknowledged_when_all_replicas_have_it(tmp_path: Path) -> None:
    # R9 R14 R18
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        done = await cluster.produce(topic, b"a", b"b")
        assert (done.error, done.base_offset) == (None, 0)
        for broker in cluster.brokers.values():
            assert values_in(broker, topic) == [b"a", b"b"]
        await cluster.replicated(topic)
        assert await cluster.read(topic) == [b"a", b"b"]


@async_test
async def test_a_partition_has_no_directory_before_its_first_record(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        await cluster.create("t")
        assert not has_directory(tmp_path, "t-0")
        await cluster.produce(PartitionId(b"t".ljust(16, b"."), 0), b"a")
        assert has_directory(tmp_path, "t-0")


def has_directory(path: Path, name: str) -> bool:
    return bool(list(path.glob(f"b*/{name}")))


@async_test
async def test_a_new_leader_goes_on_and_the_old_one_follows(tmp_path: Path) -> None:
    # R4 R8
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        await cluster.elect(topic, 2)
        refused = await cluster.produce(topic, b"x", to=1)
        assert refused.error is not None
        assert refused.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refused.leader is not None
        assert refused.leader.leader_id == 2
        done = await cluster.produce(topic, b"b")
        assert (done.error, done.base_offset) == (None, 1)
        assert values_in(cluster.brokers[1], topic) == [b"a", b"b"]


@async_test
async def test_a_tail_that_was_never_committed_is_cut_where_the_epochs_part(
    tmp_path: Path,
) -> None:
    # P11
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=1)
        await cluster.produce(topic, b"a")
        cluster.cut(1, 2)
        cluster.cut(1, 3)
        cluster.brokers[1].hears_controller = False
        lost = await cluster.produce(topic, b"lost", acks=1, to=1)
        assert lost.error is None
        cluster.change(lambda controller: controller.fence(1))
        await cluster.settled()
        kept = await cluster.produce(topic, b"kept")
        assert (kept.error, kept.base_offset) == (None, 1)
        cluster.brokers[1].hears_controller = True
        cluster.heal()
        cluster.change(lambda controller: controller.unfence(1))
        await cluster.in_sync(topic, 1, 2, 3)
        assert values_in(cluster.brokers[1], topic) == [b"a", b"kept"]


@async_test
async def test_min_insync_replicas_refuses_and_nothing_is_appended(tmp_path: Path) -> None:
    # R13 P9
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.kill(3)
        await cluster.settled()
        assert (await cluster.produce(topic, b"two are enough")).error is None
        await cluster.kill(2)
        await cluster.settled()
        refused = await cluster.produce(topic, b"one is not")
        assert refused.error is not None
        assert refused.error.code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert values_in(cluster.brokers[1], topic) == [b"two are enough"]


@async_test
async def test_a_killed_leader_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    # R14 P1
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        sent = [b"%d" % number for number in range(20)]
        for number, value in enumerate(sent):
            assert (await cluster.produce(topic, value)).error is None
            if number == 9:
                await cluster.kill(1)
                await cluster.settled()
        assert await cluster.read(topic) == sent
        await cluster.restart(1)
        await cluster.in_sync(topic, 1, 2, 3)
        assert values_in(cluster.brokers[1], topic) == sent


@async_test
async def test_a_retry_over_a_failover_is_found_to_be_a_duplicate(tmp_path: Path) -> None:
    # R34 P8
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        first = await cluster.produce(topic, b"a", producer=(7, 0, 0))
        second = await cluster.produce(topic, b"b", producer=(7, 0, 1))
        await cluster.kill(1)
        await cluster.settled()
        again = await cluster.produce(topic, b"b", producer=(7, 0, 1))
        assert (again.error, again.base_offset) == (None, second.base_offset)
        gap = await cluster.produce(topic, b"d", producer=(7, 0, 3))
        assert gap.error is not None
        assert gap.error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (await cluster.produce(topic, b"c", producer=(7, 0, 2))).error is None
        assert first.base_offset == 0
        assert await cluster.read(topic) == [b"a", b"b", b"c"]


@async_test
async def test_an_idle_cluster_names_no_partition_in_its_fetches(tmp_path: Path) -> None:
    # R21
    async with Cluster(tmp_path) as cluster:
        for partition in range(20):
            await cluster.create("t", partition=partition)
        sessions = cluster.brokers[1].manager.fetches.sessions
        await until(lambda: [len(session.parts) for session in sessions] == [20, 20])
        await until(lambda: not any(session.news for session in sessions))
        before = cluster.fetches
        await until(lambda: cluster.fetches > before + 4)
        assert not any(session.news for session in sessions)


@async_test
async def test_a_follower_that_lags_leaves_the_isr_and_comes_back(tmp_path: Path) -> None:
    # R10
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        cluster.cut(1, 3)
        waiting = await cluster.produce(topic, b"b", acks=ACKS_ALL)
        assert waiting.error is None
        await cluster.in_sync(topic, 1, 2)
        cluster.heal()
        await cluster.in_sync(topic, 1, 2, 3)
        assert values_in(cluster.brokers[3], topic) == [b"a", b"b"]


def damage(log_dir: Path) -> None:
    (log_dir / "t-0" / "partition.metadata").write_text("version: 0\n")


@async_test
async def test_a_damaged_copy_that_nobody_counts_on_is_made_anew_and_kept(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        await cluster.kill(3)
        await cluster.produce(topic, b"b")
        damage(tmp_path / "b3")
        await cluster.restart(3)
        await cluster.in_sync(topic, 1, 2, 3)
        assert values_in(cluster.brokers[3], topic) == [b"a", b"b"]
        assert cluster.brokers[3].manager.counts().damaged == 0
        assert len(list((tmp_path / "b3").glob("t-0.*-stray/*.log"))) == 1


@async_test
async def test_a_damaged_copy_that_may_be_the_last_one_stays_as_it_is(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        for broker_id in (1, 2, 3):
            await cluster.kill(broker_id)
        damage(tmp_path / "b3")
        await cluster.restart(3)
        assert cluster.controller.now.assignments[topic].leader == 3
        refused = await cluster.produce(topic, b"b")
        assert refused.error is not None
        assert refused.error.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert cluster.brokers[3].manager.counts().damaged == 1
        assert has_directory(tmp_path, "t-0")


@async_test
async def test_a_broker_of_which_nothing_is_followed_any_more_is_not_asked(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        assert sorted(cluster.links) == [(2, 1), (3, 1)]
        for leader, links in ((2, [(1, 2), (3, 2)]), (1, [(2, 1), (3, 1)])):
            await cluster.elect(topic, leader)
            await cluster.produce(topic, b"b")
            await linked(cluster, links)
        await cluster.in_sync(topic, 1, 2, 3)
        await cluster.replicated(topic)
        cluster.change(lambda controller: controller.remove(topic))
        await until(lambda: not cluster.links)
        assert [each.manager.counts().fetchers for each in cluster.brokers.values()] == [0, 0, 0]


async def linked(cluster: Cluster, links: list[tuple[int, int]]) -> None:
    await until(lambda: sorted(cluster.links) == links)
