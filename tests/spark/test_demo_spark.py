"""`kraftctl demo` reads back by Spark; here, where the session is."""

import pytest
from pyspark.sql import SparkSession

from kraftctl.demo_spark import numbers_of
from kraftlog.local import LocalCluster


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.kraft(partitions=3)
def test_spark_reads_each_partition_in_the_order_of_its_log(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    with kraft_cluster.producer() as producer:
        for number in range(60):
            producer.send(kraft_topic, b"%d" % number, partition=number % 2)
        producer.flush("40s")
    assert numbers_of(spark, kraft_cluster.bootstrap, kraft_topic) == [
        list(range(0, 60, 2)),
        list(range(1, 60, 2)),
    ]
