"""A byte rate for copying replicas to new places, so that a reassignment does not starve clients.

It holds only for replicas that the topic names (`leader.replication.throttled.replicas` where a
broker gives, `follower.replication.throttled.replicas` where it takes), and only while the one that
copies is not in the ISR: whoever acknowledges records is never held up.
"""

from collections.abc import Sequence

from kraftlog.clock import Clock

ALL = ("*",)
BURST_MS = 200
"""Idle time counts for this much at most."""


class ReplicationThrottle:
    """What was sent is paid for with time; while there is debt, nothing more goes."""

    def __init__(self, clock: Clock) -> None:
        self.bytes_per_second: int | None = None
        """None: no limit."""
        self._clock = clock
        self._paid_until_ms = 0.0

    def spend(self, count: int) -> None:
        if self.bytes_per_second:
            begin = max(self._paid_until_ms, self._clock.monotonic_ms() - BURST_MS)
            self._paid_until_ms = begin + count * 1_000 / self.bytes_per_second

    def wait_ms(self) -> int:
        """How long until more may go; 0: at once."""
        if not self.bytes_per_second:
            return 0
        return max(0, int(self._paid_until_ms - self._clock.monotonic_ms()) + 1)


def names(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether a topic's list names this replica."""
    return bool(replicas) and (tuple(replicas) == ALL or f"{partition}:{broker_id}" in replicas)
