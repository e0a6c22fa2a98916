from pathlib import Path

import pytest

from chaos.peers.faults import FAULTS, PARTITION
from chaos.peers.quorums import PeerQuorum
from kraftlog.errors import NotYetSupported


def test_a_fault_without_a_majority_ends_by_itself() -> None:
    for fault in FAULTS.values():
        assert fault.stops_all == (fault.victims > 1)
        assert fault.hold_seconds > 0 or not fault.stops_all


def test_an_edge_without_a_proxy_is_not_cut(tmp_path: Path) -> None:
    with pytest.raises(NotYetSupported, match="--backend embedded"):
        FAULTS[PARTITION].hit(PeerQuorum(str(tmp_path)), "p1")
