"""Majority maths: who won, and how far a majority has come."""

from collections.abc import Sequence
from enum import Enum

from kraftlog._check import invariant
from quorum.core.messages import ReplicaKey, VoterSet


class TallyResult(Enum):
    OPEN = "open"
    WON = "won"
    LOST = "lost"


def majority(voters: int) -> int:
    """How many of so many voters are more than half."""
    return voters // 2 + 1


def majority_end(ends: Sequence[int]) -> int:
    """The greatest offset that more than half of the ends have reached."""
    invariant(len(ends) > 0, "nobody to count")
    return sorted(ends, reverse=True)[majority(len(ends)) - 1]


class Tally:
    """The votes of one election. Only keys of the voter set it began with are counted (Q13)."""

    __slots__ = ("_granted", "_refused", "voters")

    def __init__(self, voters: VoterSet) -> None:
        self.voters = voters
        self._granted: set[ReplicaKey] = set()
        self._refused: set[ReplicaKey] = set()

    def record(self, key: ReplicaKey, *, granted: bool) -> None:
        """Note one answer. A vote once granted stays granted: answers may be repeated."""
        if key not in self.voters or key in self._granted:
            return
        self._refused.discard(key)
        (self._granted if granted else self._refused).add(key)

    def forget_refusal(self, key: ReplicaKey) -> None:
        """It has reason to answer otherwise by now: ask again."""
        self._refused.discard(key)

    @property
    def granted_by(self) -> tuple[ReplicaKey, ...]:
        return tuple(sorted(self._granted))

    @property
    def unrecorded(self) -> tuple[ReplicaKey, ...]:
        """Voters who have not answered yet."""
        answered = self._granted | self._refused
        return tuple(key for key in self.voters.keys if key not in answered)

    @property
    def result(self) -> TallyResult:
        needed = majority(len(self.voters))
        if len(self._granted) >= needed:
            return TallyResult.WON
        # Even if all the others still said yes, it would not be a majority.
        if len(self._granted) + len(self.unrecorded) < needed:
            return TallyResult.LOST
        return TallyResult.OPEN
