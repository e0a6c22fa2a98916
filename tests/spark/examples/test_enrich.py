import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftlog.local import LocalCluster
from kraftlog.records import Record
from spark_connector.examples import enrich
from spark_connector.examples.pipeline import Job

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

TOPICS = {"source": "e-orders", "catalogue": "e-products", "target": "e-enriched"}


def contents(cluster: LocalCluster, topic: str, count: int) -> list[tuple[bytes | None, object]]:
    """Keys and values, in no particular order."""
    found: list[tuple[bytes | None, object]] = []
    with cluster.consumer(topic, offset_reset="earliest") as consumer:
        for record in consumer:
            found.append((record.key, json.loads(record.value or b"null")))
            if len(found) == count:
                return found
    raise AssertionError("a consumer does not end")


# R47: from topic to topic.
def test_orders_get_their_product(
    spark: SparkSession, kraft_cluster: LocalCluster, tmp_path: Path
) -> None:
    job = Job(kraft_cluster.bootstrap, tmp_path, events=500)
    job.make_topics(*TOPICS.values())
    products, orders = list(enrich.products(job)), list(enrich.orders(job))
    deleted = Record[bytes, bytes](None, b"p0")
    job.send(TOPICS["catalogue"], [*products, deleted])
    job.send(TOPICS["source"], orders)

    summary = enrich.run(spark, job, **TOPICS)

    known = {record.key: json.loads(record.value or b"") for record in products}
    del known[b"p0"]
    wanted = []
    for record in orders:
        order = json.loads(record.value or b"")
        product = known.get(order["product"].encode(), {})
        total = {"total_cents": order["quantity"] * product["price_cents"]} if product else {}
        wanted.append((record.key, {**order, **product, **total}))
    found = contents(kraft_cluster, TOPICS["target"], 500)
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert summary.orders == 500
    assert summary.unknown == sum("name" not in order for _, order in wanted)
    assert summary.revenue_cents == sum(order.get("total_cents", 0) for _, order in wanted)
    assert "500 orders" in (tmp_path / "revenue.svg").read_text()

    # A second run goes on where the first has ended.
    job.send(TOPICS["source"], orders[:10])
    assert enrich.run(spark, job, **TOPICS).orders == 510
