"""Small files of state beside the logs, in Kafka's formats where Kafka has them.

| file                   | holds                              | when it is damaged            |
|------------------------|------------------------------------|-------------------------------|
| `*-offset-checkpoint`  | an offset for each partition       | LogDamaged                    |
| `recovery-point`       | up to where a log was flushed      | reading says so, the log asks |
| `partition.metadata`   | the topic id of a partition        | LogDamaged                    |
| `.kafka_cleanshutdown` | that the last stop was a clean one | then it was not               |
"""

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from crc32c import crc32c

from kraftlog._check import invariant
from kraftlog.errors import LogDamaged
from kraftlog.types import TopicPartition, Uuid
from storage.files import File, Files, replace_file

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
PARTITION_METADATA_FILE = "partition.metadata"

OFFSET_MAX = 2**63 - 1
PARTITION_MAX = 2**31 - 1

# One sector is what a disk writes whole or not at all.
SECTOR_BYTES = 512

_OFFSETS_VERSION = "0"
_OFFSETS_HINT = (
    "restore it from a backup, or remove it: every log then goes by what its own files say"
)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")

_RECOVERY_POINT = struct.Struct(">4sIq")
_RECOVERY_POINT_CRC = struct.Struct(">I")
_RECOVERY_POINT_MAGIC = b"KLRP"
_RECOVERY_POINT_VERSION = 1

_PARTITION_METADATA = re.compile(r"version: (\S+)\ntopic_id: (\S+)\n?")
_PARTITION_METADATA_VERSION = "0"
_PARTITION_METADATA_HINT = (
    "restore it from a backup, or move the partition's directory away and let this replica copy"
    " the log anew"
)

_CLEAN_SHUTDOWN_VERSION = 0


# -- an offset for each partition


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint, durably."""
    lines = [_OFFSETS_VERSION, str(len(offsets))]
    for key, offset in sorted(offsets.items()):
        invariant(0 <= offset <= OFFSET_MAX, "not an offset", partition=key, offset=offset)
        lines.append(f"{key.topic} {key.partition} {offset}")
    files.write_atomic(path, ("\n".join(lines) + "\n").encode())


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """What an offset checkpoint says; nothing if there is none; LogDamaged if it is not whole."""
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        return {}
    lines = _whole_lines(path, data)
    version, count = _header(path, lines)
    if version != _OFFSETS_VERSION:
        raise _bad_line(path, 1, f"version {version!r} is not {_OFFSETS_VERSION}")
    if count != len(lines) - 2:
        raise _bad_line(path, 2, f"{count} entries are announced, {len(lines) - 2} follow")
    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(lines[2:], start=3):
        key, offset = _parse_entry(path, number, line)
        if key in offsets:
            raise _bad_line(path, number, f"{key} is there twice")
        offsets[key] = offset
    return offsets


def _whole_lines(path: str, data: bytes) -> list[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _bad_line(path, line, f"byte {error.start} is not text") from None
    lines = text.split("\n")
    # A number that was cut is still a number, but it has lost its end of line.
    if lines.pop():
        raise _bad_line(path, len(lines) + 1, "the line has no end")
    return lines


def _header(path: str, lines: list[str]) -> tuple[str, int]:
    if len(lines) < 2:
        raise _bad_line(path, len(lines) + 1, "the file ends before its count of entries")
    if not _NUMBER.fullmatch(lines[1]):
        raise _bad_line(path, 2, f"{lines[1]!r} is not a count")
    return lines[0], int(lines[1])


def _parse_entry(path: str, number: int, line: str) -> tuple[TopicPartition, int]:
    fields = line.split(" ")
    if len(fields) != 3 or not fields[0]:
        raise _bad_line(path, number, f"{line!r} is not 'topic partition offset'")
    topic, partition, offset = fields
    return (
        TopicPartition(topic, _parse_number(path, number, partition, PARTITION_MAX)),
        _parse_number(path, number, offset, OFFSET_MAX),
    )


def _parse_number(path: str, number: int, text: str, largest: int) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > largest:
        raise _bad_line(path, number, f"{text!r} is not a number from 0 to {largest}")
    return int(text)


def _bad_line(path: str, number: int, why: str) -> LogDamaged:
    return LogDamaged(f"{path} line {number}: {why}", hint=_OFFSETS_HINT)


# -- the recovery point


@dataclass(frozen=True, slots=True)
class RecoveryPointState:
    """(offset, True) as written; (None, True) never written; (None, False) not readable."""

    offset: int | None
    readable: bool = True


class RecoveryPoint:
    """Up to where a log was flushed. It may be old; it is never ahead of what is durable.

    So raising it needs no sync of its own, and lowering it does. The file appears whole, and then
    its one sector is overwritten in place: a power cut leaves the old value or the new one, and a
    sector that cannot be read is damage, not the trace of a power cut.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._file: File | None = None

    @property
    def path(self) -> str:
        return self._file.path if self._file else self._path

    def read(self) -> RecoveryPointState:
        try:
            sector = self._opened().pread(SECTOR_BYTES, 0)
        except FileNotFoundError:
            return RecoveryPointState(None)
        offset = _decode_recovery_point(sector)
        return RecoveryPointState(offset, readable=offset is not None)

    def write(self, offset: int) -> None:
        """Say that all below `offset` is durable, which it must be already."""
        self._store(offset, sync=False)

    def lower(self, offset: int) -> None:
        """Durably take back what was said about `offset` and above, before it is cut off."""
        self._store(offset, sync=True)

    def _store(self, offset: int, *, sync: bool) -> None:
        sector = _encode_recovery_point(offset)
        try:
            file = self._opened()
        except FileNotFoundError:
            # Its name need not be durable: no recovery point is the lowest one.
            replace_file(self._files, self._path, sector, sync_data=True, sync_name=False)
            return
        file.pwrite([sector], 0)
        if sync:
            file.sync()

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._files.open(self._path)
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._path = self._file.path
            self._file.close()
            self._file = None


def _encode_recovery_point(offset: int) -> bytes:
    invariant(0 <= offset <= OFFSET_MAX, "not an offset", offset=offset)
    fields = _RECOVERY_POINT.pack(_RECOVERY_POINT_MAGIC, _RECOVERY_POINT_VERSION, offset)
    return (fields + _RECOVERY_POINT_CRC.pack(crc32c(fields))).ljust(SECTOR_BYTES, b"\0")


def _decode_recovery_point(sector: bytes) -> int | None:
    if len(sector) < SECTOR_BYTES:
        return None
    magic, version, offset = _RECOVERY_POINT.unpack_from(sector)
    (crc,) = _RECOVERY_POINT_CRC.unpack_from(sector, _RECOVERY_POINT.size)
    known = (magic, version) == (_RECOVERY_POINT_MAGIC, _RECOVERY_POINT_VERSION)
    if not known or offset < 0 or crc != crc32c(sector[: _RECOVERY_POINT.size]):
        return None
    return int(offset)


# -- the topic id of a partition


def write_partition_metadata(files: Files, directory: str, topic_id: Uuid) -> None:
    """Write Kafka's `partition.metadata`. The name is durable once the directory is synced."""
    text = f"version: {_PARTITION_METADATA_VERSION}\ntopic_id: {topic_id}"
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    replace_file(files, path, text.encode(), sync_data=True, sync_name=False)


def read_partition_metadata(files: Files, directory: str) -> Uuid | None:
    """The topic id of a partition's directory, or None if it was never written."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    try:
        text = files.read_bytes(path).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    found = _PARTITION_METADATA.fullmatch(text)
    if not found:
        raise _bad_metadata(path, "it is not a version and a topic_id")
    version, topic_id = found.groups()
    if version != _PARTITION_METADATA_VERSION:
        raise _bad_metadata(path, f"line 1: version {version!r} is not known here")
    try:
        return Uuid.parse(topic_id)
    except ValueError as error:
        raise _bad_metadata(path, f"line 2: {error}") from None


def _bad_metadata(path: str, why: str) -> LogDamaged:
    return LogDamaged(f"{path}: {why}", hint=_PARTITION_METADATA_HINT)


# -- the mark of a clean stop


def write_clean_shutdown(files: Files, directory: str, broker_epoch: int) -> None:
    """Mark a log directory, all logs of which are flushed and closed, as cleanly stopped."""
    mark = {"version": _CLEAN_SHUTDOWN_VERSION, "brokerEpoch": broker_epoch}
    data = json.dumps(mark, separators=(",", ":")).encode()
    files.write_atomic(f"{directory}/{CLEAN_SHUTDOWN_FILE}", data)


def read_clean_shutdown(files: Files, directory: str) -> int | None:
    """The broker epoch of the clean stop, or None if the last stop was not one.

    A mark that does not read as ours is none: the logs are then recovered, which is always right.
    """
    try:
        mark: object = json.loads(files.read_bytes(f"{directory}/{CLEAN_SHUTDOWN_FILE}"))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    if not isinstance(mark, dict) or mark.get("version") != _CLEAN_SHUTDOWN_VERSION:
        return None
    epoch = mark.get("brokerEpoch")
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None


def remove_clean_shutdown(files: Files, directory: str) -> None:
    """Durably remove the mark. Before any log is loaded: from then on the stop may be unclean."""
    path = f"{directory}/{CLEAN_SHUTDOWN_FILE}"
    if files.exists(path):
        files.remove(path)
        files.sync_dir(directory)
