"""Activity tracking: clicks of visitors in a topic become sessions in Parquet files.

A session is a visitor's clicks with no pause longer than the gap. The job reads the whole topic and
writes all sessions, by day of their first click, so that it can be repeated at any time.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kraftlog.records import Record
from spark_connector.examples import picture, pipeline
from spark_connector.examples.pipeline import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "clicks"
GAP_MINUTES = 30
PAGES = ("/", "/search", "/item", "/item", "/cart", "/checkout")
BOUGHT = "/checkout"
CLICKS_PER_VISITOR = 20
DAY_MS = 86_400_000
MINUTE_MS = 60_000
SCHEMA = "visitor string, page string, at long"


@dataclass(frozen=True, slots=True)
class Summary:
    clicks: int
    damaged: int
    """Records that are no clicks; they are left out."""
    sessions: int


def clicks(job: Job, until_ms: int) -> Iterator[Record[bytes, bytes]]:
    """Those of one day, in the order in which they happen."""
    dice = job.dice()
    visitors = max(1, job.events // CLICKS_PER_VISITOR)
    made: list[tuple[int, str, str]] = []
    while len(made) < job.events:
        visitor, at = f"v{dice.randrange(visitors)}", until_ms - dice.randrange(DAY_MS)
        for page in PAGES[: dice.randint(1, len(PAGES))]:
            made.append((at, visitor, page))
            at += dice.randrange(1_000, 10 * MINUTE_MS)
    for at, visitor, page in sorted(made[: job.events]):
        value = json.dumps({"visitor": visitor, "page": page, "at": at})
        yield Record(value.encode(), visitor.encode(), timestamp=at)


def sessions(rows: "DataFrame", gap_minutes: int) -> "DataFrame":
    """Of rows with visitor, page and at."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    timed = rows.withColumn("time", f.timestamp_millis("at"))
    window = f.session_window("time", f"{gap_minutes} minutes").alias("window")
    # The window reaches one gap beyond the last click.
    return (
        timed.groupBy("visitor", window)
        .agg(
            f.count("*").alias("clicks"),
            f.min_by("page", "at").alias("landing_page"),
            f.max_by("page", "at").alias("exit_page"),
            f.max("time").alias("ended"),
            f.bool_or(f.col("page") == BOUGHT).alias("bought"),
        )
        .select(
            "visitor",
            f.col("window.start").alias("begun"),
            "ended",
            "clicks",
            "landing_page",
            "exit_page",
            "bought",
            f.to_date("window.start").alias("day"),
        )
    )


def run(
    spark: "SparkSession", job: Job, *, topic: str = TOPIC, gap_minutes: int = GAP_MINUTES
) -> Summary:
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    job.say(f"reading {topic}")
    event = f.from_json(f.col("value").cast("string"), SCHEMA)
    # Read once, used twice.
    rows = job.read(spark, topic).select(event.alias("event")).select("event.*").cache()
    whole = rows.dropna(subset=["visitor", "page", "at"])
    read, good = rows.count(), whole.count()
    files = str(job.out / "sessions")
    job.say(f"{read:,} records read, sessions go to {files}")
    if not good:
        job.say(f"{topic} has no clicks: --events 1000 makes some up")
    found = sessions(whole, gap_minutes)
    found.write.mode("overwrite").partitionBy("day").parquet(files)
    rows.unpersist()
    # Without a session there is no file that says what its columns are.
    written = spark.read.schema(found.schema).parquet(files)
    summary = Summary(good, read - good, written.count())
    job.say(f"{summary.clicks:,} clicks in {summary.sessions:,} sessions")
    if summary.damaged:
        job.say(f"{summary.damaged:,} records are no clicks and were left out")
    job.draw("sessions.svg", _picture(written, summary))
    return summary


def _picture(written: "DataFrame", summary: Summary) -> str:
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    hours = f.date_format(f.date_trunc("hour", "begun"), "dd. HH:00").alias("hour")
    counted = written.groupBy(f.date_trunc("hour", "begun").alias("at"), hours).count()
    rows = [(row["hour"], float(row["count"])) for row in counted.orderBy("at").collect()]
    bought = written.filter("bought").count()
    share = 100 * bought / summary.sessions if summary.sessions else 0.0
    subtitle = f"{summary.clicks:,} clicks, {summary.sessions:,} sessions, {share:.0f} % bought"
    return picture.columns("Sessions by hour", subtitle, rows)


def main(argv: Sequence[str]) -> int:
    parser = pipeline.parser("clickstream", "Clicks in a topic become sessions in Parquet files.")
    parser.add_argument("--topic", default=TOPIC, help="of the clicks (%(default)s)")
    parser.add_argument(
        "--gap", type=pipeline.natural, default=GAP_MINUTES, help="in minutes (%(default)s)"
    )
    options = parser.parse_args(argv)

    def work() -> None:
        job = pipeline.job_of(options)
        job.make_topics(options.topic)
        if job.events:
            job.send(options.topic, clicks(job, int(time.time() * 1_000)))
        spark = pipeline.spark_for(options, "clickstream")
        run(spark, job, topic=options.topic, gap_minutes=options.gap)

    return pipeline.ends(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
