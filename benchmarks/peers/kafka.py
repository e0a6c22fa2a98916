"""Apache Kafka as a cluster of JVMs, controllers and brokers apart, and its own load generator.

The jars are those of a Kafka release, in the directory that KAFKA_LIBS names.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kraftlog.types import Uuid
from quorum.local import free_port
from spark_connector.session import java_home

HEAP = "-Xmx512m"
START_SECONDS = 120.0
POLL_SECONDS = 0.1
FIRST_CONTROLLER, FIRST_BROKER = 101, 1

_COMMON = """
node.id={node_id}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={directory}/data-{node_id}
"""
_ROLES = {
    "controller": "process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:{port}\n",
    "broker": "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:{port}\n"
    "num.partitions={partitions}\n"
    "offsets.topic.replication.factor={brokers}\n"
    "transaction.state.log.replication.factor={brokers}\n",
}


def libs() -> Path | None:
    """Where Kafka's jars are, if somebody said so."""
    given = os.environ.get("KAFKA_LIBS")
    return Path(given) if given else None


@dataclass(frozen=True, slots=True)
class Load:
    """What Kafka's ProducerPerformance reports."""

    bytes_per_second: float
    p50_ms: float
    p99_ms: float


class Kafka:
    """`nodes` of each kind; a topic that is written to is created with so many partitions."""

    def __init__(self, jars: Path, directory: Path, nodes: int, partitions: int) -> None:
        self._java = [str(java_home(os.environ) / "bin" / "java"), HEAP, "-cp", f"{jars}/*"]
        self._directory = directory
        self._partitions = partitions
        self._controllers = range(FIRST_CONTROLLER, FIRST_CONTROLLER + nodes)
        self.brokers = range(FIRST_BROKER, FIRST_BROKER + nodes)
        self._ports = {each: free_port() for each in (*self._controllers, *self.brokers)}
        self.bootstrap = ",".join(f"127.0.0.1:{self._ports[each]}" for each in self.brokers)
        self.processes: list[subprocess.Popen[bytes]] = []

    def format(self) -> None:
        cluster_id = str(Uuid.random())
        for node_id in self._ports:
            self._config(node_id).write_text(self._settings(node_id))
            tool = "kafka.tools.StorageTool"
            self.run(tool, "format", "-t", cluster_id, "-c", str(self._config(node_id)))

    def _config(self, node_id: int) -> Path:
        return self._directory / f"{node_id}.properties"

    def _settings(self, node_id: int) -> str:
        voters = ",".join(f"{each}@127.0.0.1:{self._ports[each]}" for each in self._controllers)
        common = _COMMON.format(node_id=node_id, voters=voters, directory=self._directory)
        role = _ROLES["controller" if node_id in self._controllers else "broker"]
        return common + role.format(
            port=self._ports[node_id], partitions=self._partitions, brokers=len(self.brokers)
        )

    def start(self) -> None:
        for node_id in self._ports:
            with (self._directory / f"{node_id}.log").open("wb") as log:
                command = [*self._java, "kafka.Kafka", str(self._config(node_id))]
                self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def run(self, tool: str, *arguments: str) -> str:
        done = subprocess.run(
            [*self._java, tool, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"Kafka's {tool} failed: {done.stdout[-800:]}{done.stderr[-800:]}")
        return done.stdout

    def create_topic(self, name: str, replicas: int) -> None:
        """Waits until Kafka is up, too."""
        flags = ["--topic", name, "--partitions", "1", "--replication-factor", str(replicas)]
        tool = "org.apache.kafka.tools.TopicCommand"
        self.run(tool, "--bootstrap-server", self.bootstrap, "--create", *flags)

    def produce(
        self, topic: str, records: int, size: int, *properties: str, rate: int = -1
    ) -> Load:
        told = self.run(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(records), "--record-size", str(size)),
            *("--throughput", str(rate), "--producer-props"),
            *(f"bootstrap.servers={self.bootstrap}", *properties),
        )
        return read_report(told.splitlines())


def read_report(lines: Sequence[str]) -> Load:
    """Its last line sums up the whole run."""
    last = next(line for line in reversed(lines) if "99th" in line)
    mib = re.search(r"\(([\d.]+) MB/sec\)", last)
    p50, p99 = re.search(r"([\d.]+) ms 50th", last), re.search(r"([\d.]+) ms 99th", last)
    if mib is None or p50 is None or p99 is None:
        raise SystemExit(f"ProducerPerformance has changed its words: {last}")
    return Load(float(mib[1]) * (1 << 20), float(p50[1]), float(p99[1]))


@contextmanager
def kafka_cluster(
    jars: Path, directory: str, *, nodes: int = 3, partitions: int = 1
) -> Iterator[tuple[Kafka, float]]:
    """A cluster that is up, and the seconds from its start to its first topic."""
    with ExitStack() as undo:
        kafka = Kafka(jars, Path(directory), nodes, partitions)
        undo.callback(kafka.close)
        kafka.format()
        began = time.perf_counter()
        kafka.start()
        _wait_for_brokers(kafka)
        yield kafka, time.perf_counter() - began


def _wait_for_brokers(kafka: Kafka) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            kafka.create_topic("first", len(kafka.brokers))
        except SystemExit:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return
