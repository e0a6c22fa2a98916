"""Bank alerts: transactions over the limit of their account, with limits from a second topic.

A limit is a record with the account as its key; the last one holds, and null takes it back. Limits
are read anew for every micro-batch, so that a changed one holds from the next batch on. An alert
names partition and offset of its transaction: delivery is at least once, and this tells twins.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kraftlog.records import Record
from spark_connector.examples import picture, pipeline
from spark_connector.examples.enrich import latest
from spark_connector.examples.pipeline import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRANSACTIONS = "bank-transactions"
LIMITS = "bank-limits"
ALERTS = "bank-alerts"
LIMIT_CENTS = 1_000_000
ACCOUNTS = 200
HOUR_MS = 3_600_000
TRANSACTION = "account string, amount_cents long, at long"
LIMIT = "limit_cents long"
ALERT = "account string, amount_cents long, limit_cents long, at long, source string"


@dataclass(frozen=True, slots=True)
class Topics:
    transactions: str = TRANSACTIONS
    limits: str = LIMITS
    alerts: str = ALERTS


@dataclass(frozen=True, slots=True)
class Summary:
    alerts: int
    """Twins counted once."""
    accounts: int
    largest_cents: int


def limits(job: Job) -> Iterator[Record[bytes, bytes]]:
    """Every second account has one of its own."""
    dice = job.dice()
    for number in range(0, ACCOUNTS, 2):
        value = json.dumps({"limit_cents": dice.randrange(200_000, 5_000_000)})
        yield Record(value.encode(), f"a{number}".encode())


def transactions(job: Job, until_ms: int) -> Iterator[Record[bytes, bytes]]:
    """Many small ones and a few large ones, spread over an hour."""
    dice = job.dice()
    for number in range(job.events):
        account, at = f"a{dice.randrange(ACCOUNTS)}", until_ms - HOUR_MS
        at += HOUR_MS * number // job.events
        amount = int(dice.lognormvariate(9, 1.5))
        value = json.dumps({"account": account, "amount_cents": amount, "at": at})
        yield Record(value.encode(), account.encode(), timestamp=at)


def over_limit(rows: "DataFrame", known: "DataFrame", limit_cents: int) -> "DataFrame":
    """Key and value of the alerts that transactions give cause to."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    source = f.concat_ws("-", "topic", "partition", "offset").alias("source")
    parsed = rows.select(
        source, f.from_json(f.col("value").cast("string"), TRANSACTION).alias("transaction")
    ).select("source", "transaction.*")
    own = f.broadcast(known.withColumnRenamed("key", "account"))
    limit = f.coalesce("limit_cents", f.lit(limit_cents))
    found = parsed.join(own, "account", "left").withColumn("limit_cents", limit)
    value = f.to_json(f.struct("account", "amount_cents", "limit_cents", "at", "source"))
    return found.filter("amount_cents > limit_cents").select(
        f.col("account").cast("binary").alias("key"), value.cast("binary").alias("value")
    )


def run(
    spark: "SparkSession", job: Job, *, topics: Topics | None = None, limit_cents: int = LIMIT_CENTS
) -> Summary:
    names = topics or Topics()

    def alert(rows: "DataFrame", _batch: int) -> None:
        known = latest(job.read(spark, names.limits), LIMIT)
        (
            over_limit(rows, known, limit_cents)
            .write.format("kraftlog")
            .option("kafka.bootstrap.servers", job.bootstrap)
            .option("topic", names.alerts)
            .mode("append")
            .save()
        )

    job.say(f"{names.transactions} with {names.limits} -> {names.alerts}")
    job.start(job.stream(spark, names.transactions).writeStream.foreachBatch(alert))
    return _report(job.read(spark, names.alerts), job)


def _report(rows: "DataFrame", job: Job) -> Summary:
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    parsed = rows.select(f.from_json(f.col("value").cast("string"), ALERT).alias("alert"))
    found = parsed.select("alert.*").dropDuplicates(["source"]).orderBy("at").collect()
    summary = Summary(
        alerts=len(found),
        accounts=len({row["account"] for row in found}),
        largest_cents=max((row["amount_cents"] for row in found), default=0),
    )
    points = [(float(row["at"]), row["amount_cents"] / 100) for row in found]
    subtitle = f"{summary.alerts:,} alerts of {summary.accounts:,} accounts"
    job.say(f"{subtitle}, the largest of {summary.largest_cents / 100:,.2f}")
    job.draw("alerts.svg", picture.dots("Large transactions", subtitle, points, _clock))
    return summary


def _clock(ms: float) -> str:
    return datetime.fromtimestamp(ms / 1_000, UTC).strftime("%H:%M:%S")


def main(argv: Sequence[str]) -> int:
    parser = pipeline.parser("alerts", "Transactions over the limit of their account.")
    parser.add_argument("--transactions", default=TRANSACTIONS, help="topic (%(default)s)")
    parser.add_argument("--limits", default=LIMITS, help="topic (%(default)s)")
    parser.add_argument("--alerts", default=ALERTS, help="topic to write (%(default)s)")
    parser.add_argument(
        "--limit",
        type=pipeline.natural,
        default=LIMIT_CENTS,
        help="in cents, of accounts that have none of their own (%(default)s)",
    )
    parser.add_argument("--follow", action="store_true", help="go on until interrupted")
    options = parser.parse_args(argv)

    def work() -> None:
        job = pipeline.job_of(options)
        topics = Topics(options.transactions, options.limits, options.alerts)
        job.make_topics(topics.transactions, topics.limits, topics.alerts)
        if job.events:
            job.send(topics.limits, limits(job))
            job.send(topics.transactions, transactions(job, int(time.time() * 1_000)))
        spark = pipeline.spark_for(options, "alerts")
        run(spark, job, topics=topics, limit_cents=options.limit)

    return pipeline.ends(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
