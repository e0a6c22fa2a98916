"""Produce: what is accepted, what is refused, and when it is answered."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.purgatory import wait
from brokers.requests import ProducePart, ProduceReply, ProduceRequest, ProduceResult
from kraftlog._check import InvariantViolation
from kraftlog.errors import ErrorCode, KraftError
from kraftlog.record_batch import encode_values, read_batches
from kraftlog.types import Compression, TimestampType
from storage.log_config import LogConfig
from tests.brokers.aio import async_test
from tests.brokers.brokers import Cluster, values_in
from tests.loops import until
from tests.storage.logs import batch


def error_of(result: ProduceResult) -> KraftError:
    assert result.error is not None
    return result.error


@async_test
async def test_acks_1_is_answered_from_our_own_log(tmp_path: Path) -> None:
    # R18 R19
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        cluster.cut(1, 2)
        cluster.cut(1, 3)
        done = await cluster.produce(topic, b"a", acks=1)
        assert (done.error, done.base_offset) == (None, 0)
        assert cluster.leader(topic).partition(topic).high_watermark == 0


@async_test
async def test_acks_0_says_nothing(tmp_path: Path) -> None:
    # R18
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        manager = cluster.brokers[1].manager
        replies: list[ProduceReply] = []
        manager.produce(ProduceRequest(0, 0, [ProducePart(topic, batch(b"a"))]), replies.append)
        await until(lambda: bool(replies))
        assert [list(reply.parts) for reply in replies] == [[]]
        assert values_in(cluster.brokers[1], topic) == [b"a"]


@async_test
async def test_acks_0_is_told_what_was_refused(tmp_path: Path) -> None:
    # R18
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        follower = cluster.brokers[2].manager
        replies: list[ProduceReply] = []
        follower.produce(ProduceRequest(0, 0, [ProducePart(topic, batch(b"a"))]), replies.append)
        await until(lambda: bool(replies))
        assert error_of(replies[0].parts[0]).code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@async_test
async def test_acks_of_no_kind_are_refused(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        refused = await cluster.produce(topic, b"a", acks=2)
        assert error_of(refused).code == ErrorCode.INVALID_REQUIRED_ACKS
        assert values_in(cluster.brokers[1], topic) == []


@async_test
async def test_what_waits_for_its_log_hears_of_a_new_leader(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        replies: list[ProduceReply] = []
        request = ProduceRequest(1, 5_000, [ProducePart(topic, batch(b"a"))])
        cluster.brokers[1].manager.produce(request, replies.append)
        assignment = cluster.controller.now.assignments[topic]
        cluster.brokers[1].partition(topic).apply(
            replace(assignment, leader=2, leader_epoch=7, partition_epoch=8)
        )
        await until(lambda: bool(replies))
        assert error_of(replies[0].parts[0]).code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert values_in(cluster.brokers[1], topic) == []


@async_test
async def test_a_bug_while_appending_is_no_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a drill: the callback that appends died, and the time-out answered for it."""
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        trouble: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: trouble.append(context["exception"])
        )
        monkeypatch.setattr(Partition, "append", lambda *_: trouble[-1])
        replies: list[ProduceReply] = []
        request = ProduceRequest(1, 50, [ProducePart(topic, batch(b"a"))])
        cluster.brokers[1].manager.produce(request, replies.append)
        await until(lambda: len(trouble) == 2 or bool(replies))
        assert [type(each) for each in trouble] == [IndexError, InvariantViolation]
        assert replies == []


@async_test
async def test_time_runs_out_with_the_outcome_unknown(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        cluster.cut(1, 2)
        late = await cluster.produce(topic, b"a", timeout_ms=20)
        assert error_of(late).code == ErrorCode.REQUEST_TIMED_OUT
        assert error_of(late).outcome_unknown
        partition = cluster.leader(topic).partition(topic)
        assert len(partition.at_high_watermark) == 0
        assert cluster.leader(topic).manager.purgatory.counts["produce"] == 0


@async_test
async def test_each_partition_has_an_answer_of_its_own(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        first = await cluster.create("t", replicas=(1,))
        second = await cluster.create("u", replicas=(1,))
        parts = [
            ProducePart(first, batch(b"a")),
            ProducePart(PartitionId(b"?" * 16, 0), batch(b"b")),
            ProducePart(second, b"this is no batch"),
            ProducePart(second, batch(b"c", b"d")),
        ]
        request = ProduceRequest(-1, 1_000, parts)
        reply: ProduceReply = await wait(
            lambda done: cluster.brokers[1].manager.produce(request, done)
        )
        codes = [each.error.code if each.error else 0 for each in reply.parts]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.CORRUPT_MESSAGE, 0]
        assert [each.base_offset for each in reply.parts] == [0, -1, -1, 0]


@async_test
async def test_requests_are_appended_in_the_order_of_their_calls(tmp_path: Path) -> None:
    # R16
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        manager = cluster.brokers[1].manager
        answered: list[int] = []
        for number in range(50):
            data = batch(b"%d" % number)
            request = ProduceRequest(-1, 5_000, [ProducePart(topic, data)])
            manager.produce(request, lambda reply: answered.append(reply.parts[0].base_offset))
            if number == 20:  # the first ones wait for the log to be made
                await until(lambda: cluster.brokers[1].partition(topic).end_offset == 21)
        assert values_in(cluster.brokers[1], topic) == [b"%d" % number for number in range(50)]
        await until(lambda: len(answered) == 50)
        assert answered == list(range(50))


@async_test
async def test_a_batch_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,), log=LogConfig(max_message_bytes=200))
        assert (await cluster.produce(topic, b"x" * 100)).error is None
        refused = await cluster.produce(topic, b"x" * 200)
        assert error_of(refused).code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("position", [8, 16, 17, 23, 60, 70])
@async_test
async def test_a_damaged_batch_is_refused_and_the_log_is_as_it_was(
    tmp_path: Path, position: int
) -> None:
    # P10
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        data = batch(b"some value")
        data[position] ^= 0x40
        await cluster.produce(topic, b"before")
        refused = await cluster.produce_batch(topic, data)
        assert error_of(refused).code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
        assert values_in(cluster.brokers[1], topic) == [b"before"]
        assert cluster.brokers[1].partition(topic).end_offset == 1


@async_test
async def test_a_compressed_batch_stays_as_its_producer_made_it(tmp_path: Path) -> None:
    # R27
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        data = encode_values([b"v" * 500] * 3, timestamp=5, compression=Compression.ZSTD)
        assert (await cluster.produce_batch(topic, data)).error is None
        found = await cluster.fetch(topic, 0)
        assert len(found.records) == len(data)
        assert found.records[61:] == data[61:]


@async_test
async def test_append_time_is_the_brokers_and_is_told(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=1) as cluster:
        config = LogConfig(timestamp_type=TimestampType.APPEND)
        topic = await cluster.create("t", replicas=(1,), log=config)
        done = await cluster.produce(topic, b"a")
        assert done.append_time > 1_700_000_000_000
        found = await cluster.fetch(topic, 0)
        (stored,) = read_batches(found.records)
        stored.check_crc()
        assert stored.max_timestamp == done.append_time
        plain = await cluster.create("u", replicas=(1,))
        assert (await cluster.produce(plain, b"a")).append_time == -1


@async_test
async def test_a_duplicate_waits_for_the_same_as_the_batch_itself(tmp_path: Path) -> None:
    # R34
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        cluster.cut(1, 2)
        cluster.cut(1, 3)
        first = await cluster.produce(topic, b"a", producer=(7, 0, 0), timeout_ms=20)
        again = await cluster.produce(topic, b"a", producer=(7, 0, 0), timeout_ms=20)
        assert error_of(first).code == error_of(again).code == ErrorCode.REQUEST_TIMED_OUT
        cluster.heal()
        done = await cluster.produce(topic, b"a", producer=(7, 0, 0))
        assert (done.error, done.base_offset) == (None, 0)
        assert await cluster.read(topic) == [b"a"]


@async_test
async def test_an_older_producer_is_fenced(tmp_path: Path) -> None:
    # R34
    async with Cluster(tmp_path, count=1) as cluster:
        topic = await cluster.create("t", replicas=(1,))
        await cluster.produce(topic, b"a", producer=(7, 3, 0))
        refused = await cluster.produce(topic, b"b", producer=(7, 2, 0))
        assert error_of(refused).code == ErrorCode.INVALID_PRODUCER_EPOCH


@async_test
async def test_who_waits_hears_that_leadership_is_lost(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        cluster.cut(1, 2)
        cluster.cut(1, 3)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(cluster.produce(topic, b"a"))
            await until(lambda: len(cluster.brokers[1].partition(topic).at_high_watermark) == 1)
            await cluster.elect(topic, 2)
        refused = waiting.result()
        assert error_of(refused).code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refused.leader is not None
        assert refused.leader.leader_id == 2


@async_test
async def test_who_waits_hears_that_too_few_are_left(tmp_path: Path) -> None:
    # R13 P9
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        cluster.cut(1, 2)
        cluster.cut(1, 3)
        waiting = await cluster.produce(topic, b"a", timeout_ms=10_000)
        assert error_of(waiting).code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert error_of(waiting).outcome_unknown
        assert cluster.isr(topic) == (1,)


@async_test
async def test_a_caller_that_leaves_is_forgotten(tmp_path: Path) -> None:
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        cluster.cut(1, 2)
        manager = cluster.brokers[1].manager
        replies: list[ProduceReply] = []
        request = ProduceRequest(-1, 60_000, [ProducePart(topic, batch(b"a"))])
        parked = manager.produce(request, replies.append)
        assert parked is not None
        parked.cancel()
        cluster.heal()
        await cluster.replicated(topic)
        assert not replies
        assert len(cluster.brokers[1].partition(topic).at_high_watermark) == 0


@async_test
async def test_too_many_that_wait_are_refused(tmp_path: Path) -> None:
    # R16
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        cluster.cut(1, 2)
        manager = cluster.brokers[1].manager
        manager.purgatory._limit = 2
        for _ in range(2):
            request = ProduceRequest(-1, 60_000, [ProducePart(topic, batch(b"a"))])
            manager.produce(request, lambda _: None)
        refused = await cluster.produce(topic, b"b")
        assert error_of(refused).code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


@async_test
async def test_flush_before_ack_answers_only_what_is_flushed_everywhere(tmp_path: Path) -> None:
    # R19
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2, flush_before_ack=True)
        for value in (b"a", b"b", b"c"):
            done = await cluster.produce(topic, value)
            assert done.error is None
            for broker in cluster.brokers.values():
                log = broker.partition(topic).log
                assert log is not None
                assert log.flushed_offset > done.base_offset
        alone = await cluster.produce(topic, b"d", acks=1)
        log = cluster.leader(topic).partition(topic).log
        assert log is not None
        assert log.flushed_offset > alone.base_offset
