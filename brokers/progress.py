"""What a leader knows of one follower. Pure.

A follower is caught up while it has all that the leader had at most `replica.lag.time.max.ms` ago.
At each fetch, at time t: if it asks for the leader's end, it is caught up as of t; else if it asks
for the end that the leader had at its previous fetch, it was caught up then. A follower that is
always a little behind a busy leader so still counts as caught up.

Fetch sessions make no mention of idle partitions, and nothing is noted for them. All partitions of
a session share one clock instead. What it says is used when the leader's log grows again: up to
then the follower had everything, as of the last fetch of its session.
"""

from typing import NamedTuple

UNKNOWN_OFFSET = -1
NEVER_MS = -(1 << 62)


class SessionClock:
    """When a follower was heard, in any fetch of one session."""

    __slots__ = ("_replied_ms", "heard_ms", "proven_ms")

    def __init__(self) -> None:
        self.heard_ms = NEVER_MS
        self.proven_ms = NEVER_MS
        """The last fetch was sent after this time, for it answers a reply of that time. When a
        fetch arrives proves less: it may have waited in a buffer while this process slept.
        """
        self._replied_ms = NEVER_MS

    def heard(self, now_ms: int) -> None:
        self.heard_ms = now_ms
        self.proven_ms = self._replied_ms

    def replied(self, now_ms: int) -> None:
        self._replied_ms = now_ms


class FollowerFetch(NamedTuple):
    """One fetch of one follower, as far as its progress is concerned."""

    replica_id: int
    broker_epoch: int
    offset: int
    start_offset: int
    clock: SessionClock | None = None


class Progress(NamedTuple):
    """A follower in one leader epoch. Replaced as a whole, so that whoever judges a follower looks
    at one fetch and never at parts of two (KAFKA-15221).
    """

    end_offset: int = UNKNOWN_OFFSET
    start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int | None = None
    """That of the fetch which told the end."""
    fetched_ms: int = NEVER_MS
    leader_end: int = UNKNOWN_OFFSET
    """The leader's end at that fetch."""
    caught_up_ms: int = NEVER_MS
    clock: SessionClock | None = None

    def after_fetch(self, fetch: FollowerFetch, *, leader_end: int, now_ms: int) -> "Progress":
        same_run = self.broker_epoch in (None, fetch.broker_epoch)
        caught_up_ms = self.caught_up_ms if same_run else NEVER_MS
        if fetch.offset >= leader_end:
            caught_up_ms = now_ms
        elif same_run and fetch.offset >= self.leader_end > UNKNOWN_OFFSET:
            caught_up_ms = max(caught_up_ms, self.fetched_ms)
        return Progress(
            fetch.offset,
            fetch.start_offset,
            fetch.broker_epoch,
            now_ms,
            leader_end,
            caught_up_ms,
            fetch.clock,
        )

    def before_growth(self, leader_end: int) -> "Progress":
        """The leader's log is about to grow beyond `leader_end`, which this follower has: as of the
        last fetch of its session it was caught up.
        """
        heard_ms = self.clock.heard_ms if self.clock else self.fetched_ms
        return self._replace(
            fetched_ms=max(self.fetched_ms, heard_ms),
            leader_end=leader_end,
            caught_up_ms=max(self.caught_up_ms, heard_ms),
        )

    def without_session(self) -> "Progress":
        """Its session has dropped this partition: what others do no longer speaks for it."""
        heard_ms = self.clock.heard_ms if self.clock else NEVER_MS
        return self._replace(fetched_ms=max(self.fetched_ms, heard_ms), clock=None)

    def is_caught_up(self, leader_end: int, *, now_ms: int, lag_ms: int) -> bool:
        return self.end_offset >= leader_end or now_ms - self.caught_up_ms <= lag_ms

    def proven_ms(self) -> int:
        """It followed this leader epoch at this time or later."""
        return self.clock.proven_ms if self.clock else NEVER_MS
