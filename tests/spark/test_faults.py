"""Brokers, tasks and drivers that die under Spark: nothing is lost."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

from kraftlog.admin_types import NewTopic
from kraftlog.local import LocalCluster
from spark_connector.session import spark_environment
from tests.spark.test_stream import Streams
from tests.spark.topics import SPARK, fill, grow, load, values
from tests.waiting import wait_until

pytestmark = [*SPARK, pytest.mark.slow, pytest.mark.timeout(600)]

DRIVER = Path(__file__).with_name("driver.py")
ROOT = Path(__file__).parents[2]


def written(query: StreamingQuery) -> int:
    assert query.exception() is None
    return sum(each["numInputRows"] for each in query.recentProgress)


@pytest.mark.drill
@pytest.mark.kraft(controllers=1, brokers=3, faults=True)
def test_leaders_die_and_a_topic_grows_under_a_stream(
    spark: SparkSession, kraft_cluster: LocalCluster, tmp_path: Path
) -> None:
    with kraft_cluster.admin() as admin:
        wanted = [NewTopic("orders", 2, 3), NewTopic("copies", 2, 3)]
        admin.create_topics(wanted).raise_for_errors()
    streams = Streams(spark, kraft_cluster, tmp_path / "checkpoint")
    query = streams.start("orders", "copies", available_now=False)
    try:
        fill(kraft_cluster, "orders", 0, 100)
        wait_until(lambda: written(query) >= 100, "the first hundred", 240)
        victim = kraft_cluster.leader("orders", 0)
        kraft_cluster.kill(victim)
        fill(kraft_cluster, "orders", 0, 100, first=100)
        fill(kraft_cluster, "orders", 1, 100, first=200)
        grow(kraft_cluster, "orders", 3)
        fill(kraft_cluster, "orders", 2, 100, first=300)
        kraft_cluster.start_node(victim)
        kraft_cluster.wait_healthy("120s", in_sync=True)
        kraft_cluster.kill(kraft_cluster.leader("copies", 0))
        fill(kraft_cluster, "orders", 1, 100, first=400)
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(set(streams.copied("copies"))) == list(range(500))
    assert values(load(spark, kraft_cluster, subscribe="orders")) == list(range(500))


@pytest.mark.drill
@pytest.mark.kraft(controllers=1, brokers=3, faults=True)
def test_a_leader_dies_under_a_batch_read(
    spark: SparkSession, kraft_cluster: LocalCluster, tmp_path: Path
) -> None:
    with kraft_cluster.admin() as admin:
        admin.create_topics([NewTopic("large", 1, 3)]).raise_for_errors()
    count = 60_000
    with kraft_cluster.producer() as producer:
        producer.send_many("large", [b"%d" % n + bytes(500) for n in range(count)])
        assert producer.flush("60s") == (0, 0)
    begun, killed = tmp_path / "begun", tmp_path / "killed"

    def wait_once(value: int) -> int:
        """The first rows come before the leader is gone, most of the others cannot."""
        begun.touch()
        wait_until(killed.exists, "the leader's death", 240)
        return value

    def kill() -> None:
        wait_until(begun.exists, "the first rows", 240)
        kraft_cluster.kill(kraft_cluster.leader("large", 0))
        killed.touch()

    killer = threading.Thread(target=kill)
    killer.start()
    frame = load(spark, kraft_cluster, subscribe="large", schema="offset long, value binary")
    waiting = udf(wait_once, "long", useArrow=False)
    rows = frame.select(waiting("offset").alias("offset"), "value").collect()
    killer.join()
    assert [row.offset for row in rows] == list(range(count))
    assert all(bytes(row.value).rstrip(b"\0") == b"%d" % row.offset for row in rows)


# -- tasks


def dying_once(frame: DataFrame, mark: Path) -> DataFrame:
    """The same rows; the first task that comes to a certain one dies with its process."""

    def pass_on(value: str) -> str:
        if value == "777":
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return value
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    text = frame.selectExpr("cast(value as string) as value")
    return text.select(udf(pass_on, "string", useArrow=False)("value").alias("value"))


@pytest.mark.kraft(partitions=2)
def test_a_task_that_died_is_run_again(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str, tmp_path: Path
) -> None:
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(setting, "100")
    try:
        made = spark.range(0, 2_000, 1, 2).selectExpr("cast(id as string) as value")
        sink = dying_once(made, tmp_path / "writing").write.format("kraftlog").mode("append")
        sink = sink.option("kafka.bootstrap.servers", kraft_cluster.bootstrap)
        # So small that rows are in the log when the task dies.
        sink.option("topic", kraft_topic).option("kafka.batch.size", "100").save()
        frame = load(spark, kraft_cluster, subscribe=kraft_topic).select("value")
        written = values(frame)
        assert sorted(set(written)) == list(range(2_000))
        read = sorted(int(row.value) for row in dying_once(frame, tmp_path / "reading").collect())
        assert read == written, "what is read again is not there twice"
    finally:
        spark.conf.unset(setting)
    assert (tmp_path / "writing").exists()
    assert (tmp_path / "reading").exists()


# -- drivers


@pytest.mark.kraft(partitions=2)
def test_a_driver_that_died_goes_on_from_its_checkpoint(
    spark: SparkSession, kraft_cluster: LocalCluster, kraft_topic: str, tmp_path: Path
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 300)
    fill(kraft_cluster, kraft_topic, 1, 300, first=300)
    streams, target = Streams(spark, kraft_cluster, tmp_path / "checkpoint"), f"{kraft_topic}-copy"
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [
                *(sys.executable, DRIVER, "stream", "local[2]"),
                *(kraft_cluster.bootstrap, kraft_topic, streams.checkpoint),
            ],
            env=os.environ | spark_environment(os.environ) | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,  # with its JVM, which is to die at the same time
        )

    def has_begun() -> bool:
        assert driver.poll() is None, (tmp_path / "driver.log").read_text()
        return any((streams.checkpoint / "commits").glob("[0-9]*"))

    try:
        wait_until(has_begun, "a first batch", 240)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    streams.run(kraft_topic, target)
    assert sorted(set(streams.copied(target))) == list(range(600))
    assert streams.written_offsets() == {kraft_topic: {"0": 300, "1": 300}}
