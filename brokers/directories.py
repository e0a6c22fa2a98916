"""The directories of a broker: its partitions' logs, and its copy of the metadata log.

The metadata log lives in one of the log directories, beside the partitions, or in a directory of
its own. Either way it is locked while this process runs, and belongs to one cluster and one node.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from brokers.config import BrokerConfig
from kraftlog.clock import Clock
from kraftlog.errors import LogDamaged
from kraftlog.types import TopicPartition, Uuid
from metadata_log.image import Image
from storage.files import Files
from storage.log_config import LogConfig
from storage.log_dir import ConfigOf, LogDir
from storage.log_dirs import UNKNOWN_BROKER_EPOCH, LogDirMismatch, LogDirs


@dataclass(slots=True)
class Directories:
    """All of them, locked and open."""

    logs: LogDirs
    metadata: LogDir
    """That which holds the metadata log."""
    is_open: bool = True

    @property
    def cluster_id(self) -> Uuid:
        try:
            return Uuid.parse(self.logs.cluster_id)
        except ValueError as error:
            raise LogDamaged(
                f"{self.logs.dirs[0].path}: cluster.id: {error}",
                hint="restore meta.properties from a backup",
            ) from None

    @property
    def log_dir_ids(self) -> tuple[Uuid, ...]:
        return tuple(each.meta.directory_id for each in self.logs.dirs if each.meta is not None)

    @property
    def metadata_dir_id(self) -> Uuid:
        if self.metadata.meta is None:
            raise LogDamaged(f"{self.metadata.path} has lost its meta.properties")
        return self.metadata.meta.directory_id

    @property
    def previous_epoch(self) -> int | None:
        """The broker epoch of a clean stop; None: the last one was unclean."""
        epoch = self.logs.previous_broker_epoch
        return None if epoch == UNKNOWN_BROKER_EPOCH else epoch

    @property
    def has_own_metadata_dir(self) -> bool:
        return self.metadata not in self.logs.dirs

    def keep_node_id(self, node_id: int) -> None:
        """Write down the id that the controller handed out. Waits for the disk."""
        self.logs.set_node_id(node_id)
        if self.has_own_metadata_dir:
            self.metadata.set_node_id(node_id)

    def set_strays_aside(self, image: Image, broker_id: int) -> list[str]:
        """Rename the logs of partitions that are not ours; returns what they are called now.

        Only with a complete image: by an old one everything that came since looks like a stray.
        Waits for the disk.
        """
        strays = [each for each in self._found() if not self._is_ours(each, image, broker_id)]
        return [kept for each in strays if (kept := self.logs.set_aside(each)) is not None]

    def _found(self) -> Sequence[TopicPartition]:
        return [*self.logs.partitions(), *self.logs.damaged]

    def _is_ours(self, name: TopicPartition, image: Image, broker_id: int) -> bool:
        topic = image.topic(name.topic)
        if topic is None or name.partition >= len(topic.partitions):
            return False
        if broker_id not in topic.partitions[name.partition].replicas:
            return False
        if name in self.logs.damaged:
            return True  # whose it was cannot be read; the partition reports the damage
        log = self.logs.get(name)
        return log is not None and log.topic_id == topic.id

    def close(self, broker_epoch: int | None = None) -> bool:
        """Flush and close all logs, and mark the stop as clean; whether it was. Waits for the disk.
        Without an epoch the mark keeps that of the stop before, if that was a clean one.
        """
        epoch = self.previous_epoch if broker_epoch is None else broker_epoch
        clean = self.logs.close(UNKNOWN_BROKER_EPOCH if epoch is None else epoch)
        self.was_closed()
        return clean

    def was_closed(self) -> None:
        """Somebody else has closed the logs."""
        self.is_open = False
        if self.has_own_metadata_dir:
            self.metadata.release()

    def release(self) -> None:
        """Let go and leave everything as it is, as if the process had ended."""
        if not self.is_open:
            return
        self.is_open = False
        for each in self.logs.dirs:
            each.release()
        if self.has_own_metadata_dir:
            self.metadata.release()


def open_directories(
    config: BrokerConfig, files: Files, clock: Clock, config_of: ConfigOf
) -> Directories:
    """Lock, check, format where new, and recover. Takes as long as the disk needs."""
    logs = LogDirs.open(
        files,
        config.log_dirs,
        cluster_id=config.cluster_id,
        node_id=config.node_id,
        config_of=config_of,
        clock=clock,
    )
    try:
        return Directories(logs, _metadata_dir(config, logs, files, clock))
    except BaseException:
        for each in logs.dirs:
            each.release()
        raise


def _metadata_dir(config: BrokerConfig, logs: LogDirs, files: Files, clock: Clock) -> LogDir:
    plain = LogConfig()
    if not config.has_own_metadata_dir:
        wanted = os.path.abspath(config.metadata_dir)
        return next(each for each in logs.dirs if each.path == wanted)
    own = LogDir(files, config.metadata_dir, config_of=lambda _: plain, clock=clock)
    try:
        _adopt(own, logs)
    except BaseException:
        own.release()
        raise
    return own


def _adopt(own: LogDir, logs: LogDirs) -> None:
    """Make a directory ours that is new; refuse one that is somebody else's."""
    if own.meta is None:
        own.format(logs.cluster_id, logs.node_id)
    elif own.meta.cluster_id != logs.cluster_id or own.meta.node_id != logs.node_id:
        raise LogDirMismatch(
            f"{own.path} belongs to node {own.meta.node_id} of cluster {own.meta.cluster_id},"
            f" log.dirs to node {logs.node_id} of cluster {logs.cluster_id}",
            hint="give metadata.log.dir a directory of this node, or an empty one",
        )
