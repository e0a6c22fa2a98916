"""The ISR as its leader sees it: what the controller has committed, or a change on its way. Pure.

While a change is on its way the leader cannot know whether the controller has made it already. So
what counts for the high watermark is the larger set, `maximal`: with those who are to join, and
still with those who are to leave.
"""

from dataclasses import dataclass

from brokers.requests import IsrChange
from kraftlog.errors import ErrorCode

REVERTED = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""Answers after which the change was not made, and is ours to make again."""
OVERTAKEN = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""Answers that say that the metadata log knows better."""


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """What the controller said last."""

    members: frozenset[int]

    @property
    def maximal(self) -> frozenset[int]:
        return self.members


@dataclass(frozen=True, slots=True)
class PendingExpand:
    """Asked for, perhaps made already: others are to join."""

    committed: CommittedIsr
    change: IsrChange

    @property
    def members(self) -> frozenset[int]:
        return self.committed.members

    @property
    def maximal(self) -> frozenset[int]:
        return self.committed.members | self.change.ids


@dataclass(frozen=True, slots=True)
class PendingShrink:
    """Asked for, perhaps made already: some are to leave. Until it is certain they count."""

    committed: CommittedIsr
    change: IsrChange

    @property
    def members(self) -> frozenset[int]:
        return self.committed.members

    @property
    def maximal(self) -> frozenset[int]:
        return self.committed.members


@dataclass(frozen=True, slots=True)
class PendingRecovered:
    """Told, perhaps noted already: a leader that was elected uncleanly has recovered."""

    committed: CommittedIsr
    change: IsrChange

    @property
    def members(self) -> frozenset[int]:
        return self.committed.members

    @property
    def maximal(self) -> frozenset[int]:
        return self.committed.members


IsrState = CommittedIsr | PendingExpand | PendingShrink | PendingRecovered
