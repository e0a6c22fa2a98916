"""Streams by a real Spark session on a real cluster."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kraftlog.admin_types import NewTopic
from kraftlog.local import LocalCluster
from spark_connector.options import source_options
from spark_connector.stream import StreamReader
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
        progress = [each for each in query.recentProgress if each["numInputRows"]][-1]
        source = json.loads(progress.json)["sources"][0]
        assert source["endOffset"] == source["latestOffset"] == {kraft_topic: {"0": 5, "1": 5}}
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
        wait_until(lambda: query.lastProgress is not None or query.isActive, "it runs", 100)
        fill(kraft_cluster, kraft_topic, 0, 5, first=5)
        query.processAllAvailable()
        batches = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
        assert sum(batches) == 10
        assert min(batches) >= 8
    finally:
        query.stop()


def test_too_few_records_wait_no_longer_than_the_delay(
    kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 5)
    given = {
        "bootstrap.servers": kraft_cluster.bootstrap,
        "subscribe": kraft_topic,
        "startingOffsets": "earliest",
        "minOffsetsPerTrigger": "8",
    }
    for delay, end in (("10m", 0), ("0", 5)):
        options = source_options(given | {"maxTriggerDelay": delay}, streaming=True)
        reader = StreamReader(options, ("value",))
        start = reader.initialOffset()
        assert reader.latestOffset(start, reader.getDefaultReadLimit()) == {kraft_topic: {"0": end}}


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
    streams.run(kraft_topic, f"{kraft_topic}-copy", failOnDataLoss="false")
    assert streams.copied(f"{kraft_topic}-copy") == list(range(5))
