"""Batch reads by a real Spark session from a real cluster."""

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition

from kraftlog.local import LocalCluster
from kraftlog.records import Record
from spark_connector.batch import BatchReader
from tests.spark.topics import SPARK, fill, load, values

pytestmark = SPARK


@pytest.mark.kraft(partitions=2)
def test_every_column_of_every_record(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    with kraft_cluster.producer() as producer:
        both = (("a", b"1"), ("b", None))
        producer.send(kraft_topic, b"v", key=b"k", partition=0, timestamp=1_500, headers=both)
        producer.send(kraft_topic, None, key=b"tombstone", partition=1, timestamp=2_500)
        assert producer.flush("40s") == (0, 0)
    frame = load(spark, kraft_cluster, subscribe=kraft_topic, includeHeaders=True)
    rows = frame.selectExpr("*", "cast(timestamp as double) seconds").orderBy("partition").collect()
    shown = [row.asDict(recursive=True) for row in rows]
    for row in shown:
        del row["timestamp"]
    assert shown == [
        {
            "key": b"k",
            "value": b"v",
            "topic": kraft_topic,
            "partition": 0,
            "offset": 0,
            "timestampType": 0,
            "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
            "seconds": 1.5,
        },
        {
            "key": b"tombstone",
            "value": None,
            "topic": kraft_topic,
            "partition": 1,
            "offset": 0,
            "timestampType": 0,
            "headers": None,
            "seconds": 2.5,
        },
    ]


@pytest.mark.kraft(partitions=2)
def test_ranges_tasks_and_columns_that_are_left_out(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 100)
    fill(kraft_cluster, kraft_topic, 1, 50, first=100)
    frame = load(
        spark,
        kraft_cluster,
        schema="offset long, value binary",
        subscribe=kraft_topic,
        startingOffsets="+10",
        endingOffsets=f'{{"{kraft_topic}": {{"0": 90, "1": -1}}}}',
        maxRecordsPerPartition=25,
    )
    assert frame.columns == ["offset", "value"]
    assert frame.rdd.getNumPartitions() == 6
    assert values(frame) == [*range(10, 90), *range(110, 150)]
    fill(kraft_cluster, kraft_topic, 1, 5, first=900)
    assert frame.count() == 120, "a DataFrame sees what there was when it was planned"


def test_a_topic_without_records(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    assert load(spark, kraft_cluster, subscribe=kraft_topic).count() == 0
    assert load(spark, kraft_cluster, subscribePattern="no-such-.*").count() == 0


# R47
@pytest.mark.kraft(partitions=2)
def test_a_topic_becomes_parquet_files(
    spark: SparkSession,
    kraft_cluster: LocalCluster,
    kraft_topic: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 200)
    fill(kraft_cluster, kraft_topic, 1, 200, first=200)
    path = str(tmp_path_factory.mktemp("parquet") / "orders")
    load(spark, kraft_cluster, assign=f'{{"{kraft_topic}": [0, 1]}}').write.parquet(path)
    assert values(spark.read.parquet(path)) == list(range(400))


def test_compressed_batches(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    for number, kind in enumerate(("gzip", "snappy", "lz4", "zstd")):
        with kraft_cluster.producer(config={"compression.type": kind}) as producer:
            records = [Record(b"%d" % (number * 100 + each)) for each in range(100)]
            producer.send_many(kraft_topic, records)
            assert producer.flush("40s") == (0, 0)
    assert values(load(spark, kraft_cluster, subscribe=kraft_topic)) == list(range(400))


def test_errors_that_a_user_can_do_something_about(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    with pytest.raises(PySparkException, match="did you mean subscribe"):
        load(spark, kraft_cluster, subcribe=kraft_topic)
    with pytest.raises(PySparkException, match=f"did you mean {kraft_topic}"):
        load(spark, kraft_cluster, subscribe=f"{kraft_topic}x").count()
    with pytest.raises(PySparkException, match="make it binary"):
        load(spark, kraft_cluster, schema="value string", subscribe=kraft_topic).count()
    unreachable = {"kafka.bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 300}
    with pytest.raises(PySparkException, match=r"cannot be reached|no answer"):
        load(spark, kraft_cluster, subscribe=kraft_topic, **unreachable).count()


# -- why there is no pushFilters


class Numbered(InputPartition):
    pass


class PushingReader(DataSourceReader):
    """Three rows in each of two partitions; a filter by partition is taken over."""

    def __init__(self) -> None:
        self.only: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802
        for each in filters:
            if type(each).__name__ == "EqualTo":
                self.only = int(each.value)  # type: ignore[attr-defined]
            else:
                yield each

    def partitions(self) -> list[InputPartition]:
        return [Numbered(n) for n in range(2) if self.only in (None, n)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        return iter([(partition.value,)] * 3)


class PushingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "pushes_filters"

    def schema(self) -> str:
        return "part int"

    def reader(self, schema: object) -> PushingReader:  # noqa: ARG002
        return PushingReader()


def test_spark_mixes_up_filters_of_one_frame(spark: SparkSession) -> None:
    """When this fails, Spark is right again, and pushFilters can be thought of."""
    assert "pushFilters" not in vars(BatchReader)
    setting = "spark.sql.python.filterPushdown.enabled"
    spark.dataSource.register(PushingSource)
    spark.conf.set(setting, "true")
    try:
        frame = spark.read.format("pushes_filters").load()
        first, second = frame.filter("part = 0"), frame.filter("part = 1")
        assert (first.count(), second.count()) == (3, 3)
        assert frame.count() != 6
    finally:
        spark.conf.unset(setting)
