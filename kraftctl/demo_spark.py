"""The second act of the demo: Spark reads back what clients have sent."""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kraftlog.errors import ConfigError
from spark_connector.session import java_home, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_spark(environment: Mapping[str, str]) -> None:
    """Before the first act, and not after it."""
    if importlib.util.find_spec("pyspark") is None:
        raise ConfigError(
            "the second act needs Spark, and there is no module pyspark",
            hint="make demo installs it; kraftctl demo --no-spark does without",
        )
    java_home(environment)


def read_by_spark(bootstrap: str, topic: str) -> Sequence[Sequence[int]]:
    """The numbers of each partition, in the order of its log; Spark is gone afterwards."""
    spark = session(
        master="local[*]",
        app_name="kraftctl demo",
        spark_ui_enabled=False,
        spark_ui_showConsoleProgress=False,
        spark_log_level="ERROR",
    )
    try:
        return numbers_of(spark, bootstrap, topic)
    finally:
        spark.stop()


def numbers_of(spark: "SparkSession", bootstrap: str, topic: str) -> Sequence[Sequence[int]]:
    rows = (
        spark.read.format("kraftlog")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .load()
        .selectExpr("partition", "offset", "cast(cast(value as string) as long) as number")
        .collect()
    )
    found: dict[int, list[int]] = {}
    for row in sorted(rows, key=lambda row: (row["partition"], row["offset"])):
        found.setdefault(row["partition"], []).append(row["number"])
    return [found[partition] for partition in sorted(found)]
