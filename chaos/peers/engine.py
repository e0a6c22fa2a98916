"""The drills of the catalog that the peer can play: those that take away the quorum's leader.

Clients change metadata instead of sending records, since the peer has no brokers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.live.edges import Proxies
from chaos.peers.drill import Say, run_quorum_drill
from chaos.peers.faults import KILL, LOSE, PARTITION, PAUSE, STOP
from chaos.peers.quorums import PYSYNCOBJ, open_quorum
from kraftlog.errors import NotYetSupported


@dataclass(frozen=True, slots=True)
class PeerDrill:
    fault: str
    measures: str
    """The target that the longest time without an acknowledged change is held against."""


PEER_DRILLS = {
    "kill-controller-leader": PeerDrill(KILL, "t_controller"),
    "stop-controller-leader": PeerDrill(STOP, "t_controller"),
    "pause-controller-leader": PeerDrill(PAUSE, "t_controller"),
    "partition-controller-leader": PeerDrill(PARTITION, "t_controller"),
    "quorum-lost": PeerDrill(LOSE, "t_recovery"),
}


@dataclass(frozen=True, slots=True)
class PeerRun:
    failures: tuple[str, ...]
    """What the nodes did not reach, beside what the history shows."""
    measured: Mapping[str, float]


def check_playable(drill: str) -> None:
    if drill not in PEER_DRILLS:
        raise NotYetSupported(
            f"the drill {drill} on the engine {PYSYNCOBJ}, which is a quorum alone",
            hint=f"it plays {', '.join(PEER_DRILLS)}",
        )


def run_on_peer(drill: str, history: Path, data: Path, proxies: Proxies, say: Say) -> PeerRun:
    """One drill on three new nodes, whose files go to `data`."""
    check_playable(drill)
    data.mkdir(parents=True, exist_ok=True)
    wanted = PEER_DRILLS[drill]
    quorum = open_quorum(PYSYNCOBJ, str(data), proxies)
    try:
        result = run_quorum_drill(quorum, history, fault=wanted.fault, say=say)
    finally:
        quorum.close()
    return PeerRun(
        failures=result.failures,
        measured={wanted.measures: max(result.gaps), "converge": max(result.converged)},
    )
