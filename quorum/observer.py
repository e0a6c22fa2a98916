"""Following the metadata log without a vote: what brokers use of this package.

The same core, store and transport as in a controller, in the observer's role. The log and the
observer's own snapshots stay on disk, so a restart reads them and fetches only what is new. It is
not synced: after a power cut a broker may start from an older offset, and nobody counts on it.
"""

import asyncio
import contextlib
import gc
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from kraftlog import config_keys as keys
from kraftlog.clock import Clock, SystemClock
from kraftlog.config import Config
from kraftlog.metrics import Registry
from kraftlog.resolver import Resolve
from kraftlog.types import Uuid
from quorum.config import metadata_log, snapshot_policy, timing
from quorum.core.config import KAFKA, RaftConfig, Timing
from quorum.core.messages import ReplicaKey, Voter
from quorum.election_file import ELECTION_FILE
from quorum.node import RaftNode
from quorum.replay_metrics import register_replay
from quorum.snapshot_file import Snapshot as Snapshot  # noqa: PLC0414 - part of this module
from quorum.snapshots import SnapshotKeeper, SnapshotPolicy
from quorum.state_machine import CommittedBatch as CommittedBatch  # noqa: PLC0414 - as well
from quorum.state_machine import StateMachine
from quorum.store import Store, format_store, log_directory
from quorum.transport import GrpcTransport
from storage.files import Files, OsFiles
from storage.log_config import LogConfig

_NOWHERE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverConfig:
    """`directory` belongs to the caller, who has locked it; its id is that of meta.properties."""

    directory: str
    cluster_id: Uuid
    node_id: int
    directory_id: Uuid
    peers: tuple[str, ...]
    """Where controllers may be found: one that is up is enough."""
    timing: Timing = KAFKA
    log: LogConfig = field(default_factory=lambda: LogConfig(delete=False))
    snapshots: SnapshotPolicy = field(default_factory=SnapshotPolicy)


def observer_config(
    config: Config, *, directory: str, cluster_id: Uuid, node_id: int, directory_id: Uuid
) -> ObserverConfig:
    """With times, sizes and peers from a broker's configuration."""
    return ObserverConfig(
        directory=directory,
        cluster_id=cluster_id,
        node_id=node_id,
        directory_id=directory_id,
        peers=config[keys.QUORUM_PEERS],
        timing=timing(config),
        log=metadata_log(config),
        snapshots=snapshot_policy(config),
    )


class MetadataObserver:
    """Use `open_observer` to get one. `run` belongs into the broker's TaskGroup: if it fails, the
    process must end.
    """

    def __init__(self, node: RaftNode, snapshots: SnapshotKeeper) -> None:
        self._node = node
        self._snapshots = snapshots

    def register_metrics(self, registry: Registry) -> None:
        register_replay(registry, self._node, self._snapshots)

    async def run(self) -> None:
        """Until cancelled, or until something is wrong."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._node.run(), name="metadata node")
            tasks.create_task(self._snapshots.run(), name="metadata snapshots")

    @property
    def leader(self) -> Voter | None:
        """The active controller and its address, as far as we know."""
        return self._node.core.leader

    @property
    def controllers(self) -> tuple[Voter, ...]:
        """All voters, by the latest set in our log."""
        return self._node.core.voters.voters

    @property
    def epoch(self) -> int:
        return self._node.core.epoch

    @property
    def high_watermark(self) -> int:
        """All below is committed, as far as we know."""
        return self._node.core.high_watermark

    @property
    def end_offset(self) -> int:
        return self._node.core.log.end_offset

    @property
    def applied_offset(self) -> int:
        """All below the state machine has consumed."""
        return self._node.driver.applier.applied_offset

    async def wait_applied(self, end_offset: int) -> None:
        """Returns once the state machine has consumed all below `end_offset`."""
        await self._node.wait_applied(end_offset)


@contextlib.asynccontextmanager
async def open_observer(
    config: ObserverConfig,
    machine: StateMachine,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    resolve: Resolve = str,
) -> AsyncIterator[MetadataObserver]:
    """An observer whose log is open; a directory without one gets it. Closed at the end."""
    files, clock = files or OsFiles(), clock or SystemClock()
    if not files.exists(f"{log_directory(config.directory)}/{ELECTION_FILE}"):
        format_store(files, config.directory, clock, None)
    store = Store(files, config.directory, clock, config.log)
    try:
        raft = RaftConfig(
            cluster_id=config.cluster_id,
            key=ReplicaKey(config.node_id, config.directory_id),
            endpoint=_NOWHERE,
            timing=config.timing,
            peers=config.peers,
            flush_always=False,
        )
        draw = random.SystemRandom().randrange
        node = RaftNode(raft, store, machine, GrpcTransport(resolve), clock=clock, draw=draw)
        keeper = SnapshotKeeper(node, config.snapshots, clock, after_write=gc.freeze)
        yield MetadataObserver(node, keeper)
    finally:
        store.close()
