"""One log directory: the logs of many partitions, and what they have in common.

    .lock                              held while a process uses the directory
    meta.properties                    cluster, node and directory id
    .kafka_cleanshutdown               there only while nothing runs, after a clean stop
    log-start-offset-checkpoint        where logs begin, if not at 0
    replication-offset-checkpoint      high watermarks
    cleaner-offset-checkpoint          up to where logs are compacted
    recovery-point-offset-checkpoint   for Kafka's tools: each log has a recovery point of its own
    <topic>-<partition>/               a log, from its first append on
    <topic>-<partition>.<id>-delete/   to be unlinked in the background

Anything else is not ours and is left alone, the metadata log included: the quorum opens that one.

A checkpoint may be old. That costs little where a log has grown since, but a log that was cut, or
deleted and created anew, must not meet the offsets of its past. So those are taken from the
checkpoints first, durably: cut a log by way of its directory.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterator

from kraftlog._check import invariant
from kraftlog.clock import Clock
from kraftlog.errors import KraftError, LogDamaged, StorageError
from kraftlog.types import TopicPartition, Uuid
from storage.checkpoint import (
    read_clean_shutdown,
    read_offsets,
    read_partition_metadata,
    remove_clean_shutdown,
    write_clean_shutdown,
    write_offsets,
)
from storage.compaction import CleanResult
from storage.damage import StateDamaged
from storage.files import Files
from storage.log import Log
from storage.log_config import LogConfig
from storage.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from storage.partition_names import (
    delete_name,
    is_delete_name,
    parse_partition_name,
    stray_name,
)
from storage.recovery import OpenOptions, open_log

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
LOG_STARTS_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARKS_FILE = "replication-offset-checkpoint"
CLEANED_FILE = "cleaner-offset-checkpoint"
RECOVERY_POINTS_FILE = "recovery-point-offset-checkpoint"
METADATA_TOPIC = "__cluster_metadata"

ConfigOf = Callable[[TopicPartition], LogConfig]
Offsets = dict[TopicPartition, int]


class _OffsetTable:
    """An offset checkpoint, and what the file says by now."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self.offsets: Offsets = {}

    def read(self) -> None:
        self.offsets = read_offsets(self._files, self._path)

    def write(self, offsets: Offsets) -> None:
        """Replace the file, durably, unless it says the same already."""
        if offsets != self.offsets:
            write_offsets(self._files, self._path, offsets)
            self.offsets = offsets

    def lower(self, partition: TopicPartition, offset: int | None) -> None:
        """Durably take back what it says beyond `offset` about a partition; None: all of it."""
        found = self.offsets.get(partition)
        if found is None or (offset is not None and found <= offset):
            return
        kept = {key: value for key, value in self.offsets.items() if key != partition}
        self.write(kept if offset is None else kept | {partition: offset})


class LogDir:
    """One log directory, locked from construction to `close` or `release`.

    One thread constructs it, formats it if it is new, and calls `load`. From then on every method
    may be called from any thread: one lock orders what changes the set of logs or a checkpoint.
    Reading `logs` needs no lock. What happens within a log is the log's own business.
    """

    def __init__(self, files: Files, path: str, *, config_of: ConfigOf, clock: Clock) -> None:
        """Lock the directory, created if it is missing, and read whose it is and what it holds."""
        self.path = os.path.abspath(path)
        self.logs: dict[TopicPartition, Log] = {}
        self.damaged: dict[TopicPartition, LogDamaged] = {}
        """Logs that could not be opened, and why. They stay as they are, and the others live."""
        self.clean_broker_epoch: int | None = None
        """The broker epoch of the clean stop that `load` found; None after any other stop."""
        self._files = files
        self._config_of = config_of
        self._clock = clock
        self._mutex = threading.RLock()
        self._loaded = False
        self._doomed: list[tuple[int, str]] = []  # when to unlink which directory
        self._cleaned_to: Offsets = {}
        self._starts = self._table(LOG_STARTS_FILE)
        self._high_watermarks = self._table(HIGH_WATERMARKS_FILE)
        self._cleaned = self._table(CLEANED_FILE)
        self._recovery_points = self._table(RECOVERY_POINTS_FILE)
        with self._storage_errors("use"):
            _make_durable_dir(files, self.path)
            self._lock = files.lock(f"{self.path}/{LOCK_FILE}")
            try:
                self.meta = read_meta_properties(files, self.path)
                self.found = self._find_partitions()
            except BaseException:
                self._lock.release()
                raise

    def _table(self, name: str) -> _OffsetTable:
        return _OffsetTable(self._files, f"{self.path}/{name}")

    def __repr__(self) -> str:
        return f"LogDir({self.path!r}, {len(self.logs)} logs)"

    @contextlib.contextmanager
    def _storage_errors(self, doing: str) -> Iterator[None]:
        """Tell which directory it was when the disk fails."""
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"cannot {doing} the log directory {self.path}: {error.strerror or error}",
                hint="see that the disk is mounted, has room and may be written to",
            ) from error

    def _find_partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that have a directory here; notes those that were to be deleted."""
        found = []
        for name in self._files.list_dir(self.path):
            partition = parse_partition_name(name)
            if is_delete_name(name):
                self._doomed.append((self._clock.monotonic_ms(), f"{self.path}/{name}"))
            elif partition is None or partition.topic == METADATA_TOPIC:
                continue
            elif self._files.is_dir(f"{self.path}/{name}"):
                found.append(partition)
        return tuple(found)

    # -- whose it is

    def format(self, cluster_id: str, node_id: int | None) -> None:
        """Give a new directory its identity; the directory id is drawn at random."""
        invariant(self.meta is None, "formatted twice", path=self.path)
        if self.found:
            raise LogDamaged(
                f"{self.path}/{META_PROPERTIES_FILE} is missing, but the directory holds"
                f" {self.found[0]} and so is not new",
                hint="restore that file from a backup, or give log.dirs an empty directory",
            )
        with self._storage_errors("format"):
            # A process that was killed may have made the directory and not come to sync it.
            self._files.sync_dir(os.path.dirname(self.path))
        fresh = MetaProperties.of(
            cluster_id=cluster_id, directory_id=Uuid.random(), node_id=node_id
        )
        self._write_meta(fresh)

    def set_node_id(self, node_id: int) -> None:
        """Keep the id that the node was given."""
        if self.meta is not None:
            self._write_meta(self.meta.with_node_id(node_id))

    def _write_meta(self, meta: MetaProperties) -> None:
        with self._storage_errors("format"):
            write_meta_properties(self._files, self.path, meta)
        self.meta = meta

    # -- opening

    def load(self) -> None:
        """Open every log. From here on the stop counts as unclean until `close` is through."""
        with self._mutex, self._storage_errors("load"):
            self.clean_broker_epoch = read_clean_shutdown(self._files, self.path)
            remove_clean_shutdown(self._files, self.path)
            for table in (self._starts, self._high_watermarks, self._cleaned):
                table.read()
            self._cleaned_to = dict(self._cleaned.offsets)
            for partition in self.found:
                self._load_log(partition)
            self._loaded = True

    def _load_log(self, partition: TopicPartition) -> None:
        try:
            log = self._open_log(partition)
        except LogDamaged as damage:
            self._note_damage(partition, damage)
            return
        high_watermark = self._high_watermarks.offsets.get(partition, 0)
        log.high_watermark = min(max(high_watermark, log.start_offset), log.end_offset)
        self.logs[partition] = log

    def _note_damage(self, partition: TopicPartition, damage: LogDamaged) -> None:
        logger.error("%s cannot be used: %s", partition, damage)
        self.damaged[partition] = damage

    def _open_log(self, partition: TopicPartition) -> Log:
        directory = self._log_path(partition)
        options = OpenOptions(
            clean=self.clean_broker_epoch is not None,
            start_offset=self._starts.offsets.get(partition, 0),
            topic_id=read_partition_metadata(self._files, directory),
        )
        return open_log(self._files, directory, self._config_of(partition), self._clock, options)

    def _log_path(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition}"

    # -- the set of logs

    @property
    def partition_count(self) -> int:
        """How many partitions live here, also those that cannot be used."""
        return len(self.logs) + len(self.damaged)

    def create(self, partition: TopicPartition, topic_id: Uuid) -> Log:
        """A new, empty log. It has no directory before its first append."""
        directory = self._log_path(partition)
        invariant(parse_partition_name(str(partition)) == partition, "no name", name=partition)
        with self._mutex, self._storage_errors("add a log to"):
            invariant(partition not in self.logs, "created twice", partition=partition)
            if self._files.is_dir(directory):
                raise StorageError(
                    f"{directory} has appeared since this process started",
                    hint="move it away, or restart the process to have it opened",
                )
            for table in (self._starts, self._high_watermarks, self._cleaned):
                table.lower(partition, None)
            self._cleaned_to.pop(partition, None)
            config, options = self._config_of(partition), OpenOptions(topic_id=topic_id)
            log = open_log(self._files, directory, config, self._clock, options)
            self.logs[partition] = log
            return log

    def delete(self, partition: TopicPartition) -> None:
        """Take a log out of use for good. `purge` unlinks it file.delete.delay.ms later."""
        with self._mutex, self._storage_errors("delete a log of"):
            log = self.logs.get(partition)
            if log is not None:
                log.discard()
            config = log.config if log else self._config_of(partition)
            renamed = self._rename(partition, delete_name(partition))
            if renamed:
                due_ms = self._clock.monotonic_ms() + config.file_delete_delay_ms
                self._doomed.append((due_ms, renamed))

    def set_aside(self, partition: TopicPartition) -> str | None:
        """Take a stray log out of use; returns the directory that keeps it, if it ever had one."""
        with self._mutex, self._storage_errors("set aside a log of"):
            log = self.logs.get(partition)
            if log is not None:
                log.close()
            return self._rename(partition, stray_name(partition))

    def _rename(self, partition: TopicPartition, name: str) -> str | None:
        """The log counts as gone only when its old name is gone for good."""
        directory, renamed = self._log_path(partition), f"{self.path}/{name}"
        exists = self._files.is_dir(directory)
        if exists:
            self._files.rename(directory, renamed)
            self._files.sync_dir(self.path)
        self.logs.pop(partition, None)
        self.damaged.pop(partition, None)
        return renamed if exists else None

    # -- cutting a log

    def truncate_to(self, partition: TopicPartition, offset: int) -> int:
        """`Log.truncate_to`, with the checkpoints lowered before."""
        with self._mutex, self._storage_errors("cut a log of"):
            self._lower(partition, offset)
            return self.logs[partition].truncate_to(offset)

    def restart_at(self, partition: TopicPartition, offset: int) -> None:
        """`Log.restart_at`, with the checkpoints lowered before."""
        with self._mutex, self._storage_errors("cut a log of"):
            self._starts.lower(partition, offset)
            self._lower(partition, offset)
            self.logs[partition].restart_at(offset)

    def _lower(self, partition: TopicPartition, offset: int) -> None:
        self._high_watermarks.lower(partition, offset)
        self._cleaned.lower(partition, offset)
        if self._cleaned_to.get(partition, 0) > offset:
            self._cleaned_to[partition] = offset

    # -- in the background

    def cleaned_offset(self, partition: TopicPartition) -> int:
        """Up to where a log is compacted."""
        return self._cleaned_to.get(partition, 0)

    def note_cleaned(self, partition: TopicPartition, result: CleanResult) -> None:
        """Keep what a compaction reached, unless the log was cut or replaced meanwhile."""
        with self._mutex:
            log = self.logs.get(partition)
            if log is not None and log.cuts == result.cuts:
                self._cleaned_to[partition] = result.next_dirty_offset

    def checkpoint(self) -> None:
        """Write all offset checkpoints that have changed."""
        with self._mutex, self._storage_errors("write the checkpoints of"):
            logs = [(key, log) for key, log in self.logs.items() if log.segments]
            self._write(self._starts, {k: log.start_offset for k, log in logs if log.start_offset})
            self._write(self._high_watermarks, {key: log.high_watermark for key, log in logs})
            self._write(
                self._cleaned, {k: o for k, o in self._cleaned_to.items() if k in self.logs}
            )
            self._write(self._recovery_points, {key: log.flushed_offset for key, log in logs})

    def _write(self, table: _OffsetTable, offsets: Offsets) -> None:
        """Of a log that could not be opened the old entry stays true."""
        kept = {key: table.offsets[key] for key in self.damaged if key in table.offsets}
        table.write(offsets | kept)

    def purge(self) -> int:
        """Unlink what was deleted long enough ago; returns how many segments and logs remain."""
        now_ms = self._clock.monotonic_ms()
        with self._mutex:
            ripe = [(due_ms, path) for due_ms, path in self._doomed if due_ms <= now_ms]
            self._doomed = [entry for entry in self._doomed if entry not in ripe]
        for due_ms, path in ripe:
            try:
                _remove_tree(self._files, path)
            except OSError as error:
                logger.warning("%s cannot be unlinked, to be tried again: %s", path, error)
                with self._mutex:
                    self._doomed.append((due_ms, path))
        with self._storage_errors("unlink segments in"):
            remaining = sum(log.purge() for log in list(self.logs.values()))
        return len(self._doomed) + remaining

    # -- the end

    def close(self, broker_epoch: int) -> bool:
        """Flush and close every log, write the checkpoints, and last the mark of a clean stop.

        Returns False, and leaves no mark, where not all of that went well: the next start then
        recovers.
        """
        with self._mutex:
            closed = [self._close_log(log) for log in self.logs.values()]
            try:
                self.checkpoint()
                clean = self._loaded and not self.damaged and all(closed)
                if clean:
                    write_clean_shutdown(self._files, self.path, broker_epoch)
            except (OSError, StorageError) as error:
                logger.warning("%s is not closed cleanly: %s", self.path, error)
                clean = False
            self._lock.release()
            return clean

    def _close_log(self, log: Log) -> bool:
        try:
            return log.close()
        except (OSError, KraftError, StateDamaged) as error:
            logger.warning("%s is not closed cleanly: %s", log.directory, error)
            log.discard()
            return False

    def release(self) -> None:
        """Let go of the directory and leave all as it is, as if the process had ended."""
        for log in self.logs.values():
            log.discard()
        self._lock.release()


def _make_durable_dir(files: Files, path: str) -> None:
    if not files.is_dir(path):
        parent = os.path.dirname(path)
        _make_durable_dir(files, parent)
        files.make_dir(path)
        files.sync_dir(parent)


def _remove_tree(files: Files, path: str) -> None:
    for name in files.list_dir(path):
        child = f"{path}/{name}"
        if files.is_dir(child):
            _remove_tree(files, child)
        else:
            files.remove(child)
    files.remove_dir(path)
