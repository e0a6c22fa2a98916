from pathlib import Path

import pytest

from chaos.drills.catalog import find_drill
from chaos.live.backends import NoProxies
from chaos.peers.engine import PEER_DRILLS, check_playable, run_on_peer
from kraftlog.errors import NotYetSupported


def test_a_drill_with_brokers_is_refused_by_name(tmp_path: Path) -> None:
    for drill in PEER_DRILLS:
        check_playable(drill)
    with pytest.raises(NotYetSupported, match="kill-partition-leader on the engine pysyncobj"):
        run_on_peer(
            "kill-partition-leader",
            tmp_path / "history.jsonl",
            tmp_path / "data",
            NoProxies(),
            lambda *_: None,
        )
    assert not (tmp_path / "data").exists()


def test_what_it_plays_is_in_the_catalog() -> None:
    for name in PEER_DRILLS:
        assert find_drill(name).name == name
