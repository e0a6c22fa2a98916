import json
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftlog.local import LocalCluster
from kraftlog.records import Record
from spark_connector.examples import clickstream
from spark_connector.examples.pipeline import Job

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

NOW_MS = 1_700_000_000_000
GAP_MS = clickstream.GAP_MINUTES * 60_000


def sessions_of(records: list[Record[bytes, bytes]]) -> set[tuple[str, int, int, str, str]]:
    """The same by a loop: visitor, first click, number of clicks, first and last page."""
    by_visitor = defaultdict(list)
    for record in records:
        click = json.loads(record.value or b"")
        by_visitor[click["visitor"]].append((click["at"], click["page"]))
    found = set()
    for visitor, clicks in by_visitor.items():
        session: list[tuple[int, str]] = []
        for click in [*sorted(clicks), (NOW_MS * 2, "")]:
            if session and click[0] - session[-1][0] >= GAP_MS:
                found.add((visitor, session[0][0], len(session), session[0][1], session[-1][1]))
                session = []
            session.append(click)
    return found


# R47: activity tracking, and a topic in Parquet files.
def test_clicks_become_sessions(
    spark: SparkSession, kraft_cluster: LocalCluster, tmp_path: Path
) -> None:
    job = Job(kraft_cluster.bootstrap, tmp_path, events=2_000)
    records = list(clickstream.clicks(job, NOW_MS))
    job.make_topics("clicks-1")
    job.send("clicks-1", records)
    job.send("clicks-1", [Record(b"no JSON"), Record(None), Record(b'{"visitor": "v"}')])

    summary = clickstream.run(spark, job, topic="clicks-1")

    wanted = sessions_of(records)
    assert summary == clickstream.Summary(clicks=2_000, damaged=3, sessions=len(wanted))
    rows = spark.read.parquet(str(tmp_path / "sessions")).collect()
    assert {
        (
            row["visitor"],
            round(row["begun"].timestamp() * 1_000),
            row["clicks"],
            row["landing_page"],
            row["exit_page"],
        )
        for row in rows
    } == wanted
    picture = (tmp_path / "sessions.svg").read_text()
    assert f"2,000 clicks, {len(wanted):,} sessions" in picture
