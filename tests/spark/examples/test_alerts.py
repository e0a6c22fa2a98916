import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftlog.local import LocalCluster
from kraftlog.records import Record
from spark_connector.examples import alerts
from spark_connector.examples.pipeline import Job

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

NOW_MS = 1_700_000_000_000
TOPICS = alerts.Topics("a-transactions", "a-limits", "a-alerts")


def large(records: list[Record[bytes, bytes]], limits: dict[str, int]) -> list[tuple[str, int]]:
    """Account and amount of those over the limit."""
    read = [json.loads(record.value or b"") for record in records]
    return sorted(
        (each["account"], each["amount_cents"])
        for each in read
        if each["amount_cents"] > limits.get(each["account"], alerts.LIMIT_CENTS)
    )


# R47: bank alerts.
def test_limits_of_a_second_topic_decide(
    spark: SparkSession, kraft_cluster: LocalCluster, tmp_path: Path
) -> None:
    job = Job(kraft_cluster.bootstrap, tmp_path, events=1_000)
    job.make_topics(TOPICS.transactions, TOPICS.limits, TOPICS.alerts)
    records = list(alerts.transactions(job, NOW_MS))
    first = [Record(b'{"limit_cents": 50000}', f"a{number}".encode()) for number in range(20)]
    changed = [Record(b'{"limit_cents": 100000}', b"a1"), Record[bytes, bytes](None, b"a2")]
    job.send(TOPICS.limits, [*first, *changed])
    job.send(TOPICS.transactions, records)

    summary = alerts.run(spark, job, topics=TOPICS)

    limits = {f"a{number}": 50_000 for number in range(20)} | {"a1": 100_000}
    del limits["a2"]
    wanted = large(records, limits)
    assert wanted, "else this shows nothing"
    assert summary.alerts == len(wanted)
    assert summary.largest_cents == max(amount for _, amount in wanted)
    rows = job.read(spark, TOPICS.alerts).selectExpr("cast(value as string) as value").collect()
    found = [json.loads(row["value"]) for row in rows]
    assert sorted((each["account"], each["amount_cents"]) for each in found) == wanted
    assert len({each["source"] for each in found}) == len(wanted)
    assert "alerts of" in (tmp_path / "alerts.svg").read_text()

    # A new limit holds for what comes after it, and only for that.
    job.send(TOPICS.limits, [Record(b'{"limit_cents": 1}', b"a199")])
    late = {"account": "a199", "amount_cents": 2, "at": NOW_MS}
    job.send(TOPICS.transactions, [Record(json.dumps(late).encode(), b"a199")])
    assert alerts.run(spark, job, topics=TOPICS).alerts == len(wanted) + 1
