"""The newest batches of the log, in memory.

Most reads ask for what was appended a moment ago: followers on their heels, and the state machine.
Finding that in the files again costs more than all the rest of a commit. What is not here any more
is read from the log; nothing else depends on it.
"""

from kraftlog.types import Buffer

RECENT_BYTES_MAX = 4 << 20


class RecentBatches:
    """Batches that follow each other, the oldest dropped first."""

    def __init__(self, bytes_max: int = RECENT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._batches: dict[int, tuple[int, Buffer]] = {}
        """Base offset to next offset and bytes, in log order."""
        self._bytes = 0
        self._end = -1

    def add(self, base_offset: int, next_offset: int, data: Buffer) -> None:
        """Another batch at the end of the log. `data` must not change any more."""
        if base_offset != self._end:
            self.clear()
        self._batches[base_offset] = (next_offset, data)
        self._bytes += len(data)
        self._end = next_offset
        while self._bytes > self._bytes_max:
            oldest = next(iter(self._batches))
            self._bytes -= len(self._batches.pop(oldest)[1])

    def clear(self) -> None:
        """The log was cut, or goes on elsewhere."""
        self._batches.clear()
        self._bytes = 0
        self._end = -1

    def read(self, offset: int, *, end_offset: int, max_bytes: int) -> Buffer | None:
        """Whole batches from `offset`, none that reaches past `end_offset`: up to `max_bytes`, at
        least one. None: they are not here.
        """
        found = self._batches.get(offset)
        if found is None or found[0] > end_offset:
            return None
        parts: list[Buffer] = []
        while found is not None and found[0] <= end_offset:
            max_bytes -= len(found[1])
            if parts and max_bytes < 0:
                break
            parts.append(found[1])
            found = self._batches.get(found[0])
        return parts[0] if len(parts) == 1 else b"".join(parts)
