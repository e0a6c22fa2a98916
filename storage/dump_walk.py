"""From the paths that somebody named to the events of all files behind them."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kraftlog.errors import StorageError
from storage.dump_events import (
    KNOWN_NAMES,
    Event,
    FileBegin,
    Finding,
    Kind,
    LogFile,
    Options,
    Severity,
    log_file,
)
from storage.dump_index import dump_index
from storage.dump_log import Place, dump_log
from storage.dump_state import dump_state, read_flushed_offset
from storage.files import Files
from storage.partition_names import parse_partition_name
from storage.recovery import RECOVERY_POINT_FILE
from storage.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SWAP_SUFFIX, TIME_INDEX_SUFFIX


class NothingToRead(StorageError):
    """A path behind which there is no file of a log."""


@dataclass(frozen=True, slots=True)
class Target:
    """Files of one directory, in the order in which they are read."""

    directory: str
    wanted: tuple[LogFile, ...]
    left_out: tuple[LogFile, ...] = ()
    missing: tuple[str, ...] = ()
    """Indexes that segments should have."""


def find_targets(files: Files, path: str) -> list[Target]:
    """What to read for a path, or NothingToRead."""
    if not files.exists(path):
        raise NothingToRead(
            f"{path}: there is no such file or directory",
            hint="name a segment, an index, a checkpoint, or a partition's directory",
        )
    if files.is_dir(path):
        return _directory_targets(files, path)
    file = log_file(path)
    if file.kind is Kind.OTHER:
        raise NothingToRead(
            f"{path}: this is not the name of a log's file",
            hint=f"the name tells what is in it; known are {KNOWN_NAMES}",
        )
    return [Target(os.path.dirname(path) or ".", (file,))]


def _directory_targets(files: Files, path: str) -> list[Target]:
    """A partition's directory; or one of many partitions, each a directory in it."""
    inner = [
        target
        for name in files.list_dir(path)
        if parse_partition_name(name) and files.is_dir(f"{path}/{name}")
        for target in [_directory_target(files, f"{path}/{name}")]
    ]
    targets = [target for target in [_directory_target(files, path), *inner] if target.wanted]
    if not targets:
        raise NothingToRead(
            f"{path}: no file in this directory is one of a log",
            hint=f"the name tells what is in a file; known are {KNOWN_NAMES}",
        )
    return targets


def _directory_target(files: Files, directory: str) -> Target:
    found = sorted(
        (log_file(os.path.join(directory, name)) for name in files.list_sizes(directory)),
        key=lambda file: file.order,
    )
    known = [file for file in found if file.kind is not Kind.OTHER]
    return Target(
        directory,
        tuple(file for file in known if _belongs(file)),
        tuple(file for file in known if not _belongs(file)),
        tuple(_missing_indexes(known)),
    )


def _missing_indexes(known: list[LogFile]) -> Iterator[str]:
    paths = {file.path for file in known}
    for file in known:
        if file.kind is Kind.LOG and file.is_live:
            stem = file.path.removesuffix(LOG_SUFFIX)
            wanted = (stem + OFFSET_INDEX_SUFFIX, stem + TIME_INDEX_SUFFIX)
            yield from (path for path in wanted if path not in paths)


def _belongs(file: LogFile) -> bool:
    """The next start finishes a swap; whatever else is on its way in or out, it drops."""
    return file.is_live or file.suffix == SWAP_SUFFIX


def dump_target(files: Files, target: Target, options: Options) -> Iterator[Event]:
    """All events of a target's files. One that cannot be read does not keep the others."""
    try:
        around = _surroundings(files, target.directory)
    except OSError as error:
        around = _Surroundings(None, Place())
        yield _os_finding(target.directory, error)
    for file in target.wanted:
        yield from _dump_file(files, file, around.place_of(file), options)
    for path in target.missing:
        what = "is missing: whoever opens the log makes it anew"
        yield Finding(path=path, severity=Severity.NOTE, what=what)
    for file in target.left_out:
        yield Finding(
            path=file.path,
            severity=Severity.NOTE,
            what=f"left out: {file.suffix} is no part of the log, the next start removes it",
            hint="name the file to see what is in it",
        )


@dataclass(frozen=True, slots=True)
class _Surroundings:
    active_offset: int | None
    """The base offset of the last segment."""
    place: Place

    def place_of(self, file: LogFile) -> Place:
        is_segment_file = file.base_offset is not None and file.kind is not Kind.METADATA_SNAPSHOT
        if is_segment_file and file.is_live:
            return replace(self.place, is_active=file.base_offset == self.active_offset)
        if file.base_offset is None:
            return self.place
        return Place()


def _surroundings(files: Files, directory: str) -> _Surroundings:
    logs = [log_file(name) for name in files.list_dir(directory)]
    offsets = [
        log.base_offset
        for log in logs
        if log.kind is Kind.LOG and log.is_live and log.base_offset is not None
    ]
    flushed = read_flushed_offset(files, os.path.join(directory, RECOVERY_POINT_FILE))
    return _Surroundings(max(offsets, default=None), Place(flushed_offset=flushed))


_DUMPERS: dict[Kind, Callable[[Files, LogFile, Place, Options], Iterator[Event]]] = {
    Kind.LOG: dump_log,
    Kind.METADATA_SNAPSHOT: dump_log,
    Kind.OFFSET_INDEX: dump_index,
    Kind.TIME_INDEX: dump_index,
}


def _dump_file(files: Files, file: LogFile, place: Place, options: Options) -> Iterator[Event]:
    try:
        size = files.size(file.path)
        yield FileBegin(path=file.path, kind=file.kind, size=size, facts=file.facts)
        yield from _DUMPERS.get(file.kind, dump_state)(files, file, place, options)
    except OSError as error:
        yield _os_finding(file.path, error)


def _os_finding(path: str, error: OSError) -> Finding:
    what = f"cannot be read: {error.strerror or error}"
    if isinstance(error, FileNotFoundError):
        what = "went away meanwhile"
        return Finding(path=path, severity=Severity.NOTE, what=what)
    if isinstance(error, PermissionError):
        hint = "files are opened as the log engine opens them, to read and write: run this as their"
        hint += " owner, or on a copy"
        return Finding(path=path, severity=Severity.UNREAD, what=what, hint=hint)
    return Finding(path=path, severity=Severity.DAMAGE, what=what, hint="look at the disk")
