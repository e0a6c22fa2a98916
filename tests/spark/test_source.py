"""The data source as Spark finds it."""

import pytest
from pyspark.sql import SparkSession

from kraftlog.errors import ConfigError
from kraftlog.local import LocalCluster
from pyspark_kraftlog import DefaultSource
from spark_connector.schema import source_schema
from spark_connector.source import KraftlogSource
from tests.spark.topics import SPARK, fill

pytestmark = SPARK


def test_spark_finds_it_by_its_name_in_sql_too(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 7)
    assert DefaultSource is KraftlogSource
    spark.sql(
        "create or replace temporary view orders using kraftlog options ("
        f" `kafka.bootstrap.servers` '{kraft_cluster.bootstrap}', subscribe '{kraft_topic}')"
    )
    assert spark.sql("select count(*) as n from orders").first()["n"] == 7  # type: ignore[index]


def test_spark_calls_writers_by_the_names_of_their_parameters() -> None:
    source = KraftlogSource({"kafka.bootstrap.servers": "b1:1", "topic": "t"})
    columns = source_schema(include_headers=False)
    with pytest.raises(ConfigError, match="cannot be overwritten"):
        source.streamWriter(schema=columns, overwrite=True)
    assert source.writer(schema=columns, overwrite=False) is not None
