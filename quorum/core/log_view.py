"""What the core knows of its log without reading it: ends, epochs, voters, snapshots.

The driver keeps the real log; both change in step, through the effects that the core emits. Voter
sets act from the moment they are appended, so a truncation takes them back.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from kraftlog._check import invariant
from kraftlog.types import EpochEnd
from quorum.core.messages import Batch, SnapshotId, VoterSet


@dataclass(frozen=True, slots=True)
class EpochStart:
    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class VotersAt:
    """A voter set and the offset of the record that brought it."""

    offset: int
    voters: VoterSet


@dataclass(frozen=True, slots=True)
class Position:
    """How far a log goes: what candidates are compared by (thesis 3.6.1)."""

    last_epoch: int
    end_offset: int

    def is_behind(self, other: "Position") -> bool:
        mine, theirs = (self.last_epoch, self.end_offset), (other.last_epoch, other.end_offset)
        return mine < theirs


NOT_IN_LOG = -1
"""The offset of voters that come from the bootstrap checkpoint."""


@dataclass(slots=True)
class LogView:
    """All offsets are as in the log: starts inclusive, ends exclusive."""

    start_offset: int = 0
    end_offset: int = 0
    flushed_offset: int = 0
    version: int = 0
    """Counts truncations, so that a flush of what was cut is not taken for one of what followed."""
    epochs: list[EpochStart] = field(default_factory=list)
    snapshots: list[SnapshotId] = field(default_factory=list)
    """Sorted; the one that is behind `start_offset` first."""
    voter_history: list[VotersAt] = field(default_factory=list)

    @property
    def last_epoch(self) -> int:
        if self.epochs:
            return self.epochs[-1].epoch
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def position(self) -> Position:
        return Position(self.last_epoch, self.end_offset)

    @property
    def flushed_position(self) -> Position:
        """As far as a crash of ours would leave the log."""
        return Position(self.epoch_before(self.flushed_offset), self.flushed_offset)

    def epoch_before(self, end_offset: int) -> int:
        """The epoch of the last record below an offset of the log, or of the snapshot behind it."""
        at = bisect_left(self.epochs, end_offset, key=attrgetter("start_offset"))
        if at:
            return self.epochs[at - 1].epoch
        return self.snapshots[0].epoch if self.snapshots and self.start_offset else 0

    @property
    def latest_voters(self) -> VotersAt:
        return self.voter_history[-1] if self.voter_history else VotersAt(NOT_IN_LOG, VoterSet())

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1] if self.snapshots else None

    def voters_at(self, end_offset: int) -> VoterSet:
        """The voters as of a snapshot that ends there."""
        known = [entry.voters for entry in self.voter_history if entry.offset < end_offset]
        return known[-1] if known else VoterSet()

    def committed_voters(self, high_watermark: int) -> VoterSet:
        """The newest voters that are surely committed. A change waits until the one before it is:
        that holds even where the high watermark is not known yet, after a restart.
        """
        *before, last = self.voter_history or [self.latest_voters]
        return before[-1].voters if before and last.offset >= high_watermark else last.voters

    def append(self, batch: Batch) -> None:
        at = batch.base_offset
        invariant(at == self.end_offset, "a hole in the log", batch=at, end=self.end_offset)
        invariant(batch.epoch >= self.last_epoch, "epoch falls in the log", batch=batch.epoch)
        if not self.epochs or batch.epoch > self.epochs[-1].epoch:
            self.epochs.append(EpochStart(batch.epoch, at))
        if isinstance(batch.control, VoterSet):
            self.voter_history.append(VotersAt(at, batch.control))
        self.end_offset = batch.next_offset

    def truncate(self, end_offset: int) -> None:
        invariant(
            self.start_offset <= end_offset <= self.end_offset,
            "truncation outside the log",
            log=self,
            to=end_offset,
        )
        self.version += 1
        self.end_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.epochs = [entry for entry in self.epochs if entry.start_offset < end_offset]
        self.voter_history = [entry for entry in self.voter_history if entry.offset < end_offset]

    def drop_below(self, snapshot: SnapshotId) -> None:
        """The log starts at the end of this snapshot of ours."""
        start = snapshot.end_offset
        invariant(snapshot in self.snapshots, "log start without a snapshot", snapshot=snapshot)
        invariant(start <= self.end_offset, "log start behind the end", snapshot=snapshot)
        self.start_offset = start
        self.snapshots = [known for known in self.snapshots if known >= snapshot]
        kept = [entry for entry in self.epochs if entry.start_offset > start]
        floor = self._floor(start)
        if floor and start < self.end_offset:
            kept.insert(0, EpochStart(floor.epoch, start))
        self.epochs = kept
        older = [entry for entry in self.voter_history if entry.offset < start]
        self.voter_history = [*older[-1:], *self.voter_history[len(older) :]]

    def _floor(self, offset: int) -> EpochStart | None:
        at = bisect_right(self.epochs, offset, key=attrgetter("start_offset"))
        return self.epochs[at - 1] if at else None

    def add_snapshot(self, snapshot: SnapshotId) -> None:
        self.snapshots = sorted({*self.snapshots, snapshot})

    def restart_at(self, snapshot: SnapshotId, voters: VoterSet) -> None:
        """A snapshot of the leader takes the place of the whole log."""
        self.version += 1
        self.start_offset = self.end_offset = self.flushed_offset = snapshot.end_offset
        self.epochs = []
        self.snapshots = [snapshot]
        self.voter_history = [VotersAt(snapshot.end_offset - 1, voters)]

    def end_for_epoch(self, epoch: int) -> EpochEnd:
        """The greatest epoch up to `epoch` that the log knows, and where it ends (KRAFT 1.9)."""
        if epoch >= self.last_epoch:
            return EpochEnd(self.last_epoch, self.end_offset)
        at = bisect_right(self.epochs, epoch, key=attrgetter("epoch"))
        if at:
            return EpochEnd(self.epochs[at - 1].epoch, self.epochs[at].start_offset)
        behind = self.snapshots[0] if self.start_offset and self.snapshots else SnapshotId(0, 0)
        return EpochEnd(min(behind.epoch, epoch), self.start_offset)

    def judge_fetch(self, offset: int, last_epoch: int) -> "EpochEnd | SnapshotId | None":
        """What a replica that ends at (offset, last epoch) must do first: cut, load, or nothing."""
        latest = self.latest_snapshot
        if latest and offset == 0:
            return latest
        if latest and self._is_before_start(offset, last_epoch):
            return latest
        if offset == self.start_offset == 0:
            return None
        end = self.end_for_epoch(last_epoch)
        return end if end.epoch != last_epoch or end.end_offset < offset else None

    def _is_before_start(self, offset: int, last_epoch: int) -> bool:
        if not self.start_offset:
            return False
        oldest = self.snapshots[0]
        return (
            offset < self.start_offset
            or (offset == self.start_offset and last_epoch != oldest.epoch)
            or last_epoch < oldest.epoch
        )


def view_of(
    *,
    start_offset: int,
    end_offset: int,
    epochs: Sequence[tuple[int, int]],
    snapshots: Sequence[SnapshotId] = (),
    voters: Sequence[VotersAt] = (),
) -> LogView:
    """The view of a log that was just opened: all of it is durable."""
    return LogView(
        start_offset,
        end_offset,
        flushed_offset=end_offset,
        epochs=[EpochStart(epoch, start) for epoch, start in epochs],
        snapshots=sorted(snapshots),
        voter_history=list(voters),
    )
