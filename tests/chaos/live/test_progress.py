from collections.abc import Mapping
from pathlib import Path

import pytest

from chaos.live.backends import open_proxies
from chaos.live.progress import Meter, shown
from chaos.live.run_directory import RunDirectory
from chaos.live.stage import Stage, StageOptions
from chaos.live.timing import timing_of
from tests.waiting import wait_until


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_rows_tell_of_a_stage_while_it_is_open_and_go_at_the_end(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "none", 1)
    options = StageOptions(
        timing=timing_of("fast"),
        controllers=1,
        brokers=1,
        partitions=2,
        replication_factor=1,
        topic_config={"min.insync.replicas": "1"},
        warm_seconds=0.1,
    )
    seen: list[Mapping[str, str]] = []
    with open_proxies("process", 1) as (proxies, _):
        stage = Stage(directory, proxies, options, lambda *_: None)
        stage.checks_edges = False
        with stage, shown(stage, seen.append):
            wait_until(lambda: len(seen) >= 2, "it is shown again and again")
            rows = Meter(stage).rows()
    assert seen[-1] == {}
    assert rows["controller"] == f"c1, epoch {stage.epoch}"
    assert rows["partitions"] == "0: b1 (1 of 1 in sync)  1: b1 (1 of 1 in sync)"
    assert rows["acknowledged"].endswith("/s, 0 errors")
    assert set(rows) == set(seen[0])
