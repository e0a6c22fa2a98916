"""A state machine that remembers what it was told."""

from collections.abc import Iterable, Iterator, Sequence

from quorum.snapshot_file import Snapshot
from quorum.state_machine import CommittedBatch


class Recorder:
    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.told: list[str] = []
        """Commits, snapshots and leaders in the order in which they came."""

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            self.values.extend(batch.values)
            self.told.append(f"commit {batch.base_offset}-{batch.next_offset}")

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        self.values = list(snapshot.values())
        self.told.append(f"snapshot {snapshot.id}")
        return iter(())

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        self.told.append(f"leader {leader_id} in {epoch}")

    def dump(self) -> Iterable[bytes]:
        return list(self.values)
