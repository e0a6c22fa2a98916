"""Brokers and clients end to end, on clusters of real processes. `python -m benchmarks.broker`

Throughput is a part of what a bare gRPC stream carries in the same run: messages of 256 KiB from
this process to another one, each answered with one byte. Clients, brokers and controllers share the
machine. Give names to run some rows only: `python -m benchmarks.broker ack produce`.

`kafka` measures Apache Kafka on the same work, if KAFKA_LIBS names a directory with its jars; where
a target is a number of Kafka's it was measured on a machine of this kind (docs/BENCHMARKS.md).
"""

import asyncio
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace

import grpc
import grpc.aio

from benchmarks.harness import Benchmark, Cost, Row, main, measure
from benchmarks.peers.kafka import kafka_cluster, libs
from kraftlog import Admin, Consumer, NewTopic, Producer
from kraftlog.local import LocalCluster
from kraftlog.local.probe import BROKER_SERVICE, Probe

METHOD = "/bare.Stream/Channel"
MESSAGE = bytes(256 << 10)
IN_FLIGHT = 8
MB = 1e6
KB_RECORDS = 100_000
SMALL_RECORDS = 500_000
ACKS = 2_000
FEW_PARTITIONS = 2_000
MANY_PARTITIONS = 10_000
METADATA_PARTITIONS = 100_000
TOPICS_PER_CALL = 50
IDLE_SECONDS = 10.0
CATCH_UP_BYTES = 1_000_000_000
CATCH_UP_RECORD = 10_000
SETTLE_SECONDS = 5.0
POLL_SECONDS = 0.01
RESTART_SECONDS = 120.0
"""A broker that does not serve by then is said not to come back."""
PEER_RATE = 200
"""Records a second, one in flight: so few that none of them waits for another."""
TIMEOUT = "120s"

ACK_P99 = "ack acks=all RF 3, p99"
COLD_START = "cold start 3+3 to the first record"
RESIDENT = "resident memory, largest idle node"

# -- the limit: a stream that carries the same bytes and does nothing


async def _serve_bare() -> None:
    async def answer(messages: AsyncIterator[bytes], _call: object) -> AsyncIterator[bytes]:
        async for _ in messages:
            yield b"."

    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(answer)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("bare.Stream", {"Channel": handler}),)
    )
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await server.wait_for_termination()


async def _carry(port: str, count: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(METHOD)()
        sent = answered = 0
        while answered < count:
            while sent < count and sent - answered < IN_FLIGHT:
                await call.write(MESSAGE)
                sent += 1
            await call.read()
            answered += 1
        await call.done_writing()
        await call.code()  # the loop is closed next: gRPC must be done with the call by then


def _bare_rate(total: int) -> float:
    """Bytes a second."""
    count = max(1, total // len(MESSAGE))
    command = [sys.executable, "-m", "benchmarks.broker", "--serve-bare"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().strip() if server.stdout else ""
            asyncio.run(_carry(port, 20))
            cost = measure(lambda: asyncio.run(_carry(port, count)))
        finally:
            server.terminate()
    return count * len(MESSAGE) / cost.seconds


# -- clusters


@contextmanager
def _cluster(**topics: int) -> Iterator[LocalCluster]:
    """Three and three, with topics of one partition and so many replicas."""
    with LocalCluster(controllers=3, brokers=3) as cluster:
        with Admin(cluster.bootstrap) as admin:
            for name, replicas in topics.items():
                admin.create_topics([NewTopic(name, 1, replicas)])
        cluster.wait_healthy(in_sync=True)
        yield cluster


def _send(cluster: LocalCluster, topic: str, values: list[bytes], acks: str | int) -> Cost:
    """With the CPU of all nodes and of this process."""
    with Producer[bytes, bytes](cluster.bootstrap, acks=acks) as producer:  # type: ignore[arg-type]
        producer.send(topic, values[0]).result(TIMEOUT)

        def work() -> None:
            for start in range(0, len(values), 10_000):
                producer.send_many(topic, values[start : start + 10_000])
            producer.flush(TIMEOUT)

        pids = [cluster.pid(name) for name in cluster.nodes if cluster.is_running(name)]
        before = _cpu_seconds(pids)
        cost = measure(work)
    return Cost(cost.seconds, cost.cpu_seconds + _cpu_seconds(pids) - before)


def _cpu_seconds(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def _row(name: str, reached: float, unit: str, target: float, *, more: bool, note: str = "") -> Row:
    text = "; ".join(each for each in (note, f"load {os.getloadavg()[0]:.1f}") if each)
    return Row(name, reached, unit, target, more, 0.0, "-", text)


# -- rows


def ack(_directory: str) -> list[Row]:
    """One record in flight, acks=all on three replicas."""
    with _cluster(t=3) as cluster, Producer[bytes, bytes](cluster.bootstrap, linger=0) as producer:
        taken = []
        for number in range(ACKS + 200):
            began = time.perf_counter()
            producer.send("t", b"x" * 100).result(TIMEOUT)
            if number >= 200:
                taken.append((time.perf_counter() - began) * 1_000)
    cuts = statistics.quantiles(taken, n=100)
    return [
        _row("ack acks=all RF 3, p50", statistics.median(taken), "ms", 1.5, more=False),
        _row(ACK_P99, cuts[98], "ms", 5.0, more=False),
    ]


def produce(_directory: str) -> list[Row]:
    """1 KB values, as a part of what a bare stream carries, there and back; then small ones."""
    total = KB_RECORDS * 1_000
    with _cluster(one=1, three=3, small=3) as cluster:
        limits = [_bare_rate(total)]
        one = _send(cluster, "one", [bytes(1_000)] * KB_RECORDS, 1)
        limits.append(_bare_rate(total))
        three = _send(cluster, "three", [bytes(1_000)] * KB_RECORDS, "all")
        limits.append(_bare_rate(total))
        read = _read_bytes(cluster, "one", KB_RECORDS)
        small = _send(cluster, "small", [bytes(100)] * SMALL_RECORDS, "all")
    rates = [total / cost.seconds for cost in (one, three)]
    small_rate = SMALL_RECORDS / small.seconds / 1e6
    name, note = "produce 100 B acks=all, RF 3", "Kafka's 0.4-0.6, by produce_batch 0.7-1.1"
    return [
        _with_cpu(_of_bare("produce 1 KB acks=1, RF 1", rates[0], limits[0], 0.6), one, total),
        _with_cpu(_of_bare("produce 1 KB acks=all, RF 3", rates[1], limits[1], 0.2), three, total),
        _row("the same", rates[1] / MB, "MB/s", 83.0, more=True, note="Kafka's 83-95"),
        _of_bare("consume 1 KB, RF 1", read, limits[2], 0.6),
        _row(name, small_rate, "M records/s", 0.4, more=True, note=note),
    ]


def _with_cpu(row: Row, cost: Cost, total: int) -> Row:
    """What the neighbours of a busy machine do not change much."""
    return replace(row, cpu=cost.cpu_seconds / total * MB * 1e6, per="MB")


def _of_bare(name: str, rate: float, limit: float, target: float) -> Row:
    note = f"{rate / MB:.0f} MB/s of {limit / MB:.0f}"
    return _row(name, rate / limit, "of bare", target, more=True, note=note)


def _read_bytes(cluster: LocalCluster, topic: str, records: int) -> float:
    """Bytes a second, from the first batch on."""
    total, began = 0, 0.0
    with Consumer[bytes, bytes](
        topic, bootstrap_servers=cluster.bootstrap, offset_reset="earliest"
    ) as consumer:
        for batch in consumer.batches(timeout="20s"):
            total += batch.size_bytes if began else 0
            began = began or time.perf_counter()
            if batch.next_offset > records:  # one was sent before the clock was started
                break
    return total / (time.perf_counter() - began)


def consume(_directory: str) -> list[Row]:
    """100-byte values as objects and as Arrow."""
    values = [bytes(100)] * SMALL_RECORDS
    with _cluster(t=1) as cluster:
        _send(cluster, "t", values, 1)
        objects = _read(cluster, as_arrow=False)
        arrow = _read(cluster, as_arrow=True)
    return [
        _row("consume 100 B as objects", objects, "M records/s", 1.0, more=True),
        _row("consume 100 B as Arrow", arrow, "M records/s", 5.0, more=True),
    ]


def _read(cluster: LocalCluster, *, as_arrow: bool) -> float:
    """Millions of records a second, from the first one on."""
    count, began = 0, 0.0
    with Consumer[bytes, bytes](
        "t", bootstrap_servers=cluster.bootstrap, offset_reset="earliest"
    ) as consumer:
        if as_arrow:
            return _read_arrow(consumer)
        while count < SMALL_RECORDS:
            found = len(consumer.poll("5s", max_records=5_000))
            began = began or time.perf_counter()
            count += found
    return count / (time.perf_counter() - began) / 1e6


def _read_arrow(consumer: Consumer[bytes, bytes]) -> float:
    seen = count = 0
    began = 0.0
    for batch in consumer.batches(timeout="20s"):
        rows = batch.to_arrow().num_rows
        seen += rows
        if began:
            count += rows
        began = began or time.perf_counter()  # the first one has imported pyarrow
        if seen >= SMALL_RECORDS:
            break
    return count / (time.perf_counter() - began) / 1e6


def start(_directory: str) -> list[Row]:
    """From nothing to the first acknowledged record, and what idle nodes hold."""
    began = time.perf_counter()
    with LocalCluster(controllers=3, brokers=3) as cluster:
        with Producer[bytes, bytes](cluster.bootstrap) as producer:
            producer.send("t", b"x").result(TIMEOUT)
        taken = time.perf_counter() - began
        largest = max(_resident_mb(cluster.pid(name)) for name in cluster.nodes)
    return [
        _row(COLD_START, taken, "s", 4.0, more=False),
        _row(RESIDENT, largest, "MB", 90.0, more=False),
    ]


def idle(_directory: str) -> list[Row]:
    """CPU of a cluster with some partitions and no client; then a broker is restarted."""
    size = f"{FEW_PARTITIONS:,} partitions"
    with _cluster() as cluster:
        _create(cluster, FEW_PARTITIONS, 3)
        cluster.wait_healthy(in_sync=True)
        busy = _idle_share(cluster)
        serving = _restart(cluster)
    return [
        _row(f"idle CPU, {size}", busy, "% of a core", 10.0, more=False),
        _row(f"restart to serving, {size}", serving, "s", 3.0, more=False),
    ]


def partitions(_directory: str) -> list[Row]:
    """A thousand topics: how soon all is in sync, what it costs at rest, a clean restart."""
    size = f"{MANY_PARTITIONS:,} partitions"
    with _cluster() as cluster:
        created = _create(cluster, MANY_PARTITIONS, 3)
        began = time.perf_counter()
        cluster.wait_healthy("120s", in_sync=True)
        in_sync = time.perf_counter() - began
        busy = _idle_share(cluster)
        cluster.stop_node("b1")
        began = time.perf_counter()
        cluster.start_node("b1")
        cluster.wait_healthy("120s", in_sync=True)
        restart = time.perf_counter() - began
    note = f"created in {created:.1f} s"
    return [
        _row(f"last create to all in ISR, {size}", in_sync, "s", 8.0, more=False, note=note),
        _row(f"idle CPU, {size}", busy, "% of a core", 15.0, more=False),
        _row(f"clean restart to full ISR, {size}", restart, "s", 5.0, more=False),
    ]


def metadata(_directory: str) -> list[Row]:
    """A broker restarts in a cluster with a lot of metadata."""
    with _cluster() as cluster:
        created = _create(cluster, METADATA_PARTITIONS, 1)
        serving = _restart(cluster)
    name = f"restart to serving, {METADATA_PARTITIONS:,} partitions of metadata"
    return [_row(name, serving, "s", 5.0, more=False, note=f"created in {created:.0f} s")]


def _create(cluster: LocalCluster, partitions: int, replicas: int) -> float:
    """Topics of ten partitions; how long until the last of them is acknowledged."""
    began = time.perf_counter()
    with Admin(cluster.bootstrap) as admin:
        for start in range(0, partitions // 10, TOPICS_PER_CALL):
            stop = min(start + TOPICS_PER_CALL, partitions // 10)
            names = [f"t{number}" for number in range(start, stop)]
            admin.create_topics([NewTopic(n, 10, replicas) for n in names]).raise_for_errors()
    return time.perf_counter() - began


def _idle_share(cluster: LocalCluster) -> float:
    """Percent of a core, of all nodes together."""
    time.sleep(SETTLE_SECONDS)
    pids = [cluster.pid(name) for name in cluster.nodes]
    before = _cpu_seconds(pids)
    time.sleep(IDLE_SECONDS)
    return (_cpu_seconds(pids) - before) / IDLE_SECONDS * 100


def _restart(cluster: LocalCluster) -> float:
    """Until the broker serves and is not fenced, as it says itself."""
    cluster.stop_node("b1")
    began = time.perf_counter()
    cluster.start_node("b1")
    with Probe() as probe:
        while not probe.is_serving(cluster.address("b1"), BROKER_SERVICE):
            if time.perf_counter() - began > RESTART_SECONDS:
                return math.inf
            time.sleep(POLL_SECONDS)
    return time.perf_counter() - began


def catch_up(_directory: str) -> list[Row]:
    """A follower that was down while much was written; the time of its start is part of it."""
    values = [bytes(CATCH_UP_RECORD)] * (CATCH_UP_BYTES // CATCH_UP_RECORD)
    with _cluster() as cluster:
        with Admin(cluster.bootstrap) as admin:
            admin.create_topics([NewTopic("t", assignments=[[2, 1]])])
        cluster.wait_healthy(in_sync=True)
        cluster.stop_node("b1")
        _send(cluster, "t", values, 1)
        began = time.perf_counter()
        cluster.start_node("b1")
        cluster.wait_healthy("120s", in_sync=True)
        taken = time.perf_counter() - began
    note = f"{CATCH_UP_BYTES / 1e9:.0f} GB in {taken:.1f} s"
    return [
        _row(
            "follower catches up", CATCH_UP_BYTES / taken / MB, "MB/s", 100.0, more=True, note=note
        )
    ]


def kafka(directory: str) -> list[Row]:
    """The same work on both, one after the other, as a part of what Kafka reaches."""
    jars = libs()
    if jars is None:
        print("KAFKA_LIBS is not set: nothing is measured beside Kafka", file=sys.stderr)
        return []
    values = [bytes(1_000)] * KB_RECORDS
    with _cluster(t=3) as cluster:
        rate = len(values) * 1_000 / _send(cluster, "t", values, "all").seconds
    with kafka_cluster(jars, directory) as (peer, started):
        peer.create_topic("t", 3)
        one_by_one = ("acks=all", "linger.ms=0", "max.in.flight.requests.per.connection=1")
        peer.produce("t", ACKS, 100, *one_by_one, rate=PEER_RATE)
        acks = peer.produce("t", ACKS, 100, *one_by_one, rate=PEER_RATE)
        batches = ("acks=all", "batch.size=262144", "linger.ms=5")
        bulk = peer.produce("t", KB_RECORDS, 1_000, *batches)
        resident = max(_resident_mb(each.pid) for each in peer.processes)
    note = f"{rate / MB:.0f} MB/s, Kafka with its Java client {bulk.bytes_per_second / MB:.0f}"
    ours = {row.name: row.reached for row in (*ack(directory), *start(directory))}
    p99, cold, idle_mb = (ours[each] for each in (ACK_P99, COLD_START, RESIDENT))
    share = rate / bulk.bytes_per_second
    return [
        _row("produce 1 KB acks=all RF 3", share, "of Kafka", 1.0, more=True, note=note),
        _row(
            ACK_P99,
            p99 / acks.p99_ms,
            "of Kafka",
            1.0,
            more=False,
            note=f"its {acks.p99_ms:.0f} ms",
        ),
        _row(COLD_START, cold / started, "of Kafka", 1.0, more=False, note=f"its {started:.1f} s"),
        _row(
            RESIDENT, idle_mb / resident, "of Kafka", 1.0, more=False, note=f"its {resident:.0f} MB"
        ),
    ]


BENCHMARKS: dict[str, Benchmark] = {
    "ack": ack,
    "produce": produce,
    "consume": consume,
    "catch-up": catch_up,
    "start": start,
    "idle": idle,
    "partitions": partitions,
    "metadata": metadata,
    "kafka": kafka,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--serve-bare"]:
        asyncio.run(_serve_bare())
    sys.exit(main(__doc__ or "", BENCHMARKS, sys.argv[1:]))
