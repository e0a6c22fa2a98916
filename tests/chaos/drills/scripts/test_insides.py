"""That each is in the catalog, with the hooks that it needs; tests/drills runs them."""

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.drills.catalog import all_drills, find_drill
from chaos.drills.runner import RunOptions, run_drill
from chaos.drills.scripts import insides
from kraftlog.drill_hooks import DURABLE


@pytest.mark.parametrize(
    ("name", "hooks"), [("all-power-loss", (DURABLE,)), ("stale-metadata", ()), ("clock-jump", ())]
)
def test_its_steps_are_here_and_servers_are_reached_into(name: str, hooks: tuple[str, ...]) -> None:
    drill = find_drill(name)
    assert drill.steps is vars(insides)[name.replace("-", "_")]
    assert drill.hooks == hooks


def test_most_drills_do_not_reach_into_servers() -> None:
    names = {each.name for each in all_drills() if each.hooks is not None}
    inside = {"all-power-loss", "stale-metadata", "clock-jump"}
    assert names == inside | {"fsync-eio", "no-space", "slow-disk"}


@pytest.mark.drill
@pytest.mark.soak
@pytest.mark.timeout(240)
def test_a_power_loss_without_flush_before_ack_loses_records_and_is_failed(tmp_path: Path) -> None:
    """So the power really goes: what the drill finds whole is there because it was flushed."""
    careless = replace(find_drill("all-power-loss"), topic_config={})
    result = run_drill(careless, RunOptions(out=tmp_path, only_safety=True, warm_seconds=0.5))
    assert not result.passed
    assert result.counts["lost"] > 0
