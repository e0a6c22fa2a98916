"""What a replica has on disk: the log, the election state, the snapshots. The core's effects end
here.

    __cluster_metadata-0/quorum-state
                         00000000000000000000.log ...
                         00000000000000001234-0000000005.checkpoint
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kraftlog._check import invariant
from kraftlog.clock import Clock
from kraftlog.errors import LogDamaged
from kraftlog.record_batch import read_batches
from kraftlog.types import Buffer
from quorum.batches import decode_batch, encode_control
from quorum.core.log_view import NOT_IN_LOG, LogView, VotersAt, view_of
from quorum.core.messages import BOOTSTRAP_SNAPSHOT, Batch, SnapshotId, VoterSet
from quorum.core.state import ElectionState
from quorum.election_file import ELECTION_FILE, read_election, write_election
from quorum.recent import RecentBatches
from quorum.snapshot_file import (
    PART_SUFFIX,
    Snapshot,
    open_snapshot,
    parse_name,
    place,
    read_timestamp,
    snapshot_name,
    write_snapshot,
)
from storage.files import File, Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.recovery import OpenOptions, open_log

logger = logging.getLogger(__name__)

LOG_DIRECTORY = "__cluster_metadata-0"
SCAN_BYTES = 1 << 20


def log_directory(directory: str) -> str:
    return f"{directory}/{LOG_DIRECTORY}"


def format_store(files: Files, directory: str, clock: Clock, voters: VoterSet | None) -> None:
    """Make the files of a new replica. Only `form` gives voters: those of the first epoch."""
    path = log_directory(directory)
    files.make_dir(path)
    write_election(files, f"{path}/{ELECTION_FILE}", ElectionState())
    if voters is not None:
        write_snapshot(files, path, BOOTSTRAP_SNAPSHOT, voters, (), timestamp=clock.wall_ms())
    files.sync_dir(path)
    files.sync_dir(directory)


@dataclass(slots=True, eq=False)
class Download:
    """A snapshot of the leader, in a file that nobody else looks at yet."""

    id: SnapshotId
    file: File
    in_check: bool = False
    """A thread reads it: it may be given up, but it stays until that thread is done."""
    checked: Snapshot | None = None


class Store:
    """Opened files of one replica. `flush` and `check_download` may run in other threads while the
    rest goes on.
    """

    def __init__(
        self, files: Files, directory: str, clock: Clock, config: LogConfig | None = None
    ) -> None:
        self._files = files
        self._clock = clock
        self._config = config or LogConfig()
        self.directory = log_directory(directory)
        self._election_path = f"{self.directory}/{ELECTION_FILE}"
        self.election = read_election(files, self._election_path)
        self._download: Download | None = None
        self._downloads_begun = 0
        self._recent = RecentBatches()
        self.records_fetched = 0
        self._snapshots = self._find_snapshots()
        self._opened: Snapshot | None = None
        self.latest_snapshot()  # found damaged, if it is, before the log is cut for its sake
        self.log = self._open_log()
        self.view = self._view()

    # -- opening

    def _find_snapshots(self) -> list[SnapshotId]:
        found = []
        for name in self._files.list_dir(self.directory):
            snapshot = parse_name(name)
            if name.endswith(PART_SUFFIX):
                self._files.remove(f"{self.directory}/{name}")
            elif snapshot and snapshot != BOOTSTRAP_SNAPSHOT:
                found.append(snapshot)
        return sorted(found)

    def _open_log(self) -> Log:
        options = OpenOptions(verify_all=True)
        log = open_log(self._files, self.directory, self._config, self._clock, options)
        if self._snapshots and self._is_beyond(log, self._snapshots[-1]):
            # Power went between a download and the cut of the log that it replaces.
            logger.warning("%s goes on at snapshot %s", self.directory, self._snapshots[-1])
            log.restart_at(self._snapshots[-1].end_offset)
        self._settle_start(log)
        return log

    def _is_beyond(self, log: Log, snapshot: SnapshotId) -> bool:
        """Whether the log lacks what the snapshot holds, or has something else in its place."""
        if log.end_offset < snapshot.end_offset:
            return True
        if log.start_offset >= snapshot.end_offset:
            return False
        return log.epochs.epoch_at(snapshot.end_offset - 1) != snapshot.epoch

    def _settle_start(self, log: Log) -> None:
        """A log that does not begin at 0 begins at the end of a snapshot."""
        if log.start_offset == 0:
            return
        usable = [each for each in self._snapshots if each.end_offset >= log.start_offset]
        if not usable:
            raise LogDamaged(
                f"{self.directory} begins at {log.start_offset}, and no snapshot holds what is"
                " before",
                hint="wipe this replica and let it join again, or restore it from a backup",
            )
        log.advance_start(usable[0].end_offset)
        self._remove_snapshots(set(self._snapshots) - set(usable))

    def _view(self) -> LogView:
        return view_of(
            start_offset=self.log.start_offset,
            end_offset=self.log.end_offset,
            epochs=[(entry.epoch, entry.start_offset) for entry in self.log.epochs.entries()],
            snapshots=self._snapshots,
            voters=self._read_voter_history(),
        )

    def _read_voter_history(self) -> list[VotersAt]:
        history = []
        latest = self.latest_snapshot()
        if latest:
            at = latest.id.end_offset - 1 if latest.id != BOOTSTRAP_SNAPSHOT else NOT_IN_LOG
            history.append(VotersAt(at, latest.voters))
        offset = self.log.start_offset
        while offset < self.log.end_offset:
            part = self.log.read(offset, SCAN_BYTES)
            for batch in read_batches(part.read()):
                control = decode_batch(batch).control if batch.is_control else None
                if isinstance(control, VoterSet):
                    history.append(VotersAt(batch.base_offset, control))
            offset = part.next_offset
        return sorted(history, key=lambda entry: entry.offset)

    # -- the log and the election

    def save_election(self, election: ElectionState) -> None:
        write_election(self._files, self._election_path, election)
        self.election = election

    def append(self, batches: Sequence[Batch], *, fetched: bool) -> None:
        """In memory of the machine, not yet durable."""
        if fetched:
            self.records_fetched += sum(batch.count for batch in batches)
            self.log.append_fetched(b"".join(batch.data for batch in batches))
            for batch in batches:
                self._recent.add(batch.base_offset, batch.next_offset, batch.data)
        else:
            for batch in batches:
                data = self._encode(batch)
                self.log.append(data, leader_epoch=batch.epoch)
                self._recent.add(batch.base_offset, batch.next_offset, data)
        last = batches[-1]
        invariant(
            self.log.end_offset == last.next_offset,
            "log and core disagree about the end",
            log=self.log.end_offset,
            core=last.next_offset,
        )

    def _encode(self, batch: Batch) -> bytearray:
        if batch.control is None:
            return batch.data if isinstance(batch.data, bytearray) else bytearray(batch.data)
        return bytearray(
            encode_control(
                batch.control,
                offset=batch.base_offset,
                epoch=batch.epoch,
                timestamp=self._clock.wall_ms(),
            )
        )

    def truncate(self, end_offset: int) -> None:
        """Durable when it returns."""
        self._recent.clear()
        self.log.truncate_to(end_offset)
        invariant(self.log.end_offset == end_offset, "cut inside a batch", end=end_offset)

    def flush(self) -> int:
        """Make all that was appended durable; for a thread of its own."""
        return self.log.flush()

    def read(self, offset: int, *, end_offset: int, max_bytes: int) -> Buffer:
        """Whole batches from `offset`, none at or past `end_offset`."""
        recent = self._recent.read(offset, end_offset=end_offset, max_bytes=max_bytes)
        if recent is not None:
            return recent
        return self.log.read(offset, max_bytes, limit=end_offset).read()

    def purge(self) -> None:
        """Unlink segments that were dropped long enough ago; for a thread of its own."""
        self.log.purge()

    def close(self) -> None:
        """Nothing of it runs in another thread any more."""
        if self._download:
            self._discard(self._download)
            self._download = None
        self.log.close()

    # -- snapshots

    def latest_snapshot(self) -> Snapshot | None:
        """The newest, or the bootstrap checkpoint, or none. The same one is checked once."""
        newest = self._snapshots[-1] if self._snapshots else BOOTSTRAP_SNAPSHOT
        if newest == BOOTSTRAP_SNAPSHOT and not self._files.exists(self._path(newest)):
            return None
        if self._opened is None or self._opened.id != newest:
            self._opened = self.open_snapshot(newest)
        return self._opened

    def open_snapshot(self, snapshot: SnapshotId) -> Snapshot:
        return open_snapshot(self._files, self._path(snapshot), snapshot)

    def write_snapshot(
        self, snapshot: SnapshotId, voters: VoterSet, values: Iterable[bytes]
    ) -> None:
        """A snapshot of our own state; for a thread of its own. The core hears of it afterwards."""
        now = self._clock.wall_ms()
        write_snapshot(self._files, self.directory, snapshot, voters, values, timestamp=now)

    def add_snapshot(self, snapshot: SnapshotId) -> None:
        self._snapshots = sorted({*self._snapshots, snapshot})

    @property
    def size_bytes(self) -> int:
        """Of the log and all snapshots together."""
        return self.log.size + sum(map(self.snapshot_bytes, self._snapshots))

    def snapshot_bytes(self, snapshot: SnapshotId) -> int:
        return self._files.size(self._path(snapshot))

    def snapshot_timestamp(self, snapshot: SnapshotId) -> int:
        """When it was written."""
        return read_timestamp(self._files, self._path(snapshot))

    def read_chunk(self, snapshot: SnapshotId, position: int, max_bytes: int) -> tuple[int, bytes]:
        """Size of the whole file, and bytes of it."""
        file = self._files.open(self._path(snapshot))
        try:
            return file.size(), file.pread(max_bytes, position)
        finally:
            file.close()

    def drop_below(self, snapshot: SnapshotId) -> None:
        """The log starts at the end of this snapshot: older segments and snapshots go."""
        self.log.advance_start(snapshot.end_offset)
        segments = self.log.segments
        whole = [each for each in segments[:-1] if each.next_offset <= snapshot.end_offset]
        if whole:
            self.log.drop_oldest(len(whole))
        self._remove_snapshots([each for each in self._snapshots if each < snapshot])

    def remove_snapshot(self, snapshot: SnapshotId) -> None:
        self._remove_snapshots([snapshot])

    def _remove_snapshots(self, snapshots: Iterable[SnapshotId]) -> None:
        gone = set(snapshots)
        self._snapshots = [each for each in self._snapshots if each not in gone]
        for each in sorted(gone):
            self._files.remove(self._path(each))

    def _path(self, snapshot: SnapshotId) -> str:
        return f"{self.directory}/{snapshot_name(snapshot)}"

    # -- the snapshot of a leader

    def start_download(self, snapshot: SnapshotId) -> None:
        self.drop_download()
        # Not the name under which a snapshot of our own is being written, maybe the same one, nor
        # that of a download that was given up while a thread read it.
        self._downloads_begun += 1
        name = f"{snapshot}-download-{self._downloads_begun}{PART_SUFFIX}"
        file = self._files.open(f"{self.directory}/{name}", create=True)
        file.truncate(0)
        self._download = Download(snapshot, file)

    def append_chunk(self, snapshot: SnapshotId, position: int, data: Buffer) -> None:
        self._downloading(snapshot).file.pwrite([data], position)

    def _downloading(self, snapshot: SnapshotId) -> Download:
        known = self._download
        invariant(known is not None and known.id == snapshot, "no such download", id=snapshot)
        return known or Download(snapshot, self._files.open(self._path(snapshot)))

    def begin_check(self, snapshot: SnapshotId) -> Download:
        """The download is complete: what to give to `check_download`."""
        download = self._downloading(snapshot)
        download.in_check = True
        return download

    def check_download(self, download: Download) -> None:
        """Make it durable if it is sound; for a thread of its own."""
        try:
            found = open_snapshot(self._files, download.file.path, download.id)
        except LogDamaged as error:
            logger.warning("download of %s is thrown away: %s", download.id, error)
            return
        download.file.sync()
        download.checked = found

    def end_check(self, download: Download) -> bool:
        """Whether anybody still waits for it; if not, it goes."""
        download.in_check = False
        if download is self._download:
            return True
        self._discard(download)
        return False

    def finish_download(self, snapshot: SnapshotId) -> Snapshot:
        """Put a checked one in the place of the log, durably."""
        download = self._downloading(snapshot)
        found = download.checked
        invariant(found is not None, "a download that was not checked", id=snapshot)
        self._download = None
        place(self._files, self.directory, snapshot, download.file)
        self._recent.clear()
        self.log.restart_at(snapshot.end_offset)
        self._remove_snapshots(set(self._snapshots) - {snapshot})
        self._snapshots = [snapshot]
        return replace(found, path=self._path(snapshot)) if found else self.open_snapshot(snapshot)

    def drop_download(self) -> None:
        download, self._download = self._download, None
        if download and not download.in_check:
            self._discard(download)

    def _discard(self, download: Download) -> None:
        path = download.file.path
        download.file.close()
        self._files.remove(path)
