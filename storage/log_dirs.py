"""All log directories of a process (`log.dirs`): where each partition's log is, and where a new one
goes.

A partition lives in one directory. A new one goes to the directory with the fewest, of several such
to the first in the order of `log.dirs`.

Before anything is changed, all directories are locked and compared: they must belong to one cluster
and one node, have different directory ids, and no partition may be in two of them. Today the
failure of one directory is the failure of all: every error of a directory goes up to the caller.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import Lock
from typing import TypeVar

from kraftlog.clock import Clock, SystemClock
from kraftlog.error_codes import LOCAL_DISK
from kraftlog.errors import ConfigError, KraftError, StorageError
from kraftlog.types import TopicPartition, Uuid
from storage.cleaner import Cleaned, Cleaner
from storage.damage import StateDamaged
from storage.files import Files
from storage.log import Log
from storage.log_dir import ConfigOf, LogDir
from storage.meta_properties import (
    CLUSTER_ID,
    DIRECTORY_ID,
    META_PROPERTIES_FILE,
    NODE_ID,
    MetaProperties,
)
from storage.retention import apply_retention

logger = logging.getLogger(__name__)

UNKNOWN_BROKER_EPOCH = -1

T = TypeVar("T")


class LogDirMismatch(StorageError):
    """Directories that do not belong together, or not to this node."""

    kind = LOCAL_DISK


class PartitionInTwoDirs(StorageError):
    """Two directories hold a log of the same partition, and nothing says which one is true."""

    kind = LOCAL_DISK


class LogDirs:
    """Get one by `LogDirs.open`; all methods but `close` may then be called from any thread.

    They are synchronous and wait for the disk, so an event loop calls them in an executor; only
    `get` and the properties are quick and take no lock. `close` comes last, when nothing appends
    any more.
    """

    def __init__(
        self, dirs: Sequence[LogDir], cluster_id: str, node_id: int | None, clock: Clock
    ) -> None:
        self.dirs = tuple(dirs)
        self.cluster_id = cluster_id
        self.node_id = node_id
        """None until the node is given one: see `set_node_id`."""
        self._clock = clock
        self._placing = Lock()

    @classmethod
    def open(
        cls,
        files: Files,
        paths: Sequence[str],
        *,
        cluster_id: str | None = None,
        node_id: int | None = None,
        config_of: ConfigOf,
        clock: Clock | None = None,
    ) -> "LogDirs":
        """Lock, check and load all directories; new ones are formatted.

        Ids that are not given are those that the directories have. `config_of` gives the
        configuration of a partition's log. A damaged log does not stop the others: see `damaged`.
        """
        clock = clock or SystemClock()
        _check_paths(paths)
        with ExitStack() as undo:
            dirs = []
            for path in paths:
                dirs.append(LogDir(files, path, config_of=config_of, clock=clock))
                undo.callback(dirs[-1].release)
            _check_directory_ids(dirs)
            cluster_id = _cluster_id(dirs, cluster_id)
            node_id = _common(dirs, NODE_ID, node_id, lambda meta: meta.node_id)
            _check_partitions(dirs)
            _give_ids(dirs, cluster_id, node_id)
            for log_dir in dirs:
                log_dir.load()
            undo.pop_all()
            return cls(dirs, cluster_id, node_id, clock)

    # -- one partition

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch of the last stop, if that was a clean one in every directory; else
        UNKNOWN_BROKER_EPOCH.
        """
        epochs = {log_dir.clean_broker_epoch for log_dir in self.dirs}
        epoch = epochs.pop()
        return UNKNOWN_BROKER_EPOCH if epochs or epoch is None else epoch

    @property
    def damaged(self) -> dict[TopicPartition, StorageError]:
        """The partitions whose logs could not be opened, and why. Deleting one, or setting it
        aside, makes room for a new copy.
        """
        return {key: why for log_dir in self.dirs for key, why in log_dir.damaged.items()}

    def partitions(self) -> list[TopicPartition]:
        """Every partition that has a log here which can be used."""
        return [partition for log_dir in self.dirs for partition in list(log_dir.logs)]

    def get(self, partition: TopicPartition) -> Log | None:
        """The log of a partition, or None; LogDamaged if it is here but could not be opened."""
        for log_dir in self.dirs:
            log = log_dir.logs.get(partition)
            if log is not None:
                return log
            if partition in log_dir.damaged:
                raise log_dir.damaged[partition]
        return None

    def dir_of(self, partition: TopicPartition) -> LogDir | None:
        """The directory in which a partition lives, or None."""
        for log_dir in self.dirs:
            if partition in log_dir.logs or partition in log_dir.damaged:
                return log_dir
        return None

    def create(self, partition: TopicPartition, topic_id: Uuid) -> Log:
        """The log of a partition, new and empty unless it is here already.

        StorageError if what is here belongs to another topic of that name: delete it, or set it
        aside, first.
        """
        with self._placing:
            log = self.get(partition)
            if log is None:
                return self._emptiest().create(partition, topic_id)
        if log.topic_id != topic_id:
            raise StorageError(
                f"{log.directory} belongs to topic id {log.topic_id}, not to {topic_id}",
                hint="delete it or set it aside first",
            )
        return log

    def _emptiest(self) -> LogDir:
        return min(self.dirs, key=lambda log_dir: log_dir.partition_count)

    def delete(self, partition: TopicPartition) -> bool:
        """Delete a partition's log, usable or damaged; False if there is none.

        It is out of use, and its name free, when this returns. Its files go in a later `purge`.
        """
        log_dir = self.dir_of(partition)
        if log_dir is not None:
            log_dir.delete(partition)
        return log_dir is not None

    def set_aside(self, partition: TopicPartition) -> str | None:
        """Rename the log of a partition that is nobody's to a `-stray` directory, which stays.

        Returns its path; None if there was nothing to keep.
        """
        log_dir = self.dir_of(partition)
        return log_dir.set_aside(partition) if log_dir else None

    def truncate_to(self, partition: TopicPartition, offset: int) -> int:
        """Cut a log (`Log.truncate_to`), with the checkpoints lowered before; returns its end."""
        return self._dir_of(partition).truncate_to(partition, offset)

    def restart_at(self, partition: TopicPartition, offset: int) -> None:
        """Empty a log (`Log.restart_at`), with the checkpoints lowered before."""
        self._dir_of(partition).restart_at(partition, offset)

    def _dir_of(self, partition: TopicPartition) -> LogDir:
        log_dir = self.dir_of(partition)
        if log_dir is None:
            raise StorageError(f"{partition} has no log here", hint="create it first")
        return log_dir

    # -- in the background

    def checkpoint(self) -> None:
        """Write the offset checkpoints of all directories."""
        for log_dir in self.dirs:
            log_dir.checkpoint()

    def apply_retention(self) -> int:
        """Retire segments that have expired, and forget producers that are silent for too long.

        Returns the number of segments; `purge` unlinks them later.
        """
        return sum(
            self._apply_retention(log)
            for log_dir in self.dirs
            for log in list(log_dir.logs.values())
        )

    def _apply_retention(self, log: Log) -> int:
        """One log that cannot be worked on does not hold up the others."""
        try:
            log.expire_producers()
            return apply_retention(log, self._clock)
        except (OSError, KraftError, StateDamaged) as error:
            logger.warning("no retention in %s: %s", log.directory, error)
            return 0

    def clean_dirtiest(self, cleaner: Cleaner) -> Cleaned | None:
        """Compact the log that needs it most, and note how far; None if none is due."""
        owners = {
            log: (log_dir, partition)
            for log_dir in self.dirs
            for partition, log in list(log_dir.logs.items())
            if log.config.compact
        }
        cleaned = cleaner.clean_dirtiest(
            (log, log_dir.cleaned_offset(partition)) for log, (log_dir, partition) in owners.items()
        )
        if cleaned is not None:
            log_dir, partition = owners[cleaned.log]
            log_dir.note_cleaned(partition, cleaned.result)
        return cleaned

    def purge(self) -> int:
        """Unlink what was retired or deleted long enough ago; returns how much still waits."""
        return sum(log_dir.purge() for log_dir in self.dirs)

    def set_node_id(self, node_id: int) -> None:
        """Keep the id that this node was given, in every directory."""
        for log_dir in self.dirs:
            log_dir.set_node_id(node_id)
        self.node_id = node_id

    def close(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> bool:
        """Flush and close everything; whether that was a clean stop of every directory."""
        clean = [log_dir.close(broker_epoch) for log_dir in self.dirs]
        return all(clean)


def _check_paths(paths: Sequence[str]) -> None:
    if not paths:
        raise ConfigError("log.dirs is empty", hint="name at least one directory")
    absolute = [os.path.abspath(path) for path in paths]
    for path in absolute:
        if absolute.count(path) > 1:
            raise ConfigError(f"log.dirs names {path} twice", hint="name each directory once")


def _cluster_id(dirs: Sequence[LogDir], given: str | None) -> str:
    cluster_id = _common(dirs, CLUSTER_ID, given, lambda meta: meta.cluster_id)
    if cluster_id is None:
        raise ConfigError(
            f"{dirs[0].path} is new, and no {CLUSTER_ID} was given",
            hint="say which cluster it is for",
        )
    return cluster_id


def _common(
    dirs: Sequence[LogDir], key: str, given: T | None, read: Callable[[MetaProperties], T | None]
) -> T | None:
    """The one value of a key that is given or in any of the directories; None if there is none."""
    value, source = given, "this process was told"
    for log_dir in dirs:
        found = read(log_dir.meta) if log_dir.meta else None
        path = f"{log_dir.path}/{META_PROPERTIES_FILE}"
        if found is not None and value is not None and found != value:
            raise LogDirMismatch(
                f"{path} says {key}={found}, but {source} {key}={value}",
                hint="name in log.dirs only directories of this node, or format that one anew",
            )
        if value is None and found is not None:
            value, source = found, f"{path} says"
    return value


def _check_directory_ids(dirs: Sequence[LogDir]) -> None:
    owners: dict[Uuid, LogDir] = {}
    for log_dir in dirs:
        if log_dir.meta is None:
            continue
        other = owners.setdefault(log_dir.meta.directory_id, log_dir)
        if other is not log_dir:
            raise LogDirMismatch(
                f"{other.path} and {log_dir.path} have the same"
                f" {DIRECTORY_ID}={log_dir.meta.directory_id}: one is a copy of the other",
                hint="take the copy out of log.dirs",
            )


def _check_partitions(dirs: Sequence[LogDir]) -> None:
    owners: dict[TopicPartition, LogDir] = {}
    for log_dir in dirs:
        for partition in log_dir.found:
            other = owners.setdefault(partition, log_dir)
            if other is not log_dir:
                raise PartitionInTwoDirs(
                    f"{partition} is in two directories: {other.path}/{partition} and"
                    f" {log_dir.path}/{partition}",
                    hint="move one of them out of log.dirs, the one that ends earlier if in doubt:"
                    " `python -m storage.dump` shows both",
                )


def _give_ids(dirs: Sequence[LogDir], cluster_id: str, node_id: int | None) -> None:
    for log_dir in dirs:
        if log_dir.meta is None:
            log_dir.format(cluster_id, node_id)
        elif log_dir.meta.node_id is None and node_id is not None:
            log_dir.set_node_id(node_id)
