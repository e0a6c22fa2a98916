"""Streams of a range that break, stand still or are called off; the broker of most is a toy."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import grpc
import pytest

from kraftlog.admin_types import NewTopic
from kraftlog.cluster_view import Node
from kraftlog.errors import KraftError, NetworkError
from kraftlog.local import LocalCluster
from kraftlog.record_batch import read_batches
from kraftlog.rpc import broker_pb2
from kraftlog.types import TopicPartition
from spark_connector import client, fetch
from spark_connector.client import Cluster
from spark_connector.fetch import RangeFetch
from spark_connector.loss import TopicGone
from spark_connector.offsets import Range
from spark_connector.rows import Prefetch
from tests.spark.test_client import dial
from tests.spark.topics import fill
from tests.waiting import wait_until

pytestmark = pytest.mark.xdist_group("spark")

PLACE = TopicPartition("t", 0)

Script = Callable[[broker_pb2.FetchRangeRequest], Iterator[broker_pb2.FetchRangeReply]]


class ToyBroker:
    """Answers each call as the next script says; the last one is for all that follow."""

    def __init__(self) -> None:
        self.scripts: list[Script] = []
        self.calls = 0
        self.ended = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(8))
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_stream_rpc_method_handler(
            self._answer
        )
        service = grpc.method_handlers_generic_handler(
            "kraftlog.rpc.Broker", {"FetchRange": handler}
        )
        self._server.add_generic_rpc_handlers((service,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def _answer(self, message: bytes, _: grpc.ServicerContext) -> Iterator[bytes]:
        script = self.scripts[min(self.calls, len(self.scripts) - 1)]
        self.calls += 1
        for reply in script(broker_pb2.FetchRangeRequest.FromString(message)):
            yield reply.SerializeToString()

    def close(self) -> None:
        self.ended.set()
        self._server.stop(None).wait()

    # -- scripts

    def rest(self, request: broker_pb2.FetchRangeRequest) -> Iterator[broker_pb2.FetchRangeReply]:
        for offset in range(request.from_offset, request.to_offset):
            yield broker_pb2.FetchRangeReply(records=b"%d" % offset, next_offset=offset + 1)

    def one(self, request: broker_pb2.FetchRangeRequest) -> Iterator[broker_pb2.FetchRangeReply]:
        yield next(self.rest(request))

    def one_and_silence(
        self, request: broker_pb2.FetchRangeRequest
    ) -> Iterator[broker_pb2.FetchRangeReply]:
        yield next(self.rest(request))
        yield from self.silence(request)

    def silence(self, _: broker_pb2.FetchRangeRequest) -> Iterator[broker_pb2.FetchRangeReply]:
        self.ended.wait()
        return iter(())


@pytest.fixture
def toy() -> Iterator[ToyBroker]:
    made = ToyBroker()
    yield made
    made.close()


@pytest.fixture
def dialled(toy: ToyBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    made = dial(f"127.0.0.1:{toy.port}", request_timeout="200ms")
    leader = Node(1, "127.0.0.1", toy.port)
    monkeypatch.setattr(made, "leader_of", lambda _: (leader, b"topic"))

    async def no_refresh(_: KraftError) -> None:
        """A toy broker has no metadata."""

    monkeypatch.setattr(made._client, "refresh_after", no_refresh)
    yield made
    made.close()


def fetched(source: Cluster, end: int, patience_ms: int) -> RangeFetch:
    wanted = Range(PLACE, 0, end)
    return RangeFetch(source, wanted, message_bytes=1_000, patience_ms=patience_ms)


def test_the_time_of_a_slow_reader_costs_no_patience(
    toy: ToyBroker, dialled: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now, sleep=lambda _: None)
    monkeypatch.setattr(fetch, "time", clock)
    monkeypatch.setattr(client, "time", clock)
    toy.scripts = [toy.one, toy.rest]
    found = []
    for message in fetched(dialled, 3, patience_ms=60_000):
        found.append(message)
        now += 3_600
    assert found == [b"0", b"1", b"2"]
    assert toy.calls == 2


def test_a_stream_that_stands_still_is_called_off_and_begun_anew(
    toy: ToyBroker, dialled: Cluster
) -> None:
    toy.scripts = [toy.one_and_silence, toy.rest]
    assert list(fetched(dialled, 3, patience_ms=60_000)) == [b"0", b"1", b"2"]
    assert toy.calls == 2


def test_patience_ends(toy: ToyBroker, dialled: Cluster) -> None:
    toy.scripts = [toy.silence]
    with pytest.raises(NetworkError, match=r"no range of t-0 .* nothing came for too long"):
        list(fetched(dialled, 3, patience_ms=500))
    assert toy.calls > 1, "a silent stream is a failure, and not the end"


def test_who_closes_waits_for_no_message(toy: ToyBroker, dialled: Cluster) -> None:
    dialled._options = replace(dialled._options, request_timeout_ms=60_000)
    toy.scripts = [toy.one_and_silence]
    source = fetched(dialled, 3, patience_ms=60_000)
    ahead = Prefetch(source, 3, source.cancel)
    assert next(iter(ahead)) == b"0"
    ahead.close()
    ahead.join()
    assert toy.calls == 1


def test_what_is_called_off_before_it_begins(toy: ToyBroker, dialled: Cluster) -> None:
    toy.scripts = [toy.rest]
    source = fetched(dialled, 3, patience_ms=60_000)
    source.cancel()
    assert list(source) == []


# -- topics that go


def messages(source: Cluster, wanted: Range) -> list[bytes]:
    return list(RangeFetch(source, wanted, message_bytes=1_000, patience_ms=40_000))


def test_a_topic_that_is_deleted_or_made_anew_has_gone(
    kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 10)
    place = TopicPartition(kraft_topic, 0)
    reader = dial(kraft_cluster.bootstrap)
    try:
        wanted = Range(place, 0, 10, reader.topic_ids([kraft_topic])[kraft_topic])
        assert sum(len(list(read_batches(each))) for each in messages(reader, wanted)) > 0
        with kraft_cluster.admin() as admin:
            admin.delete_topics([kraft_topic]).raise_for_errors()
        wait_until(lambda: not reader.existing([kraft_topic]), "it has gone")
        with pytest.raises(TopicGone, match=f"topic {kraft_topic} does not exist any more"):
            messages(reader, wanted)
        with kraft_cluster.admin() as admin:
            admin.create_topics([NewTopic(kraft_topic, 1, 1)]).raise_for_errors()
        fill(kraft_cluster, kraft_topic, 0, 10)
        with pytest.raises(TopicGone, match=f"topic {kraft_topic} is another one by now"):
            messages(reader, wanted)
        assert messages(reader, wanted._replace(topic_id=b"")), "whichever has the name"
    finally:
        reader.close()


@pytest.mark.slow
@pytest.mark.drill
@pytest.mark.kraft(controllers=1, brokers=3, faults=True)
def test_a_range_goes_on_with_the_next_leader(kraft_cluster: LocalCluster) -> None:
    with kraft_cluster.admin() as admin:
        admin.create_topics([NewTopic("t", 1, 3)]).raise_for_errors()
    for first in range(0, 1_000, 50):
        fill(kraft_cluster, "t", 0, 50, first)
    reader = dial(kraft_cluster.bootstrap)
    try:
        wanted = Range(TopicPartition("t", 0), 0, 1_000)
        messages = iter(RangeFetch(reader, wanted, message_bytes=1_000, patience_ms=60_000))
        found = [next(messages)]
        kraft_cluster.kill(kraft_cluster.leader("t", 0))
        found += messages
    finally:
        reader.close()
    offsets = [r.offset for m in found for batch in read_batches(m) for r in batch.records()]
    assert offsets == list(range(1_000))
