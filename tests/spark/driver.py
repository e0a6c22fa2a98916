"""Drivers of Spark in processes of their own, which have another master, or die."""

import sys
import zipfile
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import spark_connector
from spark_connector.source import KraftlogSource

ROOT = Path(__file__).parents[2]


def connect(master: str) -> SparkSession:
    return spark_connector.session(
        master=master,
        spark_ui_enabled=False,
        spark_driver_host="127.0.0.1",
        spark_executor_memory="512m",
        spark_cores_max=2,
    )


def total(frame: DataFrame) -> str:
    return str(frame.selectExpr("count(*)", "sum(cast(cast(value as string) as long))").first())


def copy(spark: SparkSession, bootstrap: str, topic: str) -> None:
    """Copies a topic, and prints by how many executors, and what it read back."""
    servers = {"kafka.bootstrap.servers": bootstrap}
    frame = spark.read.format("kraftlog").options(**servers, subscribe=topic).load()
    target = frame.select("key", "value").write.format("kraftlog").mode("append")
    target.options(**servers, topic=f"{topic}-copy").save()
    back = spark.read.format("kraftlog").options(**servers, subscribe=f"{topic}-copy").load()
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    sys.stdout.write(f"{executors} {total(back)}\n")


def send_package(spark: SparkSession, bootstrap: str, topic: str, archive: str) -> None:
    """Reads where the workers lack our package; then sends it to them, and reads again."""
    servers = {"kafka.bootstrap.servers": bootstrap}
    reader = spark.read.format("kraftlog").options(**servers, subscribe=topic)
    try:
        reader.load().count()
    except PySparkException as error:
        lines = [line for line in str(error).splitlines() if "ModuleNotFoundError" in line]
        sys.stdout.write(f"{lines[-1].strip()}\n")
    with zipfile.ZipFile(archive, "w") as made:
        for package in ("kraftlog", "spark_connector"):
            for path in (ROOT / package).rglob("*.py"):
                made.write(path, path.relative_to(ROOT))
    spark.sparkContext.addPyFile(archive)
    spark.dataSource.register(KraftlogSource)  # files go along with registered sources alone
    sys.stdout.write(f"{total(reader.load())}\n")


def stream(spark: SparkSession, bootstrap: str, topic: str, checkpoint: str) -> None:
    """Copies a topic in small steps, until somebody kills it."""
    servers = {"kafka.bootstrap.servers": bootstrap}
    frame = spark.readStream.format("kraftlog").options(
        **servers, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=50
    )
    query = frame.load().select("key", "value").writeStream.format("kraftlog")
    query.options(
        **servers, topic=f"{topic}-copy", checkpointLocation=checkpoint
    ).start().awaitTermination()


def main(verb: str, master: str, *arguments: str) -> None:
    spark = connect(master)
    match verb, arguments:
        case "copy", (bootstrap, topic):
            copy(spark, bootstrap, topic)
        case "send_package", (bootstrap, topic, archive):
            send_package(spark, bootstrap, topic, archive)
        case "stream", (bootstrap, topic, checkpoint):
            stream(spark, bootstrap, topic, checkpoint)
        case _:
            raise SystemExit(f"{verb} {' '.join(arguments)}: no such verb")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
