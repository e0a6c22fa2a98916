"""What Spark does with topics, on the cores that the brokers use too. `python -m benchmarks.spark`

One controller, one broker, Spark as local[2], two tasks. Reads have all columns and end in Spark's
noop sink. Beside each: the same in the same minute with a source or sink that has its Arrow batches
in memory, which is the limit for any source in Python. CPU is that of Spark's JVM and its Python
workers, without the broker's. A micro-batch is compared with that of Spark's own
`rate-micro-batch`, which has no Python in it.

Spark's own source and sink for Apache Kafka run beside ours where KAFKA_LIBS names a directory with
Kafka's jars, and SPARK_KAFKA_LIBS one with spark-sql-kafka-0-10 and what it needs. Its release for
Spark 4.0 also runs in the Spark that is used here.
"""

import atexit
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import Benchmark, Cost, Row, main
from benchmarks.peers.kafka import kafka_cluster, libs
from kraftlog.admin_types import NewTopic
from kraftlog.local import LocalCluster
from spark_connector.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS = 2
REPEAT = 3
READ_BYTES = 200_000_000
WRITE_ROWS = 1_000_000
SEND_ROWS = 20_000
TRIGGERS = 24
WARM_TRIGGERS = 6
TRIGGER_ROWS = 1_000
TRIGGER_SECONDS = 180.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
TOPIC = "bench"
KAFKA, CONNECTOR = "KAFKA_LIBS", "SPARK_KAFKA_LIBS"

Work = Callable[[], None]


@cache
def _spark() -> "SparkSession":
    from benchmarks.peers.arrow_source import ArrowSource  # noqa: PLC0415 - after Java is found

    connector = os.environ.get(CONNECTOR)
    spark = session(
        master=f"local[{TASKS}]",
        spark_ui_enabled=False,
        spark_ui_showConsoleProgress=False,
        spark_log_level="ERROR",
        spark_sql_shuffle_partitions=TASKS,
        spark_jars=",".join(map(str, Path(connector).glob("*.jar"))) if connector else "",
    )
    spark.dataSource.register(ArrowSource)
    atexit.register(spark.stop)
    return spark


@contextmanager
def _cluster() -> Iterator[LocalCluster]:
    with LocalCluster(1, 1) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic(TOPIC, TASKS, 1)]).raise_for_errors()
        yield cluster


def _fill(cluster: LocalCluster, rows: int, value_bytes: int) -> None:
    values: Iterator[bytes] = (b"%0*d" % (value_bytes, number) for number in range(rows))
    with cluster.producer() as producer:
        while chunk := list(islice(values, SEND_ROWS)):
            producer.send_many(TOPIC, chunk)
        producer.flush()


# -- costs


def _spark_cpu() -> float:
    """Seconds of CPU that the JVM and its workers have used, ended ones included."""
    process = getattr(_spark().sparkContext._gateway, "proc", None)  # noqa: SLF001
    if process is None:
        return time.process_time()  # submitted: the JVM is not ours to look at
    parents, ticks = _processes()
    mine = {process.pid}
    while found := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= found
    return sum(ticks.get(pid, 0) for pid in mine) / CLOCK_TICKS


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """Parent and ticks of each process."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(") ")[2].split()
        except OSError:
            continue  # it has ended since
        parents[int(name)] = int(fields[1])
        ticks[int(name)] = sum(map(int, fields[11:15]))
    return parents, ticks


def _measure(work: Work) -> Cost:
    wall, cpu = time.perf_counter(), _spark_cpu()
    work()
    return Cost(time.perf_counter() - wall, _spark_cpu() - cpu)


def _paired(ours: Work, limit: Work) -> tuple[float, Cost, Cost]:
    """As harness.paired_ratio, with Spark's CPU."""
    ours()
    limit()
    pairs = [(_measure(ours), _measure(limit)) for _ in range(REPEAT)]
    pairs.sort(key=lambda pair: pair[1].seconds / pair[0].seconds)
    mine, theirs = pairs[len(pairs) // 2]
    return theirs.seconds / mine.seconds, mine, theirs


def _note(ratio: float, rows: int, mine: Cost, limit: Cost) -> str:
    return (
        f"{rows / mine.seconds / 1e6:.2f} M rows/s; in-memory Arrow"
        f" {rows / limit.seconds / 1e6:.2f} M, cpu {limit.cpu_seconds / rows * 1e6:.2f} us;"
        f" {ratio:.2f} of it"
    )


# -- the benchmarks


def _made_rows(rows: int) -> "DataFrame":
    return (
        _spark()
        .range(0, rows, 1, TASKS)
        .selectExpr("cast(lpad(cast(id as string), 100, '0') as binary) as value")
    )


def _drain(frame: "DataFrame") -> None:
    frame.write.format("noop").mode("overwrite").save()


def _read(value_bytes: int) -> tuple[float, int, Cost, Cost]:
    spark, rows = _spark(), READ_BYTES // value_bytes
    with _cluster() as cluster:
        _fill(cluster, rows, value_bytes)
        ours = _Topic("kraftlog", cluster.bootstrap)
        limit = spark.read.format("arrow_memory").options(
            rows=rows, valuebytes=value_bytes, partitions=TASKS
        )
        found = ours.read().count()
        if found != rows:
            raise SystemExit(f"{found} rows were read of {rows}: this cannot be measured")
        ratio, mine, theirs = _paired(lambda: _drain(ours.read()), lambda: _drain(limit.load()))
    return ratio, rows, mine, theirs


def read_100(_directory: str) -> list[Row]:
    """Small records, where each costs."""
    ratio, rows, mine, limit = _read(100)
    cpu, note = mine.cpu_seconds / rows * 1e6, _note(ratio, rows, mine, limit)
    speed = rows / mine.seconds / 1e6
    return [Row("batch read, 100 B", speed, "M rows/s", 1.2, True, cpu, "row", note)]


def read_1000(_directory: str) -> list[Row]:
    """Larger ones, where bytes cost."""
    ratio, rows, mine, limit = _read(1_000)
    cpu, note = mine.cpu_seconds / rows * 1e6, _note(ratio, rows, mine, limit)
    return [Row("batch read, 1 KB", ratio, "of in-memory", 0.4, True, cpu, "row", note)]


def write(_directory: str) -> list[Row]:
    """Rows that Spark makes, to a topic with acks=all."""
    rows = WRITE_ROWS
    frame = _made_rows(rows)
    with _cluster() as cluster:
        ours = _Topic("kraftlog", cluster.bootstrap)
        limit = frame.write.format("arrow_memory").mode("append")
        ratio, mine, theirs = _paired(lambda: ours.write(frame), limit.save)
    cpu, note = mine.cpu_seconds / rows * 1e6, _note(ratio, rows, mine, theirs)
    speed = rows / mine.seconds / 1e6
    return [Row("batch write, 100 B", speed, "M rows/s", 0.7, True, cpu, "row", note)]


def micro_batch(directory: str) -> list[Row]:
    """What a trigger takes, with a thousand rows, one after the other."""
    spark = _spark()
    rate = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", TRIGGER_ROWS)
        .option("numPartitions", TASKS)
    )
    with _cluster() as cluster:
        _fill(cluster, TRIGGERS * TRIGGER_ROWS * 2, 100)
        ours = (
            spark.readStream.format("kraftlog")
            .option("kafka.bootstrap.servers", cluster.bootstrap)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", TRIGGER_ROWS)
        )
        mine, cost = _triggers(ours.load(), f"{directory}/ours")
        theirs, _ = _triggers(rate.load(), f"{directory}/rate")
    cpu = cost.cpu_seconds / (TRIGGERS * TRIGGER_ROWS) * 1e6
    note = f"a trigger takes {mine:.0f} ms, one of rate-micro-batch {theirs:.0f} ms (medians)"
    return [Row("micro-batch overhead", mine - theirs, "ms", 120.0, False, cpu, "row", note)]


def _triggers(stream: "DataFrame", checkpoint: str) -> tuple[float, Cost]:
    """The median trigger, in milliseconds, and what all of them cost."""
    wall, cpu = time.perf_counter(), _spark_cpu()
    query = stream.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    deadline = time.monotonic() + TRIGGER_SECONDS
    times: dict[int, int] = {}
    while len(times) < TRIGGERS:
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                times[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
        if time.monotonic() > deadline or query.exception() is not None:
            raise SystemExit(f"only {len(times)} triggers ran: {query.exception()}")
        time.sleep(0.1)
    query.stop()
    cost = Cost(time.perf_counter() - wall, _spark_cpu() - cpu)
    ordered = [times[batch] for batch in sorted(times)]
    return statistics.median(ordered[WARM_TRIGGERS:]), cost


def kafka(directory: str) -> list[Row]:
    """Spark's own source and sink for Apache Kafka, on the same rows in the same minutes."""
    jars = libs()
    if jars is None or not os.environ.get(CONNECTOR):
        missing = " and ".join(each for each in (KAFKA, CONNECTOR) if not os.environ.get(each))
        print(f"absent: Spark's own Kafka source and sink ({missing} not set)", file=sys.stderr)
        return []
    rows = READ_BYTES // 100
    frame = _made_rows(rows)
    with (
        kafka_cluster(jars, directory, nodes=1, partitions=TASKS) as (peer, _),
        _cluster() as cluster,
    ):
        ours, theirs = _Topic("kraftlog", cluster.bootstrap), _Topic("kafka", peer.bootstrap)
        wrote = _paired(lambda: ours.write(frame), lambda: theirs.write(frame))
        counts = ours.read().count(), theirs.read().count()
        if counts[0] != counts[1]:
            raise SystemExit(f"{counts} rows are there: this cannot be compared")
        read = _paired(lambda: _drain(ours.read()), lambda: _drain(theirs.read()))
    return [
        _beside_kafka("batch read, 100 B", 1.6, counts[0], read),
        _beside_kafka("batch write, 100 B", 1.0, rows, wrote),
    ]


def _beside_kafka(name: str, target: float, rows: int, found: tuple[float, Cost, Cost]) -> Row:
    ratio, mine, theirs = found
    note = (
        f"{rows / mine.seconds / 1e6:.2f} M rows/s; Spark's own"
        f" {rows / theirs.seconds / 1e6:.2f} M, cpu {theirs.cpu_seconds / rows * 1e6:.2f} us"
    )
    cpu = mine.cpu_seconds / rows * 1e6
    return Row(f"{name}, beside Kafka", ratio, "x", target, True, cpu, "row", note)


class _Topic(NamedTuple):
    """The same topic of either system."""

    kind: str
    servers: str

    def read(self) -> "DataFrame":
        reader = _spark().read.format(self.kind).option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", TOPIC).load()

    def write(self, frame: "DataFrame") -> None:
        writer = frame.write.format(self.kind).option("kafka.bootstrap.servers", self.servers)
        writer.option("topic", TOPIC).mode("append").save()


BENCHMARKS: dict[str, Benchmark] = {
    "read_100": read_100,
    "read_1000": read_1000,
    "write": write,
    "micro_batch": micro_batch,
    "kafka": kafka,
}

if __name__ == "__main__":
    sys.exit(main(__doc__ or "", BENCHMARKS, sys.argv[1:]))
