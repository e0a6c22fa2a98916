"""The service over real gRPC and a real data plane: three brokers in this process, one of which
listens.
"""

from pathlib import Path

import grpc
import grpc.aio
import pytest

from brokers import metadata_answers
from brokers.replica_manager import ReplicaManager
from kraftlog._check import InvariantViolation
from kraftlog.errors import ErrorCode
from kraftlog.record_batch import encode_values, read_batches
from kraftlog.rpc import broker_pb2 as pb
from kraftlog.rpc import common_pb2
from tests.brokers.brokers import Cluster
from tests.brokers.images import uuid
from tests.brokers.served import CLUSTER_ID, served
from tests.loops import run, until

TOPIC = uuid("t").raw


def records(*values: bytes) -> bytes:
    return bytes(encode_values(values, timestamp=1_700_000_000_000))


def produce(
    *values: bytes, partition: int = 0, acks: int = -1, timeout_ms: int = 10_000
) -> pb.BrokerRequest:
    part = pb.ProducePartition(partition=partition, records=records(*values))
    topic = pb.ProduceTopic(topic_id=TOPIC, partitions=[part])
    message = pb.ProduceRequest(acks=acks, timeout_ms=timeout_ms, topics=[topic])
    return pb.BrokerRequest(produce=message)


def fetch(offset: int = 0, *, max_wait_ms: int = 0) -> pb.BrokerRequest:
    part = pb.FetchPartition(partition=0, offset=offset, max_bytes=1 << 20)
    message = pb.FetchDataRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[pb.FetchTopic(topic_id=TOPIC, partitions=[part])],
    )
    return pb.BrokerRequest(fetch=message)


def values_of(data: bytes) -> list[bytes]:
    return [bytes(r.value or b"") for batch in read_batches(data) for r in batch.records()]


# -- every request


def test_records_go_in_and_come_out(tmp_path: Path) -> None:
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            async with served(cluster.brokers[1].manager) as broker:
                reply = await broker.call(produce(b"a", b"b"))
                [part] = reply.produce.topics[0].partitions
                assert (part.error.message, part.base_offset) == ("", 0)
                reply = await broker.call(fetch())
                [found] = reply.fetch.topics[0].partitions
                assert values_of(found.records) == [b"a", b"b"]
                assert found.high_watermark == 2

    run(story())


def test_offsets_ends_epochs_estimates_and_replicas(tmp_path: Path) -> None:
    asked = {
        "list_offsets": pb.ListOffsetsRequest(
            topics=[
                pb.ListOffsetsTopic(
                    name="t", partitions=[pb.ListOffsetsPartition(partition=0, timestamp=-1)]
                )
            ]
        ),
        "ends": pb.EndsRequest(
            topics=[pb.EndsTopic(name="t", partitions=[pb.EndsPartition(known_end=-1)])]
        ),
        "epoch_ends": pb.EpochEndsRequest(
            topics=[pb.EpochEndsTopic(topic_id=TOPIC, partitions=[pb.EpochEndsPartition()])]
        ),
        "estimate_bytes": pb.EstimateBytesRequest(
            ranges=[pb.OffsetRange(name="t", from_offset=0, to_offset=3)]
        ),
        "describe_replicas": pb.DescribeReplicasRequest(
            topics=[pb.TopicName(name="t"), pb.TopicName(name="nope")], digest=True
        ),
        "delete_records": pb.DeleteRecordsRequest(
            timeout_ms=5_000,
            topics=[
                pb.DeleteRecordsTopic(
                    topic_id=TOPIC, partitions=[pb.DeleteRecordsPartition(offset=2)]
                )
            ],
        ),
    }

    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            async with served(cluster.brokers[1].manager) as broker:
                await broker.call(produce(b"a", b"b", b"c"))
                told: dict[str, pb.BrokerReply] = {}
                for kind, message in asked.items():
                    request = pb.BrokerRequest()
                    getattr(request, kind).CopyFrom(message)
                    told[kind] = await broker.call(request)
                    assert told[kind].WhichOneof("reply") == kind
        part = told["list_offsets"].list_offsets.topics[0].partitions[0]
        assert (part.error.message, part.offset) == ("", 3)
        end = told["ends"].ends.topics[0].partitions[0]
        assert (end.error.message, end.high_watermark) == ("", 3)
        epoch = told["epoch_ends"].epoch_ends.topics[0].partitions[0]
        assert (epoch.end.epoch, epoch.end.end_offset) == (0, 3)
        assert told["estimate_bytes"].estimate_bytes.ranges[0].bytes > 0
        [replica] = told["describe_replicas"].describe_replicas.replicas
        assert (replica.topic, replica.end_offset, replica.is_leader) == ("t", 3, True)
        assert replica.HasField("digest")
        deleted = told["delete_records"].delete_records.topics[0].partitions[0]
        assert (deleted.error.message, deleted.log_start_offset) == ("", 2)

    run(story())


def test_a_range_comes_in_pieces(tmp_path: Path) -> None:
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            async with served(cluster.brokers[1].manager) as broker:
                for number in range(5):
                    await broker.call(produce(b"%d" % number))
                stream = broker.channel.unary_stream(
                    "/kraftlog.rpc.Broker/FetchRange",
                    request_serializer=pb.FetchRangeRequest.SerializeToString,
                    response_deserializer=pb.FetchRangeReply.FromString,
                )
                request = pb.FetchRangeRequest(
                    name="t", from_offset=1, to_offset=4, message_bytes=1
                )
                pieces = [piece async for piece in stream(request)]
                assert len(pieces) > 1
                found = [value for piece in pieces for value in values_of(piece.records)]
                assert found == [b"1", b"2", b"3"]
                assert pieces[-1].next_offset == 4
                request.name = "nope"
                [refused] = [piece async for piece in stream(request)]
                assert refused.error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                assert broker.service.table.open == 0

    run(story())


# -- order and limits


def test_a_later_request_does_not_overtake_an_earlier_one_of_its_partition(
    tmp_path: Path,
) -> None:  # R16
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            await cluster.create("t", partition=1)
            cluster.cut(1, 2)  # so that acks=all has to wait until the follower is out
            async with served(cluster.brokers[1].manager) as broker, broker.stream() as client:
                client.send(produce(b"waits"))
                wrong = produce(b"wrong")
                wrong.produce.topics[0].partitions[0].records = b"no batch"
                client.send(wrong)
                client.send(produce(b"other partition", partition=1, acks=1))
                client.send(pb.BrokerRequest(metadata=pb.MetadataRequest()))
                await until(lambda: len(client.replies) == 2, "two quick replies")
                kinds = {reply.WhichOneof("reply") for reply in client.replies}
                assert kinds == {"metadata", "produce"}
                cluster.heal()
                await until(lambda: len(client.replies) == 4, "all replies")
                numbers = [reply.correlation_id for reply in client.replies]
                assert numbers.index(1) < numbers.index(2)
                errors = {
                    reply.correlation_id: reply.produce.topics[0].partitions[0].error.code
                    for reply in client.replies
                    if reply.WhichOneof("reply") == "produce"
                }
                assert errors == {1: 0, 2: ErrorCode.CORRUPT_MESSAGE, 3: 0}

    run(story())


def test_acks_0_gets_no_answer_and_the_stream_goes_on(tmp_path: Path) -> None:  # R18
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            async with served(cluster.brokers[1].manager) as broker, broker.stream() as client:
                await broker.call(produce(b"first"))
                for number in range(1, 200):  # more than may be open at a time
                    client.send(produce(b"%d" % number, acks=0))
                client.send(fetch(199, max_wait_ms=10_000))
                await until(lambda: bool(client.replies), "the fetch")
                [reply] = client.replies
                part = reply.fetch.topics[0].partitions[0]
                assert (part.error.message, values_of(part.records)) == ("", [b"199"])

    run(story())


def test_acks_0_hears_of_what_was_refused(tmp_path: Path) -> None:  # R17, R18
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t")
            async with served(cluster.brokers[2].manager) as broker, broker.stream() as client:
                client.send(produce(b"a", acks=0))
                await until(lambda: bool(client.replies), "the refusal")
                part = client.replies[0].produce.topics[0].partitions[0]
                assert part.error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                assert part.error.leader.leader.node_id == 1

    run(story())


def test_what_is_parked_is_forgotten_with_its_stream(tmp_path: Path) -> None:
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            await cluster.create("t", replicas=(1,))
            manager = cluster.brokers[1].manager
            async with served(manager) as broker:
                async with broker.stream() as client:
                    client.send(fetch(0, max_wait_ms=3_600_000))
                    await until(lambda: parked(manager.counts().parked) > 0, "a parked fetch")
                    assert broker.service.table.open == 1
                await until(lambda: parked(manager.counts().parked) == 0, "it to be forgotten")
                assert broker.service.table.open == 0

    def parked(counts: dict[str, int]) -> int:
        return sum(counts.values())

    run(story())


# -- refusals


def test_who_asks_too_early_is_put_off(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
        ):
            broker.service.close()
            reply = await broker.call(pb.BrokerRequest(metadata=pb.MetadataRequest()))
            assert reply.error.code == ErrorCode.BROKER_NOT_AVAILABLE
            request = pb.BrokerRequest(api_versions=common_pb2.ApiVersionsRequest())
            assert (await broker.call(request)).api_versions.versions

    run(story())


def test_versions_clusters_and_kinds_are_checked(tmp_path: Path) -> None:  # R15, R23
    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
        ):
            request = pb.BrokerRequest(metadata=pb.MetadataRequest())
            request.header.api_version = 4
            reply = await broker.call(request)
            assert reply.error.code == ErrorCode.UNSUPPORTED_VERSION
            assert "version 0" in reply.error.message
            request = pb.BrokerRequest(metadata=pb.MetadataRequest(), cluster_id=b"x" * 16)
            reply = await broker.call(request)
            assert reply.error.code == ErrorCode.INCONSISTENT_CLUSTER_ID
            request.cluster_id = CLUSTER_ID.raw
            assert (await broker.call(request)).metadata.cluster_id == CLUSTER_ID.raw
            reply = await broker.call(pb.BrokerRequest())
            assert reply.error.code == ErrorCode.UNSUPPORTED_VERSION
            request = pb.BrokerRequest(init_producer_id=pb.InitProducerIdRequest())
            request.init_producer_id.transactional_id = "t"
            reply = await broker.call(request)
            assert reply.error.code == ErrorCode.UNSUPPORTED_VERSION

    run(story())


def test_a_fetch_session_that_is_gone_is_an_error_of_the_whole(tmp_path: Path) -> None:  # R21
    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
        ):
            request = fetch()
            request.fetch.session_id, request.fetch.session_epoch = 12345, 7
            reply = await broker.call(request)
            assert reply.error.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    run(story())


def test_what_is_no_message_is_told_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
        ):
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = broker.channel.unary_unary(
                "/kraftlog.rpc.Broker/Call"
            )
            stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = broker.channel.unary_stream(
                "/kraftlog.rpc.Broker/FetchRange"
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"\xff", timeout=20)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await anext(aiter(stream(b"\xff", timeout=20)))
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert broker.service.table.open == 0

    run(story())


def test_metadata_that_does_not_fit_into_a_message_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_answers, "REPLY_BYTES_MAX", 10)

    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
        ):
            for message in (
                pb.MetadataRequest(all_topics=True),
                pb.MetadataRequest(topics=[pb.TopicName(name="new")], allow_auto_create=True),
                pb.MetadataRequest(),
            ):
                reply = await broker.call(pb.BrokerRequest(metadata=message))
                assert reply.error.code == ErrorCode.MESSAGE_TOO_LARGE

    run(story())


# -- metadata and ids


def test_metadata_and_topics_that_come_to_be(tmp_path: Path) -> None:  # R17, R22
    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
        ):
            every = pb.BrokerRequest(metadata=pb.MetadataRequest(all_topics=True))
            reply = await broker.call(every)
            assert [topic.name for topic in reply.metadata.topics] == ["t"]
            assert reply.metadata.controller_id == 101
            names = [pb.TopicName(name="t"), pb.TopicName(name="new")]
            request = pb.BrokerRequest(metadata=pb.MetadataRequest(topics=names))
            reply = await broker.call(request)
            assert [topic.error.code for topic in reply.metadata.topics] == [0, 3]
            assert broker.created == []
            request.metadata.allow_auto_create = True
            reply = await broker.call(request)
            assert [topic.error.code for topic in reply.metadata.topics] == [0, 0]
            assert broker.created == ["new"]
            reply = await broker.call(every)
            assert {topic.name for topic in reply.metadata.topics} == {"t", "new"}

    run(story())


def test_where_it_is_switched_off_nothing_comes_to_be(tmp_path: Path) -> None:
    async def story() -> None:
        async with Cluster(tmp_path) as cluster:
            data = cluster.brokers[1].manager
            async with served(data, auto_create=False) as broker:
                request = pb.MetadataRequest(
                    topics=[pb.TopicName(name="new")], allow_auto_create=True
                )
                reply = await broker.call(pb.BrokerRequest(metadata=request))
                assert reply.metadata.topics[0].error.code == 3

    run(story())


def test_producer_ids(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
        ):
            request = pb.BrokerRequest(init_producer_id=pb.InitProducerIdRequest())
            replies = [await broker.call(request) for _ in range(3)]
            assert [each.init_producer_id.producer_id for each in replies] == [100, 101, 102]

    run(story())


# -- what must end the process


def breaks(*_: object) -> None:
    raise InvariantViolation("a rule is broken: offset=7")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broken_invariant_is_handed_to_whoever_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReplicaManager, "list_offsets", breaks)
    part = pb.ListOffsetsPartition(partition=0, timestamp=-1)
    asked = pb.ListOffsetsRequest(topics=[pb.ListOffsetsTopic(name="t", partitions=[part])])

    async def story() -> None:
        async with (
            Cluster(tmp_path, count=1) as cluster,
            served(cluster.brokers[1].manager) as broker,
            broker.stream() as client,
        ):
            client.send(pb.BrokerRequest(list_offsets=asked))
            await until(lambda: bool(broker.failures), "the failure")
            [failure] = broker.failures
            assert isinstance(failure, InvariantViolation)
            assert "offset=7" in str(failure)

    run(story())
