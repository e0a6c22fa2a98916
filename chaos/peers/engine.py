"""The drills of the catalog that the peer can play: those that take away the quorum's leader.

    run_on_peer("kill-controller-leader", history, data)

Clients change metadata instead of sending records, since the peer has no brokers.
"""

from dataclasses import dataclass
from pathlib import Path

from chaos.peers.drill import KILL, PAUSE, run_quorum_drill
from chaos.peers.quorums import PYSYNCOBJ, open_quorum
from kraftlog.errors import NotYetSupported

PEER_DRILLS = {"kill-controller-leader": KILL, "pause-controller-leader": PAUSE}


@dataclass(frozen=True, slots=True)
class PeerRun:
    anomalies: tuple[str, ...]
    """Each names the operation that was lost, or what the nodes do not agree on."""
    counts: dict[str, int]
    measured: dict[str, float]
    """`t_controller`: the longest time without an acknowledged change, in seconds."""


def check_playable(drill: str) -> None:
    if drill not in PEER_DRILLS:
        raise NotYetSupported(
            f"the drill {drill} on the engine {PYSYNCOBJ}",
            hint=f"it plays {', '.join(PEER_DRILLS)}",
        )


def run_on_peer(drill: str, history: Path, data: Path) -> PeerRun:
    """One drill on three new nodes, whose files go to `data`."""
    check_playable(drill)
    data.mkdir(parents=True, exist_ok=True)
    quorum = open_quorum(PYSYNCOBJ, str(data))
    try:
        result = run_quorum_drill(quorum, history, fault=PEER_DRILLS[drill])
    finally:
        quorum.close()
    return PeerRun(
        anomalies=(*map(str, result.findings), *result.failures),
        counts={
            "acked": result.acked,
            "unknown": result.unknown,
            "findings": len(result.findings),
        },
        measured={"t_controller": max(result.gaps)},
    )
