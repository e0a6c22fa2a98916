"""Following: what a replica does with what its leader says."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.isr import CommittedIsr
from brokers.partition_state import Leading
from brokers.replica_fetcher import CHUNK_BATCHES, split_batches, truncation_point
from brokers.requests import FetchReply
from kraftlog.errors import CorruptRecord, ErrorCode, KraftError, RetriableError
from tests.brokers.aio import async_test
from tests.brokers.brokers import FAST, Cluster, values_in
from tests.brokers.sources import Following, batches, follower, told
from tests.brokers.world import ModelLog, Rec
from tests.loops import until
from tests.storage.logs import small_segments

# -- where to cut


@st.composite
def histories(draw: st.DrawFn) -> list[list[Rec]]:
    """Logs as they can come about: the leader of each epoch goes on from a part of the log of some
    earlier one, and every replica has the first so many records of some leader.
    """
    led: list[list[Rec]] = [[]]
    for epoch in range(draw(st.integers(1, 6))):
        before = draw(st.sampled_from(led))
        kept = before[: draw(st.integers(0, len(before)))]
        count = draw(st.integers(0, 3))
        led.append(kept + [Rec(epoch, len(kept) + n) for n in range(count)])
    logs = draw(st.lists(st.sampled_from(led), min_size=2, max_size=2))
    return [log[: draw(st.integers(0, len(log)))] for log in logs]


@given(histories())
def test_cutting_by_epochs_ends_at_what_is_common(logs: list[list[Rec]]) -> None:
    """P11: whatever the two logs are, a few rounds of question and cut leave the follower with a
    prefix of its leader's log, and take nothing that they have in common.
    """
    leader, follower = ModelLog(), ModelLog()
    leader.records, follower.records = logs
    leader.opened = (9, leader.end_offset)
    common = common_prefix(*logs)
    while (last := follower.last_epoch()) is not None:
        end = leader.end_for_epoch(last)
        assert end is not None
        if end.epoch >= last and end.end_offset >= follower.end_offset:
            break
        before = follower.end_offset
        del follower.records[truncation_point(follower, end) :]
        assert common <= follower.end_offset < before
    assert leader.records[: follower.end_offset] == follower.records
    assert follower.end_offset == common


def common_prefix(one: list[Rec], other: list[Rec]) -> int:
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


# -- batches


def test_batches_come_in_chunks_that_lose_nothing() -> None:
    data = batches(2 * CHUNK_BATCHES + 5)
    chunks = list(split_batches(data, (0, 3)))
    assert len(chunks) == 3
    assert b"".join(chunks) == data
    assert list(split_batches(b"", (0, 3))) == []


@pytest.mark.parametrize("epoch", [1, 4, -2])
def test_an_epoch_that_cannot_be_is_corrupt(epoch: int) -> None:
    """KAFKA-18723: the CRC does not cover it."""
    data = batches(1, epoch=2) + batches(1, epoch=epoch, first=1)
    with pytest.raises(CorruptRecord):
        list(split_batches(data, (2, 3)))


@pytest.mark.parametrize("cut", [1, 11, 15])
def test_a_header_that_is_cut_is_corrupt(cut: int) -> None:
    with pytest.raises(CorruptRecord):
        list(split_batches(batches(1) + batches(1)[:cut], (0, 3)))


@async_test
async def test_a_request_names_only_what_moved(tmp_path: Path) -> None:
    # R9 R21
    async with Cluster(tmp_path, count=2) as cluster:
        topics = [await follower(cluster, name) for name in "ab"]
        async with Following(cluster.brokers[2]) as following:
            for topic in topics:
                following.fetcher.add(cluster.brokers[2].partition(topic))
            first = await following.source.next_request(1)
            assert (first.session_id, first.session_epoch, first.max_wait_ms) == (0, 0, 0)
            assert sorted(part.partition for part in first.parts) == sorted(topics)
            following.reply(told(topics[1], records=batches(2, epoch=0), high_watermark=1))
            second = await following.source.next_request(2)
            assert (second.session_id, second.session_epoch) == (5, 1)
            assert second.max_wait_ms == FAST.fetch_wait_ms
            assert [(part.partition, part.offset) for part in second.parts] == [(topics[1], 2)]
            assert second.parts[0].last_fetched_epoch == 0
            assert cluster.brokers[2].partition(topics[1]).high_watermark == 1
            following.reply()
            assert (await following.source.next_request(3)).parts == []


@async_test
async def test_what_is_added_while_a_fetch_is_parked_wakes_it(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topics = [await follower(cluster, name) for name in "ab"]
        async with Following(cluster.brokers[2]) as following:
            following.fetcher.add(cluster.brokers[2].partition(topics[0]))
            await following.source.next_request(1)
            following.reply()
            await following.source.next_request(2)
            following.fetcher.add(cluster.brokers[2].partition(topics[1]))
            await until(lambda: following.source.wakes == 1)
            following.fetcher.remove(topics[0])
            following.reply()
            third = await following.source.next_request(3)
            assert [part.partition for part in third.parts] == [topics[1]]
            assert third.forgotten == (topics[0],)
            assert len(following.fetcher) == 1


@async_test
async def test_a_lost_session_begins_anew_with_everything(tmp_path: Path) -> None:
    # R21
    async with Cluster(tmp_path, count=2) as cluster:
        topics = [await follower(cluster, name) for name in "ab"]
        async with Following(cluster.brokers[2]) as following:
            for topic in topics:
                following.fetcher.add(cluster.brokers[2].partition(topic))
            await following.source.next_request(1)
            following.reply()
            await following.source.next_request(2)
            lost = RetriableError("gone", code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            following.source.answer(FetchReply(error=lost))
            again = await following.source.next_request(3)
            assert (again.session_id, again.session_epoch, len(again.parts)) == (0, 0, 2)
            following.source.answer(None)  # nobody there
            assert len((await following.source.next_request(4)).parts) == 2


@async_test
async def test_without_a_session_every_fetch_names_everything_and_is_parked(
    tmp_path: Path,
) -> None:
    # R21
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await follower(cluster, "a")
        async with Following(cluster.brokers[2]) as following:
            following.fetcher.add(cluster.brokers[2].partition(topic))
            for count in (1, 2, 3):
                request = await following.source.next_request(count)
                assert (request.session_id, request.session_epoch) == (0, 0)
                assert [part.partition for part in request.parts] == [topic]
                assert (request.max_wait_ms > 0) is (count > 1)
                following.reply(session=0)


@async_test
async def test_a_partition_in_trouble_pauses_and_the_others_go_on(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topics = [await follower(cluster, name) for name in "ab"]
        async with Following(cluster.brokers[2]) as following:
            for topic in topics:
                following.fetcher.add(cluster.brokers[2].partition(topic))
            await following.source.next_request(1)
            await cluster.brokers[2].partition(topics[1]).data.open()
            error = KraftError("not yet", code=ErrorCode.UNKNOWN_LEADER_EPOCH)
            following.reply(
                told(topics[0], error=error), told(topics[1], records=batches(1, epoch=0))
            )
            second = await following.source.next_request(2)
            assert second.forgotten == (topics[0],)
            assert [part.partition for part in second.parts] == [topics[1]]
            await until(lambda: following.source.wakes == 1)
            following.reply()
            third = await following.source.next_request(3)
            assert [part.partition for part in third.parts] == [topics[0]]


@async_test
async def test_how_much_is_asked_for_and_how_long_is_waited_is_set(tmp_path: Path) -> None:
    some = replace(FAST, fetch_partition_bytes=777, fetch_wait_ms=33, fetch_backoff_ms=3_600_000)
    async with Cluster(tmp_path, count=2) as cluster:
        topics = [await follower(cluster, name) for name in "ab"]
        async with Following(cluster.brokers[2], some) as following:
            for topic in topics:
                following.fetcher.add(cluster.brokers[2].partition(topic))
            first = await following.source.next_request(1)
            assert [part.max_bytes for part in first.parts] == [777, 777]
            error = KraftError("not yet", code=ErrorCode.UNKNOWN_LEADER_EPOCH)
            following.reply(told(topics[0], error=error))
            second = await following.source.next_request(2)
            assert second.max_wait_ms == 33
            (pause,) = following.fetcher._paused
            assert pause[0] - asyncio.get_running_loop().time() > 60  # a twentieth of an hour


@async_test
async def test_a_fenced_epoch_waits_for_metadata(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topics = [await follower(cluster, name) for name in "ab"]
        async with Following(cluster.brokers[2]) as following:
            for topic in topics:
                following.fetcher.add(cluster.brokers[2].partition(topic))
            await following.source.next_request(1)
            fenced = KraftError("old", code=ErrorCode.FENCED_LEADER_EPOCH)
            following.reply(told(topics[0], error=fenced))
            assert (await following.source.next_request(2)).forgotten == (topics[0],)
            assert not following.fetcher._paused


@async_test
async def test_corrupt_records_are_not_appended_and_asked_for_again(tmp_path: Path) -> None:
    # P10
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await follower(cluster, "a")
        async with Following(cluster.brokers[2]) as following:
            following.fetcher.add(cluster.brokers[2].partition(topic))
            await following.source.next_request(1)
            damaged = bytearray(batches(1, epoch=0))
            damaged[-1] ^= 1
            following.reply(told(topic, records=bytes(damaged)))
            again = await following.source.next_request(2)
            assert [part.offset for part in again.parts] == [0]
            assert cluster.brokers[2].partition(topic).end_offset == 0


@async_test
async def test_records_for_an_offset_that_is_not_ours_any_more_are_dropped(
    tmp_path: Path,
) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await follower(cluster, "a")
        partition = cluster.brokers[2].partition(topic)
        async with Following(cluster.brokers[2]) as following:
            following.fetcher.add(partition)
            await following.source.next_request(1)
            await partition.data.open()
            partition.append_fetched(batches(1, epoch=0))
            following.reply(told(topic, records=batches(3, epoch=0)))
            await following.source.next_request(2)
            assert partition.end_offset == 1


@async_test
async def test_a_long_reply_is_appended_in_several_turns(tmp_path: Path) -> None:
    async with Cluster(tmp_path, count=2) as cluster:
        topic = await follower(cluster, "a")
        partition = cluster.brokers[2].partition(topic)
        async with Following(cluster.brokers[2]) as following:
            following.fetcher.add(partition)
            await following.source.next_request(1)
            following.reply(told(topic, records=batches(5 * CHUNK_BATCHES, epoch=0)))
            seen = set()
            while len(following.source.asked) < 2:
                seen.add(partition.end_offset)
                await asyncio.sleep(0)
            assert partition.end_offset == 5 * CHUNK_BATCHES
            assert len(seen) >= 5


# -- with a real leader


@async_test
async def test_a_follower_far_behind_starts_where_its_leader_does(tmp_path: Path) -> None:
    # V2
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", log=small_segments(300, retention_bytes=400))
        await cluster.kill(3)
        for number in range(20):
            await cluster.produce(topic, b"%d" % number * 20)
        await cluster.leader(topic).manager.housekeeping.apply_retention()
        await cluster.restart(3)
        await cluster.in_sync(topic, 1, 2, 3)
        first, third = cluster.brokers[1].partition(topic), cluster.brokers[3].partition(topic)
        assert first.start_offset > 0
        await until(lambda: third.high_watermark == 20)
        assert values_in(cluster.brokers[3], topic)[-1] == b"19" * 20


@async_test
async def test_a_leader_elected_uncleanly_makes_its_followers_cut(tmp_path: Path) -> None:
    # P11
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.produce(topic, b"a")
        cluster.cut(1, 3)
        await cluster.produce(topic, b"b", acks=1)
        await cluster.in_sync(topic, 1, 2)
        await cluster.produce(topic, b"c")
        cluster.change(lambda controller: controller.elect_uncleanly(topic, 3))
        await cluster.settled()
        cluster.heal()
        done = await cluster.produce(topic, b"x")
        assert (done.error, done.base_offset) == (None, 1)
        await cluster.in_sync(topic, 1, 2, 3)
        await cluster.replicated(topic)
        for broker in cluster.brokers.values():
            assert values_in(broker, topic) == [b"a", b"x"]


@async_test
async def test_a_follower_with_an_empty_disk_copies_everything(tmp_path: Path) -> None:
    # R5
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t", min_insync=2)
        await cluster.kill(3)
        sent = [b"%d" % number for number in range(30)]
        for value in sent:
            await cluster.produce(topic, value)
        await cluster.restart(3, clean=False)
        await cluster.in_sync(topic, 1, 2, 3)
        assert values_in(cluster.brokers[3], topic) == sent


@async_test
async def test_a_leader_elected_uncleanly_says_that_it_has_recovered(tmp_path: Path) -> None:
    """At once, not with the next change of its ISR: nobody else is there who could join."""
    async with Cluster(tmp_path) as cluster:
        topic = await cluster.create("t")
        await cluster.kill(1)
        await cluster.kill(2)
        await cluster.in_sync(topic, 3)
        cluster.change(lambda controller: controller.elect_uncleanly(topic, 3))
        await until(lambda: not cluster.controller.now.assignments[topic].recovering)
        assert cluster.isr(topic) == (3,)
        await cluster.settled()
        role = cluster.brokers[3].partition(topic).state.role
        assert isinstance(role, Leading)
        await until(lambda: not role.recovering and isinstance(role.isr, CommittedIsr))
