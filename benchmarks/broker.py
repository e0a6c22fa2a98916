"""Brokers and clients end to end, on clusters of real processes. `python -m benchmarks.broker`

Throughput is a part of what a bare gRPC stream carries in the same run: messages of 256 KiB from
this process to another one, each answered with one byte. Clients, brokers and controllers share the
machine. Give names to run some rows only: `python -m benchmarks.broker ack produce`.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import grpc
import grpc.aio

from benchmarks.harness import Benchmark, Cost, Row, main, measure
from kraftlog import Admin, Consumer, NewTopic, Producer
from kraftlog.local import LocalCluster

METHOD = "/bare.Stream/Channel"
MESSAGE = bytes(256 << 10)
IN_FLIGHT = 8
MB = 1e6
KB_RECORDS = 100_000
SMALL_RECORDS = 500_000
ACKS = 2_000
IDLE_PARTITIONS = 2_000
IDLE_SECONDS = 10.0
SETTLE_SECONDS = 5.0
TIMEOUT = "120s"

_KAFKA = (
    "Kafka is not run by this benchmark yet"
    if os.environ.get("KAFKA_LIBS")
    else "Kafka is absent (KAFKA_LIBS)"
)


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
    with Producer[bytes, bytes](cluster.bootstrap, acks=acks) as producer:  # type: ignore[arg-type]
        producer.send(topic, values[0]).result(TIMEOUT)

        def work() -> None:
            for start in range(0, len(values), 10_000):
                producer.send_many(topic, values[start : start + 10_000])
            producer.flush(TIMEOUT)

        return measure(work)


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
    notes = [note, f"load {os.getloadavg()[0]:.1f}", _KAFKA]
    text = "; ".join(each for each in notes if each)
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
        _row("ack acks=all RF 3, p99", cuts[98], "ms", 5.0, more=False),
    ]


def produce(_directory: str) -> list[Row]:
    """1 KB values, as a part of what a bare stream carries."""
    values = [bytes(1_000)] * KB_RECORDS
    total = len(values) * 1_000
    rows = []
    with _cluster(one=1, three=3) as cluster:
        for name, topic, acks, target in (
            ("produce 1 KB acks=1, RF 1", "one", 1, 0.6),
            ("produce 1 KB acks=all, RF 3", "three", "all", 0.2),
        ):
            limit = _bare_rate(total)
            rate = total / _send(cluster, topic, values, acks).seconds
            note = f"{rate / MB:.0f} MB/s of {limit / MB:.0f}"
            rows.append(_row(name, rate / limit, "of bare", target, more=True, note=note))
    return rows


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
        _row("cold start 3+3 to the first record", taken, "s", 4.0, more=False),
        _row("resident memory, largest idle node", largest, "MB", 90.0, more=False),
    ]


def idle(_directory: str) -> list[Row]:
    """CPU of a cluster with many partitions and no client; then a broker is restarted."""
    with _cluster() as cluster:
        with Admin(cluster.bootstrap) as admin:
            for number in range(IDLE_PARTITIONS // 10):
                admin.create_topics([NewTopic(f"t{number}", 10, 3)])
        cluster.wait_healthy(in_sync=True)
        time.sleep(SETTLE_SECONDS)
        pids = [cluster.pid(name) for name in cluster.nodes]
        before = _cpu_seconds(pids)
        time.sleep(IDLE_SECONDS)
        busy = (_cpu_seconds(pids) - before) / IDLE_SECONDS * 100
        cluster.stop_node("b1")
        began = time.perf_counter()
        cluster.start_node("b1")
        cluster.wait_healthy(in_sync=True)
        restart = time.perf_counter() - began
    size = f"{IDLE_PARTITIONS:,} partitions"
    return [
        _row(f"idle CPU, {size}", busy, "% of a core", 10.0, more=False),
        _row(f"restart to full ISR, {size}", restart, "s", 3.0, more=False),
    ]


BENCHMARKS: dict[str, Benchmark] = {
    "ack": ack,
    "produce": produce,
    "consume": consume,
    "start": start,
    "idle": idle,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--serve-bare"]:
        asyncio.run(_serve_bare())
    sys.exit(main(__doc__ or "", BENCHMARKS, sys.argv[1:]))
