import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from kraftlog.consumer import Consumer
from kraftlog.errors import (
    ConfigError,
    ErrorCode,
    InvalidRequest,
    NotYetSupported,
    OffsetOutOfRange,
    SerializationError,
    TimeoutError_,
)
from kraftlog.offsets import Offset
from kraftlog.producer import Producer
from kraftlog.record_batch import encode_columns
from kraftlog.records import ConsumerRecord
from kraftlog.types import TopicPartition
from tests.kraftlog.toy_cluster import Fault, ToyCluster
from tests.kraftlog.waiting import meanwhile, until

SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def fill(toys: ToyCluster, place: TopicPartition, count: int, *, first: int = 0) -> None:
    """Records with values 0, 1, ... and timestamps 1000, 1001, ..., in batches of up to ten."""
    log = toys.truth.topics[place.topic].partitions[place.partition].log
    for start in range(first, first + count, 10):
        numbers = range(start, min(start + 10, first + count))
        batch = encode_columns(
            [b"%d" % number for number in numbers],
            timestamps=[1_000 + number for number in numbers],
            keys=[b"k"] * len(numbers),
        )
        log.append(bytearray(batch), leader_epoch=0)


def consumer(toys: ToyCluster, *topics: str, **options: object) -> Consumer[bytes, bytes]:
    quick: dict[str, object] = {
        "offset_reset": "earliest",
        "retry_backoff": "5ms",
        "fetch_max_wait": "50ms",
    }
    merged = quick | options
    return Consumer(*topics, bootstrap_servers=toys.bootstrap, **merged)  # type: ignore[arg-type]


def poll(c: Consumer[bytes, bytes], count: int) -> list[ConsumerRecord[bytes, bytes]]:
    found: list[ConsumerRecord[bytes, bytes]] = []
    until(lambda: len(found.__iadd__(c.poll("50ms"))) >= count, f"{count} records")
    return found


def offsets(records: list[ConsumerRecord[bytes, bytes]]) -> list[int]:
    return [record.offset for record in records]


# R37 poll: what comes out is what went in.
def test_poll_returns_what_was_sent(toys: ToyCluster) -> None:
    with Producer[bytes, bytes](toys.bootstrap, linger=0) as producer:
        producer.send("t", b"v", key=b"k", headers={"h": "1"}, partition=0, timestamp=5).result()
    with consumer(toys, "t") as c:
        (record,) = poll(c, 1)
    assert record == ("t", 0, 0, 5, b"k", b"v", (("h", b"1"),))


def test_all_partitions_of_all_topics(toys: ToyCluster) -> None:
    toys.add_topic("u", 1)
    for place in (T0, T1, TopicPartition("u", 0)):
        fill(toys, place, 25)
    with consumer(toys, "t", "u") as c:
        found = poll(c, 75)
        assert c.assignment() == [T0, T1, TopicPartition("u", 0)]
    for place in (T0, T1, TopicPartition("u", 0)):
        assert offsets([r for r in found if r.topic_partition == place]) == list(range(25))


# R37 max.poll.records holds for each poll.
def test_poll_returns_no_more_than_wanted(toys: ToyCluster) -> None:
    fill(toys, T0, 30)
    with consumer(toys, "t", max_poll_records=7) as c:
        until(lambda: c.lag(T0) == 30, "a position")
        sizes = [len(c.poll("1s")) for _ in range(3)]
        assert max(sizes) <= 7
        assert len(c.poll("1s", max_records=2)) == 2


def test_a_poll_without_news_ends_with_its_timeout(toys: ToyCluster) -> None:
    with consumer(toys, "t") as c:
        assert c.poll("10ms") == []


# R37 iterate, and go on some other way.
def test_iterating_and_breaking_off_loses_nothing(toys: ToyCluster) -> None:
    fill(toys, T0, 30)
    with consumer(toys, "t") as c:
        seen: list[int] = []
        for wanted in (3, 7, 7):
            seen += [record.offset for _, record in zip(range(wanted), c, strict=False)]
            assert c.position(T0) == len(seen)
        seen += offsets(poll(c, 13))
    assert seen == list(range(30))


def test_batches_for_who_wants_columns(toys: ToyCluster) -> None:
    pytest.importorskip("pyarrow")
    fill(toys, T0, 30)
    with consumer(toys, "t") as c:
        first = offsets(poll(c, 1)[:1])
        c.seek(T0, 5)
        columns = [view.to_arrow() for view in c.batches(timeout="500ms")]
        assert first == [0]
        assert [o for each in columns for o in each["offset"].to_pylist()] == list(range(5, 30))
        assert c.position(T0) == 30
        assert list(c.batches(timeout="10ms")) == []


# R37 seek, with every form of the grammar.
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("start", 0),
        (Offset.END, 30),
        (12, 12),
        ("-5", 25),
        ("+5", 5),
        ("-100", 0),
        ("+100", 30),
        ("@1010", 10),
        ("@now", 30),
        (Offset.at_time(1_025), 25),
    ],
)
def test_seek(toys: ToyCluster, place: int | str | Offset, expected: int) -> None:
    fill(toys, T0, 30)
    with consumer(toys, "t") as c:
        c.seek(T0, place)
        assert c.position(T0) == expected
        if expected < 30:
            assert poll(c, 1)[0].offset == expected
        assert c.position(T1) == 0


def test_seek_back_and_forth_while_reading(toys: ToyCluster) -> None:
    fill(toys, T0, 50)
    with consumer(toys, "t", max_poll_records=4) as c:
        for start in (40, 3, 27, 0, 49):
            c.seek(T0, start)
            assert poll(c, 1)[0].offset == start


# R37: earliest, latest or an error where there is no offset
def test_latest_sees_only_what_comes_after(toys: ToyCluster) -> None:
    fill(toys, T0, 10)
    with consumer(toys, "t", offset_reset="latest") as c:
        assert c.position(T0) == 10
        fill(toys, T0, 1, first=10)
        assert offsets(poll(c, 1)) == [10]


def test_what_is_not_older_than_a_duration(toys: ToyCluster) -> None:
    log = toys.truth.topics["t"].partitions[0].log
    now = time.time_ns() // 1_000_000
    for age in (7_200_000, 3_000_000, 0):
        batch = encode_columns([b"x"], timestamps=now - age)
        log.append(bytearray(batch), leader_epoch=0)
    with consumer(toys, "t", offset_reset="1h") as c:
        assert c.position(T0) == 1


def test_no_offset_is_an_error(toys: ToyCluster) -> None:
    fill(toys, T0, 10)
    with consumer(toys, "t", offset_reset="error") as c:
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange, match="has no offset to begin with"):
                c.poll("20s")
        with pytest.raises(OffsetOutOfRange):
            c.position(T0)
        c.seek(T0, 4)
        c.seek(T1, "end")
        assert offsets(poll(c, 6)) == list(range(4, 10))


# R37: pause, resume
def test_a_paused_partition_rests(toys: ToyCluster) -> None:
    fill(toys, T0, 20)
    fill(toys, T1, 20)
    with consumer(toys, "t", max_poll_records=5) as c:
        c.seek(T0, "start")
        c.pause(T0)
        assert c.paused() == [T0]
        found = poll(c, 20)
        assert {record.partition for record in found} == {1}
        assert c.poll("100ms") == []
        c.resume(T0)
        assert offsets(poll(c, 20)) == list(range(20))


# R37: wake up
def test_a_wakeup_ends_a_poll_and_an_iteration(toys: ToyCluster) -> None:
    with consumer(toys, "t") as c:
        c.poll("10ms")
        for way in ("poll", "iterate"):
            waker = threading.Timer(0.05, c.wakeup)
            waker.start()
            assert (c.poll("60s") if way == "poll" else list(c)) == []
            waker.join()
        c.wakeup()
        assert c.poll("60s") == [], "one that comes before is not forgotten"
        fill(toys, T0, 1)
        assert len(poll(c, 1)) == 1


def test_lag_is_what_is_left_to_read(toys: ToyCluster) -> None:
    fill(toys, T0, 20)
    fill(toys, T1, 5)
    with consumer(toys, "t", max_poll_records=7) as c:
        left = 25 - len(c.poll("20s"))
        until(lambda: c.lag() == left, "what the poll did not return")
        assert c.lag(T0) + c.lag(T1) == left
        poll(c, left)
        assert c.lag() == 0


def test_partitions_and_topics_that_appear_are_read_from_their_start(toys: ToyCluster) -> None:
    with consumer(toys, pattern="t.*", offset_reset="latest", metadata_max_age="100ms") as c:
        c.poll("10ms")
        until(lambda: c.poll("10ms") == [] and len(c.assignment()) == 2, "the first assignment")
        toys.truth.grow("t", 3)
        toys.add_topic("tt", 1)
        toys.add_topic("other", 1)
        fill(toys, TopicPartition("t", 2), 3)
        fill(toys, TopicPartition("tt", 0), 3)
        found = poll(c, 6)
        assert c.assignment() == [T0, T1, TopicPartition("t", 2), TopicPartition("tt", 0)]
    assert sorted(offsets(found)) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("fetch", lose_request=True, cut=True, broker=1, times=-1),
        Fault("fetch", refuse=ErrorCode.NOT_LEADER_OR_FOLLOWER, broker=1, times=-1),
    ],
    ids=str,
)
def test_another_leader_is_not_rested_for(toys: ToyCluster, fault: Fault) -> None:
    """Who leads next is asked as soon as that is known, however long the rests have become."""
    fill(toys, T0, 3)
    with consumer(toys, retry_backoff="10m", retry_backoff_max="10m") as c:
        c.assign([T0])
        assert offsets(poll(c, 3)) == [0, 1, 2]
        toys.faults.append(fault)
        asked = toys.seen.count("metadata")
        until(
            lambda: c.poll("10ms") == [] and toys.seen.count("metadata") > asked + 3,
            "it looks for another leader",
        )
        toys.truth.lead("t", 0, 2)
        fill(toys, T0, 1, first=3)
        assert offsets(poll(c, 1)) == [3]


def test_a_topic_that_is_gone_fits_no_pattern_any_more(toys: ToyCluster) -> None:
    toys.add_topic("tt", 1)
    with consumer(toys, pattern="t.*", metadata_max_age="100ms") as c:
        until(lambda: c.poll("10ms") == [] and len(c.assignment()) == 3, "the first assignment")
        toys.truth.drop_topic("t")
        until(lambda: c.poll("10ms") == [] and len(c.assignment()) == 1, "what is left")
        assert c.assignment() == [TopicPartition("tt", 0)]


def test_a_topic_that_does_not_exist_yet_is_waited_for(
    toys: ToyCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with consumer(toys, "later", metadata_max_age="100ms", offset_reset="latest") as c:
        until(lambda: c.poll("10ms") == [] and "no topic later" in caplog.text, "a warning")
        toys.add_topic("later", 1)
        fill(toys, TopicPartition("later", 0), 2)
        assert offsets(poll(c, 2)) == [0, 1]


def test_partitions_assigned_by_hand(toys: ToyCluster) -> None:
    fill(toys, T0, 10)
    fill(toys, T1, 10)
    with consumer(toys) as c:
        with pytest.raises(InvalidRequest, match="nothing to read"):
            c.poll("1s")
        c.assign([T1])
        assert {record.partition for record in poll(c, 10)} == {1}
        c.assign({T0: 7, T1: "-1"})
        found = poll(c, 3)
        assert sorted((r.partition, r.offset) for r in found) == [(0, 7), (0, 8), (0, 9)]
        assert c.position(T1) == 10, "it was assigned before and goes on where it was"


def test_deserializers(toys: ToyCluster) -> None:
    fill(toys, T0, 3)
    with Consumer[str, int](
        "t",
        bootstrap_servers=toys.bootstrap,
        offset_reset="earliest",
        key_deserializer="string",
        value_deserializer=int,
    ) as c:
        found = c.poll("20s")
    assert [(record.key, record.value) for record in found] == [("k", 0), ("k", 1), ("k", 2)]


def test_what_does_not_deserialize_can_be_passed(toys: ToyCluster) -> None:
    fill(toys, T0, 3)
    with Consumer[bytes, object](
        "t",
        bootstrap_servers=toys.bootstrap,
        offset_reset="earliest",
        value_deserializer=lambda data: 1 // int(data),
    ) as c:
        with pytest.raises(SerializationError, match="seek to 1"):
            c.poll("20s")
        c.seek(T0, 1)
        assert [record.value for record in c.poll("20s")] == [1, 0]


def test_what_needs_groups_is_refused_by_name(toys: ToyCluster) -> None:
    with pytest.raises(NotYetSupported, match="group_id"):
        Consumer("t", group_id="g")  # type: ignore[arg-type]
    c = consumer(toys, "t")
    with pytest.raises(NotYetSupported, match="commit needs consumer groups"):
        c.commit()
    for call in (c.committed, c.on_assign, c.on_revoke, c.on_lost):
        with pytest.raises(NotYetSupported, match="consumer groups"):
            call(T0)
    with pytest.raises(NotYetSupported, match="group_metadata"):
        _ = c.group_metadata


def test_options_are_checked_at_once() -> None:
    with pytest.raises(ConfigError, match="did you mean offset_reset"):
        Consumer("t", ofset_reset="earliest")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="one of the two"):
        Consumer("t", pattern="t")
    with pytest.raises(ConfigError, match="no regular expression"):
        Consumer(pattern="(")
    with pytest.raises(ConfigError, match="no topics"):
        Consumer("")
    with pytest.raises(ConfigError, match="on_error = 'slip'"):
        Consumer("t", on_error="slip")  # type: ignore[arg-type]
    with pytest.raises(NotYetSupported, match="dead letter topics"):
        Consumer("t", on_error="dlq")  # type: ignore[arg-type]
    with pytest.raises(NotYetSupported, match="dlq_topic"):
        Consumer("t", dlq_topic="dead")  # type: ignore[arg-type]


def test_a_position_that_nobody_can_tell() -> None:
    c: Consumer[bytes, bytes] = Consumer(bootstrap_servers="127.0.0.1:1")
    c.assign([T0])
    with pytest.raises(TimeoutError_, match="no position of t-0"):
        c.position(T0, timeout="50ms")
    c.close()
    with pytest.raises(InvalidRequest, match="closed"):
        c.poll()


def test_partitions_of_a_topic(toys: ToyCluster) -> None:
    with consumer(toys, "t") as c:
        assert [info.leader for info in c.partitions_for("t")] == [1, 2]


# A handler of a signal may close the consumer that the program is waiting for.
@pytest.mark.parametrize("call", ["poll", "iterate", "position", "partitions_for"])
def test_who_waits_while_it_is_closed_hears_of_it(toys: ToyCluster, call: str) -> None:
    c = consumer(toys, "t", "missing", api_timeout="10m")
    calls: dict[str, Callable[[], object]] = {
        "poll": lambda: c.poll("10m"),
        "iterate": lambda: next(iter(c)),
        "position": lambda: c.position(TopicPartition("missing", 0)),
        "partitions_for": lambda: c.partitions_for("missing"),
    }
    with meanwhile(calls[call]) as heard:
        until(lambda: len(toys.seen) > 5, "it waits")
        c.close()
    assert isinstance(heard[0], InvalidRequest)
    assert "closed" in heard[0].message


def test_a_consumer_that_is_dropped_ends_its_thread(toys: ToyCluster) -> None:
    c = consumer(toys, "t", client_id="dropped consumer")
    c.poll("10ms")
    del c
    gc.collect()
    until(
        lambda: all(t.name != "dropped consumer" for t in threading.enumerate()), "the thread ends"
    )


INTERRUPTED = """
import sys
from kraftlog import Consumer
consumer = Consumer("t", bootstrap_servers=sys.argv[2])
try:
    print("ready", flush=True)
    if sys.argv[1] == "poll":
        consumer.poll("60s")
    else:
        list(consumer)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("call", ["poll", "iterate"])
def test_control_c_ends_every_blocking_call(toys: ToyCluster, call: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, call, toys.bootstrap],
        stdout=subprocess.PIPE,
        cwd=SOURCE_ROOT,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        until(lambda: "fetch" in toys.seen, "it waits for records")
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
