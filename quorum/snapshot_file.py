"""Snapshot files: `<end offset>-<epoch>.checkpoint`, record batches like those of the log.

    header (control)   when the last contained record was written
    voters (control)   the voter set as of the end offset
    data batches       the whole state, as the state machine wrote it
    footer (control)   without it the file is not whole

Written as `.part`, synced, renamed, directory synced: a name that ends in `.checkpoint` is always
a complete file.
"""

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from kraftlog.errors import CorruptRecord, LogDamaged
from kraftlog.record_batch import RecordBatch, encode_values, read_batches
from kraftlog.rpc import raft_pb2
from kraftlog.types import Buffer
from quorum.batches import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    VOTERS,
    control_batch,
    control_kind,
    decode_voters,
    encode_control,
)
from quorum.core.messages import SnapshotId, VoterSet
from storage.files import File, Files

SUFFIX = ".checkpoint"
PART_SUFFIX = SUFFIX + ".part"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
BATCH_BYTES = 256 << 10
READ_BYTES = 4 << 20


def snapshot_name(snapshot: SnapshotId) -> str:
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}{SUFFIX}"


def parse_name(name: str) -> SnapshotId | None:
    match = _NAME.fullmatch(name)
    return SnapshotId(int(match[1]), int(match[2])) if match else None


# -- writing


def write_snapshot(
    files: Files,
    directory: str,
    snapshot: SnapshotId,
    voters: VoterSet,
    values: Iterable[bytes],
    *,
    timestamp: int,
) -> None:
    """Write and publish a snapshot. It may take long: not for the loop."""
    part = f"{directory}/{snapshot_name(snapshot)}.part"
    file = files.open(part, create=True)
    file.truncate(0)
    writer = _Writer(file, snapshot.epoch, timestamp)
    header = raft_pb2.SnapshotHeaderRecord(last_timestamp=timestamp)
    writer.add(
        control_batch(SNAPSHOT_HEADER, header, offset=0, epoch=snapshot.epoch, at=timestamp), 1
    )
    writer.add(encode_control(voters, offset=1, epoch=snapshot.epoch, timestamp=timestamp), 1)
    writer.add_values(values)
    footer = raft_pb2.SnapshotFooterRecord()
    writer.add(
        control_batch(
            SNAPSHOT_FOOTER, footer, offset=writer.offset, epoch=snapshot.epoch, at=timestamp
        ),
        1,
    )
    publish(files, directory, snapshot, file)


def publish(files: Files, directory: str, snapshot: SnapshotId, part: File) -> None:
    """A complete `.part` becomes a snapshot, durably."""
    part.sync()
    place(files, directory, snapshot, part)


def place(files: Files, directory: str, snapshot: SnapshotId, part: File) -> None:
    """The same for one that is synced."""
    part.rename(f"{directory}/{snapshot_name(snapshot)}")
    part.close()
    files.sync_dir(directory)


class _Writer:
    def __init__(self, file: File, epoch: int, timestamp: int) -> None:
        self.file = file
        self.epoch = epoch
        self.timestamp = timestamp
        self.offset = 0
        self.position = 0

    def add(self, data: Buffer, records: int) -> None:
        self.position += self.file.pwrite([data], self.position)
        self.offset += records

    def add_values(self, values: Iterable[bytes]) -> None:
        pending: list[bytes] = []
        size = 0
        for value in values:
            pending.append(value)
            size += len(value)
            if size >= BATCH_BYTES:
                self._add_batch(pending)
                pending, size = [], 0
        if pending:
            self._add_batch(pending)

    def _add_batch(self, values: list[bytes]) -> None:
        data = encode_values(
            values, timestamp=self.timestamp, base_offset=self.offset, leader_epoch=self.epoch
        )
        self.add(data, len(values))


# -- reading


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot that was found whole. Its data is read as it is asked for."""

    id: SnapshotId
    voters: VoterSet
    timestamp: int
    files: Files
    path: str

    def values(self) -> Iterator[bytes]:
        for batch in _batches(self.files, self.path):
            if not batch.is_control:
                yield from (record.value or b"" for record in batch.records())


def open_snapshot(files: Files, path: str, snapshot: SnapshotId) -> Snapshot:
    """Check all of the file: every CRC, the header first, the footer last."""
    try:
        voters, timestamp = _verify(_batches(files, path), snapshot.epoch)
    except (CorruptRecord, DecodeError, ValueError) as error:
        raise LogDamaged(
            f"snapshot {path} is damaged: {error}",
            hint="restore the file from a backup, or wipe this replica and let it join again",
        ) from error
    return Snapshot(snapshot, voters, timestamp, files, path)


def read_timestamp(files: Files, path: str) -> int:
    """When a snapshot was written, from its header alone."""
    batches = _batches(files, path)
    kind, value = control_kind(next(batches))
    batches.close()
    if kind != SNAPSHOT_HEADER:
        raise CorruptRecord(f"{path} begins with a record of type {kind}")
    return raft_pb2.SnapshotHeaderRecord.FromString(value).last_timestamp


def _verify(batches: Iterator[RecordBatch], epoch: int) -> tuple[VoterSet, int]:
    offset, last_kind, timestamp = 0, -1, 0
    voters = VoterSet()
    for batch in batches:
        if last_kind == SNAPSHOT_FOOTER:
            raise CorruptRecord(f"something follows the footer at offset {offset}")
        if batch.base_offset != offset:
            raise CorruptRecord(f"offset {batch.base_offset} where {offset} comes next")
        if batch.leader_epoch != epoch:  # as the offset, it is outside the CRC
            raise CorruptRecord(f"epoch {batch.leader_epoch} at offset {offset}")
        last_kind, value = control_kind(batch) if batch.is_control else (0, b"")
        if (offset == 0) != (last_kind == SNAPSHOT_HEADER):
            raise CorruptRecord("the header is not first, or not alone")
        if last_kind == SNAPSHOT_HEADER:
            timestamp = raft_pb2.SnapshotHeaderRecord.FromString(value).last_timestamp
        elif last_kind == VOTERS:
            voters = decode_voters(value)
        offset = batch.next_offset
    if last_kind != SNAPSHOT_FOOTER:
        raise CorruptRecord(f"the footer is missing after offset {offset}")
    return voters, timestamp


def _batches(files: Files, path: str) -> Generator[RecordBatch, None, None]:
    """Every batch with a good CRC; CorruptRecord at the first that has none."""
    file = files.open(path)
    try:
        yield from _batches_of(file)
    finally:
        file.close()


def _batches_of(file: File) -> Iterator[RecordBatch]:
    size, position, wanted = file.size(), 0, READ_BYTES
    while position < size:
        chunk = file.pread(wanted, position)
        used = 0
        for batch in read_batches(chunk):
            batch.check_crc()
            yield batch
            used += batch.size
        if not used and len(chunk) >= size - position:
            raise CorruptRecord(f"{size - position} bytes at {position} are no whole batch")
        wanted = READ_BYTES if used else wanted * 2  # a batch may be larger than what we read
        position += used
