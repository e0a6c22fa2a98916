"""What all logs of a run have in common: every batch that was ever seen, and what was committed.

Nodes die and disks are wiped; the ledger forgets nothing. It also plays what was committed to a
state machine of its own, so that the state of any node can be compared at any offset.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chaos.sim.machine import EMPTY_DIGEST, extend_digest
from kraftlog._check import invariant
from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import RecordBatch, read_batches
from quorum.batches import decode_control
from quorum.core.messages import SnapshotId, VoterSet
from quorum.store import Store

READ_BYTES = 1 << 20


class Entry(NamedTuple):
    """A batch, by what tells it from any other."""

    base_offset: int
    next_offset: int
    epoch: int
    crc: int


class Ledger:
    def __init__(self, voters: VoterSet) -> None:
        self.committed: list[Entry] = []
        self._committed_in: list[int] = []
        """The epoch in which each was committed: its own, or that of a later leader."""
        self.offset_of: dict[bytes, int] = {}
        """Where each value was committed."""
        self._place: dict[int, int] = {}
        self._bodies: dict[Entry, tuple[bytes, ...] | VoterSet] = {}
        self._known: dict[tuple[int, int], tuple[Entry, Entry | None]] = {}
        self._digests: dict[int, object] = {0: self.empty_state()}
        self._voters = [(-1, voters)]

    @property
    def end(self) -> int:
        return self.committed[-1].next_offset if self.committed else 0

    def note(self, batch: RecordBatch, before: Entry | None) -> Entry:
        """Q4: one offset and epoch is one batch with one predecessor, in every log."""
        entry = Entry(batch.base_offset, batch.next_offset, batch.leader_epoch, batch.crc)
        place = (entry.base_offset, entry.epoch)
        known = self._known.get(place)
        if known is None:
            self._known[place] = (entry, before)
            self._bodies[entry] = _body(batch)
            return entry
        invariant(known[0] == entry, "Q4 two batches of one epoch at one offset", a=known, b=entry)
        if before and known[1]:
            invariant(known[1] == before, "Q4 same batch, other past", a=known[1], b=before)
        self._known[place] = (entry, known[1] or before)
        return entry

    # -- commits

    def commit(self, entries: Sequence[Entry], who: str) -> None:
        """Q6: what is committed at an offset stays. A leader commits what others have written
        together with something of its own, which is the last of it.
        """
        for entry in entries:
            at = self._place.get(entry.base_offset)
            if at is None:
                follows = entry.base_offset == self.end
                invariant(follows, "Q6 a committed record changed", node=who, now=entry)
                self._append(entry, entries[-1].epoch)
            else:
                was = self.committed[at]
                invariant(was == entry, "Q6 a committed record changed", node=who, was=was, b=entry)

    def _append(self, entry: Entry, epoch: int) -> None:
        self._place[entry.base_offset] = len(self.committed)
        self.committed.append(entry)
        self._committed_in.append(epoch)
        state = self._digests[entry.base_offset]
        body = self._bodies[entry]
        if isinstance(body, VoterSet):
            self._voters.append((entry.base_offset, body))
        elif body:
            state = self.play(state, entry, body)
        self._digests[entry.next_offset] = state

    def empty_state(self) -> object:
        """What a state machine is like that has heard of nothing."""
        return EMPTY_DIGEST

    def play(self, state: object, entry: Entry, values: tuple[bytes, ...]) -> object:
        """The state after these values; values are told apart here, so that each comes once."""
        for offset, value in enumerate(values, entry.base_offset):
            invariant(value not in self.offset_of, "M3 committed twice", value=value)
            self.offset_of[value] = offset
        known = state if isinstance(state, int) else EMPTY_DIGEST
        return extend_digest(known, enumerate(values, entry.base_offset))

    def is_committed(self, entry: Entry, epoch: int | None = None) -> bool:
        """With an epoch: by its end, whatever later ones have done."""
        at = self._place.get(entry.base_offset)
        if at is None or self.committed[at] != entry:
            return False
        return epoch is None or self._committed_in[at] <= epoch

    def holds_voters(self, entry: Entry) -> bool:
        return isinstance(self._bodies[entry], VoterSet)

    def committed_from(self, offset: int) -> Iterator[Entry]:
        at = bisect_left(self.committed, offset, key=lambda entry: entry.base_offset)
        return iter(self.committed[at:])

    def committed_before(self, epoch: int) -> list[Entry]:
        """In the epochs before this one, whose leader has all of it (Raft's leader completeness):
        one that stood still while it was elected may learn of it when others have led after it.
        """
        return self.committed[: bisect_left(self._committed_in, epoch)]

    # -- the state that follows from it

    def digest_at(self, offset: int) -> object:
        return self._digests.get(offset)

    def voters_at(self, end_offset: int) -> VoterSet | None:
        """Of a log that ends there; None: the first leader has not written them down by then."""
        known = [voters for offset, voters in self._voters if offset < end_offset]
        return known[-1] if len(known) > 1 else None

    def check_snapshot(self, snapshot: SnapshotId, digest: object, voters: VoterSet) -> None:
        """Q11: a snapshot equals the replay of everything below it."""
        at = bisect_left(self.committed, snapshot.end_offset, key=lambda entry: entry.next_offset)
        last = self.committed[at]
        invariant(last.next_offset == snapshot.end_offset, "Q11 inside a batch", id=snapshot)
        invariant(last.epoch == snapshot.epoch, "Q11 another epoch", id=snapshot, last=last)
        same = digest == self.digest_at(snapshot.end_offset)
        invariant(same, "Q11 a snapshot is not the replay of its records", id=snapshot)
        known = self.voters_at(snapshot.end_offset)
        invariant(known in (None, voters), "Q11 other voters", id=snapshot, a=known, b=voters)


def _body(batch: RecordBatch) -> tuple[bytes, ...] | VoterSet:
    if batch.is_control:
        control = decode_control(batch)
        return control if isinstance(control, VoterSet) else ()
    return tuple(record.value or b"" for record in batch.records())


class Mirror:
    """What the log of one node holds, as it was last read from its store."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._entries: dict[int, Entry] = {}
        self._last: Entry | None = None
        self.start = 0
        self.end = 0

    def extend(self, store: Store) -> None:
        """Read what was appended since."""
        try:
            for batch in _batches(store, self.end):
                batch.check_crc()
                entry = self._ledger.note(batch, self._last)
                self._entries[entry.base_offset] = self._last = entry
        except CorruptRecord as error:
            invariant(False, "Q15 runs on a damaged batch", error=error)
        self.end = store.log.end_offset

    def reload(self, store: Store) -> list[Entry]:
        """Read all of it; returns what is no longer there and was not below the new start."""
        old = self._entries
        self._entries, self._last = {}, None
        self.start = self.end = store.log.start_offset
        self.extend(store)
        return [each for each in old.values() if not self.holds(each)]

    def drop_below(self, start: int) -> None:
        self.start = start
        self._entries = {at: each for at, each in self._entries.items() if at >= start}

    def holds(self, entry: Entry) -> bool:
        """Itself, or a snapshot in its place."""
        held = self._entries.get(entry.base_offset)
        return held == entry or entry.next_offset <= self.start

    def between(self, start: int, end: int) -> list[Entry]:
        found = []
        at = max(start, self.start)
        while at < end:
            entry = self._entries.get(at)
            invariant(entry is not None, "Q6 a hole in the log", at=at, start=start, end=end)
            if entry:
                found.append(entry)
                at = entry.next_offset
        return found


def _batches(store: Store, start: int) -> Iterator[RecordBatch]:
    end = store.log.end_offset
    while start < end:
        for batch in read_batches(store.read(start, end_offset=end, max_bytes=READ_BYTES)):
            yield batch
            start = batch.next_offset
