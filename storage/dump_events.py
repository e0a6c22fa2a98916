"""What a dump consists of: files, the rows in them, and what was found wrong.

The readers (`dump_log`, `dump_index`, `dump_state`) yield these events one by one and `dump_format`
prints them one by one, so that a log of any size passes through a small memory.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from os.path import basename
from typing import TypeAlias

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | bool | None"
Fields: TypeAlias = Mapping[str, Json]

OFFSETS_END = 2**63
"""Beyond all offsets."""


class Kind(StrEnum):
    """What a file holds."""

    LOG = "log"
    METADATA_SNAPSHOT = "metadata snapshot"
    OFFSET_INDEX = "offset index"
    TIME_INDEX = "time index"
    PRODUCERS = "producer snapshot"
    EPOCHS = "leader epochs"
    RECOVERY_POINT = "recovery point"
    OFFSETS = "offset checkpoint"
    PARTITION_METADATA = "partition metadata"
    META_PROPERTIES = "meta properties"
    OTHER = "other"


class Severity(StrEnum):
    """How bad a finding is: damage, something that could not be looked at, or merely of note."""

    DAMAGE = "damage"
    UNREAD = "unread"
    INCOMPLETE = "incomplete"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBegin:
    """A file whose rows come next."""

    path: str
    kind: Kind
    size: int
    facts: Fields
    """What its name says."""


@dataclass(frozen=True, slots=True)
class Row:
    """One batch or entry; a batch may carry its records."""

    kind: Kind
    fields: Fields
    records: Sequence[Fields] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong, and exactly where. `offset` is the first one that it concerns."""

    path: str
    severity: Severity
    what: str
    position: int | None = None
    offset: int | None = None
    bytes_skipped: int | None = None
    """How many bytes of the file, from `position` on, were not read because of it."""
    resumed_at: int | None = None
    """Where reading went on; None if it did not."""
    hint: str = ""

    def __str__(self) -> str:
        places = []
        if self.position is not None:
            places.append(f"byte {self.position}")
        if self.offset is not None:
            places.append(f"offset {self.offset}")
        where = f"{self.path}: " + (", ".join(places) + ": " if places else "")
        return where + self.what + self._consequence()

    def _consequence(self) -> str:
        if self.bytes_skipped is None:
            return ""
        if self.resumed_at is None:
            return f"; {self.bytes_skipped} bytes left unread"
        return f"; {self.bytes_skipped} bytes skipped, going on at byte {self.resumed_at}"


@dataclass(frozen=True, slots=True)
class FileEnd:
    """What was read of a file, in numbers."""

    facts: Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller wants to see and to have checked. Whatever is shown, all of it is read."""

    verify: bool = False
    """Compare the files with each other; show no rows."""
    deep: bool = False
    """Decode every record."""
    from_offset: int = 0
    to_offset: int = OFFSETS_END
    """The first offset that is no longer shown."""

    def shows(self, first: int, last: int) -> bool:
        """Whether a row about the offsets `first` to `last` is wanted."""
        return not self.verify and first < self.to_offset and last >= self.from_offset


Event: TypeAlias = FileBegin | Row | Finding | FileEnd


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a log directory, as its name tells. One with a `suffix` is on its way in or out."""

    path: str
    kind: Kind
    base_offset: int | None = None
    epoch: int | None = None
    suffix: str = ""

    @property
    def is_live(self) -> bool:
        return not self.suffix

    @property
    def facts(self) -> Fields:
        facts: dict[str, Json] = {}
        if self.kind is Kind.METADATA_SNAPSHOT:
            facts |= {"endOffset": self.base_offset, "epoch": self.epoch}
        elif self.base_offset is not None:
            facts["baseOffset"] = self.base_offset
        if self.suffix:
            facts["suffix"] = self.suffix
        return facts

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Segments by offset, each log before what is derived from it; then what is about all."""
        if self.base_offset is None:
            return 2, 0, list(Kind).index(self.kind), self.path
        rank = 0 if self.is_live else 1
        return rank, self.base_offset, list(Kind).index(self.kind), self.path


_SUFFIXES = r"((?:\.\d+)?\.deleted|\.cleaned|\.swap|\.part|\.tmp)?"
_SEGMENT_NAME = re.compile(r"(\d{20})\.(log|index|timeindex|snapshot)" + _SUFFIXES)
_METADATA_SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint" + _SUFFIXES)
_SEGMENT_KINDS = {
    "log": Kind.LOG,
    "index": Kind.OFFSET_INDEX,
    "timeindex": Kind.TIME_INDEX,
    "snapshot": Kind.PRODUCERS,
}
_OTHER_KINDS = {
    "leader-epoch-checkpoint": Kind.EPOCHS,
    "recovery-point": Kind.RECOVERY_POINT,
    "recovery-point-offset-checkpoint": Kind.OFFSETS,
    "log-start-offset-checkpoint": Kind.OFFSETS,
    "replication-offset-checkpoint": Kind.OFFSETS,
    "cleaner-offset-checkpoint": Kind.OFFSETS,
    "partition.metadata": Kind.PARTITION_METADATA,
    "meta.properties": Kind.META_PROPERTIES,
}
KNOWN_NAMES = ", ".join(
    [
        *(f"<20 digits>.{name}" for name in _SEGMENT_KINDS),
        "<offset>-<epoch>.checkpoint",
        *_OTHER_KINDS,
    ]
)


def log_file(path: str) -> LogFile:
    """What the name of a file says about it."""
    name = basename(path)
    if found := _SEGMENT_NAME.fullmatch(name):
        return LogFile(
            path, _SEGMENT_KINDS[found[2]], base_offset=int(found[1]), suffix=found[3] or ""
        )
    if found := _METADATA_SNAPSHOT_NAME.fullmatch(name):
        return LogFile(
            path,
            Kind.METADATA_SNAPSHOT,
            base_offset=int(found[1]),
            epoch=int(found[2]),
            suffix=found[3] or "",
        )
    return LogFile(path, _OTHER_KINDS.get(name, Kind.OTHER))
