"""That each is in the catalog, with the hooks that it needs; tests/drills runs them."""

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.drills.catalog import all_drills, find_drill
from chaos.drills.runner import RunOptions, run_drill
from chaos.drills.scripts import insides


@pytest.mark.parametrize(
    ("name", "keeps_durable"), [("all-power-loss", True), ("stale-metadata", False)]
)
def test_its_steps_are_here_and_servers_are_reached_into(name: str, keeps_durable: bool) -> None:
    drill = find_drill(name)
    assert drill.steps is vars(insides)[name.replace("-", "_")]
    assert (drill.has_hooks, drill.keeps_durable) == (True, keeps_durable)


def test_no_other_drill_reaches_into_servers() -> None:
    names = {each.name for each in all_drills() if each.has_hooks}
    assert names == {"all-power-loss", "stale-metadata"}


@pytest.mark.drill
@pytest.mark.soak
@pytest.mark.timeout(240)
def test_a_power_loss_without_flush_before_ack_loses_records_and_is_failed(tmp_path: Path) -> None:
    """So the power really goes: what the drill finds whole is there because it was flushed."""
    careless = replace(find_drill("all-power-loss"), topic_config={})
    result = run_drill(careless, RunOptions(out=tmp_path, only_safety=True, warm_seconds=0.5))
    assert not result.passed
    assert result.counts["lost"] > 0
