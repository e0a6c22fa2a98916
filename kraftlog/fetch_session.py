"""A consumer's half of a fetch session (KIP-227): what the broker knows need not be said again.

The first request names every partition; each later one only those whose position has changed since,
and those that are no longer wanted. A broker that has forgotten the session, or a request without
an answer, means beginning again with a full one. No clock, no socket.
"""

from collections.abc import Mapping
from typing import NamedTuple

NO_SESSION = 0
FIRST_EPOCH = 0
EPOCH_MAX = 2**31 - 1

Place = tuple[bytes, int]
"""Topic id and partition."""


class FetchLimits(NamedTuple):
    """How much a reply may and should have."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int
    rack: str


class Wanted(NamedTuple):
    """What is wanted of one partition."""

    topic: str
    offset: int
    leader_epoch: int
    last_epoch: int | None
    """Of the record before `offset`, if we have read it."""


class SessionRequest(NamedTuple):
    session_id: int
    epoch: int
    named: Mapping[Place, Wanted]
    forgotten: list[Place]


class FetchSession:
    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[Place, Wanted] = {}

    def request(self, wanted: Mapping[Place, Wanted]) -> SessionRequest:
        """The next request, after which the broker knows all that is wanted."""
        before, self._known = self._known, dict(wanted)
        if self.session_id == NO_SESSION:
            return SessionRequest(NO_SESSION, FIRST_EPOCH, dict(wanted), [])
        named = {place: want for place, want in wanted.items() if before.get(place) != want}
        forgotten = [place for place in before if place not in wanted]
        return SessionRequest(self.session_id, self._epoch, named, forgotten)

    def answered(self, session_id: int) -> None:
        """A reply came. A broker that gives no session answers with none."""
        if session_id == NO_SESSION:
            self.lost()
            return
        is_new = session_id != self.session_id
        self.session_id = session_id
        self._epoch = 1 if is_new or self._epoch == EPOCH_MAX else self._epoch + 1

    def lost(self) -> None:
        """The broker forgot it, or we do not know what the broker knows."""
        self.session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known = {}
