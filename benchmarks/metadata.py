"""The controller with many partitions: three real processes that fsync, brokers that are only
messages. `python -m benchmarks.metadata`
"""

import asyncio
import statistics
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kafka.admin import KafkaAdminClient, NewTopic

from benchmarks.harness import Benchmark, Row, main
from benchmarks.peers.kafka import kafka_cluster, libs
from benchmarks.scripted import ScriptedBroker, ScriptedClient, raise_error, scripted_brokers
from kraftlog.rpc import controller_pb2 as pb
from quorum.client import QuorumClient
from quorum.local import LocalQuorum

BROKERS = 6
TOPICS = 1_000
PARTITIONS_PER_TOPIC = 100
CALLERS = 8
SERIAL = 200
PEER_SERIAL = 50
PEER_TOPICS = 10

# The heartbeats come from this very process, which is busy: nobody shall be fenced for that.
ARGUMENTS = ("--profile", "fast", "-X", "broker.session.timeout.ms=30s", "--metrics", "127.0.0.1:0")
SNAPSHOT_SOON = ("-X", "metadata.log.max.snapshot.interval.ms=1s")

LOOP_LAG = "kraftlog_loop_lag_max_seconds"

# Apache Kafka 4.3 on this kind of machine, where its jars are not at hand to run it again.
KAFKA_CREATE_MS = 72.0


def create(name: str, partitions: int) -> pb.ControllerRequest:
    topic = pb.NewTopic(name=name, partitions=partitions, replication_factor=3)
    return pb.ControllerRequest(create_topics=pb.CreateTopicsRequest(topics=[topic]))


def delete(name: str) -> pb.ControllerRequest:
    topics = [pb.TopicRef(name=name)]
    return pb.ControllerRequest(delete_topics=pb.DeleteTopicsRequest(topics=topics))


@dataclass
class Cluster:
    """Three controllers, six brokers that only send heartbeats, and some clients."""

    quorum: LocalQuorum
    brokers: list[ScriptedBroker]
    clients: list[ScriptedClient]

    async def ask(self, request: pb.ControllerRequest, caller: int = 0) -> pb.ControllerReply:
        reply = await self.clients[caller].ask(request, seconds=120)
        raise_error(reply)
        for topic in reply.create_topics.topics:
            raise_error(topic)
        return reply

    async def in_parallel(self, requests: Sequence[pb.ControllerRequest]) -> float:
        """All of them, by several callers at once; how long it took."""
        waiting = list(reversed(requests))

        async def call(caller: int) -> None:
            while waiting:
                await self.ask(waiting.pop(), caller)

        begun = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for caller in range(CALLERS):
                tasks.create_task(call(caller))
        return time.perf_counter() - begun

    async def fill(self, topics: int = TOPICS, prefix: str = "full") -> float:
        names = [f"{prefix}-{number}" for number in range(topics)]
        return await self.in_parallel([create(name, PARTITIONS_PER_TOPIC) for name in names])

    async def serial_ms(self, prefix: str) -> list[float]:
        """How long each of many creations took, one after the other."""
        times = []
        for number in range(SERIAL):
            begun = time.perf_counter()
            await self.ask(create(f"{prefix}-{number}", 1))
            times.append(1000 * (time.perf_counter() - begun))
        return sorted(times)

    def memory_mb(self) -> float:
        """Of the largest controller."""
        return max(_resident_mb(node.pid) for node in self.quorum)

    def cpu_seconds(self) -> float:
        return sum(_cpu_seconds(node.pid) for node in self.quorum)


def _resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@asynccontextmanager
async def _running(quorum: LocalQuorum) -> AsyncIterator[Cluster]:
    clients = [ScriptedClient(quorum.endpoints) for _ in range(CALLERS)]
    async with scripted_brokers(quorum.endpoints, BROKERS) as brokers:
        yield Cluster(quorum, brokers, clients)
        for client in clients:
            await client.close()


def _with_cluster(
    directory: str, work: Callable[[Cluster], Awaitable[list[Row]]], *arguments: str
) -> list[Row]:
    async def run(quorum: LocalQuorum) -> list[Row]:
        async with _running(quorum) as cluster:
            return await work(cluster)

    with LocalQuorum(f"{directory}/quorum", arguments=(*ARGUMENTS, *arguments)) as quorum:
        quorum.start()
        rows = asyncio.run(run(quorum))
        quorum.stop()
        return rows


def _p(times: Sequence[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))]


# -- what is measured


def creating(directory: str) -> list[Row]:
    """Topics one by one and many at once; memory; all of it again with 100 k partitions there."""

    async def work(cluster: Cluster) -> list[Row]:
        few = await cluster.serial_ms("few")
        cpu = cluster.cpu_seconds()
        seconds = await cluster.fill()
        cpu = cluster.cpu_seconds() - cpu
        count = TOPICS * PARTITIONS_PER_TOPIC
        many = await cluster.serial_ms("many")
        memory = cluster.memory_mb()
        growth = statistics.median(many) / statistics.median(few)
        rows = [
            _row(
                "create topic, serial p50",
                statistics.median(few),
                "ms",
                10,
                cpu=0,
                note=(f"p99 {_p(few, 0.99):.1f} ms; Kafka 4.3 {KAFKA_CREATE_MS:.0f} ms"),
            ),
            _row(
                "the same with 100 k partitions",
                statistics.median(many),
                "ms",
                10,
                cpu=0,
                note=(f"p99 {_p(many, 0.99):.1f} ms; {growth:.2f} of that with few"),
            ),
            Row(
                "partitions committed",
                count / seconds,
                "/s",
                20_000,
                True,
                cpu / count * 1e6,
                "partition",
                f"{TOPICS} topics x {PARTITIONS_PER_TOPIC}, RF 3",
            ),
            _row("memory at 100 k partitions", memory, "MB", 400, cpu=0, note="largest controller"),
        ]
        return [*rows, await _churn(cluster)]

    return _with_cluster(directory, work)


async def _churn(cluster: Cluster) -> Row:
    """Ten rounds of create and delete must leave memory as it was."""
    before = cluster.memory_mb()
    for number in range(10):
        names = [f"churn{number}-{each}" for each in range(50)]
        await cluster.in_parallel([create(name, PARTITIONS_PER_TOPIC) for name in names])
        await cluster.in_parallel([delete(name) for name in names])
    after = cluster.memory_mb()
    note = f"{before:.0f} MB before, {after:.0f} MB after 10 rounds of 5 000 partitions"
    return _row("memory after churn", after / before, "of before", 1.2, cpu=0, note=note)


def failover(directory: str) -> list[Row]:
    """The leader is killed: when is the next topic created, with few partitions and with many."""

    async def work(cluster: Cluster) -> list[Row]:
        few = [await _kill_leader(cluster, f"few{number}") for number in range(5)]
        await cluster.fill()
        many = [await _kill_leader(cluster, f"many{number}") for number in range(5)]
        ratio = statistics.median(many) / statistics.median(few)
        note = (
            f"median {1000 * statistics.median(few):.0f} ms with few,"
            f" {1000 * statistics.median(many):.0f} ms with many; Kafka 4.3: 4.0 s with 10 k"
        )
        return [_row("failover at 100 k partitions", ratio, "of few", 1.5, cpu=0, note=note)]

    return _with_cluster(directory, work)


async def _kill_leader(cluster: Cluster, name: str) -> float:
    leader = await _leader(cluster.quorum)
    cluster.quorum.nodes[leader].kill()
    begun = time.perf_counter()
    await cluster.ask(create(f"after-{name}", 1))
    taken = time.perf_counter() - begun
    await asyncio.to_thread(cluster.quorum.restart, leader)
    return taken


async def _leader(quorum: LocalQuorum) -> int:
    async with QuorumClient(quorum.endpoints) as client:
        found = await client.find_leader()
        return int(found.node.node_id)


def fencing(directory: str) -> list[Row]:
    """A broker that leads 10 k partitions goes silent: how long until all have new leaders."""

    async def work(cluster: Cluster) -> list[Row]:
        await cluster.fill(topics=600)
        victim, leader = cluster.brokers[0], await _leader(cluster.quorum)
        lag = await _metric(cluster.quorum, leader, LOOP_LAG)
        led = (await _described(cluster, victim.broker_id)).leaders
        fence = pb.FenceBrokerRequest(broker_id=victim.broker_id, fenced=True)
        begun = time.perf_counter()
        await cluster.ask(pb.ControllerRequest(fence_broker=fence))
        taken = time.perf_counter() - begun
        left = (await _described(cluster, victim.broker_id)).leaders
        lags = f"longest loop lag before {1000 * lag:.0f} ms"
        lag = await _metric(cluster.quorum, leader, LOOP_LAG)
        elected = "no election" if await _leader(cluster.quorum) == leader else "A NEW LEADER"
        note = f"it led {led:,} partitions of 60 000, and leads {left} now; {elected}"
        return [
            _row("fence a broker", taken, "s", 2, cpu=0, note=note),
            _row("loop lag until then", 1000 * lag, "ms", 50, cpu=0, note=lags),
        ]

    return _with_cluster(directory, work)


async def _described(cluster: Cluster, broker_id: int) -> pb.BrokerState:
    reply = await cluster.ask(pb.ControllerRequest(describe_cluster=pb.DescribeClusterRequest()))
    return next(each for each in reply.describe_cluster.brokers if each.broker_id == broker_id)


def snapshots(directory: str) -> list[Row]:
    """A controller that starts with 100 k partitions replays them, writes a snapshot, and starts
    again from that.
    """

    async def work(cluster: Cluster) -> list[Row]:
        await cluster.fill()
        leader = await _leader(cluster.quorum)
        node_id = next(each for each in cluster.quorum.nodes if each != leader)
        replayed, _ = await _restart(cluster.quorum, node_id)
        await _reaches(cluster.quorum, node_id, "kraftlog_raft_snapshots_written_total", 1)
        written = await _metric(cluster.quorum, node_id, "kraftlog_raft_snapshot_write_seconds")
        lag = await _metric(cluster.quorum, node_id, LOOP_LAG)
        loaded, resident_mb = await _restart(cluster.quorum, node_id)
        note = f"the process included, {resident_mb:.0f} MB; from the log alone {replayed:.1f} s"
        return [
            _row("snapshot of 100 k partitions", written, "s", 5, cpu=0, note="off the loop"),
            _row("loop lag meanwhile", 1000 * lag, "ms", 50, cpu=0, note="and while replaying"),
            _row("start from it", loaded, "s", 3, cpu=0, note=note),
        ]

    return _with_cluster(directory, work, *SNAPSHOT_SOON)


async def _restart(quorum: LocalQuorum, node_id: int) -> tuple[float, float]:
    """Seconds until a controller has applied all; its memory then."""
    node = quorum.nodes[node_id]
    end = await _metric(quorum, await _leader(quorum), "kraftlog_raft_high_watermark")
    await asyncio.to_thread(node.terminate)
    begun = time.perf_counter()
    await asyncio.to_thread(quorum.restart, node_id)
    await _reaches(quorum, node_id, "kraftlog_raft_applied_offset", end)
    return time.perf_counter() - begun, _resident_mb(node.pid)


async def _reaches(quorum: LocalQuorum, node_id: int, name: str, value: float) -> None:
    while await _metric(quorum, node_id, name) < value:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.02)


async def _metric(quorum: LocalQuorum, node_id: int, name: str) -> float:
    """What a controller says of itself now."""
    url = f"http://{quorum.nodes[node_id].ready['metrics']}/metrics"
    return await asyncio.to_thread(_read_metric, url, name)


def _read_metric(url: str, name: str) -> float:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own node
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.split()[0] == name)


def kafka(directory: str) -> list[Row]:
    """The same work on Apache Kafka, where KAFKA_LIBS names a directory with its jars."""
    jars = libs()
    if jars is None:
        print("KAFKA_LIBS is not set: nothing is measured beside Kafka", file=sys.stderr)
        return []
    ours: list[float] = []

    async def work(cluster: Cluster) -> list[Row]:
        ours.append(statistics.median(await cluster.serial_ms("few")))
        ours.append(PEER_TOPICS * PARTITIONS_PER_TOPIC / await cluster.fill(PEER_TOPICS))
        return []

    _with_cluster(directory, work)
    with kafka_cluster(jars, directory) as (peer, _):
        admin = KafkaAdminClient(bootstrap_servers=peer.bootstrap.split(","))
        try:
            few = [_kafka_creates(admin, f"few-{n}", 1) for n in range(PEER_SERIAL)]
            full = range(PEER_TOPICS)
            many = [_kafka_creates(admin, f"full-{n}", PARTITIONS_PER_TOPIC) for n in full]
        finally:
            admin.close()
    serial = statistics.median(few)
    rate = PEER_TOPICS * PARTITIONS_PER_TOPIC / (sum(many) / 1000)
    latency = f"{ours[0]:.1f} ms, its {serial:.1f}"
    commits = f"{ours[1]:,.0f}/s, its {rate:,.0f}"
    return [
        _row("create topic, serial p50", ours[0] / serial, "of Kafka", 1, cpu=0, note=latency),
        Row("partitions committed", ours[1] / rate, "of Kafka", 1, True, 0, "partition", commits),
    ]


def _kafka_creates(admin: KafkaAdminClient, name: str, partitions: int) -> float:
    """Milliseconds until a topic with three replicas is acknowledged."""
    begun = time.perf_counter()
    admin.create_topics([NewTopic(name, partitions, 3)])
    return 1000 * (time.perf_counter() - begun)


def _row(name: str, reached: float, unit: str, target: float, *, cpu: float, note: str) -> Row:
    return Row(name, reached, unit, target, False, cpu, "call", note)


BENCHMARKS: dict[str, Benchmark] = {
    "creating": creating,
    "failover": failover,
    "fencing": fencing,
    "snapshots": snapshots,
    "kafka": kafka,
}

if __name__ == "__main__":
    sys.exit(main(__doc__ or "", BENCHMARKS, sys.argv[1:]))
