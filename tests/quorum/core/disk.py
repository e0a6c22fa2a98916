"""The disk of a small world: a log of batches, of which only the flushed part outlives a crash.

Next to each batch stands a digest of the log up to and with it. Two logs that have the same digest
at an offset are the same below it, so that whole logs are compared by one word.
"""

import hashlib
from dataclasses import dataclass, field

from quorum.core.log_view import NOT_IN_LOG, LogView, VotersAt, view_of
from quorum.core.messages import Batch, SnapshotId, VoterSet
from quorum.core.state import ElectionState

EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What stands for the log below an offset."""

    voters: VoterSet
    digest: str
    data: bytes


@dataclass(slots=True)
class Entry:
    batch: Batch
    digest: str


@dataclass(slots=True)
class Disk:
    """`bootstrap` is what `form` writes: the voters before there is a log."""

    bootstrap: VoterSet | None = None
    election: ElectionState = field(default_factory=ElectionState)
    start_offset: int = 0
    start_digest: str = EMPTY
    entries: list[Entry] = field(default_factory=list)
    flushed_offset: int = 0
    snapshots: dict[SnapshotId, Snapshot] = field(default_factory=dict)
    download: tuple[SnapshotId, bytearray] | None = None

    @property
    def end_offset(self) -> int:
        return self.entries[-1].batch.next_offset if self.entries else self.start_offset

    @property
    def batches(self) -> list[Batch]:
        return [entry.batch for entry in self.entries]

    def digest_at(self, offset: int) -> str | None:
        """The digest of all below an offset, if the log has one that ends there."""
        if offset == self.start_offset:
            return self.start_digest
        found = (each.digest for each in self.entries if each.batch.next_offset == offset)
        return next(found, None)

    def append(self, batch: Batch) -> str:
        assert batch.base_offset == self.end_offset
        before = self.entries[-1].digest if self.entries else self.start_digest
        told = f"{before}|{batch.epoch}|{batch.count}|{bytes(batch.data)!r}|{batch.control!r}"
        digest = hashlib.sha256(told.encode()).hexdigest()[:12]
        self.entries.append(Entry(batch, digest))
        return digest

    def truncate(self, end_offset: int) -> None:
        self.entries = [each for each in self.entries if each.batch.next_offset <= end_offset]
        assert self.end_offset == end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)

    def read(self, offset: int, *, end_offset: int, max_bytes: int) -> tuple[Batch, ...]:
        """At least one batch, then as many as fit."""
        found: list[Batch] = []
        for batch in self.batches:
            if offset <= batch.base_offset and batch.next_offset <= end_offset:
                max_bytes -= len(batch.data) or 1
                if found and max_bytes < 0:
                    break
                found.append(batch)
        return tuple(found)

    def drop_below(self, snapshot: SnapshotId) -> None:
        self.start_digest = self.snapshots[snapshot].digest
        self.start_offset = snapshot.end_offset
        kept = [each for each in self.entries if each.batch.base_offset >= snapshot.end_offset]
        self.entries = kept
        self.snapshots = {
            known: each for known, each in self.snapshots.items() if known >= snapshot
        }

    def restart_at(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        self.entries = []
        self.start_offset = self.flushed_offset = snapshot_id.end_offset
        self.start_digest = snapshot.digest
        self.snapshots = {snapshot_id: snapshot}

    def crash(self) -> None:
        """The power goes: what was not flushed is gone."""
        self.truncate(min(self.end_offset, max(self.flushed_offset, self.start_offset)))
        self.download = None

    def open(self) -> LogView:
        """What the core is told of the log at a start."""
        epochs: list[tuple[int, int]] = []
        for batch in self.batches:
            if not epochs or batch.epoch > epochs[-1][0]:
                epochs.append((batch.epoch, batch.base_offset))
        self.flushed_offset = self.end_offset
        return view_of(
            start_offset=self.start_offset,
            end_offset=self.end_offset,
            epochs=epochs,
            snapshots=list(self.snapshots),
            voters=self._voter_history(),
        )

    def _voter_history(self) -> list[VotersAt]:
        history = [VotersAt(NOT_IN_LOG, self.bootstrap)] if self.bootstrap else []
        if self.snapshots:
            latest = max(self.snapshots)
            history = [VotersAt(latest.end_offset - 1, self.snapshots[latest].voters)]
        for batch in self.batches:
            if isinstance(batch.control, VoterSet) and batch.base_offset > _last(history):
                history.append(VotersAt(batch.base_offset, batch.control))
        return history


def _last(history: list[VotersAt]) -> int:
    return history[-1].offset if history else NOT_IN_LOG
