"""A persistent vector: an immutable sequence whose changed copies share what did not change.

Partition ids are dense, so a topic's partitions need no map. Chunks of a fixed size in a tuple of
chunks make a change cost one chunk, and an entry costs eight bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from kraftlog._check import invariant

T = TypeVar("T")

CHUNK = 64


class Vector(Generic[T]):
    """Immutable. Every chunk but the last is full, so that equal contents have equal chunks."""

    __slots__ = ("_chunks", "_size")

    def __init__(self, chunks: tuple[tuple[T, ...], ...] = (), size: int = 0) -> None:
        self._chunks = chunks
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> T:
        if not 0 <= index < self._size:
            raise IndexError(index)
        return self._chunks[index // CHUNK][index % CHUNK]

    def __iter__(self) -> Iterator[T]:
        for chunk in self._chunks:
            yield from chunk

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self._chunks == other._chunks

    def __hash__(self) -> int:
        return hash(self._chunks)

    def __repr__(self) -> str:
        return f"Vector({list(self)!r})"

    def chunk(self, number: int) -> tuple[T, ...]:
        return self._chunks[number] if number < len(self._chunks) else ()

    def differing(self, before: "Vector[T]") -> Iterator[int]:
        """The indexes whose value is new here, or another one than before."""
        for number, chunk in enumerate(self._chunks):
            old = before.chunk(number)
            if old is chunk or old == chunk:
                continue
            for place, value in enumerate(chunk):
                if place >= len(old) or old[place] != value:
                    yield number * CHUNK + place

    def changed(self, values: Mapping[int, T]) -> "Vector[T]":
        """A copy with these values in place; new indexes go on where this vector ends."""
        appended = [index for index in sorted(values) if index >= self._size]
        expected = range(self._size, self._size + len(appended))
        invariant(appended == list(expected), "a gap in a vector", size=self._size)
        edited: dict[int, list[T]] = {}
        for index, value in values.items():
            if index < self._size:
                number, place = divmod(index, CHUNK)
                chunk = edited.get(number)
                if chunk is None:
                    chunk = edited[number] = list(self._chunks[number])
                chunk[place] = value
        chunks = list(self._chunks)
        for number, chunk in edited.items():
            chunks[number] = tuple(chunk)
        if appended:
            last = chunks.pop() if self._size % CHUNK else ()
            tail = (*last, *(values[index] for index in appended))
            chunks += [tail[start : start + CHUNK] for start in range(0, len(tail), CHUNK)]
        return Vector(tuple(chunks), self._size + len(appended))
