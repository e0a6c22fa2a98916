"""Directories of nodes made by hand: segments out of any batches, sound or not."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kraftlog.record_batch import encode_values
from kraftlog.types import TopicPartition, Uuid
from metadata_log.codec import encode
from metadata_log.image import Image
from metadata_log.records import (
    NO_LEADER,
    Cause,
    CausedRecord,
    CauseKind,
    NoOp,
    PartitionRecord,
    PartitionState,
    Record,
    RemoveTopic,
    TopicRecord,
)
from metadata_log.snapshot import write_values
from quorum.core.messages import SnapshotId, VoterSet
from quorum.core.state import ElectionState
from quorum.election_file import ELECTION_FILE, write_election
from quorum.snapshot_file import write_snapshot
from quorum.store import LOG_DIRECTORY
from storage.checkpoint import RecoveryPoint, write_offsets
from storage.files import OsFiles
from storage.log_dir import HIGH_WATERMARKS_FILE
from storage.recovery import RECOVERY_POINT_FILE

TIME_MS = 1_700_000_000_000
NO_PRODUCER = (-1, -1, -1)
TOPIC_ID = Uuid(b"topic id........")
OTHER_ID = Uuid(b"another topic...")
CAUSE = Cause(CauseKind.ADMIN_REQUEST, "a test")


def batch(
    offset: int, *values: bytes, epoch: int = 0, producer: tuple[int, int, int] = NO_PRODUCER
) -> bytes:
    """`producer` is (id, epoch, first sequence)."""
    producer_id, producer_epoch, base_sequence = producer
    return encode_values(
        values,
        timestamp=TIME_MS,
        base_offset=offset,
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def flipped(data: bytes) -> bytes:
    """The same with one bit of its last value wrong."""
    return data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]


def write_log(directory: Path, *segments: Sequence[bytes], flushed: int | None = None) -> Path:
    """Each segment is named by the offset of its first batch."""
    directory.mkdir(parents=True, exist_ok=True)
    for batches in segments:
        base = int.from_bytes(batches[0][:8], "big", signed=True)
        (directory / f"{base:020d}.log").write_bytes(b"".join(batches))
    if flushed is not None:
        point = RecoveryPoint(OsFiles(), str(directory / RECOVERY_POINT_FILE))
        point.write(flushed)
        point.close()
    return directory


def write_replica(
    root: Path, name: str, batches: Sequence[bytes], high_watermark: int, partition: int = 0
) -> Path:
    """A broker's directory with one partition of orders."""
    key = TopicPartition("orders", partition)
    write_log(root / name / str(key), batches)
    write_offsets(OsFiles(), str(root / name / HIGH_WATERMARKS_FILE), {key: high_watermark})
    return root / name


# -- metadata


def metadata_batch(offset: int, *records: Record, epoch: int = 1) -> bytes:
    values = [encode(CausedRecord(record, CAUSE)) for record in records]
    return batch(offset, *values, epoch=epoch)


def topic_records(name: str, topic_id: Uuid, state: PartitionState) -> tuple[Record, Record]:
    return TopicRecord(name, topic_id), PartitionRecord(topic_id, 0, state)


ORPHAN = PartitionState((1,), (), NO_LEADER, elr=(1,), last_known_elr=(1,))
CREATED = topic_records("orders", TOPIC_ID, ORPHAN)
REMOVED = RemoveTopic(TOPIC_ID)
BATCHES = [metadata_batch(0, *CREATED), metadata_batch(2, NoOp()), metadata_batch(3, REMOVED)]
"""A topic comes and goes."""


def write_metadata(
    root: Path, name: str, batches: Sequence[bytes], *, epoch: int = 1, flushed: int | None = None
) -> Path:
    """The directory of a node whose vote is of this epoch."""
    path = write_log(root / name / LOG_DIRECTORY, *([batches] if batches else []), flushed=flushed)
    write_election(OsFiles(), str(path / ELECTION_FILE), ElectionState(epoch))
    return root / name


def write_image(node: Path, image: Image, end: int, epoch: int = 1) -> Path:
    """A snapshot of a node."""
    directory = node / LOG_DIRECTORY
    write_snapshot(
        OsFiles(),
        str(directory),
        SnapshotId(end, epoch),
        VoterSet(),
        write_values(image),
        timestamp=TIME_MS,
    )
    return directory / f"{end:020d}-{epoch:010d}.checkpoint"


def nodes(*directories: Path) -> dict[str, Path]:
    return {each.name: each for each in directories}


def no_ops(begin: int, end: int, epoch: int = 1) -> list[bytes]:
    return [metadata_batch(offset, NoOp(), epoch=epoch) for offset in range(begin, end)]


def same_everywhere(root: Path, names: Iterable[str], batches: Sequence[bytes]) -> list[Path]:
    return [write_metadata(root, name, batches) for name in names]


def spoil_vote(node: Path, fields: Mapping[str, object]) -> None:
    (node / LOG_DIRECTORY / ELECTION_FILE).write_text(json.dumps(fields))
