"""`kraftctl demo` reads back by Spark; here, where the session is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftctl.demo_spark import numbers_of
from kraftlog.local import LocalCluster
from spark_connector.session import spark_environment
from tests.spark.topics import fill

ROOT = Path(__file__).parents[2]


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


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(300)
def test_the_second_act_has_a_session_of_its_own(
    kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 60)
    script = (
        "import json, sys; from kraftctl.demo_spark import read_by_spark\n"
        "print(json.dumps(read_by_spark(*sys.argv[1:])))"
    )
    # It ends the session that it made, and so in a process of its own.
    ran = subprocess.run(
        [sys.executable, "-c", script, kraft_cluster.bootstrap, kraft_topic],
        env=os.environ | spark_environment(os.environ) | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == [list(range(60))]
