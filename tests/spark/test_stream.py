"""Streams by a real Spark session on a real cluster."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kraftlog.admin_types import NewTopic
from kraftlog.local import LocalCluster
from kraftlog.types import TopicPartition
from spark_connector import stream
from spark_connector.loss import DataLost
from spark_connector.offsets import Json, Offsets
from spark_connector.options import source_options
from spark_connector.stream import WAIT_MS, StreamReader
from tests.spark.topics import SPARK, fill, grow, load, values
from tests.waiting import wait_until

pytestmark = SPARK


class Streams:
    """From a topic to another one, with a checkpoint."""

    def __init__(self, spark: SparkSession, cluster: LocalCluster, checkpoint: Path) -> None:
        self.spark = spark
        self.cluster = cluster
        self.checkpoint = checkpoint

    def start(
        self, topic: str, target: str, *, available_now: bool, **options: object
    ) -> StreamingQuery:
        reader = self.spark.readStream.format("kraftlog").option(
            "kafka.bootstrap.servers", self.cluster.bootstrap
        )
        source = {"subscribe": topic, "startingOffsets": "earliest"} | options
        for name, value in source.items():
            reader = reader.option(name, str(value))
        writer = reader.load().select("key", "value").writeStream.format("kraftlog")
        writer = writer.option("kafka.bootstrap.servers", self.cluster.bootstrap)
        writer = writer.option("topic", target).option("checkpointLocation", str(self.checkpoint))
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.start()

    def run(self, topic: str, target: str, **options: object) -> StreamingQuery:
        query = self.start(topic, target, available_now=True, **options)
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()
        return query

    def copied(self, target: str) -> list[int]:
        return values(load(self.spark, self.cluster, subscribe=target))

    def written_offsets(self) -> object:
        newest = max((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        return json.loads(newest.read_text().splitlines()[-1])


def batches(query: StreamingQuery) -> list[dict[str, object]]:
    return [json.loads(each.json) for each in query.recentProgress if each["numInputRows"]]


def batch_sizes(query: StreamingQuery) -> list[int]:
    return [cast("int", each["numInputRows"]) for each in batches(query)]


def offsets_of(query: StreamingQuery) -> list[tuple[object, object]]:
    """Where each batch ended, and what there was then."""
    sources = [cast("list[dict[str, object]]", each["sources"])[0] for each in batches(query)]
    return [(source["endOffset"], source["latestOffset"]) for source in sources]


@pytest.fixture
def streams(spark: SparkSession, kraft_cluster: LocalCluster, tmp_path: Path) -> Streams:
    return Streams(spark, kraft_cluster, tmp_path / "checkpoint")


# R47
@pytest.mark.kraft(partitions=2)
def test_what_is_available_now_by_limits_and_on_from_the_checkpoint(
    streams: Streams, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    target = f"{kraft_topic}-copy"
    fill(kraft_cluster, kraft_topic, 0, 60)
    fill(kraft_cluster, kraft_topic, 1, 30, first=60)
    query = streams.run(kraft_topic, target, maxOffsetsPerTrigger=45)
    sizes = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
    assert sizes == [45, 45]
    assert streams.written_offsets() == {kraft_topic: {"0": 60, "1": 30}}
    grow(kraft_cluster, kraft_topic, 3)
    fill(kraft_cluster, kraft_topic, 2, 10, first=90)
    fill(kraft_cluster, kraft_topic, 0, 10, first=100)
    streams.run(kraft_topic, target, startingOffsets="latest")
    assert streams.copied(target) == list(range(110))
    assert streams.written_offsets() == {kraft_topic: {"0": 70, "1": 30, "2": 10}}


def test_bytes_limit_a_batch_too(
    streams: Streams, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    for first in range(0, 40, 10):
        fill(kraft_cluster, kraft_topic, 0, 10, first)
    query = streams.run(kraft_topic, f"{kraft_topic}-copy", maxBytesPerTrigger=400)
    assert len([each for each in query.recentProgress if each["numInputRows"]]) > 1
    assert streams.copied(f"{kraft_topic}-copy") == list(range(40))


def test_a_running_stream_takes_what_comes_and_shows_its_lag(
    streams: Streams, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    target = f"{kraft_topic}-copy"
    with kraft_cluster.admin() as admin:
        admin.create_topics([NewTopic(target, 1, 1)]).raise_for_errors()
    query = streams.start(kraft_topic, target, available_now=False)
    try:
        fill(kraft_cluster, kraft_topic, 0, 5)
        wait_until(lambda: streams.copied(target) == [*range(5)], "the first five", 100)
        grow(kraft_cluster, kraft_topic, 2)
        fill(kraft_cluster, kraft_topic, 1, 5, first=5)
        wait_until(lambda: streams.copied(target) == [*range(10)], "the new partition", 100)
        end = {kraft_topic: {"0": 5, "1": 5}}
        # What a batch wrote can be read before its progress is posted.
        wait_until(lambda: offsets_of(query)[-1:] == [(end, end)], "the progress", 100)
    finally:
        query.stop()


def test_the_lag_is_what_a_limit_leaves(
    streams: Streams, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 25)
    query = streams.start(
        kraft_topic, f"{kraft_topic}-copy", available_now=False, maxOffsetsPerTrigger=10
    )
    ends = [{kraft_topic: {"0": end}} for end in (10, 20, 25)]
    try:
        wait_until(lambda: len(offsets_of(query)) == 3, "three batches", 100)
        assert offsets_of(query) == [(end, ends[-1]) for end in ends]
    finally:
        query.stop()


def test_a_batch_waits_for_enough_records(
    streams: Streams, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    target = f"{kraft_topic}-copy"
    fill(kraft_cluster, kraft_topic, 0, 5)
    query = streams.start(
        kraft_topic, target, available_now=False, minOffsetsPerTrigger=8, maxTriggerDelay="10m"
    )
    try:
        wait_until(lambda: batch_sizes(query) == [5], "the first batch waits for nothing", 100)
        fill(kraft_cluster, kraft_topic, 0, 5, first=5)
        query.processAllAvailable()
        fill(kraft_cluster, kraft_topic, 0, 5, first=10)
        query.processAllAvailable()
        wait_until(lambda: sum(batch_sizes(query)) == 15, "the other ten", 100)
        assert batch_sizes(query) == [5, 10]
    finally:
        query.stop()


# -- without Spark


def stream_reader(cluster: LocalCluster, **options: str) -> StreamReader:
    given = {"bootstrap.servers": cluster.bootstrap, "startingOffsets": "earliest"} | options
    return StreamReader(source_options(given, streaming=True), ("value",))


def latest(reader: StreamReader, start: Json) -> Json:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def planned(reader: StreamReader, start: Json, end: Json) -> list[tuple[int, int, int]]:
    wanted = [each.wanted for each in reader.partitions(start, end)]  # type: ignore[attr-defined]
    return [(each.place.partition, each.start, each.end) for each in wanted]


def read(reader: StreamReader, start: Json, end: Json) -> list[int]:
    batches = [batch for each in reader.partitions(start, end) for batch in reader.read(each)]
    return [int(value) for batch in batches for value in batch.column("value").to_pylist()]


def test_too_few_records_wait_no_longer_than_the_delay(
    kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    given = {"subscribe": kraft_topic, "minOffsetsPerTrigger": "8"}
    patient = stream_reader(kraft_cluster, maxTriggerDelay="10m", **given)
    hasty = stream_reader(kraft_cluster, maxTriggerDelay="0", **given)
    none, five, ten = ({kraft_topic: {"0": end}} for end in (0, 5, 10))
    fill(kraft_cluster, kraft_topic, 0, 5)
    for reader in (patient, hasty):
        assert latest(reader, none) == five, "the first batch of a run waits for nothing"
    fill(kraft_cluster, kraft_topic, 0, 5, first=5)
    assert latest(patient, five) == five
    assert latest(hasty, five) == ten


@pytest.mark.kraft(partitions=2)
def test_brokers_are_not_asked_again_and_again_while_there_is_too_little(
    kraft_cluster: LocalCluster, kraft_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 5)
    reader = stream_reader(kraft_cluster, subscribe=kraft_topic, minOffsetsPerTrigger="8")
    start = {kraft_topic: {"0": 5}}
    assert latest(reader, start) == {kraft_topic: {"0": 5, "1": 0}}
    start = {kraft_topic: {"0": 5, "1": 0}}
    fill(kraft_cluster, kraft_topic, 0, 2, first=5)
    asked: list[tuple[Offsets, int]] = []
    bounds = reader._planner.bounds

    def watched(places: list[TopicPartition], known: Offsets, wait_ms: int) -> object:
        asked.append((known, wait_ms))
        return bounds(places, known, wait_ms)

    monkeypatch.setattr(reader._planner, "bounds", watched)
    assert [latest(reader, start) for _ in range(2)] == [start] * 2
    first, second = TopicPartition(kraft_topic, 0), TopicPartition(kraft_topic, 1)
    assert asked == [({first: 5, second: 0}, WAIT_MS), ({first: 7, second: 0}, WAIT_MS)]


def test_a_pattern_without_topics_waits(
    kraft_cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stream_reader(kraft_cluster, subscribePattern="no-such-.*")
    waits: list[float] = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=waits.append)
    monkeypatch.setattr(stream, "time", clock)
    assert reader.initialOffset() == latest(reader, {}) == {}
    assert waits == [WAIT_MS / 1000]


@pytest.mark.kraft(partitions=2)
def test_a_new_partition_that_has_lost_its_beginning(
    kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 1, 10)
    with kraft_cluster.admin() as admin:
        admin.delete_records({TopicPartition(kraft_topic, 1): 4}).raise_for_errors()
    start, end = {kraft_topic: {"0": 0}}, {kraft_topic: {"0": 0, "1": 10}}
    with pytest.raises(DataLost, match=f"new partition {kraft_topic}-1 starts at 4 instead of 0"):
        latest(stream_reader(kraft_cluster, subscribe=kraft_topic), start)
    lenient = stream_reader(kraft_cluster, subscribe=kraft_topic, failOnDataLoss="false")
    assert latest(lenient, start) == end
    assert planned(lenient, start, end) == [(1, 4, 10)]
    # A run that has not looked takes the batch of the checkpoint for what it was.
    replaying = stream_reader(kraft_cluster, subscribe=kraft_topic)
    assert planned(replaying, start, end) == [(1, 0, 10)]
    with pytest.raises(DataLost, match="offsets 0 to 10"):
        read(replaying, start, end)
    again = stream_reader(kraft_cluster, subscribe=kraft_topic, failOnDataLoss="false")
    assert read(again, start, end) == list(range(4, 10))


def make_anew(cluster: LocalCluster, topic: str, count: int) -> None:
    with cluster.admin() as admin:
        old = admin.describe_topics([topic])[topic].topic_id
        admin.delete_topics([topic]).raise_for_errors()
        admin.create_topics([NewTopic(topic, 1, 1)]).raise_for_errors()
        assert admin.describe_topics([topic])[topic].topic_id != old
    fill(cluster, topic, 0, count, first=100)


@pytest.mark.parametrize("count", [3, 5, 8])
def test_a_topic_that_is_made_anew_under_a_stream(
    kraft_cluster: LocalCluster, kraft_topic: str, count: int
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 5)
    readers = {
        fail: stream_reader(kraft_cluster, subscribe=kraft_topic, failOnDataLoss=fail)
        for fail in ("true", "false")
    }
    start = {kraft_topic: {"0": 5}}
    for reader in readers.values():
        assert latest(reader, {kraft_topic: {"0": 0}}) == start
    batch = readers["true"].partitions({kraft_topic: {"0": 0}}, start)
    make_anew(kraft_cluster, kraft_topic, count)
    with pytest.raises(DataLost, match=r"read up to 5, and its topic was made anew since"):
        latest(readers["true"], start)
    with pytest.raises(DataLost, match="is another one by now"):
        list(readers["true"].read(batch[0]))
    found: list[int] = []
    while len(found) < count:
        end = latest(readers["false"], start)
        assert end != start, "Spark would run no batch"
        found += read(readers["false"], start, end)
        start = end
    assert found == list(range(100, 100 + count))


def test_a_topic_made_anew_that_is_shorter_is_read_from_its_start(
    kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 3)
    start, end = {kraft_topic: {"0": 50}}, {kraft_topic: {"0": 3}}
    reader = stream_reader(kraft_cluster, subscribe=kraft_topic, failOnDataLoss="false")
    assert latest(reader, start) == end
    assert read(reader, start, end) == [0, 1, 2]
    replaying = stream_reader(kraft_cluster, subscribe=kraft_topic, failOnDataLoss="false")
    assert read(replaying, start, end) == [0, 1, 2]


def test_one_of_several_topics_that_is_deleted(
    kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 5)
    both = f"{kraft_topic},gone"
    start = {kraft_topic: {"0": 2}, "gone": {"0": 7}}
    for fail in ("true", "false"):
        reader = stream_reader(kraft_cluster, subscribe=both, failOnDataLoss=fail)
        reader.prepareForTriggerAvailableNow()
        if fail == "true":
            with pytest.raises(DataLost, match="gone-0 does not exist any more"):
                latest(reader, start)
        else:
            assert latest(reader, start) == {kraft_topic: {"0": 5}}
    replayed = stream_reader(kraft_cluster, subscribe=both, failOnDataLoss="false")
    # A batch of the checkpoint in which the topic was new.
    known, until = {kraft_topic: {"0": 2}}, {kraft_topic: {"0": 5}, "gone": {"0": 7}}
    assert read(replayed, known, until) == [2, 3, 4]


# -- lost data


def test_lost_data_stops_a_stream_unless_it_may_be_lost(
    streams: Streams, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 5)
    streams.run(kraft_topic, f"{kraft_topic}-copy")
    with kraft_cluster.admin() as admin:
        admin.delete_topics([kraft_topic]).raise_for_errors()
        admin.create_topics([NewTopic(kraft_topic, 1, 1)]).raise_for_errors()
    with pytest.raises(PySparkException, match="was read up to 5, and now it ends at 0"):
        streams.run(kraft_topic, f"{kraft_topic}-copy")
    fill(kraft_cluster, kraft_topic, 0, 2, first=5)
    streams.run(kraft_topic, f"{kraft_topic}-copy", failOnDataLoss="false")
    assert streams.copied(f"{kraft_topic}-copy") == list(range(7))
