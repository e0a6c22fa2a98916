"""Everything that a broker asks of the active controller, over two links: one for heartbeats, one
for all else.
"""

from collections.abc import Callable, Sequence

from brokers import controller_wire
from brokers.auto_topics import Created
from brokers.controller_link import ControllerFinder, ControllerLink
from brokers.controller_wire import Heartbeat, HeartbeatAnswer, Registered, Registration
from brokers.requests import IsrChange, IsrResult
from kraftlog.resolver import Resolve
from kraftlog.types import Uuid

TIMEOUT_MS = 2_000
CREATE_TIMEOUT_MS = 5_000

Identity = Callable[[], tuple[int, int]]
"""Our broker id and epoch, of the present registration."""


class ControllerCalls:
    """Each call is one attempt; whoever asks decides about another."""

    def __init__(
        self,
        finder: ControllerFinder,
        cluster_id: Uuid,
        *,
        client_id: str,
        resolve: Resolve,
        identity: Identity,
    ) -> None:
        self._identity = identity
        self._heartbeats, self._link = (
            ControllerLink(finder, cluster_id=cluster_id.raw, client_id=client_id, resolve=resolve)
            for _ in range(2)
        )

    async def register(self, registration: Registration, timeout_ms: int) -> Registered:
        return await controller_wire.register(self._link, registration, timeout_ms=timeout_ms)

    async def heartbeat(self, beat: Heartbeat, timeout_ms: int) -> HeartbeatAnswer:
        return await controller_wire.send_heartbeat(self._heartbeats, beat, timeout_ms=timeout_ms)

    async def alter_partitions(self, changes: Sequence[IsrChange]) -> Sequence[IsrResult]:
        broker_id, broker_epoch = self._identity()
        return await controller_wire.alter_partitions(
            self._link,
            changes,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            timeout_ms=TIMEOUT_MS,
        )

    async def allocate_producer_ids(self) -> range:
        broker_id, broker_epoch = self._identity()
        return await controller_wire.allocate_producer_ids(
            self._link, broker_id, broker_epoch, timeout_ms=TIMEOUT_MS
        )

    async def create_topics(self, names: Sequence[str]) -> Created:
        return await controller_wire.create_topics(self._link, names, timeout_ms=CREATE_TIMEOUT_MS)

    async def close(self) -> None:
        await self._heartbeats.close()
        await self._link.close()
