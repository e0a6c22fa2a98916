"""Batch after batch of a file that may be damaged, or growing at this moment."""

from collections.abc import Iterator

from kraftlog.errors import CorruptRecord
from kraftlog.record_batch import (
    BATCH_BYTES_MAX,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    RecordBatch,
)
from storage.files import File

READ_BYTES = 1 << 20

_LENGTH_POSITION = 8
_MAGIC_POSITION = 16


class Unreadable(Exception):
    """There is no whole and sensible batch at `position`."""

    def __init__(
        self, position: int, what: str, *, is_cut: bool = False, next_position: int | None = None
    ) -> None:
        super().__init__(what)
        self.position = position
        self.what = what
        self.is_cut = is_cut
        """What is there could be the start of a batch."""
        self.next_position = next_position
        """Where its length field says that the next batch begins, if that makes sense."""


class BatchReader:
    """Reads a file in pieces of `READ_BYTES`, or of one batch where that is larger.

    CRCs are the caller's to check. A batch is valid until the next one is read.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        self._chunk = b""
        self._chunk_position = 0

    def batches(self) -> Iterator[tuple[int, RecordBatch]]:
        """(position, batch) from the start to what was the end when this began, or Unreadable."""
        end = self._file.size()
        position = 0
        while position < end:
            batch = self.batch_at(position)
            yield position, batch
            position += batch.size

    def batch_at(self, position: int) -> RecordBatch:
        """The batch that begins at `position`, or Unreadable."""
        try:
            return self._parse(position, self._whole_size(position))
        except Unreadable:
            # It may reach beyond what is in memory, or be newer than that.
            return self.read_again(position)

    def read_again(self, position: int) -> RecordBatch:
        """The batch at `position` as it is in the file now."""
        self._load(position, READ_BYTES)
        whole = self._whole_size(position)
        if whole > len(self._chunk):
            self._load(position, whole)
        return self._parse(position, whole)

    def _load(self, position: int, length: int) -> None:
        self._chunk = self._file.pread(length, position)
        self._chunk_position = position

    def _whole_size(self, position: int) -> int:
        """The size of the batch at `position`, by its length field."""
        at = position - self._chunk_position
        head = self._chunk[at : at + HEADER_BYTES] if at >= 0 else b""
        problem = _frame_problem(head)
        if problem:
            raise Unreadable(position, problem)
        if len(head) < HEADER_BYTES:
            raise Unreadable(
                position,
                f"the file ends inside a batch header: {len(head)} of {HEADER_BYTES} bytes",
                is_cut=True,
            )
        return LENGTH_PREFIX_BYTES + _length_field(head)

    def _parse(self, position: int, whole: int) -> RecordBatch:
        at = position - self._chunk_position
        available = len(self._chunk) - at
        if available < whole:
            raise Unreadable(
                position,
                f"the file ends inside a batch: {available} of {whole} bytes",
                is_cut=True,
            )
        try:
            return RecordBatch(self._chunk, at)
        except CorruptRecord as error:
            raise Unreadable(position, str(error), next_position=position + whole) from None


def _frame_problem(head: bytes) -> str:
    """Why this cannot be the start of a batch, as far as it goes; empty if it can."""
    if not head.strip(b"\0") and len(head) >= LENGTH_PREFIX_BYTES:
        return "zeros where a batch should begin"
    if len(head) >= LENGTH_PREFIX_BYTES:
        length = _length_field(head)
        if not HEADER_BYTES <= LENGTH_PREFIX_BYTES + length <= BATCH_BYTES_MAX:
            return f"no batch has length field {length}"
    if len(head) > _MAGIC_POSITION and head[_MAGIC_POSITION] != MAGIC:
        return f"magic {head[_MAGIC_POSITION]} where {MAGIC} is expected"
    return ""


def _length_field(head: bytes) -> int:
    return int.from_bytes(head[_LENGTH_POSITION:LENGTH_PREFIX_BYTES], "big", signed=True)
