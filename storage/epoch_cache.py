"""Which leader epoch begins at which offset: the file `leader-epoch-checkpoint`.

Replicas compare epochs to find where their logs part, so every answer here decides what a follower
truncates. The rules are Kafka's. Entries are few and grow in both numbers; a change replaces the
tuple that holds them, so that a lookup needs no lock.

The file is Kafka's text: a line `0` (the version), a line with the number of entries, and a line
`epoch start` for each. It has no checksum, so a cut must show in its form: the count has to match,
and the last line has to end.

Changes are made in memory; `flush` writes them. The owner of the log decides when, under one rule:
an assigned epoch must be durable before any offset of that epoch counts as flushed. Entries that a
truncation removed may come back after a crash, and are removed again when the log is opened.
"""

import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from kraftlog._check import invariant
from kraftlog.record_batch import RecordBatch
from kraftlog.types import EpochEnd
from storage.damage import StateDamaged, read_derived
from storage.files import Files

logger = logging.getLogger(__name__)

VERSION = b"0"
EPOCH_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1

_NUMBER = re.compile(rb"[0-9]{1,19}")
_ENTRY = re.compile(rb"([0-9]{1,10}) ([0-9]{1,19})")


class EpochStart(NamedTuple):
    """The first offset that was written in an epoch."""

    epoch: int
    start_offset: int


_by_epoch = attrgetter("epoch")
_by_offset = attrgetter("start_offset")


class EpochCache:
    """Empty until `load` or `assign`."""

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self._files = files
        self._entries: tuple[EpochStart, ...] = ()
        self._unwritten = True  # even "no epochs" is written once: a missing file is damage
        self._unsynced = False

    @property
    def dirty(self) -> bool:
        """Whether there are changes that the file does not hold durably."""
        return self._unwritten or self._unsynced

    def entries(self) -> tuple[EpochStart, ...]:
        """All entries, oldest first."""
        return self._entries

    # -- lookups

    def latest(self) -> int | None:
        """The epoch of the last entry."""
        entries = self._entries
        return entries[-1].epoch if entries else None

    def end_offset_for(self, epoch: int, log_end: int) -> EpochEnd | None:
        """The largest epoch up to `epoch` that is known here, and the offset where it ends.

        None if `epoch` is undefined or newer than all. An epoch older than all ends where the first
        begins: what it wrote is gone, and a follower is to go on from there.
        """
        entries = self._entries
        if epoch < 0 or not entries or epoch > entries[-1].epoch:
            return None
        if epoch == entries[-1].epoch:
            return EpochEnd(epoch, log_end)
        higher = bisect_right(entries, epoch, key=_by_epoch)
        found = entries[higher - 1].epoch if higher else epoch
        return EpochEnd(found, entries[higher].start_offset)

    def epoch_at(self, offset: int) -> int | None:
        """The epoch in which `offset` was or would be written; None below the first entry."""
        entries = self._entries
        found = bisect_right(entries, offset, key=_by_offset)
        return entries[found - 1].epoch if found else None

    def first_falling(self, batches: Iterable[RecordBatch]) -> RecordBatch | None:
        """Of batches that are to come next, the first whose epoch is lower than one before it.
        Recovery would take it for the end of the log.
        """
        latest = self.latest()
        for batch in batches:
            if latest is not None and batch.leader_epoch < latest:
                return batch
            latest = batch.leader_epoch
        return None

    # -- changes

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`, and whether that changed anything.

        Entries that contradict it, because their epoch or their start is no smaller, are dropped. A
        batch without an epoch (-1) begins none.
        """
        if epoch < 0:
            return False
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False
        new = EpochStart(epoch, start_offset)
        kept = min(
            bisect_left(entries, epoch, key=_by_epoch),
            bisect_left(entries, start_offset, key=_by_offset),
        )
        dropped = entries[kept:]
        # An epoch in which nothing was written begins where the next one does: nothing to report.
        if dropped and (len(dropped) > 1 or dropped[0].start_offset != start_offset):
            logger.warning("%s: %s drops %s", self.path, new, list(dropped))
        self._replace((*entries[:kept], new))
        return True

    def truncate_from_end(self, offset: int) -> None:
        """Drop the entries that begin at `offset` or later.

        For any offset, the end of the log and beyond included: an epoch may begin exactly at the
        end, with nothing written yet, and must not outlive a truncation to there (KAFKA-10706).
        """
        invariant(offset >= 0, "truncation to a negative offset", path=self.path, offset=offset)
        entries = self._entries
        kept = bisect_left(entries, offset, key=_by_offset)
        if kept < len(entries):
            self._replace(entries[:kept])

    def truncate_from_start(self, offset: int) -> None:
        """Drop what ends below `offset`; the epoch that holds it now begins there."""
        entries = self._entries
        passed = bisect_right(entries, offset, key=_by_offset)
        if passed and entries[0] != (entries[passed - 1].epoch, offset):
            first = EpochStart(entries[passed - 1].epoch, offset)
            self._replace((first, *entries[passed:]))

    def clear(self) -> None:
        """Drop all entries, and whatever is in the file at the next `flush`."""
        self._replace(())

    def _replace(self, entries: tuple[EpochStart, ...]) -> None:
        self._entries = entries
        self._unwritten = True

    # -- the file

    def flush(self, *, durable: bool) -> None:
        """Write the changes. Those written with `durable=False` a power cut may undo or damage."""
        if not (self._unwritten or (durable and self._unsynced)):
            return
        # Cleared first: a change made during the write is one for the next flush.
        self._unwritten = False
        self._unsynced = True
        try:
            self._files.write_atomic(self.path, _encode(self._entries), durable=durable)
        except OSError:
            self._unwritten = True
            raise
        if durable:
            self._unsynced = False

    def load(self, *, synced: bool = False) -> None:
        """Take the entries from the file. StateDamaged if it is missing or makes no sense.

        A writer that was killed may not have come to sync what is read here, and a power cut could
        still bring back the file of before. So it counts as dirty, unless the caller knows better
        (`synced`: that writer stopped cleanly).
        """
        self._entries = _decode(read_derived(self._files, self.path), self.path)
        self._unwritten = False
        self._unsynced = not synced


def _encode(entries: tuple[EpochStart, ...]) -> bytes:
    lines = [VERSION, b"%d" % len(entries)]
    lines += [b"%d %d" % entry for entry in entries]
    return b"\n".join(lines) + b"\n"


def _decode(data: bytes, path: str) -> tuple[EpochStart, ...]:
    lines = data.split(b"\n")
    if lines.pop() != b"":
        raise StateDamaged(path, f"breaks off in line {len(lines) + 1}")
    if len(lines) < 2 or lines[0] != VERSION or not _NUMBER.fullmatch(lines[1]):
        raise StateDamaged(
            path, f"begins with {lines[:2]}, not with a version {VERSION!r} and a count"
        )
    if int(lines[1]) != len(lines) - 2:
        raise StateDamaged(path, f"has {len(lines) - 2} entries, {int(lines[1])} were announced")
    entries = tuple(_decode_entry(line, number, path) for number, line in enumerate(lines[2:], 3))
    for before, entry in pairwise(entries):
        if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
            raise StateDamaged(path, f"has {entry} after {before}")
    return entries


def _decode_entry(line: bytes, number: int, path: str) -> EpochStart:
    match = _ENTRY.fullmatch(line)
    entry = EpochStart(int(match[1]), int(match[2])) if match else None
    if entry is None or entry.epoch > EPOCH_MAX or entry.start_offset > OFFSET_MAX:
        raise StateDamaged(path, f"has no epoch and offset in line {number}: {line!r}")
    return entry
