"""When a node writes a snapshot of its state, and when the log behind it may go (KIP-630).

Every replica does so by itself. What to write is taken on the loop, from an image that no longer
changes; writing and syncing it happens in a thread.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from kraftlog import config_keys as keys
from kraftlog.clock import Clock
from kraftlog.errors import StorageError
from quorum.core.messages import SnapshotId, VoterSet
from quorum.driver import Driver
from quorum.node import RaftNode

logger = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
UNLIMITED = keys.UNLIMITED


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPolicy:
    """`kraftlog.config_keys` says what each means; the defaults are Kafka's."""

    log_bytes: int = keys.METADATA_SNAPSHOT_BYTES.default
    interval_ms: int = keys.METADATA_SNAPSHOT_INTERVAL_MS.default
    retention_bytes: int = keys.METADATA_RETENTION_BYTES.default
    retention_ms: int = keys.METADATA_RETENTION_MS.default


@dataclass(frozen=True, slots=True)
class _Image:
    """What a snapshot will hold."""

    id: SnapshotId
    voters: VoterSet
    values: Iterable[bytes]


def _nothing_more() -> None:
    pass


class SnapshotKeeper:
    """`run` belongs into the TaskGroup of the node's server."""

    def __init__(
        self,
        node: RaftNode,
        policy: SnapshotPolicy,
        clock: Clock,
        *,
        after_write: Callable[[], None] = _nothing_more,
    ) -> None:
        self._node = node
        self._policy = policy
        self._clock = clock
        self._after_write = after_write
        self._last_ms = clock.monotonic_ms()
        self._begun_wall_ms = clock.wall_ms()
        self._newest = (SnapshotId(0, 0), 0)
        """A snapshot, and when it was written: read off its file once."""
        self.written = 0
        self.write_seconds = 0.0
        """How long the last one took."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if self.is_due():
                await self.write()
            await self.retire()

    def age_seconds(self) -> float:
        """Of the newest snapshot; without one, how long this process runs."""
        newest = self._node.core.log.latest_snapshot
        if newest is not None and newest != self._newest[0]:
            self._newest = (newest, self._node.store.snapshot_timestamp(newest))
        since_ms = self._begun_wall_ms if newest is None else self._newest[1]
        return max(self._clock.wall_ms() - since_ms, 0) / 1000

    def newest_bytes(self) -> int:
        """Of the newest snapshot; 0: there is none."""
        newest = self._node.core.log.latest_snapshot
        return 0 if newest is None else self._node.store.snapshot_bytes(newest)

    def is_due(self) -> bool:
        applier, policy = self._node.driver.applier, self._policy
        if applier.bytes_since_snapshot == 0:
            return False
        is_late = self._clock.monotonic_ms() - self._last_ms >= policy.interval_ms > 0
        return is_late or applier.bytes_since_snapshot >= policy.log_bytes

    async def write(self) -> SnapshotId | None:
        """A snapshot of the present state; None if there is one already, or it failed."""
        taken: list[_Image] = []
        await self._node.call(lambda driver: taken.extend(self._take(driver)))
        self._last_ms = self._clock.monotonic_ms()
        if not taken:
            return None
        image, store, begun_ms = taken[0], self._node.store, self._clock.monotonic_ms()
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(
                None, store.write_snapshot, image.id, image.voters, image.values
            )
        except (OSError, StorageError) as error:
            # The log goes on without it: the next try is one interval away.
            logger.error("snapshot %s cannot be written: %s", image.id, error)  # noqa: TRY400
            return None
        await self._node.call(lambda driver: driver.snapshot_written(image.id))
        self.written += 1
        self.write_seconds = (self._clock.monotonic_ms() - begun_ms) / 1000
        self._after_write()
        logger.info("snapshot %s is written, in %.1f s", image.id, self.write_seconds)
        return image.id

    def _take(self, driver: Driver) -> list[_Image]:
        applier, log = driver.applier, driver.core.log
        snapshot = applier.snapshot_id
        if snapshot.end_offset <= log.start_offset or snapshot in log.snapshots:
            return []
        applier.bytes_since_snapshot = 0
        try:
            values = self._node.machine.dump()
        except StorageError as error:
            logger.error("snapshot %s is not written: %s", snapshot, error)  # noqa: TRY400
            return []
        return [_Image(snapshot, log.voters_at(snapshot.end_offset), values)]

    async def retire(self) -> None:
        """Let the log begin at the second oldest snapshot while all is too large or too old. The
        newest one stays in any case.
        """
        while (snapshot := self._next_start()) is not None:
            await self._node.call(partial(Driver.drop_log_below, snapshot=snapshot))
            logger.info("the log begins at snapshot %s", snapshot)
        await asyncio.get_running_loop().run_in_executor(None, self._node.store.purge)

    def _next_start(self) -> SnapshotId | None:
        snapshots, store, policy = self._node.core.log.snapshots, self._node.store, self._policy
        if len(snapshots) < 2:
            return None
        is_large = UNLIMITED < policy.retention_bytes < store.size_bytes
        if not is_large and policy.retention_ms != UNLIMITED:
            age_ms = self._clock.wall_ms() - store.snapshot_timestamp(snapshots[0])
            is_large = age_ms > policy.retention_ms
        return snapshots[1] if is_large else None
