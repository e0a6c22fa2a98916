"""Topics with known content, and what Spark makes of them."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from kraftlog.local import LocalCluster
from kraftlog.records import Record

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


def load(
    spark: SparkSession, cluster: LocalCluster, *, schema: str | None = None, **options: object
) -> DataFrame:
    reader = spark.read.format("kraftlog").option("kafka.bootstrap.servers", cluster.bootstrap)
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return (reader if schema is None else reader.schema(schema)).load()


def values(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())
