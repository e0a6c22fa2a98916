"""What a producer does about trouble: real sockets and logs, faults at the broker."""

import threading

import pytest

from kraftlog.errors import (
    AmbiguousError,
    ErrorCode,
    InvalidMetadataError,
    InvalidRecord,
    NotEnoughReplicas,
    RecordTooLarge,
    RequestTimedOut,
)
from kraftlog.producer import Producer
from storage.log_config import LogConfig
from tests.kraftlog.toy_cluster import Fault, ToyCluster
from tests.kraftlog.waiting import until


def producer(toys: ToyCluster, **options: object) -> Producer[bytes, bytes]:
    quick: dict[str, object] = {
        "linger": 0,
        "request_timeout": "400ms",
        "retry_backoff": "5ms",
        "retry_backoff_max": "50ms",
        "delivery_timeout": "20s",
    }
    return Producer(toys.bootstrap, **(quick | options))  # type: ignore[arg-type]


def send(p: Producer[bytes, bytes], *values: bytes) -> list[int]:
    """Offsets of values that go to partition 0, each in a batch of its own."""
    futures = []
    for value in values:
        futures.append(p.send("t", value, partition=0))
        p.flush("20s")
    return [future.result("20s").offset for future in futures]


# R34: an answer that is lost makes no duplicate
@pytest.mark.parametrize(
    "fault",
    [
        Fault("produce", lose_reply=True),
        Fault("produce", lose_request=True),
        Fault("produce", cut=True, lose_reply=True),
        Fault("produce", cut=True, lose_request=True),
        Fault("produce", refuse=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        Fault("produce", refuse=ErrorCode.KAFKA_STORAGE_ERROR),
        Fault("produce", refuse=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3),
        Fault("produce", refuse=ErrorCode.NOT_ENOUGH_REPLICAS, times=3),
        Fault("produce", lose_reply=True, times=3),
    ],
    ids=str,
)
def test_an_idempotent_producer_gets_through(toys: ToyCluster, fault: Fault) -> None:
    with producer(toys) as p:
        assert send(p, b"a") == [0]
        toys.faults.append(fault)
        assert send(p, b"b", b"c") == [1, 2]
    assert toys.values("t") == [b"a", b"b", b"c"]


# R33: requests in flight with order kept
def test_order_is_kept_when_the_first_of_five_is_lost(toys: ToyCluster) -> None:
    with producer(toys, batch_bytes=1000) as p:
        send(p, b"first")
        toys.faults.append(Fault("produce", lose_request=True))
        values = [b"%d" % number + b"." * 900 for number in range(12)]
        futures = [p.send("t", value, partition=0) for value in values]
        offsets = [future.result("20s").offset for future in futures]
    assert offsets == list(range(1, 13))
    assert toys.values("t") == [b"first", *values]


@pytest.mark.parametrize("fault", [Fault("produce", lose_reply=True), Fault("produce", cut=True)])
def test_without_idempotence_an_unknown_outcome_is_said_to_be_one(
    toys: ToyCluster, fault: Fault
) -> None:
    with producer(toys, enable_idempotence=False) as p:
        send(p, b"a")
        fault.lose_reply = True
        toys.faults.append(fault)
        with pytest.raises(AmbiguousError) as raised:
            send(p, b"b")
        assert raised.value.outcome_unknown
        assert send(p, b"c") == [2]
    assert toys.values("t") == [b"a", b"b", b"c"], "it was appended, and not a second time"


def test_without_idempotence_a_refusal_is_tried_again(toys: ToyCluster) -> None:
    with producer(toys, acks=1) as p:
        toys.faults.append(Fault("produce", refuse=ErrorCode.NOT_ENOUGH_REPLICAS, times=2))
        assert send(p, b"a") == [0]


def test_a_broker_that_is_down_is_no_unknown_outcome(toys: ToyCluster) -> None:
    toys.truth.lead("t", 0, 2)
    with producer(toys, acks=1) as p:
        send(p, b"a")
        toys.stop(1)  # before anything was sent to it: else its end may be noticed too late
        toys.truth.lead("t", 0, 1)
        future = p.send("t", b"b", partition=0)
        until(lambda: toys.seen.count("metadata") > 2, "the producer looks for another leader")
        toys.truth.lead("t", 0, 2)
        assert future.result("20s").offset == 1
    assert toys.values("t") == [b"a", b"b"]


# R17: NOT_LEADER carries who leads, and that is enough
def test_a_hint_is_followed_without_metadata(toys: ToyCluster) -> None:
    with producer(toys) as p:
        send(p, b"a")
        toys.faults.append(Fault("metadata", lose_request=True, times=-1))
        toys.truth.lead("t", 0, 2)
        assert send(p, b"b") == [1]


def test_the_leader_comes_back_on_the_same_address(toys: ToyCluster) -> None:
    with producer(toys) as p:
        send(p, b"a")
        toys.stop(1)
        future = p.send("t", b"b", partition=0)
        until(lambda: toys.seen.count("metadata") > 2, "the producer looks for another leader")
        toys.start(1)
        assert future.result("20s").offset == 1


# R33 retries: as many as are allowed, and no more.
def test_retries_end(toys: ToyCluster) -> None:
    with producer(toys, retries=2) as p:
        toys.faults.append(Fault("produce", refuse=ErrorCode.NOT_ENOUGH_REPLICAS, times=3))
        with pytest.raises(NotEnoughReplicas) as raised:
            send(p, b"a")
        assert raised.value.attempts == 3
        assert send(p, b"b") == [0]


def test_a_record_has_only_so_much_time(toys: ToyCluster) -> None:
    toys.faults.append(Fault("produce", refuse=ErrorCode.NOT_ENOUGH_REPLICAS, times=-1))
    ends = (NotEnoughReplicas, RequestTimedOut)  # between two attempts, or during one
    with producer(toys, delivery_timeout="200ms") as p, pytest.raises(ends):
        send(p, b"a")


def test_time_over_without_an_answer_is_an_unknown_outcome(toys: ToyCluster) -> None:
    hold = threading.Event()
    with producer(toys, delivery_timeout="300ms", request_timeout="20s") as p:
        send(p, b"a")
        toys.faults.append(Fault("produce", hold=hold))
        with pytest.raises(RequestTimedOut):
            send(p, b"b")
        toys.release_held()
        assert send(p, b"c") == [2], "the late answer has settled where the numbers go on"


def test_each_of_those_under_way_has_only_so_much_time(toys: ToyCluster) -> None:
    hold = threading.Event()
    with producer(toys, delivery_timeout="300ms", request_timeout="60s") as p:
        send(p, b"a")
        toys.faults.append(Fault("produce", hold=hold, times=-1))
        futures = []
        for number in range(3):
            futures.append(p.send("t", b"%d" % number, partition=0))
            until(lambda: len(toys.values("t")) == number + 2, "it is under way")  # noqa: B023
        for future in futures:
            assert isinstance(future.exception("10s"), RequestTimedOut)
        toys.release_held()


def test_what_may_have_been_appended_is_not_sent_in_parts(toys: ToyCluster) -> None:
    """The answer is lost, and then the topic wants smaller batches: nobody can tell any more."""
    toys.add_topic("small", 1)
    with producer(toys, linger="50ms") as p:
        p.send("small", b"first").result("20s")
        toys.faults += [
            Fault("produce", lose_reply=True),
            Fault("produce", refuse=ErrorCode.MESSAGE_TOO_LARGE),
        ]
        futures = [p.send("small", b"%d" % number) for number in range(4)]
        for future in futures:
            error = future.exception("20s")
            assert error is None or error.outcome_unknown
        assert p.send("small", b"last").result("20s").offset == 5
    assert toys.values("small") == [b"first", b"0", b"1", b"2", b"3", b"last"]


def test_after_an_outage_the_next_record_does_not_pay_for_those_that_were_lost(
    toys: ToyCluster,
) -> None:
    """The leader misses the numbers of what expired, and says so; that is no failure to rest from,
    however long the rests had become.
    """
    slow = {"retry_backoff": "100ms", "retry_backoff_max": "60s"}
    with producer(toys, delivery_timeout="1s", **slow) as p:
        send(p, b"a")
        toys.faults.append(Fault("produce", refuse=ErrorCode.NOT_ENOUGH_REPLICAS, times=-1))
        with pytest.raises(NotEnoughReplicas):
            send(p, b"lost")
        toys.faults.clear()
        assert send(p, b"b") == [1]


@pytest.mark.parametrize("interim", [None, -1])
def test_another_leader_is_not_rested_for(toys: ToyCluster, interim: int | None) -> None:
    """KAFKA-15415: what failed goes to whoever leads next as soon as that is known, however long
    the rests have become. One that is gone leads on for a while in the metadata, or nobody does.
    """
    with producer(toys, retry_backoff="10m", retry_backoff_max="10m") as p:
        send(p, b"a")
        if interim is not None:
            toys.truth.lead("t", 0, interim)
        toys.faults.append(Fault("produce", lose_request=True, cut=True))
        future = p.send("t", b"b", partition=0)
        asked = toys.seen.count("metadata")
        until(lambda: toys.seen.count("metadata") > asked + 3, "it looks for another leader")
        toys.truth.lead("t", 0, 2)
        assert future.result("20s").offset == 1


def test_an_outcome_that_is_open_at_the_end_is_told_as_such(toys: ToyCluster) -> None:
    hold = threading.Event()
    with producer(toys, request_timeout="20s") as p:
        send(p, b"a")
        toys.faults.append(Fault("produce", hold=hold))
        future = p.send("t", b"b", partition=0)
        until(lambda: toys.values("t") == [b"a", b"b"], "it is under way")
        p.close(timeout=0)
        with pytest.raises(RequestTimedOut, match="before the producer was closed"):
            future.result(0)
        toys.release_held()


def test_a_partition_without_a_leader_says_so(toys: ToyCluster) -> None:
    with producer(toys, delivery_timeout="200ms") as p:
        send(p, b"a")
        toys.truth.lead("t", 0, -1)
        with pytest.raises(InvalidMetadataError):
            send(p, b"b")


# R33 message.max.bytes: what the broker finds too large goes in parts.
def test_a_batch_that_is_too_large_is_split(toys: ToyCluster) -> None:
    toys.add_topic("small", 1, LogConfig(max_message_bytes=300))
    with producer(toys, linger="50ms") as p:
        values = [b"%02d" % number + b"." * 40 for number in range(20)]
        futures = [p.send("small", value) for value in values]
        assert [future.result("20s").offset for future in futures] == list(range(20))
        with pytest.raises(RecordTooLarge):
            p.send("small", b"x" * 400).result("20s")
        assert p.send("small", b"last").result("20s").offset == 20
    assert toys.values("small") == [*values, b"last"]


def test_one_bad_batch_does_not_stop_the_others(toys: ToyCluster) -> None:
    with producer(toys) as p:
        send(p, b"a")
        toys.faults.append(Fault("produce", refuse=ErrorCode.INVALID_RECORD))
        with pytest.raises(InvalidRecord):
            send(p, b"bad")
        assert send(p, b"b", b"c") == [1, 2]
    assert toys.values("t") == [b"a", b"b", b"c"]


def test_an_identity_that_was_taken_over_is_replaced(toys: ToyCluster) -> None:
    with producer(toys) as p:
        send(p, b"a")
        toys.faults.append(Fault("produce", refuse=ErrorCode.INVALID_PRODUCER_EPOCH))
        assert send(p, b"b") == [1]
    assert toys.seen.count("init_producer_id") == 2


def test_a_topic_that_is_deleted_and_made_again(toys: ToyCluster) -> None:
    with producer(toys) as p:
        send(p, b"old", b"old")
        toys.truth.drop_topic("t")
        toys.add_topic("t", 2)
        assert send(p, b"new") == [0]
    assert toys.values("t") == [b"new"]


# R32 send and forget
def test_acks_0_waits_for_nobody(toys: ToyCluster) -> None:
    hold = threading.Event()
    with producer(toys, acks=0) as p:
        p.partitions_for("t")
        toys.faults.append(Fault("produce", hold=hold))
        sent = p.send("t", b"a", partition=0)
        assert sent.result("20s").offset == -1
        toys.release_held()
        p.send("t", b"b", partition=0)
    until(lambda: toys.values("t") == [b"a", b"b"], "both arrive")


# R32: brokers do not answer what is sent so, and nothing waits for that
def test_acks_0_is_not_held_up_by_answers_that_never_come(
    toys: ToyCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing waits for the broker to have read it all; for a timeout it would wait too long."""
    monkeypatch.setattr("kraftlog._producer_core.LAST_WRITES_SECONDS", 3_600)
    with producer(toys, acks=0, linger=0, request_timeout="1h") as p:
        for number in range(100):  # one request each, more than may be open at a time
            p.send("t", b"%d" % number, partition=0)
            until(lambda: len(toys.values("t")) > number, "it arrives")  # noqa: B023 - called now
    assert toys.values("t") == [b"%d" % number for number in range(100)]


def test_acks_0_finds_the_new_leader(toys: ToyCluster) -> None:
    with producer(toys, acks=0) as p:
        p.partitions_for("t")
        toys.truth.lead("t", 0, 2)

        def arrives() -> bool:
            p.send("t", b"x", partition=0).result("20s")
            return bool(toys.values("t"))

        until(arrives, "what is sent goes to who leads now")


def test_acks_0_finds_the_new_leader_of_one_that_is_gone(toys: ToyCluster) -> None:
    with producer(toys, acks=0) as p:
        p.send("t", b"a", partition=0)
        until(lambda: toys.values("t") == [b"a"], "it arrives")
        toys.stop(1)
        toys.truth.lead("t", 0, 2)

        def arrives() -> bool:
            p.send("t", b"x", partition=0).result("20s")
            return b"x" in toys.values("t")

        until(arrives, "what is sent goes to who leads now")


def test_many_partitions_go_in_one_request(toys: ToyCluster) -> None:
    toys.add_topic("wide", 20)
    with producer(toys, linger="15s") as p:
        p.partitions_for("wide")
        futures = [p.send("wide", b"x", partition=number) for number in range(20)]
        p.flush("20s")  # lets all go at once, however long it took to fill them
        for future in futures:
            future.result("20s")
    assert toys.seen.count("produce") <= 4
