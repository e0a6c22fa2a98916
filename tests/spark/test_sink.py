"""Batch writes by a real Spark session to a real cluster."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kraftlog.local import LocalCluster
from kraftlog.partitioner import partition_of_key
from spark_connector.options import sink_options
from spark_connector.sink import producer
from tests.spark.topics import SPARK, load, values

pytestmark = SPARK


def save(frame: DataFrame, cluster: LocalCluster, **options: object) -> None:
    writer = frame.write.format("kraftlog").mode(str(options.pop("mode", "append")))
    writer = writer.option("kafka.bootstrap.servers", cluster.bootstrap)
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.save()


# R47
@pytest.mark.kraft(partitions=3)
def test_rows_become_records_where_kafkas_producers_would_send_them(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    frame = spark.range(0, 3_000, 1, 2).selectExpr(
        "if(id % 5 = 0, null, concat('k', id)) as key",
        "cast(id as string) as value",
        "if(id % 2 = 0, array(struct('h' as key, cast('x' as binary) as value)), null) as headers",
    )
    save(frame, kraft_cluster, topic=kraft_topic, **{"kafka.batch.size": 4_000})
    back = load(spark, kraft_cluster, subscribe=kraft_topic, includeHeaders=True).collect()
    assert sorted(int(row.value) for row in back) == list(range(3_000))
    for row in back:
        number = int(row.value)
        assert row.key == (None if number % 5 == 0 else b"k%d" % number)
        if row.key is not None:
            assert row.partition == partition_of_key(bytes(row.key), 3)
        assert (row.headers is None) == (number % 2 == 1)


@pytest.mark.kraft(partitions=3)
def test_topic_and_partition_columns(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    other = f"{kraft_topic}-other"
    frame = spark.range(100).selectExpr(
        f"if(id < 60, '{kraft_topic}', '{other}') as topic",
        "if(id < 60, 2, null) as partition",
        "cast(cast(id as string) as binary) as value",
    )
    save(frame, kraft_cluster)
    first = load(spark, kraft_cluster, subscribe=kraft_topic)
    assert values(first) == list(range(60))
    assert {row.partition for row in first.collect()} == {2}
    assert values(load(spark, kraft_cluster, subscribe=other)) == list(range(60, 100))


def test_what_cannot_be_written(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    good = spark.range(3).selectExpr("cast(id as string) as value")
    with pytest.raises(PySparkException, match="exactly_once of a sink needs transactions"):
        save(good, kraft_cluster, topic=kraft_topic, delivery="exactly_once")
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        save(good, kraft_cluster, mode="overwrite", topic=kraft_topic)
    with pytest.raises(PySparkException, match="no topic"):
        save(good, kraft_cluster)
    with pytest.raises(PySparkException, match="cast it to string or binary"):
        save(spark.range(3).selectExpr("id as value"), kraft_cluster, topic=kraft_topic)
    with pytest.raises(PySparkException, match="its column topic is null"):
        save(good.selectExpr("value", "cast(null as string) as topic"), kraft_cluster)
    with pytest.raises(PySparkException, match=r"partition 7 of .*, which has 1"):
        save(good.selectExpr("value", "7 as partition"), kraft_cluster, topic=kraft_topic)


def test_a_process_has_one_producer_until_it_ends(kraft_cluster: LocalCluster) -> None:
    options = sink_options({"bootstrap.servers": kraft_cluster.bootstrap, "topic": "t"})
    made = producer(options)
    assert producer(options) is made
    made.close()
    again = producer(options)
    assert again is not made
    again.close()


def test_a_row_that_is_too_large(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    large = spark.range(3).selectExpr("if(id = 1, repeat('x', 2000000), 'small') as value")
    with pytest.raises(PySparkException, match=r"RecordTooLarge: .*max_request_bytes is 1048576"):
        save(large, kraft_cluster, topic=kraft_topic)


@pytest.mark.kraft(config={"auto.create.topics.enable": False})
def test_a_topic_that_nobody_makes(spark: SparkSession, kraft_cluster: LocalCluster) -> None:
    good = spark.range(3).selectExpr("cast(id as string) as value")
    with pytest.raises(PySparkException, match=r"UnknownTopicOrPartition: no topic .*nobody-made"):
        save(good, kraft_cluster, topic="nobody-made", **{"kafka.max.block.ms": 1_000})


def test_brokers_that_are_not_there(spark: SparkSession) -> None:
    good = spark.range(3).selectExpr("cast(id as string) as value").write.format("kraftlog")
    nowhere = good.option("kafka.bootstrap.servers", "127.0.0.1:1").option("topic", "t")
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1 cannot be reached"):
        nowhere.option("kafka.max.block.ms", "1000").mode("append").save()


def test_columns_with_long_offsets(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    setting = "spark.sql.execution.arrow.useLargeVarTypes"
    frame = spark.range(10).selectExpr(
        "cast(id as string) as key",
        "cast(cast(id as string) as binary) as value",
        "array(struct('h' as key, cast(cast(id as string) as binary) as value)) as headers",
    )
    spark.conf.set(setting, "true")
    try:
        save(frame, kraft_cluster, topic=kraft_topic)
        back = load(spark, kraft_cluster, subscribe=kraft_topic, includeHeaders=True).collect()
    finally:
        spark.conf.unset(setting)
    assert sorted(bytes(row.headers[0].value) for row in back) == [b"%d" % n for n in range(10)]
    assert all(row.key == row.value for row in back)
