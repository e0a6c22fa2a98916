from collections.abc import Iterator

import pytest

from kraftlog.admin_types import NewTopic
from kraftlog.errors import KraftError
from kraftlog.local import LocalCluster
from kraftlog.types import TopicPartition
from spark_connector.loss import DataLost
from spark_connector.offsets import Range
from spark_connector.options import SourceOptions, source_options
from spark_connector.rows import Prefetch, read_range
from tests.spark.topics import fill

pytestmark = pytest.mark.xdist_group("spark")


def options(cluster: LocalCluster, topic: str, **given: str) -> SourceOptions:
    servers = {"bootstrap.servers": cluster.bootstrap, "subscribe": topic}
    return source_options(servers | given, streaming=False)


def offsets(given: SourceOptions, wanted: Range) -> list[int]:
    batches = list(read_range(given, wanted, ("offset", "timestampType")))
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_a_range_is_read_to_the_record(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    place = TopicPartition(kraft_topic, 0)
    fill(kraft_cluster, kraft_topic, 0, 100)
    fill(kraft_cluster, kraft_topic, 0, 100, first=100)
    given = options(kraft_cluster, kraft_topic)
    assert offsets(given, Range(place, 33, 177)) == list(range(33, 177))
    assert offsets(given, Range(place, 33, 33)) == []


def test_lost_data(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    place = TopicPartition(kraft_topic, 0)
    fill(kraft_cluster, kraft_topic, 0, 100)
    with kraft_cluster.admin() as admin:
        admin.delete_records({place: 40}).raise_for_errors()
    with pytest.raises(DataLost, match=r"offsets 0 to 100 of .* there are 40 to 100"):
        offsets(options(kraft_cluster, kraft_topic), Range(place, 0, 100))
    lenient = options(kraft_cluster, kraft_topic, failOnDataLoss="false")
    assert offsets(lenient, Range(place, 0, 100)) == list(range(40, 100))
    assert offsets(lenient, Range(place, 0, 30)) == []
    assert offsets(lenient, Range(place, 90, 120)) == list(range(90, 100))


def test_a_topic_whose_timestamps_change_their_type(kraft_cluster: LocalCluster) -> None:
    topic = "stamped-by-the-broker"
    with kraft_cluster.admin() as admin:
        configs = {"message.timestamp.type": "LogAppendTime"}
        admin.create_topics([NewTopic(topic, 1, 1, configs=configs)]).raise_for_errors()
    fill(kraft_cluster, topic, 0, 3)
    given, wanted = options(kraft_cluster, topic), Range(TopicPartition(topic, 0), 0, 3)
    (batch,) = read_range(given, wanted, ("timestampType", "timestamp"))
    assert batch.column("timestampType").to_pylist() == [1, 1, 1]


def test_what_is_fetched_ahead_comes_in_order_and_so_do_errors() -> None:
    def source() -> Iterator[bytes]:
        yield b"1"
        yield b"2"
        raise KraftError("gone")

    ahead = Prefetch(source(), 1)
    found = iter(ahead)
    assert [next(found), next(found)] == [b"1", b"2"]
    with pytest.raises(KraftError, match="gone"):
        next(found)
    endless = Prefetch(iter(lambda: b"x", b""), 1)
    assert next(iter(endless)) == b"x"
    endless.close()
    endless.join()
