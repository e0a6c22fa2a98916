from pathlib import Path

import pytest

from chaos.peers.engine import PEER_DRILLS, check_playable, run_on_peer
from kraftlog.errors import NotYetSupported


def test_a_drill_with_brokers_is_refused_by_name(tmp_path: Path) -> None:
    for drill in PEER_DRILLS:
        check_playable(drill)
    with pytest.raises(NotYetSupported, match="kill-partition-leader on the engine pysyncobj"):
        run_on_peer("kill-partition-leader", tmp_path / "history.jsonl", tmp_path / "data")
    assert not (tmp_path / "data").exists()


# `slow`: the short run of a drill on the peer that make test has.
@pytest.mark.slow
@pytest.mark.drill
def test_a_drill_of_the_catalog_on_the_peer(tmp_path: Path) -> None:
    run = run_on_peer("kill-controller-leader", tmp_path / "history.jsonl", tmp_path / "data")
    assert run.counts["acked"] >= 40
    assert run.measured["t_controller"] > 0
    assert len(run.anomalies) >= run.counts["findings"]
