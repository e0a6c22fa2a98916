"""Apache Kafka as one node, from the jars in a directory: broker and controller in one JVM."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraftlog.types import Uuid
from spark_connector.session import java_home

START_SECONDS = 120.0
HEAP = "-Xmx512m"
_CONFIG = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={directory}/data
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
"""


@contextmanager
def kafka_node(libs: Path, directory: Path, partitions: int) -> Iterator[str]:
    """Its address; a topic that is written to is created with so many partitions."""
    java = [str(java_home(os.environ) / "bin" / "java"), HEAP, "-cp", f"{libs}/*"]
    broker, controller = _free_ports()
    config = directory / "server.properties"
    config.write_text(
        _CONFIG.format(
            broker=broker, controller=controller, directory=directory, partitions=partitions
        )
    )
    log_path = directory / "kafka.log"
    log = log_path.open("wb")
    format_ = ["kafka.tools.StorageTool", "format", "-t", str(Uuid.random()), "-c", str(config)]
    subprocess.run([*java, *format_], stdout=log, stderr=log, check=True)
    server = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)
    try:
        _wait_for(broker, server, log_path)
        yield f"127.0.0.1:{broker}"
    finally:
        server.kill()
        server.wait()
        log.close()


def _free_ports() -> tuple[int, int]:
    anywhere = ("127.0.0.1", 0)
    with socket.create_server(anywhere) as one, socket.create_server(anywhere) as two:
        return one.getsockname()[1], two.getsockname()[1]


def _wait_for(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        if server.poll() is not None or time.monotonic() >= deadline:
            raise SystemExit(f"Apache Kafka did not start: {log.read_text()[-2_000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
