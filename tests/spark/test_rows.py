from collections.abc import Iterator

import pytest

from kraftlog.admin_types import ConfigResource, NewTopic
from kraftlog.arrow import arrow_columns
from kraftlog.errors import KraftError, OffsetOutOfRange, RecordTooLarge
from kraftlog.local import LocalCluster
from kraftlog.records import Record
from kraftlog.types import TopicPartition
from spark_connector import rows
from spark_connector.client import Cluster
from spark_connector.fetch import RangeFetch
from spark_connector.loss import DataLost
from spark_connector.offsets import Range
from spark_connector.options import SourceOptions, source_options
from spark_connector.rows import Prefetch, read_range
from tests.spark.topics import fill
from tests.waiting import wait_until

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


# -- what goes while it is read


class Interrupted(RangeFetch):
    """Its first message comes, then something happens."""

    def __init__(
        self, source: Cluster, wanted: Range, *, message_bytes: int, patience_ms: int
    ) -> None:
        small = min(message_bytes, 100)
        super().__init__(source, wanted, message_bytes=small, patience_ms=patience_ms)

    def __iter__(self) -> Iterator[bytes]:
        messages = super().__iter__()
        yield next(messages)
        self.happens()
        yield from RangeFetch.__iter__(self)

    def happens(self) -> None:
        raise NotImplementedError


def test_what_is_gathered_when_the_rest_goes_is_not_lost(
    kraft_cluster: LocalCluster, kraft_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TopicPartition(kraft_topic, 0)
    for first in range(0, 100, 10):
        fill(kraft_cluster, kraft_topic, 0, 10, first)
    fill(kraft_cluster, kraft_topic, 0, 10, first=100)

    class Retained(Interrupted):
        def happens(self) -> None:
            with kraft_cluster.admin() as admin:
                admin.delete_records({place: 105}).raise_for_errors()
            raise OffsetOutOfRange("retention was faster")

    monkeypatch.setattr(rows, "RangeFetch", Retained)
    lenient = options(kraft_cluster, kraft_topic, failOnDataLoss="false")
    assert offsets(lenient, Range(place, 0, 100)) == list(range(10))
    monkeypatch.undo()
    with pytest.raises(DataLost, match=r"there are 105 to 110"):
        offsets(options(kraft_cluster, kraft_topic), Range(place, 0, 100))


def test_a_topic_that_is_deleted_is_lost_too(
    kraft_cluster: LocalCluster, kraft_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TopicPartition(kraft_topic, 0)
    for first in range(0, 100, 10):
        fill(kraft_cluster, kraft_topic, 0, 10, first)

    class Deleted(Interrupted):
        def happens(self) -> None:
            with kraft_cluster.admin() as admin:
                admin.delete_topics([kraft_topic]).raise_for_errors()
            wait_until(
                lambda: place not in kraft_cluster.look().partitions, "the broker has heard of it"
            )

    lenient = options(kraft_cluster, kraft_topic, failOnDataLoss="false")
    monkeypatch.setattr(rows, "RangeFetch", Deleted)
    found = offsets(lenient, Range(place, 0, 100))
    assert found == list(range(len(found)))
    assert len(found) >= 10
    monkeypatch.undo()
    with pytest.raises(DataLost, match=f"topic {kraft_topic} does not exist any more"):
        offsets(options(kraft_cluster, kraft_topic), Range(place, 0, 100))
    assert offsets(lenient, Range(place, 0, 100)) == []


# -- how much is gathered


def test_batches_of_one_message_are_gathered_up_to_what_is_wanted(
    kraft_cluster: LocalCluster, kraft_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TopicPartition(kraft_topic, 0)
    for first in range(0, 50, 10):
        fill(kraft_cluster, kraft_topic, 0, 10, first)
    given = options(kraft_cluster, kraft_topic)
    monkeypatch.setattr(rows, "ROWS_WANTED", 20)
    found = list(read_range(given, Range(place, 0, 50), ("offset",)))
    assert [batch.num_rows for batch in found] == [20, 20, 10]
    monkeypatch.undo()
    monkeypatch.setattr(rows, "arrow_columns", lambda: arrow_columns(60))
    found = list(read_range(given, Range(place, 0, 50), ("offset",)))
    assert [batch.num_rows for batch in found] == [10] * 5, "columns have room for one batch"
    monkeypatch.setattr(rows, "arrow_columns", lambda: arrow_columns(5))
    with pytest.raises(RecordTooLarge):
        list(read_range(given, Range(place, 0, 50), ("offset",)))


def test_timestamps_that_become_the_brokers(kraft_cluster: LocalCluster, kraft_topic: str) -> None:
    fill(kraft_cluster, kraft_topic, 0, 10)
    with kraft_cluster.admin() as admin:
        change = {"message.timestamp.type": "LogAppendTime"}
        resource = ConfigResource.topic(kraft_topic)
        admin.alter_configs({resource: change}).raise_for_errors()

    def kinds() -> list[int]:
        end = sum(1 for _ in counted)
        given, wanted = options(kraft_cluster, kraft_topic), Range(place, 0, 10 * end)
        return [
            kind
            for batch in read_range(given, wanted, ("timestampType",))
            for kind in batch.column("timestampType").to_pylist()
        ]

    place, counted = TopicPartition(kraft_topic, 0), [0]

    def has_changed() -> bool:
        fill(kraft_cluster, kraft_topic, 0, 10)
        counted.append(0)
        return 1 in kinds()

    wait_until(has_changed, "the broker knows of the change")
    assert kinds() == [0] * (10 * len(counted) - 10) + [1] * 10


@pytest.mark.kraft(config={"log.cleaner.backoff.ms": 50})
def test_gaps_of_compaction(kraft_cluster: LocalCluster) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": "2000"}
    configs["min.cleanable.dirty.ratio"] = "0"
    place = TopicPartition("compacted", 0)
    with kraft_cluster.admin() as admin:
        admin.create_topics([NewTopic("compacted", 1, 1, configs=configs)]).raise_for_errors()
    keys = [b"%d" % (number % 7) for number in range(600)]
    with kraft_cluster.producer() as producer:
        for first in range(0, 600, 10):
            records = [Record(b"%d" % n, key=keys[n]) for n in range(first, first + 10)]
            producer.send_many("compacted", records)
            assert producer.flush("40s") == (0, 0)
    given = options(kraft_cluster, "compacted")
    whole = Range(place, 0, 600)
    wait_until(lambda: len(offsets(given, whole)) < 300, "compaction")
    left = offsets(given, whole)
    first_gap = next(offset for offset in range(600) if offset not in left)
    assert {keys[offset] for offset in left} == set(keys)
    for start, end in ((0, first_gap + 1), (first_gap, first_gap + 2), (first_gap, 600)):
        # Compaction may go on, but only takes away.
        found = offsets(given, Range(place, start, end))
        assert set(found) <= {offset for offset in left if start <= offset < end}
        assert {offset for offset in offsets(given, whole) if start <= offset < end} <= set(found)


# -- fetching ahead


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
