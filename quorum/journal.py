"""The state machine of a quorum that stands alone: it counts the records and digests them in order.

`python -m quorum` runs it. What the records say is their proposer's business; two replicas that
have applied the same records have the same count and the same digest.
"""

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence

import grpc

from kraftlog.metrics import Registry
from quorum.node import RaftNode
from quorum.snapshot_file import Snapshot
from quorum.state_machine import CommittedBatch

logger = logging.getLogger(__name__)


class Journal:
    def __init__(self) -> None:
        self.records = 0
        self.digest = bytes(32)

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            self.records += len(batch.values)
            digest = hashlib.sha256(self.digest)
            digest.update(b"%d" % batch.base_offset)
            for value in batch.values:
                digest.update(b"%d:" % len(value))
                digest.update(value)
            self.digest = digest.digest()

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        values = list(snapshot.values())
        if values:
            count, _, digest = values[0].partition(b" ")
            self.records, self.digest = int(count), bytes.fromhex(digest.decode())
        else:  # the bootstrap checkpoint has no history
            self.records, self.digest = 0, bytes(32)
        return iter(())

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        who = f"node {leader_id} leads" if leader_id is not None else "nobody is known to lead"
        logger.info("epoch %d: %s", epoch, who)

    def dump(self) -> Iterable[bytes]:
        return [b"%d %s" % (self.records, self.digest.hex().encode())]


class JournalApplication:
    """A quorum that keeps a journal and nothing else."""

    takes_proposals = True

    def __init__(self) -> None:
        self.machine = Journal()

    def attach(self, node: RaftNode) -> None:
        pass

    def register_metrics(self, registry: Registry) -> None:
        pass

    def handlers(self) -> Sequence[grpc.GenericRpcHandler]:
        return ()

    async def run(self) -> None:
        """There is nothing to do beside the log."""
        await asyncio.Event().wait()
