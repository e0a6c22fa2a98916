from pathlib import Path

import pytest

from chaos.history import read_history
from chaos.peers.drill import run_quorum_drill
from chaos.peers.faults import LOSE
from chaos.peers.quorums import PeerQuorum
from kraftlog.errors import ConfigError


@pytest.mark.slow
@pytest.mark.drill
def test_the_peer_without_a_majority(quorum: PeerQuorum, tmp_path: Path) -> None:
    """What it finds is the peer's affair, and a valid result; that it names a topic is ours."""
    result = run_quorum_drill(quorum, tmp_path / "history.jsonl", fault=LOSE)
    assert len(result.gaps) == len(result.converged) == 1
    assert result.acked >= 40
    history = read_history(tmp_path / "history.jsonl")
    happened = [event.what for event in history.events if event.what != "controller"]
    assert happened == ["fault", "fault", "heal", "heal"]
    assert {operation.op for operation in history.operations} >= {"create_topic", "list_topics"}
    assert all("topic" in str(finding) for finding in result.findings)


def test_a_fault_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no fault 'flood'"):
        run_quorum_drill(PeerQuorum(str(tmp_path)), tmp_path / "history.jsonl", fault="flood")
