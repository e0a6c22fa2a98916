import json
from pathlib import Path

import pytest

from kraftlog.errors import ConfigError, KraftError, NotYetSupported
from kraftlog.local import LocalCluster
from tests.waiting import wait_until


def test_what_is_not_there_yet_is_refused_by_name() -> None:
    cluster = LocalCluster(1, 1)
    with pytest.raises(NotYetSupported, match="clock_skew"):
        cluster.clock_skew("b1", "5s")
    with pytest.raises(NotYetSupported, match="metadata"):
        cluster.metadata(at=7)
    with pytest.raises(NotYetSupported, match="history"):
        _ = cluster.history


@pytest.mark.slow
def test_without_faults_nothing_can_be_cut() -> None:
    with LocalCluster(1, 0) as cluster, pytest.raises(ConfigError, match="dial each other"):
        cluster.isolate("c1")


@pytest.mark.slow
def test_an_isolated_controller_is_replaced_and_comes_back(tmp_path: Path) -> None:
    with LocalCluster(3, 1, faults=True, data=str(tmp_path)) as cluster:
        first = cluster.controller()
        cluster.isolate(first)

        def is_replaced() -> bool:
            try:
                return cluster.controller() != first
            except KraftError:
                return False

        wait_until(is_replaced, "another controller")
        with cluster.producer() as producer:
            producer.send("t", b"x").result(30)
        cluster.heal()
        cluster.wait_healthy()
        assert cluster.add_broker() == "b2"  # it is dialled over ways as well
        cluster.wait_healthy()
        routes = json.loads((tmp_path / "resolve" / "c1.json").read_text())
        assert {cluster.address(each) for each in ("c2", "c3", "b1", "b2")} == set(routes)
        cluster.partition("b1", ["b2", "c1"])
        cluster.heal()
        with pytest.raises(ConfigError, match="b1 is on both sides"):
            cluster.partition("b1", ["b1", "b2"])
        with pytest.raises(ConfigError, match="no node 'b9'"):
            cluster.isolate("b9")
    assert json.loads((tmp_path / "resolve" / "c1.json").read_text()) == {}
