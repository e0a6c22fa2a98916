"""What a power cut leaves of a file and of a directory. The rules of `storage/model_disk.py`.

A file: the synced bytes, and then some of what was done since. Unsynced operations survive as a
prefix in the order they were made. The first that did not may be torn: where it made the file
longer at any byte, where it overwrote at a boundary of 512-byte sectors, which a disk writes whole
or not at all. With `reorder` the writes of that prefix may also have lost any of their sectors, as
a disk empties its cache in an order of its own. With `extend` the file may have got its length but
not its bytes: zeros. A truncation is ordered with all before and after it. Synced bytes that
nothing overwrote never change.

A directory: the synced names, and a prefix of the creations, renames and removals since. A rename
is one of these, so the file has its old name or its new one, never both and never none.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class CrashRules:
    """How unkind a power cut may be to what was not synced."""

    reorder: bool = True
    extend: bool = True


@dataclass(slots=True)
class Write:
    position: int
    data: bytes

    @property
    def end(self) -> int:
        return self.position + len(self.data)

    def apply(self, image: bytearray) -> None:
        if not self.data:
            return  # as in POSIX, writing nothing does not extend a file
        _extend(image, self.position)
        image[self.position : self.end] = self.data

    def sectors(self) -> list["Write"]:
        """The same write in pieces that lie in one sector each."""
        cuts = [self.position]
        while cuts[-1] < self.end:
            cuts.append(min(self.end, (cuts[-1] // SECTOR_BYTES + 1) * SECTOR_BYTES))
        return [self.part(a, b) for a, b in pairwise(cuts)]

    def part(self, start: int, end: int) -> "Write":
        return Write(start, self.data[start - self.position : end - self.position])


@dataclass(frozen=True, slots=True)
class Truncate:
    length: int

    def apply(self, image: bytearray) -> None:
        del image[self.length :]
        _extend(image, self.length)


@dataclass(slots=True, eq=False)
class FileNode:
    """One file: what the disk holds for certain, what was done since, and what readers see."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Write | Truncate] = field(default_factory=list)
    content: bytearray = field(default_factory=bytearray)

    def do(self, operation: Write | Truncate) -> None:
        operation.apply(self.content)
        self.pending.append(operation)

    def sync(self) -> None:
        for operation in self.pending:
            operation.apply(self.durable)
        self.pending.clear()

    def flip_bit(self, byte: int, bit: int) -> None:
        """Damage one bit wherever it is held, so that it stays damaged."""
        mask = 1 << bit
        for image in (self.content, self.durable):
            if byte < len(image):
                image[byte] ^= mask
        for write in self.pending:
            if isinstance(write, Write) and write.position <= byte < write.end:
                damaged = bytearray(write.data)
                damaged[byte - write.position] ^= mask
                write.data = bytes(damaged)

    def crash(self, rng: random.Random, rules: CrashRules) -> None:
        kept = _count_kept(rng, len(self.pending))
        image = self.durable
        scatter = rules.reorder and rng.random() < 0.5
        chance = rng.random()
        for operation in self.pending[:kept]:
            if isinstance(operation, Write) and scatter:
                _apply_some(operation, image, rng, chance)
            else:
                operation.apply(image)
        if kept < len(self.pending) and rng.random() < 0.5:
            _tear(self.pending[kept], image, rng)
        if rules.extend and rng.random() < 0.5:
            _extend(image, rng.randint(len(image), self._length_seen(kept, len(image))))
        self.pending.clear()
        self.content = bytearray(image)

    def _length_seen(self, kept: int, length: int) -> int:
        """The greatest length since the last surviving truncation and before the next one."""
        cut = [i for i, operation in enumerate(self.pending) if isinstance(operation, Truncate)]
        start = max((i + 1 for i in cut if i < kept), default=0)
        stop = min((i for i in cut if i >= kept), default=len(self.pending))
        ends = [write.end for write in self.pending[start:stop] if isinstance(write, Write)]
        return max([length, *ends])


@dataclass(frozen=True, slots=True)
class Link:
    name: str
    node: "FileNode | DirNode"

    def apply(self, names: "dict[str, FileNode | DirNode]") -> None:
        names[self.name] = self.node


@dataclass(frozen=True, slots=True)
class Unlink:
    name: str

    def apply(self, names: "dict[str, FileNode | DirNode]") -> None:
        del names[self.name]


@dataclass(frozen=True, slots=True)
class Move:
    src: str
    dst: str

    def apply(self, names: "dict[str, FileNode | DirNode]") -> None:
        names[self.dst] = names.pop(self.src)


@dataclass(slots=True, eq=False)
class DirNode:
    """One directory: the names that are certain, the changes since, and what readers see."""

    durable: "dict[str, FileNode | DirNode]" = field(default_factory=dict)
    pending: list[Link | Unlink | Move] = field(default_factory=list)
    names: "dict[str, FileNode | DirNode]" = field(default_factory=dict)

    def do(self, change: Link | Unlink | Move) -> None:
        change.apply(self.names)
        self.pending.append(change)

    def sync(self) -> None:
        for change in self.pending:
            change.apply(self.durable)
        self.pending.clear()

    def crash(self, rng: random.Random, rules: CrashRules) -> None:
        """Also of all below. What has no name any more is gone with everything in it."""
        for change in self.pending[: _count_kept(rng, len(self.pending))]:
            change.apply(self.durable)
        self.pending.clear()
        self.names = dict(self.durable)
        for name in sorted(self.names):
            self.names[name].crash(rng, rules)

    def sync_all(self) -> None:
        self.sync()
        for node in self.names.values():
            if isinstance(node, DirNode):
                node.sync_all()
            else:
                node.sync()

    def total_bytes(self) -> int:
        return sum(
            node.total_bytes() if isinstance(node, DirNode) else len(node.content)
            for node in self.names.values()
        )


def _extend(image: bytearray, length: int) -> None:
    image.extend(bytes(max(0, length - len(image))))


def _count_kept(rng: random.Random, count: int) -> int:
    """All and nothing are the cases that programs get wrong, so they come up more often."""
    return rng.choice([0, count, rng.randint(0, count)])


def _apply_some(write: Write, image: bytearray, rng: random.Random, chance: float) -> None:
    for sector in write.sectors():
        if rng.random() < chance:
            sector.apply(image)


def _tear(operation: Write | Truncate, image: bytearray, rng: random.Random) -> None:
    if isinstance(operation, Write):
        cut = rng.randint(operation.position, operation.end)
        if cut < len(image):
            cut = max(operation.position, cut // SECTOR_BYTES * SECTOR_BYTES)
        operation.part(operation.position, cut).apply(image)
