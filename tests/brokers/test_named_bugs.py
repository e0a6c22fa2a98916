"""Bugs that others had, by the number under which they are known: each must stay impossible."""

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.cluster import Assignment
from brokers.purgatory import wait
from brokers.refusals import Refused
from brokers.requests import (
    FetchPart,
    FetchReply,
    FetchRequest,
    ProducePart,
    ProduceReply,
    ProduceRequest,
    ReplicaIdentity,
)
from kraftlog.clock import ManualClock
from kraftlog.errors import ErrorCode
from kraftlog.record_batch import encode_values
from kraftlog.types import EpochEnd, TopicPartition, Uuid
from storage.checkpoint import read_clean_shutdown
from storage.files import OsFiles
from storage.log_config import LogConfig
from storage.log_dirs import LogDirs
from storage.model_disk import ModelDisk
from tests.brokers.aio import async_test
from tests.brokers.brokers import CLUSTER_ID, Cluster, values_in
from tests.brokers.sources import Following, batches, follower, told
from tests.brokers.states import FIRST, LAG_MS, Leader, moved_to, proposal, proposed
from tests.loops import until
from tests.storage.logs import batch

# -- KAFKA-13916, KAFKA-14617: a replica that must not count came back into the ISR


@pytest.mark.parametrize("trouble", ["fenced", "stops", "gone"])
def test_kafka_13916_a_replica_that_must_not_count_does_not_join(trouble: str) -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    if trouble == "gone":
        del leader.brokers.known[3]
    else:
        leader.brokers.change(3, fenced=trouble == "fenced", stops=trouble == "stops")
    assert proposed(leader.fetch(3, 0)) is None


def test_kafka_14617_neither_does_an_earlier_run_of_it() -> None:
    leader = Leader(replace(FIRST, isr=(1, 2)))
    leader.brokers.change(3, epoch=203)
    with pytest.raises(Refused) as refused:
        leader.fetch(3, 0)
    assert refused.value.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert proposal(leader.fetch(3, 0, epoch=203)).ids == {1, 2, 3}


@async_test
async def test_kafka_14617_an_empty_disk_does_not_come_back_as_if_it_were_full(
    tmp_path: Path,
) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        await cluster.kill(3)
        for file in sorted((tmp_path / "b3" / "t-0").iterdir()):
            file.unlink()
        cluster.cut(1, 3)
        cluster.cut(2, 3)
        await cluster.restart(3, clean=False)
        await cluster.settled()
        assert cluster.isr(topic) == (1, 2)
        cluster.heal()
        await cluster.in_sync(topic, 1, 2, 3)
        assert values_in(cluster.brokers[3], topic) == [b"a"]


# -- KAFKA-15221: one fetch passed the one check, another fetch the other


def test_kafka_15221_eligibility_and_offset_are_of_one_fetch() -> None:
    """Broker 3 was at the end; its next run, which metadata knows by now, is not."""
    leader = Leader(replace(FIRST, isr=(1, 2)), offset=10, high_watermark=10)
    leader.brokers.change(3, fenced=True)
    leader.fetch(3, 10)
    leader.brokers.change(3, epoch=203)
    assert proposed(leader.fetch(3, 4, epoch=203)) is None
    with pytest.raises(Refused):
        leader.fetch(3, 10)  # the old fetch comes late
    assert leader.role.followers[3].end_offset == 4
    change = proposal(leader.fetch(3, 10, epoch=203))
    assert {member.broker_id: member.broker_epoch for member in change.isr}[3] == 203


# -- KAFKA-14704: a follower raised its high watermark before it had cut its log


@async_test
async def test_kafka_14704_a_reply_that_says_cut_moves_no_high_watermark(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await follower(cluster, "t")
        partition = cluster.brokers[2].partition(topic)
        async with Following(cluster.brokers[2]) as following:
            await partition.data.open()
            partition.append_fetched(batches(4, epoch=0))
            following.fetcher.add(partition)
            await following.source.next_request(1)
            parted = told(topic, diverging=EpochEnd(0, 2), high_watermark=4, log_start_offset=1)
            following.reply(parted)
            again = await following.source.next_request(2)
            assert [part.offset for part in again.parts] == [2]
            assert (partition.high_watermark, partition.start_offset) == (0, 0)


# -- KAFKA-13141: a fetch whose log parts from the leader's counted as progress


@async_test
async def test_kafka_13141_a_fetch_that_diverges_is_no_progress(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await cluster.create("t", replicas=(1, 2))
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        await cluster.elect(topic, 2)
        cluster.cut(1, 2)
        await cluster.produce(topic, b"b", acks=1)
        partition = cluster.brokers[2].partition(topic)
        before = partition.high_watermark
        lie = FetchPart(topic, 2, 1, last_fetched_epoch=0)  # its second record is of epoch 0
        request = FetchRequest(replica=ReplicaIdentity(1, 1), parts=[lie], max_wait_ms=0)
        reply: FetchReply = await wait(lambda done: cluster.brokers[2].manager.fetch(request, done))
        assert reply.parts[0].diverging is not None
        assert reply.parts[0].diverging.end_offset == 1
        assert partition.high_watermark == before
        true = replace(request, parts=[FetchPart(topic, 2, 1, last_fetched_epoch=1)])
        reply = await wait(lambda done: cluster.brokers[2].manager.fetch(true, done))
        assert partition.high_watermark == 2


# -- KAFKA-10706: a cut to where the log ends already left an epoch behind, and the loop was endless


@async_test
async def test_kafka_10706_an_epoch_without_records_does_not_loop(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.produce(topic, b"a")
        for leader in (2, 3, 1, 2):  # epochs in which nobody writes anything
            await cluster.elect(topic, leader)
        assert (await cluster.produce(topic, b"b")).error is None
        await cluster.replicated(topic)
        for broker in cluster.brokers.values():
            log = broker.partition(topic).log
            assert log is not None
            entries = {entry.epoch: entry.start_offset for entry in log.epochs.entries()}
            assert entries == {0: 0, 4: 1}


@async_test
async def test_kafka_10706_a_cut_at_the_end_drops_the_epoch_that_begins_there(
    tmp_path: Path,
) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        await cluster.produce(topic, b"a")
        partition = cluster.brokers[1].partition(topic)
        log = partition.log
        assert log is not None
        log.epochs.assign(7, 1)
        assignment = cluster.controller.now.assignments[topic]
        partition.apply(replace(assignment, leader=2, leader_epoch=8, partition_epoch=9))
        log.epochs.assign(7, 1)
        await partition.truncate_to(1)
        assert partition.data.last_epoch == log.latest_epoch == 0


# -- KAFKA-9491: after a wipe the high watermark was below the start of the log


@async_test
async def test_kafka_9491_a_log_that_begins_anew_takes_its_high_watermark_along(
    tmp_path: Path,
) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        partition = cluster.brokers[1].partition(topic)
        assignment = cluster.controller.now.assignments[topic]
        partition.apply(replace(assignment, leader=2, leader_epoch=8, partition_epoch=9))
        await partition.data.open()
        partition.append_fetched(encode_values([b"a"], timestamp=1, leader_epoch=0))
        await partition.restart_at(50)
        ends = (partition.start_offset, partition.high_watermark, partition.end_offset)
        assert ends == (50, 50, 50)
        assert partition.log is not None
        assert partition.log.high_watermark == 50


# -- KAFKA-15021: a replica that is caught up, and may not join, held up everybody


@pytest.mark.parametrize("trouble", ["fenced", "stops", "rebooted"])
def test_kafka_15021_a_replica_that_may_not_join_is_not_waited_for(trouble: str) -> None:
    leader = Leader()
    leader.fetch(2, 0)
    leader.fetch(3, 0)
    leader.brokers.change(
        3,
        fenced=trouble == "fenced",
        stops=trouble == "stops",
        epoch=203 if trouble == "rebooted" else None,
    )
    leader.apply(isr=(1, 2), partition_epoch=11)
    leader.append()
    assert moved_to(leader.fetch(2, 1)) == 1


# -- KAFKA-13091, KAFKA-13254: the high watermark stayed after a shrink; then a callback deadlocked


def test_kafka_13091_a_confirmed_shrink_moves_the_high_watermark() -> None:
    leader = Leader()
    leader.append(3)
    leader.fetch(2, 3)
    change = proposal(leader.check_after(LAG_MS + 1))
    assert moved_to(leader.confirm(change)) == 3


@async_test
async def test_kafka_13254_whoever_is_answered_may_ask_again_at_once(tmp_path: Path) -> None:
    """An answer is given in the middle of the very change that made it possible."""
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        cluster.cut(1, 3)
        manager, answered = cluster.brokers[1].manager, list[int]()

        def produce_again(reply: ProduceReply | None) -> None:
            if reply is not None:
                answered.append(reply.parts[0].base_offset)
            if len(answered) < 4:
                part = ProducePart(topic, batch(b"x"))
                manager.produce(ProduceRequest(-1, 5_000, [part]), produce_again)

        produce_again(None)
        await until(lambda: len(answered) == 4)
        assert answered == [0, 1, 2, 3]
        assert cluster.isr(topic) == (1, 2)


# -- KAFKA-16541: a power cut damaged the file of the epochs


@pytest.mark.parametrize("seed", range(6))
def test_kafka_16541_epochs_survive_a_power_cut_at_any_moment(seed: int) -> None:
    disk = ModelDisk(seed=seed)
    disk.make_dir("/data")
    disk.sync_dir("/")
    partition, topic_id = TopicPartition("t", 0), Uuid(b"t" * 16)

    def open_logs() -> LogDirs:
        return LogDirs.open(
            disk,
            ["/data/logs"],
            cluster_id=CLUSTER_ID,
            node_id=1,
            config_of=lambda _: LogConfig(),
            clock=ManualClock(),
        )

    log = open_logs().create(partition, topic_id)
    flushed = 0
    for epoch in range(4):
        log.epochs.assign(epoch, log.end_offset)
        log.append(batch(b"x"), leader_epoch=epoch)
        if epoch == 2:
            flushed = log.flush()
    disk.restart(seed)
    again = open_logs().get(partition)
    assert again is not None
    assert again.end_offset >= flushed
    entries = [(entry.epoch, entry.start_offset) for entry in again.epochs.entries()]
    assert entries == [(epoch, epoch) for epoch in range(again.end_offset)]


# -- KAFKA-10101, KAFKA-10471, KAFKA-15375: a mark said that all was flushed, and it was not


@async_test
async def test_kafka_15375_only_a_proper_stop_is_marked_as_clean(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        await cluster.replicated(topic)
        await cluster.stop(1, clean=True)
        await cluster.stop(2, clean=False)
        assert read_clean_shutdown(OsFiles(), str(tmp_path / "b1")) == 1
        assert read_clean_shutdown(OsFiles(), str(tmp_path / "b2")) is None
        cluster.start(1)
        assert read_clean_shutdown(OsFiles(), str(tmp_path / "b1")) is None
        logs = cluster.brokers[1].logs
        assert logs.previous_broker_epoch == 1
        await until(lambda: topic in cluster.brokers[1].manager.table.hosted)
        log = cluster.brokers[1].partition(topic).log
        assert log is not None
        assert log.flushed_offset == log.end_offset == 1


# -- found here, by the model of three replicas


@async_test
async def test_no_metadata_older_than_our_own_registration_is_acted_on(tmp_path: Path) -> None:
    """A broker that lost records must not lead, not even for a moment, an epoch that it led with
    them: two logs would hold different records of one epoch.
    """
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        old = cluster.controller.now
        await cluster.stop(1)
        cluster.controller.register(1, clean=False)
        cluster.start(1)
        manager = cluster.brokers[1].manager
        with pytest.raises(Exception, match="registered is 10") as refused:
            await manager.apply(old, old.change_since(replace(old, assignments={}), 1))
        assert getattr(refused.value, "code", None) == ErrorCode.STALE_BROKER_EPOCH
        assert topic not in manager.table.hosted


def test_a_leader_again_after_another_knows_nothing_of_its_followers() -> None:
    """Brokers 1, 2, 1 led, and broker 1 saw only the last of it: 3 may have cut its log."""
    leader = Leader()
    leader.append(4)
    leader.fetch(2, 4)
    leader.fetch(3, 2)
    again = Assignment(FIRST.id, "t", 1, 7, 12, (1, 2, 3), (1, 2, 3))
    leader.state.apply(again, 0)
    assert moved_to(leader.fetch(3, 4)) is None
    assert moved_to(leader.fetch(2, 3)) == 3
