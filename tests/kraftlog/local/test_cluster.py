"""Small clusters of real processes: one controller, one or two brokers."""

import json
import os
from pathlib import Path

import pytest

from kraftlog.errors import ConfigError, LeaderNotAvailable, TimeoutError_
from kraftlog.local import LocalCluster, NodeFailed

SLOW = pytest.mark.slow


def test_keys_that_no_node_reads_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"log\.segement\.bytes is no configuration key"):
        LocalCluster(config={"log.segement.bytes": 1})
    with pytest.raises(ConfigError, match="at least one controller"):
        LocalCluster(0, 1)


def test_before_the_start_there_is_nothing() -> None:
    cluster = LocalCluster(1, 1)
    with pytest.raises(NodeFailed, match="was not started"):
        _ = cluster.bootstrap
    cluster.close()


@SLOW
def test_a_cluster_comes_and_leaves_nothing_behind() -> None:
    with LocalCluster(1, 2, config={"num.partitions": 2}, metrics=True) as cluster:
        assert cluster.nodes == ["c1", "b1", "b2"]
        assert cluster.controller() == "c1"
        assert len(cluster.bootstrap.split(",")) == 2
        assert cluster.look().brokers == {1, 2}
        with pytest.raises(LeaderNotAvailable):
            cluster.leader("nothing")
        with cluster.producer() as producer:
            producer.send("t", b"x").result(30)
        assert cluster.leader("t", 1) in cluster.brokers
        cluster.wait_topic("t")
        with pytest.raises(TimeoutError_, match="b1 does not know who leads nothing"):
            cluster.wait_topic("nothing", "1ms")
        assert cluster.metrics_address("b1") is not None
        pids = [cluster.pid(name) for name in cluster.nodes]
        directory = cluster.directory
        assert cluster.exit_code("b1") is None
        cluster.kill("c1")
        cluster.start_node("c1")
        with pytest.raises(TimeoutError_, match="c1 does not serve"):
            cluster.wait_healthy("1ms")
    assert not os.path.exists(directory)
    for pid in pids:
        assert not os.path.exists(f"/proc/{pid}")


@SLOW
def test_data_in_a_directory_of_its_own_outlives_the_cluster(tmp_path: Path) -> None:
    with LocalCluster(1, 1, data=str(tmp_path)) as first:
        with first.producer() as producer:
            producer.send("t", b"kept").result(30)
        bootstrap, cluster_id = first.bootstrap, first.cluster_id
        assert first.stop() == {"b1": 0, "c1": 0}
    with LocalCluster(data=str(tmp_path)) as again:  # what there is counts, not the arguments
        assert (again.bootstrap, again.cluster_id) == (bootstrap, cluster_id)
        with again.consumer("t", offset_reset="earliest") as consumer:
            assert next(iter(consumer)).value == b"kept"


@SLOW
def test_nodes_come_and_go(tmp_path: Path) -> None:
    with LocalCluster(1, 1, data=str(tmp_path)) as cluster:
        assert cluster.add_broker({"broker.rack": "r2"}) == "b2"
        cluster.wait_healthy()
        assert cluster.look().brokers == {1, 2}
        cluster.kill("b2")
        assert cluster.exit_code("b2") == -9
        assert not cluster.is_running("b2")
        cluster.wait_healthy()  # one that is not meant to run is not waited for
        cluster.start_node("b2")
        cluster.wait_healthy()
        first = cluster.pid("b1")
        cluster.restart("b1")
        cluster.wait_healthy()
        assert cluster.pid("b1") != first
        assert "registered as broker 1" in cluster.logs("b1")
        cluster.pause("b2")
        cluster.resume("b2")
        cluster.wait_healthy()
        routes = {cluster.address("b1"): "127.0.0.1:1"}
        cluster.reroute("b2", routes)
        assert json.loads((tmp_path / "resolve" / "b2.json").read_text()) == routes
        [path] = cluster.client_environment.values()
        assert json.loads(Path(path).read_text()) == {}
        with pytest.raises(ConfigError, match="there is no node 'b9'"):
            cluster.kill("b9")


@SLOW
def test_a_node_that_cannot_start_says_why() -> None:
    with pytest.raises(NodeFailed, match=r"b1 has ended with 2; it said last:\n(?s:.*)third"):
        LocalCluster(1, 1, config={"broker.heartbeat.interval.ms": "1h"}).start()
