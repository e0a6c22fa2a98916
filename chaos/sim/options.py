"""Which faults a seed gets, and how strong: a swarm, since faults that are always on hide some."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, get_args

RANGES: Mapping[str, tuple[float, float]] = {
    # How likely, for each message, disk write or clock.
    "loss": (0.0, 0.2),
    "duplicate": (0.0, 0.3),
    "delay": (0.0, 0.1),
    "slow_disk": (0.0, 0.2),
    "clock_drift": (0.0, 0.1),
    # How often, per second.
    "cuts": (0.1, 1.0),
    "clogs": (0.1, 0.6),
    "rivals": (0.02, 0.2),
    "crashes": (0.05, 0.8),
    "power_cuts": (0.05, 0.8),
    "blackouts": (0.02, 0.1),
    "pauses": (0.05, 0.5),
    "clock_jumps": (0.1, 0.5),
    "disk_errors": (0.05, 0.4),
    "damage": (0.02, 0.2),
    "wipes": (0.02, 0.2),
    "snapshots": (0.2, 2.0),
    "membership": (0.2, 1.5),
    "moves": (0.05, 0.3),
    "strangers": (0.2, 2.0),
}
"""Every class of faults, and between which strengths a seed draws its own."""

BROKER_RANGES: Mapping[str, tuple[float, float]] = {
    # How often, per second: these are for brokers alone.
    "lags": (0.1, 0.6),
    "broker_stops": (0.05, 0.4),
    "broker_crashes": (0.1, 0.8),
    "broker_wipes": (0.02, 0.2),
    "broker_power_cuts": (0.05, 0.3),
}

DATA_RANGES: Mapping[str, tuple[float, float]] = {
    # How often, per second.
    "strandings": (0.05, 0.4),
    # How likely, for each replica that joins.
    "half_joins": (0.05, 0.5),
    # How often, per second.
    "exiles": (0.05, 0.4),
}
"""For brokers with records alone."""

_ON_ANY_DISK = ("power_cuts", "blackouts", "wipes", "damage", "disk_errors")
"""They ask nobody whether a broker's records are elsewhere as well, as those of brokers do."""

ALL_FAULTS = (*RANGES, *BROKER_RANGES, *DATA_RANGES)

Kind = Literal["quorum", "metadata", "partitions"]
"""What is simulated: the quorum by itself, with the controller and scripted brokers, or with the
controller and real brokers.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
_TURNS: tuple[Kind, ...] = ("partitions", "quorum", "metadata", "quorum")


def kind_of(seed: int) -> Kind:
    """Each kind has its turn: half of the seeds are for the quorum, on which the rest stands."""
    return _TURNS[seed % len(_TURNS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that a run depends on beside its seed."""

    kind: Kind = "quorum"
    voters: int = 3
    observers: int = 0
    """Controllers without a vote: they flush, and may become voters."""
    brokers: int = 0
    """Observers that never flush and never vote."""
    safety_ms: int = 20_000
    faults: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def swarm(cls, seed: int, kind: Kind = "quorum") -> "Options":
        """About half of the faults, each at a strength of its own."""
        dice = Random(f"{seed} options")
        drawn = {name: round(dice.uniform(*limits), 4) for name, limits in RANGES.items()}
        chance = dice.choice((0.3, 0.5, 0.7))
        on = {name: strength for name, strength in drawn.items() if dice.random() < chance}
        options = cls(
            voters=dice.choice((1, 2, 3, 3, 3, 3, 3, 4, 5, 5)),
            observers=dice.choice((0, 1, 1, 2)),
            brokers=dice.choice((0, 0, 1)),
            safety_ms=dice.choice((10_000, 15_000, 20_000)),
            faults=on,
        )
        return options if kind == "quorum" else options._with_brokers(seed, kind)

    def _with_brokers(self, seed: int, kind: Kind) -> "Options":
        """The controllers are few then, and the quorum's faults are only half as many: what is to
        be tested needs a quorum that works now and then.
        """
        dice = Random(f"{seed} {kind}")
        faults = {name: each for name, each in self.faults.items() if dice.random() < 0.5}
        if kind == "partitions":
            faults = {name: each for name, each in faults.items() if name not in _ON_ANY_DISK}
        for name, limits in BROKER_RANGES.items():
            strength = round(dice.uniform(*limits), 4)
            if dice.random() < 0.5:
                faults[name] = strength
        if kind == "partitions":
            faults |= _data_faults(Random(f"{seed} data"))
        return replace(
            self,
            kind=kind,
            voters=dice.choice((1, 3, 3, 3)),
            observers=0,
            brokers=dice.choice((3, 3, 4)),
            safety_ms=dice.choice((8_000, 12_000)),
            faults=faults,
        )

    def strength(self, fault: str) -> float:
        return self.faults.get(fault, 0.0)

    def without(self, fault: str) -> "Options":
        left = {name: strength for name, strength in self.faults.items() if name != fault}
        return replace(self, faults=left)

    def __str__(self) -> str:
        size = f"{self.kind} voters={self.voters} observers={self.observers}"
        size += f" brokers={self.brokers}"
        shown = " ".join(f"{name}={strength}" for name, strength in self.faults.items())
        return f"{size} safety_ms={self.safety_ms} {shown}".rstrip()


def _data_faults(dice: Random) -> dict[str, float]:
    drawn = {name: round(dice.uniform(*limits), 4) for name, limits in DATA_RANGES.items()}
    return {name: strength for name, strength in drawn.items() if dice.random() < 0.5}
