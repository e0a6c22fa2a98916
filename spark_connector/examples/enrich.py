"""From topic to topic: orders get the name, category and price of their product.

Products are a topic too, one record for each change; the last one of a key holds. The products are
read when the query starts. The checkpoint remembers which orders are done: a second run goes on
after them. Delivery is at least once, and an order keeps its key.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kraftlog.records import Record
from spark_connector.examples import picture, pipeline
from spark_connector.examples.pipeline import Job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERS = "shop-orders"
PRODUCTS = "shop-products"
ENRICHED = "shop-orders-enriched"
CATEGORIES = ("books", "music", "games", "garden", "kitchen", "toys")
PRODUCT_COUNT = 60
ORDER = "order long, product string, quantity int"
PRODUCT = "name string, category string, price_cents long"


@dataclass(frozen=True, slots=True)
class Summary:
    orders: int
    """In the topic of enriched orders, with those of earlier runs."""
    unknown: int
    """Orders of a product that nobody knows; they go on without its name and price."""
    revenue_cents: int


def products(job: Job) -> Iterator[Record[bytes, bytes]]:
    """Each one twice: the price has changed since."""
    dice = job.dice()
    for price_max in (1_000, 10_000):
        for number in range(PRODUCT_COUNT):
            value = {
                "name": f"thing {number}",
                "category": CATEGORIES[number % len(CATEGORIES)],
                "price_cents": dice.randrange(100, price_max),
            }
            yield Record(json.dumps(value).encode(), f"p{number}".encode())


def orders(job: Job) -> Iterator[Record[bytes, bytes]]:
    dice = job.dice()
    for number in range(job.events):
        value = {
            "order": number,
            "product": f"p{min(dice.randrange(PRODUCT_COUNT), dice.randrange(PRODUCT_COUNT))}",
            "quantity": dice.randint(1, 5),
        }
        yield Record(json.dumps(value).encode(), f"customer {number % 997}".encode())


def latest(rows: "DataFrame", schema: str) -> "DataFrame":
    """The last value of each key; a key whose last value is null has been deleted. A key is always
    in the same partition, so that offsets tell what was last.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    last = rows.groupBy("key").agg(
        f.max(f.struct("offset", f.col("value").cast("string").alias("text"))).alias("last")
    )
    parsed = last.filter("last.text is not null").select(
        f.col("key").cast("string").alias("key"), f.from_json("last.text", schema).alias("value")
    )
    return parsed.select("key", "value.*")


def enriched(rows: "DataFrame", known: "DataFrame") -> "DataFrame":
    """Key and value of the records to write."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    parsed = rows.select("key", f.from_json(f.col("value").cast("string"), ORDER).alias("order"))
    joined = parsed.select("key", "order.*").join(
        f.broadcast(known.withColumnRenamed("key", "product")), "product", "left"
    )
    total = f.col("quantity") * f.col("price_cents")
    columns = ["order", "product", "quantity", "name", "category", "price_cents"]
    value = f.to_json(f.struct(*columns, total.alias("total_cents")))
    return joined.select("key", value.cast("binary").alias("value"))


def run(
    spark: "SparkSession",
    job: Job,
    *,
    source: str = ORDERS,
    catalogue: str = PRODUCTS,
    target: str = ENRICHED,
) -> Summary:
    known = latest(job.read(spark, catalogue), PRODUCT).cache()
    job.say(f"{known.count():,} products known; {source} -> {target}")
    writer = (
        enriched(job.stream(spark, source), known)
        .writeStream.format("kraftlog")
        .option("kafka.bootstrap.servers", job.bootstrap)
        .option("topic", target)
    )
    job.start(writer)
    known.unpersist()
    return _report(job.read(spark, target), job)


def _report(rows: "DataFrame", job: Job) -> Summary:
    """Of what is in the topic now."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - takes its time to load

    schema = "category string, total_cents long"
    value = f.from_json(f.col("value").cast("string"), schema).alias("value")
    counted = (
        rows.select(value)
        .groupBy("value.category")
        .agg(f.count("*").alias("orders"), f.sum("value.total_cents").alias("cents"))
        .collect()
    )
    summary = Summary(
        orders=sum(row["orders"] for row in counted),
        unknown=sum(row["orders"] for row in counted if row["category"] is None),
        revenue_cents=sum(row["cents"] or 0 for row in counted),
    )
    known = [row for row in counted if row["category"] is not None]
    bars = sorted(((row["category"], row["cents"] / 100) for row in known), key=lambda bar: -bar[1])
    subtitle = f"{summary.orders:,} orders, {summary.unknown:,} of unknown products"
    job.say(f"{subtitle}, revenue {summary.revenue_cents / 100:,.2f}")
    job.draw("revenue.svg", picture.bars("Revenue by category", subtitle, bars))
    return summary


def main(argv: Sequence[str]) -> int:
    parser = pipeline.parser("enrich", "Orders get the name and price of their product.")
    parser.add_argument("--orders", default=ORDERS, help="topic to read (%(default)s)")
    parser.add_argument("--products", default=PRODUCTS, help="topic to look up (%(default)s)")
    parser.add_argument("--target", default=ENRICHED, help="topic to write (%(default)s)")
    parser.add_argument("--follow", action="store_true", help="go on until interrupted")
    options = parser.parse_args(argv)

    def work() -> None:
        job = pipeline.job_of(options)
        job.make_topics(options.orders, options.products, options.target)
        if job.events:
            job.send(options.products, products(job))
            job.send(options.orders, orders(job))
        spark = pipeline.spark_for(options, "enrich")
        names = {"source": options.orders, "catalogue": options.products}
        run(spark, job, **names, target=options.target)

    return pipeline.ends(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
