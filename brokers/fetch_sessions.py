"""Fetch sessions (KIP-227): the leader remembers which partitions a reader wants, and from where.

A request names only partitions whose position changed, a reply only those with news. Beyond KIP-227
an idle partition costs nothing here either: each partition tells its watchers when something
happens, and a session keeps the set of its partitions that may have news. A fetch looks at those
alone, however many others the session has.

Sessions are bounded in number. Replicas come first: each has one, and a consumer's must make room.
Among consumers the one that was not used for longest goes, but none that was used a moment ago; a
consumer that gets no session fetches without one.
"""

import secrets
from collections.abc import Callable, Iterator

from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.progress import SessionClock
from brokers.refusals import session_not_found, wrong_session_epoch
from brokers.requests import (
    NEW_SESSION_EPOCH,
    NO_OFFSET,
    NO_SESSION,
    SESSIONLESS_EPOCH,
    FetchPart,
    FetchRequest,
    ReplicaIdentity,
)

INT32_MAX = 2**31 - 1


class SessionPart:
    """One partition of a session: where its reader is, and what that reader was told."""

    __slots__ = (
        "_partition",
        "_session",
        "id",
        "is_noted",
        "told_high_watermark",
        "told_start",
        "want",
    )

    def __init__(self, session: "FetchSession", want: FetchPart) -> None:
        self.id = want.partition
        self.want = want
        self.told_high_watermark = want.high_watermark
        self.told_start = want.log_start_offset
        self.is_noted = False
        """Whether the partition knows that its reader, a replica, has come so far."""
        self._session = session
        self._partition: Partition | None = None

    def move_to(self, want: FetchPart) -> None:
        self.want = want
        self.is_noted = False
        self.told_high_watermark = max(self.told_high_watermark, want.high_watermark)
        self.told_start = max(self.told_start, want.log_start_offset)

    def watch(self, partition: Partition) -> None:
        if self._partition is not partition:
            self.unwatch()
            self._partition = partition
            partition.watchers[self] = None

    def unwatch(self) -> None:
        partition, self._partition = self._partition, None
        if partition is not None:
            partition.watchers.pop(self, None)
            if self._session.replica is not None:
                partition.state.forgotten(self._session.replica.broker_id)

    # -- what a partition tells

    def end_moved(self) -> None:
        if self._session.replica is not None:
            self._session.note(self, urgent=True)

    def high_watermark_moved(self) -> None:
        self._session.note(self, urgent=self._session.replica is None)

    def start_moved(self) -> None:
        if self._session.replica is not None:
            self._session.note(self, urgent=True)

    def role_changed(self) -> None:
        self._session.note(self, urgent=True)


class FetchSession:
    """The partitions of one reader, and those of them that may have news."""

    def __init__(self, session_id: int, replica: ReplicaIdentity | None) -> None:
        self.id = session_id
        self.replica = replica
        self.next_epoch = NEW_SESSION_EPOCH + 1
        self.used_ms = 0
        self.clock = SessionClock()
        self.parts: dict[PartitionId, SessionPart] = {}
        self.news: dict[SessionPart, None] = {}
        self.on_news: Callable[[bool], None] | None = None
        """Whoever has a fetch parked here; told whether it is urgent."""
        self.interrupt: Callable[[], None] | None = None
        """Answers the fetch that is parked here, if one is."""

    @property
    def is_parked(self) -> bool:
        return self.interrupt is not None

    def put(self, want: FetchPart) -> SessionPart:
        """Add a partition, or move its reader."""
        part = self.parts.get(want.partition)
        if part is None:
            part = self.parts[want.partition] = SessionPart(self, want)
        else:
            part.move_to(want)
        self.news[part] = None
        return part

    def forget(self, partition: PartitionId) -> None:
        part = self.parts.pop(partition, None)
        if part is not None:
            self.news.pop(part, None)
            part.unwatch()

    def note(self, part: SessionPart, *, urgent: bool) -> None:
        self.news[part] = None
        if self.on_news is not None:
            self.on_news(urgent)

    def close(self) -> None:
        if self.interrupt is not None:
            self.interrupt()
        for part in self.parts.values():
            part.unwatch()
        self.parts.clear()
        self.news.clear()


class FetchSessions:
    """The sessions of a broker."""

    def __init__(self, *, limit: int, idle_ms: int) -> None:
        self._limit = limit
        self._idle_ms = idle_ms
        self._sessions: dict[int, FetchSession] = {}
        self._of_replica: dict[int, int] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(list(self._sessions.values()))

    def take(self, request: FetchRequest, now_ms: int) -> FetchSession:
        """The session that a request belongs to, made if it asks for a new one. Raises KraftError.

        One without an id is for this request alone: whoever got it closes it.
        """
        if request.session_epoch in (NEW_SESSION_EPOCH, SESSIONLESS_EPOCH):
            self._drop(request.session_id)
            return self._begin(request, now_ms)
        session = self.get(request)
        if request.session_epoch != session.next_epoch:
            raise wrong_session_epoch(session.id, request.session_epoch, session.next_epoch)
        session.next_epoch = 1 if session.next_epoch == INT32_MAX else session.next_epoch + 1
        session.used_ms = now_ms
        session.replica = request.replica
        return session

    def get(self, request: FetchRequest) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None or _owner(session.replica) != _owner(request.replica):
            raise session_not_found(request.session_id)
        return session

    def _begin(self, request: FetchRequest, now_ms: int) -> FetchSession:
        replica = request.replica
        if request.session_epoch == SESSIONLESS_EPOCH:
            return FetchSession(NO_SESSION, replica)
        if replica is not None:
            self._drop(self._of_replica.pop(replica.broker_id, NO_SESSION))
        if len(self._sessions) >= self._limit and not self._evict(
            now_ms, privileged=replica is not None
        ):
            return FetchSession(NO_SESSION, replica)
        session = FetchSession(self._draw_id(), replica)
        session.used_ms = now_ms
        self._sessions[session.id] = session
        if replica is not None:
            self._of_replica[replica.broker_id] = session.id
        return session

    def _draw_id(self) -> int:
        """At random: an id of before a restart must not fit the session of someone else."""
        while True:
            session_id = 1 + secrets.randbelow(INT32_MAX)
            if session_id not in self._sessions:
                return session_id

    def _evict(self, now_ms: int, *, privileged: bool) -> bool:
        """Of a consumer. One whose fetch is parked goes for a replica alone, and last of all."""
        may_go = [
            session
            for session in self._sessions.values()
            if session.replica is None and (privileged or not session.is_parked)
        ]
        oldest = min(may_go, key=lambda each: (each.is_parked, each.used_ms), default=None)
        if oldest is None or (not privileged and now_ms - oldest.used_ms < self._idle_ms):
            return False
        self._drop(oldest.id)
        self.evictions += 1
        return True

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        for session_id in list(self._sessions):
            self._drop(session_id)


def _owner(replica: ReplicaIdentity | None) -> int:
    return NO_OFFSET if replica is None else replica.broker_id
