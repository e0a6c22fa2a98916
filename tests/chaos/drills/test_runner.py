"""A run from its beginning to its files, on a real cluster; tests/drills has the rest."""

from pathlib import Path

import pytest

from chaos.drills.catalog import Drill
from chaos.drills.runner import RunOptions, run_drill
from chaos.live import leftovers
from chaos.live.run_directory import META, RESULTS
from chaos.live.stage import Stage


def steps(stage: Stage) -> None:
    stage.expect("what never holds", holds=False)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_what_a_drill_finds_wrong_fails_it_and_keeps_the_data(tmp_path: Path) -> None:
    drill = Drill(
        number=0,
        name="baseline",
        title="a claim that fails",
        steps=steps,
        brokers=1,
        replication_factor=1,
        topic_config={"min.insync.replicas": "1"},
    )
    said: list[str] = []
    options = RunOptions(
        out=tmp_path,
        seed=3,
        backend="process",
        only_safety=True,
        warm_seconds=0.2,
        say=lambda text, _: said.append(text),
    )
    result = run_drill(drill, options)
    assert result.anomalies == ("what never holds",)
    assert "NOT: what never holds" in said
    assert result.counts["acked"] == result.counts["read"] > 0
    assert result.directory.read(RESULTS)["verdict"] == "FAIL"
    meta = result.directory.read(META)
    assert (meta["seed"], meta["backend"], meta["only_safety"]) == (3, "process", True)
    assert (result.directory.cluster / "b1").is_dir()
    assert not leftovers.find(str(result.directory.path))
