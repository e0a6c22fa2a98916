from collections.abc import Iterator

import pytest

from kraftlog.consumer_options import consumer_options
from kraftlog.errors import ConfigError, KraftError, OffsetOutOfRange, UnknownTopicOrPartition
from kraftlog.local import LocalCluster
from kraftlog.offsets import Offset
from kraftlog.record_batch import read_batches
from kraftlog.types import TopicPartition
from spark_connector.client import Cluster, Ends, cluster
from spark_connector.fetch import RangeFetch
from spark_connector.offsets import Range
from tests.spark.topics import fill

pytestmark = pytest.mark.xdist_group("spark")


def dial(servers: str, **arguments: object) -> Cluster:
    return Cluster(consumer_options(servers, arguments).common)


@pytest.fixture
def connected(kraft_cluster: LocalCluster) -> Iterator[Cluster]:
    made = dial(kraft_cluster.bootstrap)
    yield made
    made.close()


def read(connected: Cluster, wanted: Range) -> list[int]:
    messages = RangeFetch(connected, wanted, message_bytes=1_000, patience_ms=40_000)
    return [
        record.offset
        for message in messages
        for batch in read_batches(message)
        for record in batch.records()
        if wanted.start <= record.offset < wanted.end
    ]


@pytest.mark.kraft(partitions=2)
def test_ends_offsets_sizes_and_ranges(
    kraft_cluster: LocalCluster, kraft_topic: str, connected: Cluster
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 100)
    first, second = TopicPartition(kraft_topic, 0), TopicPartition(kraft_topic, 1)
    assert connected.topics([kraft_topic]) == {kraft_topic: 2}
    assert connected.ends([first, second]) == {first: Ends(0, 100), second: Ends(0, 0)}
    assert connected.locate({first: Offset.before_end(10), second: Offset.END}) == {
        first: 90,
        second: 0,
    }
    assert connected.at_times({first: 1_040, second: 0}) == {first: 40, second: None}
    assert connected.estimate_bytes([Range(first, 0, 100)])[first] > 1_000
    assert read(connected, Range(first, 7, 93)) == list(range(7, 93))


@pytest.mark.kraft(controllers=1, brokers=2, partitions=4)
def test_a_wait_ends_with_news_from_any_broker(
    kraft_cluster: LocalCluster, kraft_topic: str, connected: Cluster
) -> None:
    places = [TopicPartition(kraft_topic, number) for number in range(4)]
    connected.topics([kraft_topic])
    known = {place: each.end for place, each in connected.ends(places).items()}
    assert connected.ends(places, known, wait_ms=100) == dict.fromkeys(places, Ends(0, 0))
    fill(kraft_cluster, kraft_topic, 3, 5)
    assert connected.ends(places, known, wait_ms=40_000)[places[3]] == Ends(0, 5)


def test_topics_by_pattern_and_one_that_is_missing(
    kraft_cluster: LocalCluster, kraft_topic: str, connected: Cluster
) -> None:
    assert connected.matching(f"{kraft_topic[:-1]}.") == {kraft_topic: 1}
    assert connected.matching("nothing-like-that") == {}
    assert connected.existing([kraft_topic, "no-such-topic"]) == {kraft_topic: 1}
    with pytest.raises(UnknownTopicOrPartition, match=f"did you mean {kraft_topic}"):
        connected.topics([f"{kraft_topic}x"])
    with pytest.raises(ConfigError, match="no regular expression"):
        connected.matching("(")


def test_what_is_not_there_is_an_error_at_once(
    kraft_cluster: LocalCluster, kraft_topic: str, connected: Cluster
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 5)
    with pytest.raises(OffsetOutOfRange):
        read(connected, Range(TopicPartition(kraft_topic, 0), 3, 9))


def test_brokers_that_cannot_be_reached() -> None:
    lonely = dial("127.0.0.1:1", api_timeout="500ms")
    try:
        with pytest.raises(KraftError, match=r"127.0.0.1:1 cannot be reached|no answer"):
            lonely.topics(["t"])
    finally:
        lonely.close()
    assert not lonely.is_usable


def test_a_process_has_one_connection(kraft_cluster: LocalCluster) -> None:
    options = consumer_options(kraft_cluster.bootstrap, {"client_id": "one"}).common
    other = consumer_options(kraft_cluster.bootstrap, {"client_id": "other"}).common
    made = cluster(options)
    assert cluster(other) is made
    made.close()
    again = cluster(options)
    assert again is not made
    again.close()
