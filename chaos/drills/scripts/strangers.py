"""Processes that pretend to belong here."""

import time

from chaos.drills.catalog import drill
from chaos.live.stage import Stage
from kraftlog.local.layout import HOST, free_port
from kraftlog.local.process import NodeProcess
from kraftlog.types import Uuid

STRANGER_ID = 99


@drill(25, "impostors", "a broker with a taken id, and one of another cluster")
def impostors(stage: Stage) -> None:
    begun = time.monotonic()
    taken = stage.cluster.node_id(stage.leader())
    other = str(Uuid(stage.dice.randbytes(16)))
    _refused(stage, "duplicate-id", taken, stage.cluster.cluster_id, "registered by another")
    _refused(stage, "wrong-cluster", STRANGER_ID, other, "belongs to another cluster")
    stage.expect("the original is not fenced", holds=stage.watcher.fenced_at(taken, begun) is None)
    stage.measure("u_write", stage.load.write_gap(begun, time.monotonic()))


def _refused(stage: Stage, name: str, node_id: int, cluster_id: str, words: str) -> None:
    """Start one; how long after its first word it was refused."""
    cluster = stage.cluster
    directory = stage.directory.path / "impostors"
    (directory / name).mkdir(parents=True)
    peers = ",".join(cluster.address(each) for each in cluster.controllers)
    arguments = ["run", "--listen", f"{HOST}:{free_port(set())}", "--profile"]
    arguments += [stage.timing.profile, "--peers", peers, "--node-id", str(node_id)]
    arguments += ["--log-dirs", str(directory / name), "--cluster-id", cluster_id]
    process = NodeProcess(
        name, "brokers", arguments, str(directory / f"{name}.log"), cluster.client_environment
    )
    stage.fault("impostor", name)
    process.start()
    try:
        stage.wait(lambda: bool(process.log()), f"{name} speaks")
        begun = time.monotonic()
        stage.wait(lambda: words in process.log(), f"{name} is refused by name")
        stage.measure("t_refused", time.monotonic() - begun)
    finally:
        process.close()
    stage.healed("impostor", name)
