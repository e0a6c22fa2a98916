"""A master and two workers of Spark, each a process: executors that share nothing with us."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from kraftlog.local import LocalCluster
from spark_connector.session import spark_environment
from tests.spark.topics import fill
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(600),
]

DRIVER = Path(__file__).with_name("driver.py")
ROOT = Path(__file__).parents[2]


class Node:
    """A process of Spark's own, and what it says."""

    def __init__(self, kind: str, arguments: list[str], log: Path) -> None:
        home = Path(pyspark.__file__).parent
        main = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        environment = os.environ | spark_environment(os.environ)
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [home / "bin" / "spark-class", main, "--host", "127.0.0.1", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment | {"SPARK_HOME": str(home), "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )

    def wait_for(self, pattern: str) -> str:
        found: list[str] = []

        def look() -> bool:
            assert self.process.poll() is None, self._log.read_text()
            found.extend(re.findall(pattern, self._log.read_text()))
            return bool(found)

        wait_until(look, pattern, 120)
        return found[0]


@contextmanager
def node(kind: str, arguments: list[str], log: Path) -> Iterator[Node]:
    made = Node(kind, arguments, log)
    try:
        yield made
    finally:
        # With its executors, which are in its group.
        os.killpg(made.process.pid, signal.SIGKILL)
        made.process.wait()


@pytest.fixture(scope="module")
def spark_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master that has two workers."""
    logs = tmp_path_factory.mktemp("standalone")
    ports = ["--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        master = stack.enter_context(node("Master", ports, logs / "master.log"))
        address = master.wait_for(r"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            own = ["-c", "1", "-m", "600m", "-d", str(logs / f"w{number}"), address]
            log = logs / f"worker{number}.log"
            worker = stack.enter_context(node("Worker", [*ports, *own], log))
            worker.wait_for("Successfully registered with master")
        yield address


def run_job(*arguments: str, **environment: str) -> list[str]:
    """What a driver says, line by line."""
    job = subprocess.run(
        [sys.executable, DRIVER, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"} | environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert job.returncode == 0, job.stderr[-4_000:]
    return job.stdout.splitlines()


@pytest.mark.kraft(partitions=4)
def test_two_workers_read_and_write(
    spark_master: str, kraft_cluster: LocalCluster, kraft_topic: str
) -> None:
    for partition in range(4):
        fill(kraft_cluster, kraft_topic, partition, 250, first=250 * partition)
    (said,) = run_job("copy", spark_master, kraft_cluster.bootstrap, kraft_topic)
    executors, total = said.split(" ", 1)
    assert executors == "2"
    assert "=1000, " in total
    assert f"={sum(range(1_000))})" in total


@pytest.mark.kraft(partitions=2)
def test_workers_without_the_package_say_so_until_they_are_sent_it(
    spark_master: str, kraft_cluster: LocalCluster, kraft_topic: str, tmp_path: Path
) -> None:
    fill(kraft_cluster, kraft_topic, 0, 100)
    fill(kraft_cluster, kraft_topic, 1, 100, first=100)
    archive = tmp_path / "kraftlog.zip"
    missing, total = run_job(
        "send_package",
        spark_master,
        kraft_cluster.bootstrap,
        kraft_topic,
        str(archive),
        PYSPARK_PYTHON=str(bare_python(tmp_path)),
    )
    assert "has no module 'spark_connector' (install kraftlog[spark] for " in missing
    assert "=200, " in total
    assert f"={sum(range(200))})" in total


def bare_python(directory: Path) -> Path:
    """A Python whose processes have Spark's needs, but in executors not our package."""
    script = directory / "python"
    packages = sysconfig.get_path("purelib")
    # Executors work below the directory of their worker; the driver's own Python has the package.
    script.write_text(
        f'''#!/bin/sh
case "$PWD" in
*/app-*) PYTHONPATH="$(echo "$PYTHONPATH" | tr : "\\n" | grep -vFx "{ROOT}" | paste -sd :)"
    export PYTHONPATH="$PYTHONPATH:{packages}"
    exec {sys.executable} -S "$@" ;;
esac
exec {sys.executable} "$@"
'''
    )
    script.chmod(0o755)
    return script
