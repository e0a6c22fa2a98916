"""Answers that were given, so that a repeated request gets the first one again (M3).

Kept are the last 64 answers of each of the last 10 000 clients. What goes is decided by the order
of the log and never by a clock, so that every node forgets the same.
"""

from __future__ import annotations  # rpds' maps are generic for type checkers only

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rpds import HashTrieMap

from metadata_log.records import RequestDone

REQUESTS_PER_CLIENT_MAX = 64
CLIENTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class _Client:
    turn: int
    """When it was heard of last, counted in answers."""
    done: tuple[RequestDone, ...]
    """Oldest first."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Immutable. Turns only order the clients; they are not part of what is remembered."""

    _clients: HashTrieMap[bytes, _Client]
    _by_turn: HashTrieMap[int, bytes]
    _oldest: int = 0
    """No client has an earlier turn."""
    _next: int = 0

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[RequestDone]:
        """All answers, in an order that makes the same memory again."""
        for client in sorted(self._clients.values(), key=lambda client: client.turn):
            yield from client.done

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requests) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def find(self, client_id: bytes, request_id: int) -> RequestDone | None:
        """The answer that this request was given, if it is remembered."""
        client = self._clients.get(client_id)
        if client is None:
            return None
        return next((done for done in client.done if done.request_id == request_id), None)

    def remembered(self, done: RequestDone) -> Requests:
        """A copy with one more answer; the oldest client goes where there are too many."""
        clients, by_turn = self._clients, self._by_turn
        known = clients.get(done.client_id)
        kept: tuple[RequestDone, ...] = ()
        if known is not None:
            by_turn = by_turn.remove(known.turn)
            kept = known.done[-(REQUESTS_PER_CLIENT_MAX - 1) :]
        added = Requests(
            clients.insert(done.client_id, _Client(self._next, (*kept, done))),
            by_turn.insert(self._next, done.client_id),
            self._oldest,
            self._next + 1,
        )
        return added if len(added) <= CLIENTS_MAX else added._without_oldest()

    def _without_oldest(self) -> Requests:
        # A turn is passed once in the life of an image, so the search is short on average.
        turn = self._oldest
        while turn not in self._by_turn:
            turn += 1
        return replace(
            self,
            _clients=self._clients.remove(self._by_turn[turn]),
            _by_turn=self._by_turn.remove(turn),
            _oldest=turn + 1,
        )


NO_REQUESTS = Requests(HashTrieMap(), HashTrieMap())
