"""The rules of docs/INVARIANTS.md for a small world, checked while its nodes do things.

Whole logs are compared by their digests (tests/quorum/core/disk.py), so each check is cheap.
"""

from dataclasses import dataclass, field

from quorum.core.effects import LeadershipGained, ReadReady
from quorum.core.messages import Batch, ReplicaKey, VoterSet
from quorum.core.tally import majority
from tests.quorum.core.disk import EMPTY, Disk


@dataclass(slots=True)
class Rules:
    """What was ever seen anywhere, for all time."""

    leaders: dict[int, ReplicaKey] = field(default_factory=dict)
    votes: dict[tuple[ReplicaKey, int], ReplicaKey] = field(default_factory=dict)
    prefixes: dict[tuple[int, int], str] = field(default_factory=dict)
    """By (end offset, epoch of the last record): the digest of the log up to there."""
    committed: dict[int, str] = field(default_factory=lambda: {0: EMPTY})
    """Every end that was ever committed, and the digest of all below it."""
    epochs: dict[ReplicaKey, int] = field(default_factory=dict)
    reads: dict[tuple[ReplicaKey, int], int] = field(default_factory=dict)
    """What was committed anywhere when a read came."""

    @property
    def committed_end(self) -> int:
        return max(self.committed)

    def on_append(self, batch: Batch, digest: str) -> None:
        """Q4: the same epoch at the same offset means the same log."""
        known = self.prefixes.setdefault((batch.next_offset, batch.epoch), digest)
        assert known == digest, f"Q4 logs differ below {batch.next_offset} in epoch {batch.epoch}"

    def on_truncate(self, disk: Disk, end_offset: int, *, leads: bool) -> None:
        """Q6, Q9: what is committed is not cut, and a leader cuts nothing."""
        assert not leads, "Q9 a leader cuts its log"
        held = [end for end, digest in self.committed.items() if disk.digest_at(end) == digest]
        assert end_offset >= max(held, default=0), f"Q6 cut to {end_offset}, committed {max(held)}"

    def on_vote(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey, disk: Disk) -> None:
        """Q3: one vote in an epoch, on disk before the answer."""
        saved = (disk.election.epoch, disk.election.voted_key)
        assert saved == (epoch, candidate), f"Q3 vote not durable: {saved}"
        known = self.votes.setdefault((voter, epoch), candidate)
        assert known == candidate, f"Q3 {voter} votes for {known} and {candidate}"

    def on_leader(self, key: ReplicaKey, gained: LeadershipGained, disk: Disk) -> None:
        """Q1, Q5: one leader, which has all that was ever committed."""
        known = self.leaders.setdefault(gained.epoch, key)
        assert known == key, f"Q1 {known} and {key} lead epoch {gained.epoch}"
        assert disk.election.leader_id == key.node_id, "a leader that its disk does not know"
        self._check_holds_committed(disk, "Q5")

    def _check_holds_committed(self, disk: Disk, rule: str) -> None:
        end = self.committed_end
        assert end <= disk.end_offset, f"{rule} {end} is committed, log ends at {disk.end_offset}"
        if end >= disk.start_offset:
            assert disk.digest_at(end) == self.committed[end], f"{rule} another log below {end}"

    def on_commit(self, disk: Disk, high_watermark: int) -> None:
        """Q6: what is committed here is what was committed anywhere."""
        digest = disk.digest_at(high_watermark)
        assert digest is not None, f"Q6 nothing ends at {high_watermark}"
        if high_watermark > self.committed_end:
            self._check_holds_committed(disk, "Q6")
        known = self.committed.setdefault(high_watermark, digest)
        assert known == digest, f"Q6 committed records below {high_watermark} differ"

    def on_leader_commit(
        self, epoch: int, end: int, disk: Disk, holders: list[Disk | None]
    ) -> None:
        """Q7, Q8: durable on a majority of voters, and past a record of the leader's epoch."""
        last = [batch.epoch for batch in disk.batches if batch.next_offset == end]
        assert last == [epoch], f"Q8 epoch {epoch} commits a record of {last}"
        digest = disk.digest_at(end)
        durable = [
            each
            for each in holders
            if each and each.flushed_offset >= end and _has(each, end, digest)
        ]
        assert len(durable) >= majority(len(holders)), f"Q7 {end} is on {len(durable)} disks"

    def on_epoch(self, key: ReplicaKey, epoch: int, disk: Disk) -> None:
        """Q2: epochs rise, on disk first."""
        assert disk.election.epoch == epoch, f"Q2 {disk.election} on disk, {epoch} in memory"
        assert epoch >= self.epochs.get(key, 0), f"Q2 epoch of {key} falls to {epoch}"
        self.epochs[key] = epoch

    def on_election(self, voters: VoterSet, granted_by: tuple[ReplicaKey, ...]) -> None:
        """Q13: only voters count."""
        assert all(key in voters for key in granted_by), "Q13 a vote of nobody"
        assert len(granted_by) >= majority(len(voters)), "Q13 no majority"

    def on_read(self, key: ReplicaKey, token: int) -> None:
        self.reads[key, token] = self.committed_end

    def on_read_ready(self, key: ReplicaKey, ready: ReadReady) -> None:
        """M2: a read sees all that was committed when it came."""
        for token in ready.tokens:
            needed = self.reads.pop((key, token))
            assert ready.end_offset >= needed, f"M2 reads {ready.end_offset}, committed {needed}"


def _has(disk: Disk, end: int, digest: str | None) -> bool:
    return disk.start_offset > end or disk.digest_at(end) == digest
