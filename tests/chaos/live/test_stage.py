"""One small cluster on a stage: load, watcher and faults together."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.history import read_history
from chaos.live.backends import open_proxies
from chaos.live.run_directory import RunDirectory
from chaos.live.stage import Stage, StageOptions
from chaos.live.timing import timing_of
from kraftlog.errors import TimeoutError_
from kraftlog.resolver import RESOLVE_VARIABLE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = RunDirectory.create(tmp_path_factory.mktemp("stage"), "none", 1)
    options = StageOptions(
        timing=timing_of("fast"),
        controllers=1,
        brokers=2,
        partitions=2,
        replication_factor=2,
        topic_config={"min.insync.replicas": "1"},
        warm_seconds=0.1,
    )
    with (
        open_proxies("embedded", 1) as (proxies, _),
        Stage(directory, proxies, options, lambda *_: None) as opened,
    ):
        yield opened


def test_nobody_talks_around_the_proxies_and_our_clients_neither(stage: Stage) -> None:
    stage.check_edges()  # that of our clients was made before the watcher began
    assert str(stage.directory.path) in os.environ[RESOLVE_VARIABLE]
    assert len(stage.edges.names) == 3 * 2 + 3


def test_the_watcher_knows_who_leads(stage: Stage) -> None:
    assert stage.controller() == "c1"
    assert stage.controller_followers() == []
    assert stage.epoch >= 1
    assert stage.leader(0) in stage.cluster.brokers
    assert {stage.watcher.leader("orders", each) for each in (0, 1)} <= {1, 2}
    assert stage.watcher.doubles == []


def test_a_broker_is_killed_and_comes_back_and_nothing_is_lost(stage: Stage) -> None:
    victim = stage.leader(0)
    begun = stage.kill(victim)
    assert stage.wait_fenced(victim, begun) > 0
    stage.wait_for_writes(begun + stage.timing.session)
    assert stage.load.write_gap(begun, begun + 1.0) > 0
    stage.heal()
    assert stage.measured["converge"] > 0
    stage.finish()
    assert stage.failures == []
    history = read_history(stage.directory.history)
    assert [each.facts["target"] for each in history.events_of("fault")] == [victim]
    acked = sum(1 for each in history.of("send") if each.outcome == "ok")
    assert acked == stage.load.acknowledged > 0


def test_a_wait_has_an_end(stage: Stage) -> None:
    with pytest.raises(TimeoutError_, match="pigs fly: not within 0 s"):
        stage.wait(lambda: False, "pigs fly", 0)


def test_measures_keep_the_worst(stage: Stage) -> None:
    stage.measure("x", 2.0)
    stage.measure("x", 1.0)
    assert stage.measured["x"] == 2.0


def test_the_directory_has_the_data(stage: Stage) -> None:
    assert Path(stage.cluster.data_path("b1")).is_dir()
