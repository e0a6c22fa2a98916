"""What a consumer does about trouble: real sockets and logs, faults at the broker."""

import pytest

from kraftlog.consumer import Consumer
from kraftlog.errors import ErrorCode, OffsetOutOfRange, UnsupportedVersion
from kraftlog.record_batch import encode_values
from kraftlog.rpc import broker_pb2, common_pb2
from kraftlog.types import TopicPartition
from storage.log import Log
from tests.kraftlog.toy_cluster import Fault, ToyCluster
from tests.kraftlog.waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def consumer(toys: ToyCluster, *topics: str, **options: object) -> Consumer[bytes, bytes]:
    quick: dict[str, object] = {
        "offset_reset": "earliest",
        "request_timeout": "400ms",
        "retry_backoff": "5ms",
        "retry_backoff_max": "50ms",
        "fetch_max_wait": "100ms",
    }
    merged = quick | options
    return Consumer(*topics, bootstrap_servers=toys.bootstrap, **merged)  # type: ignore[arg-type]


def log_of(toys: ToyCluster, place: TopicPartition = T0) -> Log:
    return toys.truth.topics[place.topic].partitions[place.partition].log


def fill(toys: ToyCluster, place: TopicPartition, *values: bytes, epoch: int = 0) -> None:
    for value in values:
        log_of(toys, place).append(
            bytearray(encode_values([value], timestamp=1_000)), leader_epoch=epoch
        )


def served(toys: ToyCluster, broker: int, place: TopicPartition) -> int:
    """How often a broker gave out records of a partition."""
    topic_id = toys.truth.topics[place.topic].topic_id.raw
    return toys.brokers[broker].sessions.served[topic_id, place.partition]


def read(c: Consumer[bytes, bytes], count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    until(lambda: len(found.__iadd__([r.value for r in c.poll("50ms")])) >= count, "the records")
    return found


@pytest.mark.parametrize(
    "fault",
    [
        Fault("fetch", lose_reply=True),
        Fault("fetch", lose_request=True),
        Fault("fetch", cut=True),
        Fault("fetch", refuse=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, times=2),
        Fault("fetch", refuse=ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        Fault("fetch", refuse=ErrorCode.UNKNOWN_SERVER_ERROR, times=2),
        Fault("list_offsets", lose_reply=True),
        Fault("list_offsets", refuse=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2),
    ],
    ids=str,
)
def test_a_consumer_gets_through(toys: ToyCluster, fault: Fault) -> None:
    fill(toys, T0, b"a")
    toys.faults.append(fault)
    with consumer(toys, "t") as c:
        assert read(c, 1) == [b"a"]
        fill(toys, T0, b"b", b"c")
        assert read(c, 2) == [b"b", b"c"]


# R21: a session that the broker has forgotten is begun again with a full fetch
def test_forgotten_sessions(toys: ToyCluster) -> None:
    fill(toys, T0, b"a")
    with consumer(toys, "t") as c:
        read(c, 1)
        for broker in toys.brokers.values():
            broker.sessions.forget_all()
        fill(toys, T0, b"b")
        assert read(c, 1) == [b"b"]


def test_a_broker_that_gives_no_session(toys: ToyCluster) -> None:
    for broker in toys.brokers.values():
        broker.sessions.limit = 0
    fill(toys, T0, b"a", b"b")
    with consumer(toys, "t") as c:
        assert read(c, 2) == [b"a", b"b"]


# R17, R8: reads follow the leader
def test_the_leader_moves(toys: ToyCluster) -> None:
    fill(toys, T0, b"a")
    with consumer(toys, "t") as c:
        read(c, 1)
        toys.truth.lead("t", 0, 2)
        fill(toys, T0, b"b", epoch=1)
        assert read(c, 1) == [b"b"]
        toys.stop(1)
        fill(toys, T0, b"c", epoch=1)
        assert read(c, 1) == [b"c"]


def test_the_leader_goes_and_comes_back(toys: ToyCluster) -> None:
    fill(toys, T0, b"a")
    with consumer(toys, "t") as c:
        read(c, 1)
        toys.stop(1)
        assert c.poll("50ms") == []
        fill(toys, T0, b"b")
        toys.start(1)
        assert read(c, 1) == [b"b"]


# R20, R37: an offset out of range
def test_an_offset_that_is_gone_is_reset(toys: ToyCluster) -> None:
    fill(toys, T0, *[b"%d" % number for number in range(10)])
    log_of(toys).advance_start(6)
    with consumer(toys) as c:
        c.assign({T0: 2})
        assert read(c, 4) == [b"6", b"7", b"8", b"9"]


def test_or_an_error_until_the_caller_seeks(toys: ToyCluster) -> None:
    fill(toys, T0, *[b"%d" % number for number in range(10)])
    log_of(toys).advance_start(6)
    with consumer(toys, offset_reset="error") as c:
        c.assign({T0: 2})
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange, match=r"t-0.*seek to an offset that exists"):
                c.poll("20s")
        c.seek(T0, 8)
        assert read(c, 2) == [b"8", b"9"]


def test_a_log_that_was_cut_is_noticed(toys: ToyCluster) -> None:
    fill(toys, T0, b"a", b"lost", b"lost")
    with consumer(toys, "t") as c:
        read(c, 3)
        log_of(toys).truncate_to(1)
        toys.truth.lead("t", 0, 2)
        fill(toys, T0, b"b", b"c", b"d", b"e", epoch=1)
        assert read(c, 4) == [b"b", b"c", b"d", b"e"]


def test_a_cut_can_be_an_error(toys: ToyCluster) -> None:
    fill(toys, T0, b"a", b"lost", b"lost")
    with consumer(toys, offset_reset="error") as c:
        c.assign({T0: 0})
        read(c, 3)
        log_of(toys).truncate_to(1)
        toys.truth.lead("t", 0, 2)
        fill(toys, T0, b"b", b"c", b"d", b"e", epoch=1)
        with pytest.raises(OffsetOutOfRange, match="t-0 was cut at 1"):
            c.poll("20s")


def test_what_will_not_get_better_is_told(toys: ToyCluster) -> None:
    toys.faults.append(Fault("list_offsets", refuse=ErrorCode.UNSUPPORTED_VERSION, times=-1))
    with consumer(toys, "t") as c, pytest.raises(UnsupportedVersion):
        c.poll("20s")


# R8: reads through a closer follower
def test_a_closer_replica_is_read_and_left_when_it_fails(toys: ToyCluster) -> None:
    fill(toys, T0, b"a")
    toys.truth.follower_for_rack["r2"] = 2
    with consumer(toys, "t", client_rack="r2") as c:
        assert read(c, 1) == [b"a"]
        fill(toys, T0, b"b")
        assert read(c, 1) == [b"b"]
        # Counted before the reply went out, so whoever has read it sees it counted.
        assert served(toys, 2, T0) == 2
        assert served(toys, 1, T0) == 0
        toys.stop(2)  # and the leader goes on sending us there
        fill(toys, T0, b"c")
        assert read(c, 1) == [b"c"]
        assert served(toys, 1, T0) == 1
        toys.start(2)

        def is_back() -> bool:
            fill(toys, T0, b"x")
            read(c, 1)
            return served(toys, 2, T0) > 2

        until(is_back, "it is read again")


def told(
    code: ErrorCode | None = None, diverging: tuple[int, int] | None = None
) -> broker_pb2.FetchPartitionReply:
    reply = broker_pb2.FetchPartitionReply()
    if code is not None:
        reply.error.CopyFrom(common_pb2.Error(code=code, message="told to refuse"))
    if diverging is not None:
        reply.diverging.epoch, reply.diverging.end_offset = diverging
    return reply


@pytest.mark.parametrize(
    "says",
    [
        told(ErrorCode.NOT_LEADER_OR_FOLLOWER),  # it is cut off
        told(ErrorCode.BROKER_NOT_AVAILABLE),
        told(ErrorCode.FENCED_LEADER_EPOCH),
        told(ErrorCode.UNKNOWN_LEADER_EPOCH),
        told(ErrorCode.OFFSET_OUT_OF_RANGE),  # it has not caught up
        told(diverging=(0, 0)),
        told(ErrorCode.KAFKA_STORAGE_ERROR),
        told(ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_whatever_a_closer_replica_says_the_leader_serves(
    toys: ToyCluster, says: broker_pb2.FetchPartitionReply
) -> None:
    fill(toys, T0, b"a", b"b")
    toys.truth.follower_for_rack["r2"] = 2
    with consumer(toys, client_rack="r2") as c:
        c.assign({T0: 0})
        assert read(c, 2) == [b"a", b"b"]
        toys.brokers[2].sessions.told = says
        for value in (b"c", b"d", b"e"):
            fill(toys, T0, value)
            assert read(c, 1) == [value]
        assert served(toys, 1, T0) == 3
    assert toys.seen.count("fetch") < 100, "nobody is asked again and again"


def test_a_closer_replica_that_we_know_nothing_of(toys: ToyCluster) -> None:
    toys.truth.follower_for_rack["r9"] = 9
    fill(toys, T0, b"a", b"b")
    with consumer(toys, "t", client_rack="r9") as c:
        assert read(c, 2) == [b"a", b"b"]
    assert toys.seen.count("fetch") < 100, "nobody is asked again and again"


# R37: fetch.min.bytes and fetch.max.wait.ms are the broker's to keep, partition sizes too
def test_limits_are_asked_for(toys: ToyCluster) -> None:
    fill(toys, T0, *[b"x" * 1_000] * 20)
    with consumer(
        toys, "t", fetch_min_bytes=7, fetch_max_bytes=9_000, max_partition_fetch_bytes=3_000
    ) as c:
        read(c, 20)
    asked = toys.last_fetch
    assert (asked.min_bytes, asked.max_bytes, asked.max_wait_ms) == (7, 9_000, 100)
    assert toys.seen.count("fetch") >= 20 // 3


def test_a_busy_partition_does_not_wait_for_an_idle_one(toys: ToyCluster) -> None:
    """The buffer of one is full, so the fetch of the other is parked alone; then there is room."""
    toys.truth.lead("t", 1, 1)
    fill(toys, T0, *[b"x" * 1_000] * 50)
    with consumer(toys, "t", max_partition_fetch_bytes=2_000, fetch_max_wait="60s") as c:
        assert len(read(c, 50)) == 50
