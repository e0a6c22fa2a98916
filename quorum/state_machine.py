"""What a replicated state machine is told, and the one that tells it.

Committed records come in log order, each once; a snapshot takes the place of all that it holds. A
state machine hears that it leads only after it has consumed everything its predecessors committed,
so that it decides on nothing but the latest state.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kraftlog._check import invariant
from kraftlog.record_batch import read_batches
from quorum.core.messages import SnapshotId
from quorum.snapshot_file import Snapshot
from quorum.store import Store

READ_BYTES = 256 << 10
"""One slice: a few milliseconds on the loop."""


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """Records that were proposed together."""

    base_offset: int
    epoch: int
    timestamp: int
    values: tuple[bytes, ...]

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)


class StateMachine(Protocol):
    """All calls come from one thread and must not wait for anything."""

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None: ...

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        """Forget everything: this is the state once the iterator has ended. Until then it is what
        it was; nothing but a change of leader is told between two of its items, each of which is
        worth a few milliseconds.
        """
        ...

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        """Who leads the epoch; None: nobody that we know of. Our own id: decide from now on."""
        ...

    def dump(self) -> Iterable[bytes]:
        """The state as it is now, as the values of a snapshot. They are read in another thread
        while the state changes, so they come from an image that does not. StorageError where it is
        not all that the log says: the log must stay then.
        """
        ...


class Applier:
    """Feeds a state machine from the store, in slices of bounded size."""

    def __init__(self, store: Store, machine: StateMachine, node_id: int) -> None:
        self._store = store
        self._machine = machine
        self._node_id = node_id
        self.applied_offset = 0
        self.applied_epoch = 0
        self.applied_timestamp_ms = 0
        """When the newest of what is applied was written, by its leader; 0: unknown."""
        self.bytes_since_snapshot = 0
        self._target = 0
        self._leading: tuple[int, int] | None = None
        """Our epoch and its first offset, until the state machine has heard of it."""
        self._loading: tuple[Snapshot, Iterator[None]] | None = None
        snapshot = store.latest_snapshot()
        if snapshot:
            self.load(snapshot)
            while self.has_work:
                self.step()

    def load(self, snapshot: Snapshot) -> None:
        """Begin to replace the state by this one; what is left of an older one is let go."""
        invariant(snapshot.id.end_offset >= self.applied_offset, "state goes back", id=snapshot.id)
        self._loading = snapshot, self._machine.handle_snapshot(snapshot)

    def _go_on_loading(self, snapshot: Snapshot, steps: Iterator[None]) -> None:
        for _ in steps:
            return
        self._loading = None
        self.applied_offset, self.applied_epoch = snapshot.id.end_offset, snapshot.id.epoch
        self.applied_timestamp_ms = snapshot.timestamp
        self.bytes_since_snapshot = 0
        self._target = max(self._target, self.applied_offset)
        self._announce()

    def commit(self, high_watermark: int) -> None:
        self._target = max(self._target, high_watermark)

    def gain_leadership(self, epoch: int, start_offset: int) -> None:
        self._leading = (epoch, start_offset)
        self._announce()

    def change_leader(self, epoch: int, leader_id: int | None) -> None:
        """News about another leader are told at once."""
        if leader_id != self._node_id:
            self._leading = None
            self._machine.handle_leader_change(epoch, leader_id)

    @property
    def has_work(self) -> bool:
        return self._loading is not None or self.applied_offset < self._target

    @property
    def snapshot_id(self) -> SnapshotId:
        """What a snapshot of the present state is called."""
        return SnapshotId(self.applied_offset, self.applied_epoch)

    def step(self) -> None:
        """Apply one slice."""
        if self._loading:
            self._go_on_loading(*self._loading)
        elif self.has_work:
            self._apply_slice()

    def _apply_slice(self) -> None:
        data = self._store.read(self.applied_offset, end_offset=self._target, max_bytes=READ_BYTES)
        batches = []
        for batch in read_batches(data):
            invariant(
                batch.base_offset == self.applied_offset,
                "committed records out of order",
                batch=batch.base_offset,
                applied=self.applied_offset,
            )
            batch.check_crc()
            self.applied_offset, self.applied_epoch = batch.next_offset, batch.leader_epoch
            self.applied_timestamp_ms = batch.max_timestamp
            self.bytes_since_snapshot += batch.size
            if not batch.is_control:
                values = tuple(record.value or b"" for record in batch.records())
                batches.append(
                    CommittedBatch(
                        batch.base_offset, batch.leader_epoch, batch.max_timestamp, values
                    )
                )
        if batches:
            self._machine.handle_commit(batches)
        self._announce()

    def _announce(self) -> None:
        if self._leading and self.applied_offset > self._leading[1]:
            epoch, self._leading = self._leading[0], None
            self._machine.handle_leader_change(epoch, self._node_id)
