"""What all copies of a partition have in common: every batch ever seen, and what was committed."""

from collections.abc import Iterator
from typing import NamedTuple

from kraftlog._check import invariant
from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import RecordBatch, read_batches
from storage.log import Log

READ_BYTES = 1 << 20
NO_PRODUCER = -1


class Entry(NamedTuple):
    """A batch, by what tells it from any other."""

    base_offset: int
    next_offset: int
    epoch: int
    crc: int
    producer_id: int
    base_sequence: int


class PartitionLedger:
    """One partition, over all brokers and all of their lives."""

    def __init__(self, name: object) -> None:
        self._name = name
        self._known: dict[tuple[int, int], Entry] = {}
        self._before: dict[Entry, Entry | None] = {}
        self.committed: dict[int, Entry] = {}
        self._committed_in: dict[int, int] = {}
        """The epoch of the leader that committed it: that of the entry, or a later one."""
        self.end = 0
        self._sequences: dict[int, int] = {}

    def note(self, batch: RecordBatch, before: Entry | None) -> Entry:
        """P4: one leader writes in an epoch, so one offset and epoch is one batch."""
        entry = Entry(
            batch.base_offset,
            batch.next_offset,
            batch.leader_epoch,
            batch.crc,
            batch.producer_id if batch.has_producer else NO_PRODUCER,
            batch.base_sequence,
        )
        known = self._known.setdefault((entry.base_offset, entry.epoch), entry)
        facts = {"partition": self._name, "one": known, "other": entry}
        invariant(known == entry, "P4 two batches of one epoch at one offset", **facts)
        past = self._before.setdefault(entry, before)
        same = past == before or not past or not before
        invariant(same, "P3 the same batch after another past", a=past, b=before, **facts)
        return entry

    def commit(self, entries: list[Entry], who: str, epoch: int) -> None:
        """P3: what is committed at an offset stays, on every replica."""
        for entry in entries:
            known = self.committed.get(entry.base_offset)
            facts = {"partition": self._name, "broker": who, "entry": entry, "known": known}
            if known is None:
                invariant(entry.base_offset == self.end, "P3 a committed record changed", **facts)
                self._committed_in[entry.base_offset] = epoch
                self._append(entry)
            else:
                invariant(known == entry, "P3 a committed record changed", **facts)

    def _append(self, entry: Entry) -> None:
        self.committed[entry.base_offset] = entry
        self.end = entry.next_offset
        if entry.producer_id == NO_PRODUCER:
            return
        expected = self._sequences.get(entry.producer_id, -1) + 1
        facts = {"partition": self._name, "entry": entry, "expected": expected}
        invariant(entry.base_sequence >= expected, "P8 a duplicate", **facts)
        invariant(entry.base_sequence <= expected, "P8 a gap", **facts)
        count = entry.next_offset - entry.base_offset
        self._sequences[entry.producer_id] = entry.base_sequence + count - 1

    def is_committed(self, entry: Entry, epoch: int | None = None) -> bool:
        """With an epoch: by its end, whatever later ones have done."""
        if self.committed.get(entry.base_offset) != entry:
            return False
        return epoch is None or self._committed_in[entry.base_offset] <= epoch


class Copy:
    """What the log of one broker holds, as it was last read."""

    def __init__(self, ledger: PartitionLedger) -> None:
        self._ledger = ledger
        self._entries: dict[int, Entry] = {}
        self._last: Entry | None = None
        self.end = 0

    def extend(self, log: Log) -> None:
        try:
            for batch in _batches(log, self.end):
                batch.check_crc()
                self._take(batch)
        except CorruptRecord as error:
            invariant(False, "P10 a damaged batch", error=error, log=log.directory)
        self.end = log.end_offset

    def _take(self, batch: RecordBatch) -> None:
        entry = self._ledger.note(batch, self._last)
        last_end = self._last.next_offset if self._last else log_start(batch)
        facts = {"last": self._last, "entry": entry}
        invariant(entry.base_offset == last_end, "P7 offsets are not dense", **facts)
        rises = self._last is None or entry.epoch >= self._last.epoch
        invariant(rises, "P7 a leader epoch falls along the log", **facts)
        self._entries[entry.base_offset] = self._last = entry

    def reload(self, log: Log | None) -> list[Entry]:
        """Read all of it; returns what is no longer there."""
        old = self._entries
        self._entries, self._last, self.end = {}, None, 0
        if log is not None:
            self.end = log.start_offset
            self.extend(log)
        return [each for each in old.values() if not self.holds(each)]

    def holds(self, entry: Entry) -> bool:
        return self._entries.get(entry.base_offset) == entry

    def between(self, start: int, end: int) -> list[Entry]:
        found = []
        while start < end:
            entry = self._entries.get(start)
            invariant(entry is not None, "P7 a hole in the log", at=start, end=end)
            if entry is None:
                break
            found.append(entry)
            start = entry.next_offset
        return found

    def lacks(self, *, before_epoch: int | None = None) -> Entry | None:
        """A committed record that is not here."""
        for entry in self._ledger.committed.values():
            counts = before_epoch is None or self._ledger.is_committed(entry, before_epoch - 1)
            if counts and not self.holds(entry):
                return entry
        return None


def log_start(batch: RecordBatch) -> int:
    """Nothing is dropped from the start of these logs."""
    return min(batch.base_offset, 0)


def _batches(log: Log, start: int) -> Iterator[RecordBatch]:
    end = log.end_offset
    while start < end:
        for batch in read_batches(log.read(start, READ_BYTES, limit=end).read()):
            yield batch
            start = batch.next_offset
