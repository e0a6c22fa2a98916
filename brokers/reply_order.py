"""Replies to the produce requests of one stream, in order per partition.

A client that sends two batches of one partition counts on hearing of the first one first. The data
plane answers when it can: a batch that is refused at once overtakes one that waits for replicas. So
a reply is held back while an earlier request of the same stream, with a partition in common, is
open. Requests without a partition in common do not wait for each other.
"""

from collections import deque
from collections.abc import Callable, Iterable

from brokers.cluster import PartitionId

Send = Callable[[], None]


class Turn:
    """The place of one request in the queues of its partitions."""

    __slots__ = ("ahead", "partitions", "send")

    def __init__(self, partitions: Iterable[PartitionId]) -> None:
        self.partitions = tuple(dict.fromkeys(partitions))
        self.ahead = 0
        """In how many of these queues somebody else is first."""
        self.send: Send | None = None
        """How the reply is sent, once there is one."""


class ReplyOrder:
    def __init__(self) -> None:
        self._queues: dict[PartitionId, deque[Turn]] = {}

    def __len__(self) -> int:
        """How many partitions have open requests."""
        return len(self._queues)

    def begin(self, partitions: Iterable[PartitionId]) -> Turn:
        """A request has arrived."""
        turn = Turn(partitions)
        for partition in turn.partitions:
            queue = self._queues.setdefault(partition, deque())
            turn.ahead += bool(queue)
            queue.append(turn)
        return turn

    def finish(self, turn: Turn, send: Send) -> None:
        """Its reply is there. It is sent now or when those before it are out."""
        turn.send = send
        ready = [turn] if turn.ahead == 0 else []
        while ready:
            ready.extend(self._release(ready.pop(0)))

    def _release(self, turn: Turn) -> list[Turn]:
        """Send a reply that is first everywhere; returns those that now are."""
        if turn.send is not None:
            turn.send()
        freed = []
        for partition in turn.partitions:
            queue = self._queues[partition]
            queue.popleft()
            if not queue:
                del self._queues[partition]
                continue
            queue[0].ahead -= 1
            if queue[0].ahead == 0 and queue[0].send is not None:
                freed.append(queue[0])
        return freed
