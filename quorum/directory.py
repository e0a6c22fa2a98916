"""The directory of a controller: whose it is, who uses it, and how a new one begins.

    .lock                    held while a process uses the directory
    meta.properties          cluster, node and directory id; written last, so that whoever has it
                             was formatted to the end
    __cluster_metadata-0/    the metadata log and what belongs to it (`quorum.store`)

A directory id is drawn here, at random, and nowhere else: a wiped disk is another replica. Only
`form_directories` makes voters, and only of directories that it formats itself. All others start
as observers and become voters through the log.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kraftlog.clock import Clock
from kraftlog.error_codes import LOCAL_DISK
from kraftlog.errors import ConfigError, LogDamaged, StorageError
from kraftlog.types import Uuid
from quorum.core.messages import ReplicaKey, Voter, VoterSet
from quorum.store import format_store, log_directory
from storage.files import Files
from storage.log_config import LogConfig
from storage.log_dir import LogDir
from storage.meta_properties import META_PROPERTIES_FILE, MetaProperties, write_meta_properties


class AlreadyFormatted(StorageError):
    """The directory belongs to a node."""

    kind = LOCAL_DISK


class NotFormatted(StorageError):
    """The directory belongs to nobody yet."""

    kind = LOCAL_DISK


@dataclass(frozen=True, slots=True)
class Identity:
    """Which replica a directory is, of which cluster."""

    cluster_id: Uuid
    key: ReplicaKey


@dataclass(frozen=True, slots=True)
class Seat:
    """A first voter: its node id, its directory, and where the others will reach it."""

    node_id: int
    directory: str
    endpoint: str


@contextmanager
def open_directory(files: Files, path: str, clock: Clock) -> Iterator[Identity]:
    """Lock a formatted directory and say whose it is; LogDirLocked if another process has it."""
    if not files.is_dir(path):
        raise _not_formatted(path)
    with _locked(files, path, clock) as directory:
        if directory.meta is None:
            raise _not_formatted(path)
        yield _identity(path, directory.meta)


def format_directory(
    files: Files, path: str, clock: Clock, *, cluster_id: Uuid, node_id: int
) -> Identity:
    """Make a replica that is nobody's voter."""
    with _locked(files, path, clock) as directory:
        _check_new(files, directory)
        identity = Identity(cluster_id, ReplicaKey(node_id, Uuid.random()))
        _write(files, path, clock, identity, voters=None)
        return identity


def form_directories(
    files: Files, seats: Sequence[Seat], clock: Clock
) -> tuple[Uuid, tuple[Identity, ...]]:
    """Make a cluster: a new cluster id, and these directories as its first voters."""
    if len({seat.node_id for seat in seats}) < len(seats):
        raise ConfigError("two voters have the same node id", hint="give each its own")
    cluster_id = Uuid.random()
    with ExitStack() as locks:
        for seat in seats:
            directory = locks.enter_context(_locked(files, seat.directory, clock))
            _check_new(files, directory)
        made = tuple(
            Identity(cluster_id, ReplicaKey(seat.node_id, Uuid.random())) for seat in seats
        )
        voters = VoterSet.of(
            Voter(identity.key, seat.endpoint) for identity, seat in zip(made, seats, strict=True)
        )
        for identity, seat in zip(made, seats, strict=True):
            _write(files, seat.directory, clock, identity, voters=voters)
    return cluster_id, made


@contextmanager
def _locked(files: Files, path: str, clock: Clock) -> Iterator[LogDir]:
    config = LogConfig()
    directory = LogDir(files, path, config_of=lambda _: config, clock=clock)
    try:
        yield directory
    finally:
        directory.release()


def _check_new(files: Files, directory: LogDir) -> None:
    if directory.meta is not None:
        meta = directory.meta
        raise AlreadyFormatted(
            f"{directory.path} belongs to node {meta.node_id} of cluster {meta.cluster_id}",
            hint="`run` starts it; for another cluster give an empty directory",
        )
    metadata = log_directory(directory.path)
    # A format that was interrupted leaves files, but no log.
    has_log = files.is_dir(metadata) and any(
        name.endswith(".log") for name in files.list_dir(metadata)
    )
    if has_log or directory.found:
        held = metadata if has_log else directory.found[0]
        raise LogDamaged(
            f"{directory.path}/{META_PROPERTIES_FILE} is missing, but the directory holds {held}",
            hint="restore that file from a backup, or give an empty directory",
        )


def _write(
    files: Files, path: str, clock: Clock, identity: Identity, *, voters: VoterSet | None
) -> None:
    format_store(files, path, clock, voters)
    meta = MetaProperties.of(
        cluster_id=str(identity.cluster_id),
        directory_id=identity.key.directory_id,
        node_id=identity.key.node_id,
    )
    write_meta_properties(files, path, meta)


def _identity(path: str, meta: MetaProperties) -> Identity:
    where = f"{path}/{META_PROPERTIES_FILE}"
    if meta.node_id is None:
        raise LogDamaged(
            f"{where} has no node.id, so the directory is no controller's",
            hint="form or join with an empty directory",
        )
    try:
        cluster_id = Uuid.parse(meta.cluster_id)
    except ValueError as error:
        raise LogDamaged(
            f"{where}: cluster.id: {error}", hint="restore the file from a backup"
        ) from None
    return Identity(cluster_id, ReplicaKey(meta.node_id, meta.directory_id))


def _not_formatted(path: str) -> NotFormatted:
    return NotFormatted(
        f"{path} is not formatted",
        hint="`form` makes a new cluster in it, `join HOST:PORT` a member of a running one",
    )
