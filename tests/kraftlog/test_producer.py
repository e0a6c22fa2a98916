import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kraftlog.delivery import Deliveries
from kraftlog.errors import (
    ConfigError,
    InvalidRequest,
    KraftError,
    NotYetSupported,
    RecordTooLarge,
    SerializationError,
    TimeoutError_,
    UnknownTopicOrPartition,
)
from kraftlog.partitioner import partition_of_key
from kraftlog.producer import Producer
from kraftlog.record_batch import encode_values, read_batches
from kraftlog.records import Record, RecordMetadata
from kraftlog.types import Compression
from tests.kraftlog.toy_cluster import Fault, ToyCluster
from tests.kraftlog.waiting import meanwhile, until
from tests.storage.logs import records_of

SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def threads_of(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


# R31: topic, value, key, partition, timestamp, headers; the result is topic, partition, offset
def test_a_record_arrives_as_it_was_sent(toys: ToyCluster) -> None:
    with Producer[bytes, bytes](toys.bootstrap, linger=0) as producer:
        sent = producer.send(
            "t",
            b"value",
            key=b"key",
            headers={"h": "1"},
            partition=1,
            timestamp=datetime(2026, 1, 31, tzinfo=UTC),
        )
        assert sent.result("20s") == RecordMetadata("t", 1, 0, 1769817600000)
    (record,) = records_of(toys.truth.topics["t"].partitions[1].log)
    assert record == (0, 1769817600000, b"key", b"value", (("h", b"1"),))


def test_keys_choose_the_partition_and_none_of_it_is_lost(toys: ToyCluster) -> None:
    with Producer[str, object](
        toys.bootstrap, key_serializer="string", value_serializer="json"
    ) as producer:
        for number in range(50):
            producer.send("t", {"n": number}, key=f"k{number}")
        assert producer.flush("20s") == (0, 0)
    for partition in (0, 1):
        log = toys.truth.topics["t"].partitions[partition].log
        for record in records_of(log):
            assert partition_of_key(record.key or b"", 2) == partition
    assert len(toys.values("t", 0)) + len(toys.values("t", 1)) == 50


def test_records_are_batched(toys: ToyCluster) -> None:
    with Producer[bytes, bytes](toys.bootstrap, linger="200ms") as producer:
        producer.partitions_for("t")
        for _ in range(100):
            producer.send("t", b"x", partition=0)
        producer.flush("20s")
    log = toys.truth.topics["t"].partitions[0].log
    assert len(list(read_batches(log.read(0, 1 << 20).read()))) == 1


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_stay_as_they_were_compressed(toys: ToyCluster, compression: str) -> None:
    with Producer[bytes, bytes](
        toys.bootstrap,
        compression=compression,  # type: ignore[arg-type]
    ) as producer:
        producer.send_many("t", [Record(b"x" * 100, partition=0)] * 100)
    log = toys.truth.topics["t"].partitions[0].log
    (batch,) = read_batches(log.read(0, 1 << 20).read())
    assert batch.compression is Compression[compression.upper()]
    assert len(batch.records()) == 100


# R32: wait for the result, or a callback
def test_callbacks_and_futures(toys: ToyCluster) -> None:
    heard: list[tuple[RecordMetadata | None, KraftError | None]] = []
    with Producer[bytes, bytes](toys.bootstrap) as producer:
        future = producer.send("t", b"a", partition=0, on_delivery=lambda *told: heard.append(told))
        metadata = future.result("20s")
        producer.flush("20s")
        until(lambda: bool(heard), "the callback")
    assert heard == [(metadata, None)]


def test_many_at_once(toys: ToyCluster) -> None:
    with Producer[bytes, bytes](toys.bootstrap) as producer:
        records = [Record(b"%d" % number, b"k%d" % number) for number in range(500)]
        sent = producer.send_many("t", records)
        assert isinstance(sent, Deliveries)
        metadata = sent.results("20s")
        assert len(producer.send_many("t", [])) == 0
        mixed = producer.send_many("t", [b"plain", Record(b"with", partition=1), b"plain"])
        assert mixed[1].result("20s").partition == 1
    for number, told in enumerate(metadata):
        assert told.partition == partition_of_key(b"k%d" % number, 2)
        assert toys.values("t", told.partition)[told.offset] == b"%d" % number


# R33: buffer memory and longest block
def test_a_full_buffer_makes_the_sender_wait(toys: ToyCluster) -> None:
    hold = threading.Event()
    toys.faults.append(Fault("produce", hold=hold))
    with Producer[bytes, bytes](toys.bootstrap, buffer_bytes=3_000, linger=0) as producer:
        futures = [producer.send("t", b"x" * 1_000, partition=0) for _ in range(2)]
        sender = threading.Thread(
            target=lambda: futures.append(producer.send("t", b"x" * 1_000, partition=0))
        )
        sender.start()
        until(lambda: "produce" in toys.seen, "the first batch is under way")
        assert sender.is_alive()
        hold.set()
        toys.release_held()
        sender.join(20)
        assert [future.result("20s").offset for future in futures] == [0, 1, 2]


def test_but_not_for_ever(toys: ToyCluster) -> None:
    toys.faults.append(Fault("produce", hold=threading.Event(), times=-1))
    producer = Producer[bytes, bytes](
        toys.bootstrap, buffer_bytes=2_000, linger=0, max_block="50ms"
    )
    producer.send("t", b"x" * 1_000, partition=0)
    with pytest.raises(TimeoutError_, match="no room in the buffer within max_block"):
        producer.send("t", b"x" * 1_000, partition=0)
    with pytest.raises(TimeoutError_, match="no room"):
        producer.send_many("t", [b"x" * 1_000] * 5)
    producer.close(timeout=0)


def test_a_topic_that_does_not_exist(toys: ToyCluster) -> None:
    with (
        Producer[bytes, bytes](toys.bootstrap, max_block="50ms") as producer,
        pytest.raises(UnknownTopicOrPartition, match="nowhere"),
    ):
        producer.send("nowhere", b"x")


# R22: a topic that a producer names is created where brokers allow it
def test_a_topic_that_is_created_for_the_producer(toys: ToyCluster) -> None:
    toys.truth.auto_create = 3
    with Producer[bytes, bytes](toys.bootstrap) as producer:
        producer.send("fresh", b"x").result("20s")
        assert len(producer.partitions_for("fresh")) == 3


def test_a_topic_that_was_deleted_does_not_come_back_by_itself(toys: ToyCluster) -> None:
    toys.truth.auto_create = 1
    with Producer[bytes, bytes](
        toys.bootstrap, linger=0, metadata_max_age="100ms", max_block="5s"
    ) as producer:
        producer.send("t", b"x", partition=0).result("20s")
        toys.truth.drop_topic("t")
        before = toys.seen.count("metadata")
        until(lambda: toys.seen.count("metadata") > before + 3, "the view is refreshed")
        assert "t" not in toys.truth.topics
        assert producer.send("t", b"y", partition=0).result("20s").offset == 0
        assert len(toys.truth.topics["t"].partitions) == 1


# R17: one broker's address is enough
def test_one_address_is_enough(toys: ToyCluster) -> None:
    one = toys.bootstrap.split(",")[0]
    with Producer[bytes, bytes](one, linger=0) as producer:
        assert [producer.send("t", b"x", partition=p).result("20s").offset for p in (0, 1)] == [
            0,
            0,
        ]
        infos = producer.partitions_for("t")
    assert [(info.partition, info.leader, info.isr) for info in infos] == [
        (0, 1, (1, 2)),
        (1, 2, (1, 2)),
    ]


@pytest.mark.parametrize(
    "call", [lambda p: p.send("t", b"x"), lambda p: p.partitions_for("t")], ids=["send", "look"]
)
def test_no_broker_at_all(call: Callable[[Producer[bytes, bytes]], object]) -> None:
    """Known after max_block, however long another call of this client may take."""
    with (
        Producer[bytes, bytes]("127.0.0.1:1", max_block="100ms", api_timeout="10m") as producer,
        pytest.raises(KraftError, match=r"127\.0\.0\.1:1"),
    ):
        call(producer)


def test_what_cannot_be_sent_is_refused_at_once(toys: ToyCluster) -> None:
    with Producer[bytes, object](toys.bootstrap) as producer:
        with pytest.raises(SerializationError, match="value for t"):
            producer.send("t", "text")
        with pytest.raises(SerializationError, match="key for t"):
            producer.send_many("t", [Record(b"", "text")])
        with pytest.raises(InvalidRequest, match="is no topic"):
            producer.send("", b"x")
        with pytest.raises(InvalidRequest, match="partition 9"):
            producer.send("t", b"x", partition=9)
        with pytest.raises(RecordTooLarge):
            producer.send("t", b"x" * (2 << 20))


def test_options_are_checked_at_once() -> None:
    with pytest.raises(ConfigError, match="did you mean linger"):
        Producer("b:1", lingr=5)  # type: ignore[call-arg]
    with pytest.raises(NotYetSupported, match="transactional_id"):
        Producer("b:1", transactional_id="x")  # type: ignore[arg-type]
    with pytest.raises(NotYetSupported):
        Producer[bytes, bytes]("b:1").transaction()


def test_nothing_is_connected_and_no_thread_runs_before_it_is_needed() -> None:
    producer = Producer[bytes, bytes]("127.0.0.1:1", client_id="idle")
    assert producer.flush("1s") == (0, 0)
    assert threads_of("idle") == []  # by name: those of other tests may be ending just now
    producer.close()


def test_close_flushes_and_ends_the_thread(toys: ToyCluster) -> None:
    producer = Producer[bytes, bytes](toys.bootstrap, linger="10s", client_id="closing")
    future = producer.send("t", b"x", partition=0)
    producer.close()
    assert future.result(0).offset == 0
    assert threads_of("closing") == []
    producer.close()
    with pytest.raises(InvalidRequest, match="closed"):
        producer.send("t", b"x")


def test_what_has_no_answer_at_close_fails(toys: ToyCluster) -> None:
    toys.faults.append(Fault("produce", hold=threading.Event(), times=-1))
    producer = Producer[bytes, bytes](toys.bootstrap, linger=0, client_id="hasty")
    sent = producer.send("t", b"x", partition=0)
    until(lambda: "produce" in toys.seen, "it is under way")
    assert producer.flush("20ms").pending == 1
    producer.close(timeout=0)
    error = sent.exception(0)
    assert error is not None
    assert error.outcome_unknown
    assert threads_of("hasty") == []


def break_down(_now: float) -> None:
    raise ZeroDivisionError("our own bug")


def test_after_an_error_of_our_own_nothing_is_promised(
    toys: ToyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer[bytes, bytes](toys.bootstrap, linger=0) as producer:
        producer.send("t", b"x").result("20s")
        core = producer._engine._core
        assert core is not None
        monkeypatch.setattr(core.sender, "_step", break_down)
        with pytest.raises(KraftError, match="our own bug"):
            producer.send("t", b"x").result("20s")
        for again in (
            lambda: producer.send("t", b"x"),
            lambda: producer.send("other", b"x"),
            lambda: producer.send_many("t", [b"x"]),
            lambda: producer.send_batch("t", 0, encode_values([b"x"], timestamp=1), [1]),
        ):
            with pytest.raises(KraftError, match="our own bug"):
                again()
        assert producer.flush() == (0, 0)
        assert not producer.is_usable


def test_who_sends_while_another_thread_closes_hears_of_it(toys: ToyCluster) -> None:
    """From the moment when all that has no answer was failed, nothing is taken any more."""
    producer = Producer[bytes, bytes](toys.bootstrap, linger=0)
    producer.send("t", b"x").result("20s")
    producer.close()
    producer._engine.is_open = True  # as it was when the other thread looked
    with pytest.raises(KraftError, match="closed"):
        producer.send("t", b"x")
    producer._engine.is_open = False


@pytest.mark.parametrize("call", ["send", "partitions_for"])
def test_who_waits_while_another_thread_closes_hears_of_it(toys: ToyCluster, call: str) -> None:
    producer = Producer[bytes, bytes](toys.bootstrap, max_block="10m", api_timeout="10m")
    with meanwhile(lambda: getattr(producer, call)("missing")) as heard:
        until(lambda: toys.seen.count("metadata") > 3, "it waits")
        producer.close()
    assert isinstance(heard[0], InvalidRequest)
    assert "closed" in heard[0].message


def test_a_producer_that_is_dropped_ends_its_thread(toys: ToyCluster) -> None:
    producer = Producer[bytes, bytes](toys.bootstrap, client_id="dropped")
    producer.send("t", b"x").result("20s")
    assert len(threads_of("dropped")) == 1
    del producer
    gc.collect()
    until(lambda: threads_of("dropped") == [], "the thread ends")


def test_many_threads_share_one(toys: ToyCluster) -> None:
    with Producer[bytes, bytes](toys.bootstrap) as producer:

        def work(name: bytes) -> None:
            for number in range(200):
                producer.send("t", b"%s %d" % (name, number), partition=0)

        threads = [threading.Thread(target=work, args=(name,)) for name in (b"a", b"b", b"c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert producer.flush("20s") == (0, 0)
    values = [value or b"" for value in toys.values("t")]
    for name in (b"a", b"b", b"c"):
        own = [int(value.split()[1]) for value in values if value.startswith(name)]
        assert own == list(range(200))


def test_a_future_can_be_awaited(toys: ToyCluster) -> None:
    with Producer[bytes, bytes](toys.bootstrap) as producer:
        future = producer.send("t", b"x", partition=0)

        async def wait() -> int:
            return (await future).offset

        assert asyncio.run(wait()) == 0


def test_a_callback_that_would_wait_for_itself_is_told_so(toys: ToyCluster) -> None:
    heard: list[Exception] = []
    with Producer[bytes, bytes](toys.bootstrap) as producer:

        def bad(_metadata: object, _error: object) -> None:
            for call in (lambda: producer.send("other", b"x"), producer.flush):
                try:
                    call()
                except RuntimeError as error:
                    heard.append(error)

        producer.send("t", b"x", on_delivery=bad).result("20s")
        until(lambda: len(heard) == 2, "the callback")
    assert all("wait for the very thread" in str(error) for error in heard)


INTERRUPTED = """
import sys, threading
from kraftlog import Producer
try:
    print("ready", flush=True)
    if sys.argv[1] == "send":
        Producer("127.0.0.1:1").send("t", b"x")
    elif sys.argv[1] == "result":
        p = Producer(sys.argv[2], linger=0)
        p.send("t", b"x", partition=0).result()
    else:
        p = Producer(sys.argv[2], linger=0)
        p.send("t", b"x", partition=0)
        p.flush()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("call", ["send", "result", "flush"])
def test_control_c_ends_every_blocking_call(toys: ToyCluster, call: str) -> None:
    toys.faults.append(Fault("produce", hold=threading.Event(), times=-1))
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, call, toys.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=SOURCE_ROOT,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if call != "send":
            until(lambda: "produce" in toys.seen, "the call is blocked")
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        process.wait(30)
    finally:
        process.kill()
        process.communicate()


FORGETFUL = """
import sys
from kraftlog import Producer
producer = Producer(sys.argv[1], linger="10s")
producer.send("t", b"last words", partition=0)
"""


@pytest.mark.slow
def test_nothing_is_dropped_at_exit(toys: ToyCluster) -> None:
    subprocess.run(
        [sys.executable, "-c", FORGETFUL, toys.bootstrap], cwd=SOURCE_ROOT, check=True, timeout=60
    )
    assert toys.values("t") == [b"last words"]
