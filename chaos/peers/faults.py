"""What can be done to the leader of a quorum, and how it is undone."""

from collections.abc import Callable
from dataclasses import dataclass

from chaos.peers.quorums import Quorum

PAUSE_SECONDS = 3.0
LOST_SECONDS = 3.0

Act = Callable[[Quorum, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    name: str
    hit: Act
    mend: Act
    victims: int = 1
    """The leader is the first of them."""
    hold_seconds: float = 0.0
    """How long it lasts; 0: until changes are acknowledged again."""
    stops_all: bool = False
    """No change may be acknowledged while it lasts."""


KILL = "kill"
STOP = "stop"
PAUSE = "pause"
PARTITION = "partition"
LOSE = "lose"

FAULTS = {
    KILL: Fault(
        name="kill -9",
        hit=lambda quorum, name: quorum.kill(name),
        mend=lambda quorum, name: quorum.restart(name),
    ),
    STOP: Fault(
        name="SIGTERM",
        hit=lambda quorum, name: quorum.stop(name),
        mend=lambda quorum, name: quorum.restart(name),
    ),
    PAUSE: Fault(
        name="SIGSTOP",
        hit=lambda quorum, name: quorum.pause(name),
        mend=lambda quorum, name: quorum.resume(name),
        hold_seconds=PAUSE_SECONDS,
    ),
    PARTITION: Fault(
        name="isolate",
        hit=lambda quorum, name: quorum.isolate(name),
        mend=lambda quorum, name: quorum.rejoin(name),
    ),
    LOSE: Fault(
        name="kill -9",
        hit=lambda quorum, name: quorum.kill(name),
        mend=lambda quorum, name: quorum.restart(name),
        victims=2,
        hold_seconds=LOST_SECONDS,
        stops_all=True,
    ),
}
