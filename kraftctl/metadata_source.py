"""Where a metadata log is read: from a controller that runs, or from files of one that need not.

Files are only read: no lock, no repair, beside a running node or on a copy of a dead one. What is
at the end of a file and not whole yet is left out.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraftctl.controllers import beliefs, with_controllers
from kraftctl.exit_codes import NotFound
from kraftctl.metadata_history import Entry, History
from kraftctl.session import Session
from kraftlog.admin_types import QuorumDescription
from kraftlog.errors import CorruptRecord, KraftError, LeaderNotAvailable, StorageError
from kraftlog.record_batch import RecordBatch, read_batches

if TYPE_CHECKING:
    from quorum.client import QuorumClient

LOG_NAME = "__cluster_metadata-0"
_CHECKPOINT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_SEGMENT = re.compile(r"\d{20}\.log")


# -- files


def read_directory(path: str) -> tuple[History, list[str]]:
    """The log in a node's directory, or in that of the log itself; and what was left out of it."""
    directory = _log_directory(path)
    names = _names(directory)
    history = History()
    notes: list[str] = []
    start = min((int(name[:20]) for name in names if _SEGMENT.fullmatch(name)), default=None)
    if start is None:
        raise NotFound(f"{directory} has no segment of a log", hint="is the path right?")
    checkpoint = _first_state(names, start)
    if checkpoint is not None:
        end_offset = int(checkpoint[:20])
        history.begin(_batches(os.path.join(directory, checkpoint), notes), end_offset)
    for name in names:
        if _SEGMENT.fullmatch(name):
            for batch in _batches(os.path.join(directory, name), notes):
                history.add(batch)
    return history, notes


def _first_state(names: Sequence[str], start: int) -> str | None:
    """The checkpoint to begin with. A log that begins at 0 tells all by itself, and its records are
    told against what was before them; only the first voters stand before it.
    """
    for name in names:
        found = _CHECKPOINT.fullmatch(name)
        if found and (int(found[1]) >= start if start > 0 else int(found[1]) == 0):
            return name
    return None


def _log_directory(path: str) -> str:
    for each in (os.path.join(path, LOG_NAME), path):
        if os.path.isdir(each) and (each != path or os.path.basename(os.path.abspath(each))):
            return each
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, ValueError):
        os.stat(path)  # PermissionError: it may be there
    raise NotFound(f"there is no directory {path}", hint="name a node's directory, such as c1/")


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise _unreadable(directory, error) from None


def _unreadable(path: str, error: OSError) -> StorageError:
    return StorageError(
        f"{path} cannot be read: {error.strerror}", hint="who may read it? `ls -ld` shows that"
    )


def _batches(path: str, notes: list[str]) -> Iterator[RecordBatch]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise _unreadable(path, error) from None
    used = 0
    try:
        for batch in read_batches(data):
            batch.check_crc()
            yield batch
            used += batch.size
    except CorruptRecord as error:
        notes.append(f"{path}: {error.message}")
    if used < len(data):
        notes.append(f"{path}: {len(data) - used} bytes from {used} on are no whole batch")


# -- a controller


class LiveLog:
    """The committed log of whichever controller knows most; goes on when that one is gone."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._address = ""
        self.history = History()

    def read(self) -> list[Entry]:
        """All that is new; KraftError if nobody answers."""
        if self._address:
            try:
                return with_controllers(self._session, self._read_rest, [self._address])
            except KraftError:
                self._address = ""  # gone: another one knows as much
        self._address = _most_knowing(self._session)
        return with_controllers(self._session, self._read_rest, [self._address])

    async def _read_rest(self, client: "QuorumClient") -> list[Entry]:
        found: list[Entry] = []
        while True:
            offset = self.history.next_offset
            reply = await client.read_log(self._address, offset)
            if reply.HasField("snapshot"):
                data = await client.read_snapshot(self._address, reply.snapshot)
                self.history = History()
                self.history.begin(read_batches(data), reply.snapshot.end_offset)
                continue
            batches = [each for each in read_batches(reply.data) if each.base_offset >= offset]
            if not batches:
                return found
            for batch in batches:
                found += self.history.add(batch)


def _most_knowing(session: Session) -> str:
    told = {
        address: each
        for address, each in beliefs(session).items()
        if isinstance(each, QuorumDescription)
    }
    if not told:
        raise LeaderNotAvailable(
            "no controller answers", hint="of one that is down, read the files: --dir DIRECTORY"
        )
    return max(told, key=lambda each: (told[each].high_watermark, told[each].role == "leader"))
