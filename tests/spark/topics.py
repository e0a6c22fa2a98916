"""Topics with known content, and what Spark makes of them."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from kraftlog.local import LocalCluster
from kraftlog.records import Record
from kraftlog.types import TopicPartition
from tests.waiting import wait_until

# A cold session under load takes its time.
SPARK = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]


def fill(cluster: LocalCluster, topic: str, partition: int, count: int, first: int = 0) -> None:
    """Values 0, 1, 2, ... as text; keys likewise, every third record without."""
    records: list[Record[bytes, bytes] | bytes] = [
        Record(
            b"%d" % number,
            key=None if number % 3 == 0 else b"k%d" % number,
            partition=partition,
            timestamp=1_000 + number,
        )
        for number in range(first, first + count)
    ]
    with cluster.producer() as producer:
        producer.send_many(topic, records)
        assert producer.flush("40s") == (0, 0)


def load(spark: SparkSession, cluster: LocalCluster, **options: object) -> DataFrame:
    """With the option `schema` those columns alone."""
    schema = options.pop("schema", None)
    reader = spark.read.format("kraftlog").option("kafka.bootstrap.servers", cluster.bootstrap)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return (reader if schema is None else reader.schema(str(schema))).load()


def grow(cluster: LocalCluster, topic: str, partitions: int) -> None:
    """More partitions, until brokers tell of them."""
    with cluster.admin() as admin:
        admin.create_partitions({topic: partitions}).raise_for_errors()
    last = TopicPartition(topic, partitions - 1)
    wait_until(lambda: last in cluster.look().partitions, f"brokers know {last}")


def values(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())
