"""The active controller: one queue of decisions, each a batch of the metadata log.

Two images. `committed` is what the quorum has decided; standbys have it too, since they replay as
they go. `pending` is that and everything proposed but not committed yet; the next decision is made
on it. Losing leadership drops it: what was proposed may still be committed by the next leader, so
its answer is *outcome unknown*.

Nothing is answered before it is committed, refusals included: a refusal, too, may rest on a state
that never comes to be. An answer therefore waits for the last batch that was proposed before it.

    submit -> queue -> decide(pending) -> append -> pending' ... committed -> answer

Work too large for one batch brings an agenda and goes back to the node after each part, so that
fetches, votes and heartbeats have their turn in between.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from kraftlog._check import invariant
from kraftlog.errors import (
    KraftError,
    NotController,
    RequestTimedOut,
    StorageError,
    ThrottledError,
    TimeoutError_,
)
from metadata_log.codec import decode_record, encode
from metadata_log.decide import Decision
from metadata_log.image import EMPTY, Image
from metadata_log.places import Agenda
from metadata_log.records import Cause, CausedRecord, CauseKind, RequestDone
from metadata_log.replay import load_by_pieces, replay_all
from metadata_log.snapshot import write_values
from quorum.snapshot_file import Snapshot
from quorum.state_machine import CommittedBatch

logger = logging.getLogger(__name__)

R = TypeVar("R")

QUEUE_MAX = 2_000
"""So many decisions may wait to be made; one more is refused."""

Answer = bytes | KraftError
OnAnswer = Callable[[Answer], None]
Observe = Callable[[float], None]


class Ledger(Protocol):
    """The node as the controller sees it. `append` is for work that came by `post`."""

    @property
    def end_offset(self) -> int: ...

    def now_ms(self) -> int: ...

    def post(self, work: Callable[[], None]) -> None:
        """Do this in the node's turn; ThrottledError if too much waits already."""
        ...

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append one batch as the leader of an epoch; returns the offset of its first record.

        RecordTooLarge and NotLeaderError come before anything has changed.
        """
        ...

    def read(self, on_done: Callable[[KraftError | None], None]) -> None:
        """`on_done` gets None once all that was committed before this call is in `committed`."""
        ...


class Duty(Protocol):
    """What else an active controller does: it hears when to begin and when to stop."""

    def begin(self) -> None: ...
    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Once:
    """Makes a repeat harmless: who asked, and which of its requests this is."""

    client_id: bytes
    request_id: int


def _nothing_more(_end_offset: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Step:
    """What was decided, or one part of it: with an agenda there is more to decide."""

    records: tuple[CausedRecord, ...]
    answer: Callable[[int], bytes]
    """The answer, from the end of the batch that makes it true."""
    agenda: Agenda | None = None
    then: Callable[[int], None] = _nothing_more
    """To be done once the batch is appended; gets its end, too."""


def step_of(decision: Decision[R], encode_response: Callable[[R, int], bytes]) -> Step:
    return Step(
        decision.records,
        lambda end_offset: encode_response(decision.response, end_offset),
        decision.agenda,
    )


@dataclass(slots=True)
class Operation:
    """One thing to decide."""

    name: str
    decide: Callable[[Image, Agenda | None], Step]
    on_answer: OnAnswer
    once: Once | None = None
    deadline_ms: int | None = None
    """After this time nobody waits for it any more, and it is not begun."""
    queued_ms: int = 0
    """Since when it waits for its turn."""
    parts: int = 0
    """How many batches it has written so far."""


@dataclass(slots=True)
class _Waiting:
    """An answer that waits for a commit."""

    operation: Operation
    answer: Answer


@dataclass(slots=True)
class _Proposed:
    """A batch on its way, and the image that holds once it is committed."""

    base_offset: int
    image: Image
    answers: list[_Waiting] = field(default_factory=list)


def _nobody_observes(_seconds: float) -> None:
    pass


@dataclass(slots=True)
class ControllerCounts:
    """What the controller has done so far, for metrics."""

    leaders_seen: int = 0
    """How often it heard that somebody leads, itself included."""
    operations: int = 0
    operations_timed_out: int = 0


class Controller:
    """The state machine of the quorum. All methods are for the thread of the node."""

    def __init__(self, node_id: int, *, leader_hint: Callable[[], str]) -> None:
        self._node_id = node_id
        self._leader_hint = leader_hint
        self._ledger: Ledger | None = None
        self._duties: list[Duty] = []
        self._queue: deque[Operation] = deque()
        self._proposed: deque[_Proposed] = deque()
        self._open: dict[Once, list[OnAnswer]] = {}
        self.counts = ControllerCounts()
        self.observe_queue: Observe = _nobody_observes
        """Is told how long each operation waited for its turn, in seconds."""
        self.observe_decision: Observe = _nobody_observes
        """Is told how long each decision, or part of one, took, in seconds."""
        self.epoch: int | None = None
        """The epoch in which this controller is active; None: it is not."""
        self.committed = EMPTY
        self.pending = EMPTY

    def attach(self, ledger: Ledger, *duties: Duty) -> None:
        """The node is made with its state machine, so the machine hears of it afterwards."""
        self._ledger = ledger
        self._duties.extend(duties)

    @property
    def ledger(self) -> Ledger:
        invariant(self._ledger is not None, "a controller without a node")
        if self._ledger is None:
            raise NotController("this controller has no node yet")
        return self._ledger

    @property
    def is_active(self) -> bool:
        return self.epoch is not None

    @property
    def queued(self) -> int:
        return len(self._queue)

    def not_controller(self) -> NotController:
        return NotController(
            f"node {self._node_id} is not the active controller", hint=self._leader_hint()
        )

    # -- the state machine

    def handle_commit(self, batches: Sequence[CommittedBatch]) -> None:
        for batch in batches:
            proposed = self._proposed[0] if self._proposed else None
            if proposed is not None and proposed.base_offset == batch.base_offset:
                self._proposed.popleft()
                self.committed = proposed.image
                for waiting in proposed.answers:
                    self._finish(waiting.operation, waiting.answer)
            else:
                invariant(proposed is None, "a batch of somebody else", offset=batch.base_offset)
                records = [decode_record(value) for value in batch.values]
                self.committed = replay_all(self.committed, records, batch.base_offset)
                self.pending = self.committed

    def handle_snapshot(self, snapshot: Snapshot) -> Iterator[None]:
        records = (decode_record(value) for value in snapshot.values())
        image = yield from load_by_pieces(records, snapshot.id.end_offset)
        invariant(not self.is_active, "an active controller loads a snapshot", id=snapshot.id)
        self.committed = self.pending = image

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        if self.is_active:
            self._renounce()
        self.counts.leaders_seen += leader_id is not None
        if leader_id == self._node_id:
            self.epoch = epoch
            self.pending = self.committed
            logger.info("active controller of epoch %d from offset %d", epoch, self._end())
            for duty in self._duties:
                duty.begin()

    def dump(self) -> Iterable[bytes]:
        return write_values(self.committed)

    def _end(self) -> int:
        return self.committed.end_offset

    def _renounce(self) -> None:
        """What was not begun fails, what was begun is unknown, and `pending` was a dream."""
        logger.info("no longer active controller of epoch %s", self.epoch)
        self.epoch = None
        self.pending = self.committed
        for duty in self._duties:
            duty.end()
        proposed, self._proposed = self._proposed, deque()
        queue, self._queue = self._queue, deque()
        for batch in proposed:
            for waiting in batch.answers:
                self._finish(waiting.operation, self._lost(waiting.operation))
        for operation in queue:
            self._finish(operation, self._lost(operation))

    def _lost(self, operation: Operation) -> KraftError:
        if operation.parts == 0:
            return self.not_controller()
        return RequestTimedOut(
            f"leadership was lost while {operation.name} was being committed",
            hint="repeat it with the same request id, or look whether it happened",
        )

    # -- decisions

    def submit(self, operation: Operation) -> None:
        """Decide this in its turn. `on_answer` is called once, perhaps before this returns."""
        waiting = self._judge(operation)
        if waiting is not None:
            operation.on_answer(waiting)
            return
        if operation.once is not None and operation.once in self._open:
            self._open[operation.once].append(operation.on_answer)
            return
        self._enqueue(operation)

    def _judge(self, operation: Operation) -> Answer | None:
        """What can be answered without deciding anything."""
        if not self.is_active:
            return self.not_controller()
        once = operation.once
        if once is not None and once not in self._open:
            done = self.committed.requests.find(once.client_id, once.request_id)
            if done is not None:
                return done.result
        if len(self._queue) >= QUEUE_MAX:
            return ThrottledError(
                f"{len(self._queue)} decisions wait already", hint="try again, or slow down"
            )
        return None

    def _enqueue(self, operation: Operation) -> None:
        if operation.once is not None:
            self._open[operation.once] = []
        operation.queued_ms = self.ledger.now_ms()
        self._queue.append(operation)
        self._post(self._run_next, operation)

    def _post(self, work: Callable[[], None], operation: Operation) -> None:
        try:
            self.ledger.post(work)
        except ThrottledError as error:
            self._drop(operation)
            self._finish(operation, error)

    def _drop(self, operation: Operation) -> None:
        self._queue = deque(each for each in self._queue if each is not operation)

    def _run_next(self) -> None:
        if not self._queue:
            return  # renounced meanwhile
        operation, now_ms = self._queue.popleft(), self.ledger.now_ms()
        self.observe_queue((now_ms - operation.queued_ms) / 1000)
        deadline_ms = operation.deadline_ms
        if deadline_ms is not None and now_ms > deadline_ms:
            self.counts.operations_timed_out += 1
            self._finish(operation, TimeoutError_(f"{operation.name} waited too long; not begun"))
            return
        self.counts.operations += 1
        self._decide(operation, None, self.epoch)

    def _decide(self, operation: Operation, agenda: Agenda | None, epoch: int | None) -> None:
        begun_ms = self.ledger.now_ms()
        self._decide_part(operation, agenda, epoch)
        self.observe_decision((self.ledger.now_ms() - begun_ms) / 1000)

    def _decide_part(self, operation: Operation, agenda: Agenda | None, epoch: int | None) -> None:
        """One part of an operation; the rest, if there is one, goes behind what else waits."""
        if epoch is None or epoch != self.epoch:
            self._finish(operation, self._lost(operation))
            return
        try:
            step = operation.decide(self.pending, agenda)
            end_offset = self._write(operation, step, epoch)
        except StorageError:
            raise  # the disk, or a record that does not fit: whoever goes on now goes on wrongly
        except KraftError as error:
            self._answer(operation, error)
            return
        step.then(end_offset)
        if step.agenda is None:
            self._answer(operation, step.answer(end_offset))
            return
        rest = step.agenda
        self._post(lambda: self._decide(operation, rest, epoch), operation)

    def _write(self, operation: Operation, step: Step, epoch: int) -> int:
        """Append the records of a step; returns where its effects end."""
        base_offset = self.ledger.end_offset
        end_offset = base_offset + len(step.records)
        records = list(step.records)
        if operation.once is not None and step.agenda is None:
            end_offset += 1
            records.append(_done(operation.once, step.answer(end_offset), operation.name))
        if not records:
            return self.pending.end_offset
        image = replay_all(self.pending, [each.record for each in records], base_offset)
        appended_at = self.ledger.append([encode(each) for each in records], epoch=epoch)
        invariant(appended_at == base_offset, "appended elsewhere", at=appended_at)
        operation.parts += 1
        if self.epoch != epoch:  # the node found in the same turn that it no longer leads
            raise self._lost(operation)
        self.pending = image
        self._proposed.append(_Proposed(base_offset, image))
        return end_offset

    def _answer(self, operation: Operation, answer: Answer) -> None:
        """Once all that it rests on is committed."""
        if self._proposed:
            self._proposed[-1].answers.append(_Waiting(operation, answer))
        else:
            self._finish(operation, answer)

    def _finish(self, operation: Operation, answer: Answer) -> None:
        operation.on_answer(answer)
        if operation.once is not None:
            for on_answer in self._open.pop(operation.once, ()):
                on_answer(answer)


def _done(once: Once, result: bytes, name: str) -> CausedRecord:
    record = RequestDone(once.client_id, once.request_id, result)
    return CausedRecord(record, Cause(CauseKind.ADMIN_REQUEST, name))
