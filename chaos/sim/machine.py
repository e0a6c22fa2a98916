"""The state machine of the simulator: a list of what was committed, and a digest of that list."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from zlib import crc32

from kraftlog._check import invariant
from quorum.snapshot_file import Snapshot
from quorum.state_machine import CommittedBatch, StateMachine

EMPTY_DIGEST = 0


def extend_digest(digest: int, records: Iterable[tuple[int, bytes]]) -> int:
    """Two lists of records with the same digest are the same list."""
    for offset, value in records:
        digest = crc32(b"%d:%s" % (offset, value), digest)
    return digest


class Machine(StateMachine, Protocol):
    """What the simulator has to know of any state machine."""

    leader: tuple[int, int | None]
    snapshots_loaded: int

    @property
    def digest(self) -> object:
        """Equal for equal states."""
        ...

    def dumped_digest(self) -> object:
        """That of the state which a snapshot taken now stands for."""
        ...


class ListMachine:
    """Keeps every record with its offset. A snapshot is that list, one record per value."""

    def __init__(self) -> None:
        self.records: list[tuple[int, bytes]] = []
        self.digest = EMPTY_DIGEST
        self.leader: tuple[int, int | None] = (-1, None)
        self.snapshots_loaded = 0

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            last = self.records[-1][0] if self.records else -1
            invariant(batch.base_offset > last, "Q10 applied twice or out of order", batch=batch)
            records = list(enumerate(batch.values, batch.base_offset))
            self.digest = extend_digest(self.digest, records)
            self.records += records

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        pairs = (value.split(b":", 1) for value in snapshot.values())
        self.records = [(int(offset), value) for offset, value in pairs]
        self.digest = extend_digest(EMPTY_DIGEST, self.records)
        self.snapshots_loaded += 1
        return iter(())

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        invariant(epoch >= self.leader[0], "Q10 epochs go back", epoch=epoch, was=self.leader)
        self.leader = (epoch, leader_id)

    def dump(self) -> list[bytes]:
        return [b"%d:%s" % record for record in self.records]

    def dumped_digest(self) -> object:
        return extend_digest(EMPTY_DIGEST, self.records)
