"""Which brokers are alive, as far as their heartbeats tell. Kept by the active controller alone, in
memory: a new one begins by giving every registered broker a full session.

A broker is silent when no heartbeat came for a whole session. It lags when for `lag_ms` it has not
applied what was committed when that time began; heartbeats alone do not help it then.

No clock in here: every call brings the time along.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraftlog._check import invariant


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """How long a broker may be silent, how long it may lag, and how often leaders move back."""

    session_ms: int
    lag_ms: int
    rebalance_ms: int | None
    """None: leaders stay where they are."""


@dataclass(slots=True)
class Session:
    """What the heartbeats of one broker incarnation said."""

    broker_epoch: int
    touched_ms: int
    heard_ms: int = -1
    """The last heartbeat; -1: none since this controller became active."""
    applied_offset: int = -1
    """All below is applied by the broker."""
    goal_offset: int = 0
    """What was committed when the present time of grace began; to be applied by its end."""
    goal_set_ms: int = 0


class Sessions:
    """The sessions of all brokers that are registered, the least recently touched first."""

    def __init__(self, *, session_ms: int, lag_ms: int) -> None:
        self._session_ms = session_ms
        self._lag_ms = lag_ms
        self._sessions: OrderedDict[int, Session] = OrderedDict()

    def begin(self, brokers: Iterable[tuple[int, int]], *, committed: int, now_ms: int) -> None:
        """We are active from now on: every broker (id, epoch) gets a full session of grace."""
        self._sessions.clear()
        for broker_id, broker_epoch in brokers:
            self.open(broker_id, broker_epoch, committed=committed, now_ms=now_ms)

    def open(self, broker_id: int, broker_epoch: int, *, committed: int, now_ms: int) -> None:
        """A broker has registered."""
        self._sessions[broker_id] = Session(
            broker_epoch, now_ms, goal_offset=committed, goal_set_ms=now_ms
        )
        self._sessions.move_to_end(broker_id)

    def close(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def touch(self, broker_id: int, *, applied_offset: int, committed: int, now_ms: int) -> None:
        """A heartbeat came. A broker that has reached its goal gets the next one."""
        session = self._sessions.get(broker_id)
        invariant(session is not None, "a heartbeat without a session", broker=broker_id)
        if session is None:
            return
        session.touched_ms = session.heard_ms = now_ms
        session.applied_offset = max(session.applied_offset, applied_offset)
        self._sessions.move_to_end(broker_id)
        if session.applied_offset >= session.goal_offset:
            session.goal_offset, session.goal_set_ms = committed, now_ms

    def find(self, broker_id: int) -> Session | None:
        return self._sessions.get(broker_id)

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and now_ms - session.touched_ms <= self._session_ms

    def is_lagging(self, broker_id: int, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and self._lags(session, now_ms)

    def has_caught_up(self, broker_id: int) -> bool:
        """It has applied all that it was asked to apply so far."""
        session = self._sessions.get(broker_id)
        return session is not None and session.applied_offset >= session.goal_offset

    def silent(self, now_ms: int) -> Iterator[int]:
        """Brokers whose session is over, longest silent first."""
        for broker_id, session in self._sessions.items():
            if now_ms - session.touched_ms <= self._session_ms:
                return
            yield broker_id

    def lagging(self, now_ms: int) -> Iterator[int]:
        """Brokers that are heard, and still do not get on."""
        for broker_id, session in self._sessions.items():
            if self._lags(session, now_ms):
                yield broker_id

    def applied(self) -> dict[int, int]:
        """How far each broker that was heard of has applied the log."""
        known = self._sessions.items()
        return {broker_id: each.applied_offset for broker_id, each in known if each.heard_ms >= 0}

    def lowest_applied(self, brokers: Iterable[int]) -> int | None:
        """How far even the slowest of these has applied the log; None: none of them is known."""
        known = [self._sessions[each].applied_offset for each in brokers if each in self._sessions]
        return min(known, default=None)

    def next_check_ms(self, now_ms: int) -> int:
        """When the next session can end, or a time of grace."""
        ends = (
            end
            for session in self._sessions.values()
            for end in (session.touched_ms + self._session_ms, session.goal_set_ms + self._lag_ms)
        )
        return min((end for end in ends if end >= now_ms), default=now_ms + self._session_ms) + 1

    def _lags(self, session: Session, now_ms: int) -> bool:
        is_behind = session.applied_offset < session.goal_offset
        return is_behind and now_ms - session.goal_set_ms > self._lag_ms
