"""What the controller decides: image and request in, records and answer out.

Every function here is pure. It judges a request against one image and returns a `Decision`, or
raises an error of `kraftlog.errors` with Kafka's number; then nothing was decided (M4). A request
about many things (topics, partitions) is answered thing by thing, and an error is the answer for
that thing only. The answer holds once the records are committed.

All records of one decision are one batch: all of them happen or none (M10).
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kraftlog.errors import KraftError
from kraftlog.types import Uuid
from metadata_log.places import Agenda
from metadata_log.records import Cause, CausedRecord, CauseKind, Record

R_co = TypeVar("R_co", covariant=True)

PARTITIONS_PER_EVENT_MAX = 500
"""So many partitions are dealt with in one step of work that may touch all of them. A thousand are
allowed, and would take more than the 20 ms that a step of the loop may take.
"""

RECORDS_PER_REQUEST_MAX = 10_000
"""A request whose records are more is refused: they would not be one batch."""


WHO_CHARS_MAX = 80


@dataclass(frozen=True, slots=True)
class Decision(Generic[R_co]):
    """Records to append as one batch, and the answer to give once they are committed.

    With an agenda the work is not done: apply these records, and decide again with that agenda.
    """

    records: tuple[CausedRecord, ...]
    response: R_co
    agenda: Agenda | None = None


class Draw(Protocol):
    """Chance, as the caller has it: real in a controller, seeded in the simulator."""

    def below(self, limit: int) -> int:
        """A whole number from 0 up to, not including, the limit."""
        ...

    def uuid(self) -> Uuid: ...


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R_co]):
    """What became of one thing in a request about many: a value, or the error for it alone."""

    value: R_co | None
    error: KraftError | None = None


def admin_cause(what: str, by: str) -> Cause:
    """The cause of what an administrator asked for; every record of the request carries it."""
    who = by if len(by) <= WHO_CHARS_MAX else by[: WHO_CHARS_MAX - 1] + "…"
    return Cause(CauseKind.ADMIN_REQUEST, f"{what} {who}".rstrip())


def caused(cause: Cause, *records: Record) -> tuple[CausedRecord, ...]:
    """These records, all with one cause."""
    return tuple(CausedRecord(record, cause) for record in records)
