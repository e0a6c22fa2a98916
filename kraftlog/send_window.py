"""The batches of one partition between their first send and their answer. No clock, no socket.

An idempotent producer numbers its records per partition, and the leader takes a batch only if its
first number follows the last one it has; a repeat of one of the last five batches is answered with
the offset of then. So a batch whose fate is unknown is simply sent again, and order is kept:

    - batches are sent, and sent again, in the order of their numbers;
    - after any failure nothing is sent until all that is in flight has been answered;
    - at most `limit` (five) are unanswered, so that the leader remembers each of them;
    - the first batch under a producer's identity goes alone: a leader that does not know a producer
      takes any number, so the second could get in before the first.

OUT_OF_ORDER_SEQUENCE_NUMBER for a batch that is not the first means that one before it is missing:
it goes again after that one. For the first, the leader has lost track of the producer. If no
earlier attempt can have been appended, a new epoch is begun, with numbers from 0, and the batch is
sent again. If one may have been, nobody can tell any more, and its outcome stays unknown.

Without idempotence a batch whose fate is unknown is never sent again.
"""

from collections import deque
from typing import NamedTuple

from kraftlog._check import invariant
from kraftlog.delivery import Delivery
from kraftlog.errors import (
    AmbiguousError,
    DuplicateSequence,
    FencedError,
    KraftError,
    OutOfOrderSequence,
)
from kraftlog.retry import may_repeat
from kraftlog.types import NO_PRODUCER_ID

SEQUENCE_MAX = 2**31 - 1
EPOCH_MAX = 2**15 - 1
REMEMBERED_BATCHES = 5
"""Of each producer and partition a leader remembers so many, and finds repeats of these alone."""


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int


class Batch:
    """Records of one partition that travel together."""

    __slots__ = (
        "attempts",
        "base_sequence",
        "count",
        "created",
        "delivery",
        "encoded",
        "error",
        "first",
        "given_up",
        "headers",
        "identity",
        "in_flight",
        "keys",
        "maybe_appended",
        "size",
        "values",
    )

    def __init__(self, delivery: Delivery, created: float) -> None:
        self.delivery = delivery
        self.created = created
        self.size = 0
        """What its records will take at most, before compression."""
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] = []
        self.headers: list[tuple[tuple[str, bytes | None], ...]] | None = None
        self.first = 0
        """The place of its first record in the delivery; not 0 in the second part of a split."""
        self.count = 0
        """Known once it is encoded; the columns are dropped then."""
        self.encoded: bytes | bytearray | None = None
        self.identity: ProducerIdentity | None = None
        self.base_sequence = 0
        self.attempts = 0
        self.error: KraftError | None = None
        self.in_flight = False
        self.maybe_appended = False
        """An attempt was made whose outcome nobody told us."""
        self.given_up = False
        """Its promise is settled; only the answer to its last attempt is still to come."""


class SendWindow:
    def __init__(self, limit: int, *, idempotent: bool) -> None:
        invariant(
            not idempotent or 1 <= limit <= REMEMBERED_BATCHES, "repeats not found", limit=limit
        )
        self._limit = limit
        self.idempotent = idempotent
        self.identity: ProducerIdentity | None = None
        self.lost_producer_id = NO_PRODUCER_ID
        """Under this one nothing can be sent here any more."""
        self.batches: deque[Batch] = deque()
        """Those in flight first, then those that wait to be sent again, in order."""
        self._next_sequence = 0
        self._in_flight = 0
        self._established = not idempotent
        self._settling = False
        self._renew = False

    # -- what may be sent

    @property
    def wants_identity(self) -> bool:
        return self.idempotent and self.identity is None

    @property
    def is_settling(self) -> bool:
        return self._settling

    def takes_new(self) -> bool:
        """Whether a batch that was never sent may be sent now."""
        limit = self._limit if self._established else 1
        is_calm = not self._settling and self._in_flight == len(self.batches)
        return is_calm and self._in_flight < limit and not self.wants_identity

    def take(self, batch: Batch) -> None:
        """A new batch comes behind the others. It is sent with `start`."""
        if self.identity is not None:
            self._number(batch, self.identity)
        self.batches.append(batch)

    def _number(self, batch: Batch, identity: ProducerIdentity) -> None:
        batch.identity = identity
        batch.base_sequence = self._next_sequence
        self._next_sequence = (self._next_sequence + batch.count) & SEQUENCE_MAX

    def next_again(self) -> Batch | None:
        """The batch that is to be sent again now, if any."""
        limit = self._limit if self._established else 1
        if self._settling or self.wants_identity or self._in_flight >= limit:
            return None
        return self.batches[self._in_flight] if self._in_flight < len(self.batches) else None

    def start(self, batch: Batch) -> None:
        """It is on its way."""
        invariant(
            self.batches[self._in_flight] is batch, "batches out of order", flying=self._in_flight
        )
        batch.in_flight = True
        batch.attempts += 1
        self._in_flight += 1

    # -- what was answered

    def _land(self, batch: Batch) -> None:
        invariant(batch.in_flight, "an answer to what was not asked")
        batch.in_flight = False
        self._in_flight -= 1

    def on_ack(self, batch: Batch) -> None:
        self._land(batch)
        self.batches.remove(batch)
        self._established = self._established or batch.identity == self.identity

    def on_failure(self, batch: Batch, error: KraftError) -> KraftError | None:
        """The error with which the batch ends, or None: it waits to be sent again."""
        self._land(batch)
        batch.error = error
        batch.maybe_appended = batch.maybe_appended or error.outcome_unknown
        self._settling = True
        ending = None if batch.given_up else self._judge(batch, error)
        if ending is not None or batch.given_up:
            self.batches.remove(batch)
        return ending

    def _judge(self, batch: Batch, error: KraftError) -> KraftError | None:
        if not self.idempotent:
            return None if may_repeat(error, harmless=False) else error
        if isinstance(error, OutOfOrderSequence | FencedError):
            return self._lost_track(batch, error)
        if may_repeat(error, harmless=True):
            return None
        # This attempt was refused for good; what became of an earlier one is another question.
        return _cannot_tell(batch, error) if batch.maybe_appended else error

    def _lost_track(self, batch: Batch, error: KraftError) -> KraftError | None:
        if isinstance(error, OutOfOrderSequence) and self.batches[0] is not batch:
            return None
        if batch.maybe_appended:
            return _cannot_tell(batch, error)
        self._renew = True
        if isinstance(error, FencedError):
            self._lose_identity()
        return None

    def _lose_identity(self) -> None:
        if self.identity is not None:
            self.lost_producer_id = self.identity.producer_id
        self.identity = None

    def drop(self, batch: Batch) -> None:
        """Its time is over. The numbers it had are a gap, and the leader will say so."""
        if batch.in_flight:
            batch.given_up = True
        else:
            self.batches.remove(batch)

    # -- after a failure

    def settle(self) -> list[Batch]:
        """Go on, if all that was in flight is answered. Returns what can no longer be sent."""
        if self._in_flight or not self._settling:
            return []
        self._settling = False
        return self._begin_epoch() if self._renew else []

    def _begin_epoch(self) -> list[Batch]:
        """Number all that waits anew, in a new epoch of this partition alone."""
        self._renew = False
        if self.identity is not None and self.identity.epoch < EPOCH_MAX:
            self.identity = ProducerIdentity(self.identity.producer_id, self.identity.epoch + 1)
        else:
            self._lose_identity()
        self._next_sequence = 0
        self._established = False
        unsure = [batch for batch in self.batches if batch.maybe_appended]
        for batch in unsure:
            self.batches.remove(batch)
        self._number_all()
        return unsure

    def _number_all(self) -> None:
        self._next_sequence = 0
        if self.identity is not None:
            for batch in self.batches:
                self._number(batch, self.identity)

    def set_identity(self, identity: ProducerIdentity) -> None:
        """Who the producer is, at first, or anew after `wants_identity`."""
        invariant(not self._in_flight, "numbers change under way", flying=self._in_flight)
        self.identity = identity
        self._established = False
        self._number_all()

    def split(self, batch: Batch, parts: list[Batch]) -> None:
        """Parts take the place, and so the numbers, of a batch that was refused as too large."""
        self._land(batch)
        self._settling = True
        at = self.batches.index(batch)
        self.batches.remove(batch)
        sequence = batch.base_sequence
        for offset, part in enumerate(parts):
            part.identity, part.base_sequence = batch.identity, sequence
            # If it was, the leader finds no part of it, and says that the numbers are wrong.
            part.maybe_appended = batch.maybe_appended
            sequence = (sequence + part.count) & SEQUENCE_MAX
            self.batches.insert(at + offset, part)

    def restart(self) -> None:
        """The topic was deleted and made again: a new log, in which nothing of ours is."""
        for batch in self.batches:
            batch.maybe_appended = False
        self._settling = True
        self._renew = self.idempotent


def is_repeat_of_old(error: KraftError) -> bool:
    """The batch is in the log, too far back for the leader to know where: that is a success."""
    return isinstance(error, DuplicateSequence)


def _cannot_tell(batch: Batch, error: KraftError) -> AmbiguousError:
    return AmbiguousError(
        f"a batch that may have been appended cannot be found again: {error.message}",
        hint="read the end of the partition to see whether it is there",
        node=error.node,
        attempts=batch.attempts,
        code=error.code,
    )
