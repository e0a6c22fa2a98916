"""What the state of a partition wants done. The caller carries out the list in its order. Pure."""

from dataclasses import dataclass

from brokers.requests import IsrChange


@dataclass(frozen=True, slots=True)
class StartLeading:
    """Lead this epoch, which begins at `start_offset`: note that in the log's epoch cache."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class StopLeading:
    """Whoever waits for this leader waits in vain."""


@dataclass(frozen=True, slots=True)
class StartFollowing:
    """Fetch from this leader, in this epoch, from the end of the log on."""

    leader: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StopFollowing:
    """Nobody leads, or we do."""


@dataclass(frozen=True, slots=True)
class MoveHighWatermark:
    offset: int


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the controller for this ISR, again and again until it answers."""

    change: IsrChange


@dataclass(frozen=True, slots=True)
class BelowMinIsr:
    """The ISR that the controller has committed is too small: nothing more is acknowledged."""

    isr: int
    needed: int


Effect = (
    StartLeading
    | StopLeading
    | StartFollowing
    | StopFollowing
    | MoveHighWatermark
    | Propose
    | BelowMinIsr
)
