"""A log in a list, in the place of a node: the test says when work is done and when it commits."""

from collections import deque
from collections.abc import Callable, Sequence

from kraftlog.errors import KraftError, NotLeaderError, RecordTooLarge, ThrottledError
from quorum.controller import Controller
from quorum.state_machine import CommittedBatch

CONTROL = ()
"""A control batch: it takes an offset and says nothing to the state machine."""


class ListLedger:
    """One node. `epoch` is the one it leads, None: it does not lead."""

    def __init__(self, machine: Controller) -> None:
        self.machine = machine
        self.epoch: int | None = None
        self.now = 0
        self.work: deque[Callable[[], None]] = deque()
        self.batches: list[tuple[int, tuple[bytes, ...]]] = []
        self.end = 0
        self.applied = 0
        self.work_max = 10_000
        self.values_max = 1_000_000
        self.lose_in_append = False

    # -- what the controller sees

    @property
    def end_offset(self) -> int:
        return self.end

    def now_ms(self) -> int:
        return self.now

    def post(self, work: Callable[[], None]) -> None:
        if len(self.work) >= self.work_max:
            raise ThrottledError("the inbox is full")
        self.work.append(work)

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        if epoch != self.epoch:
            raise NotLeaderError(f"epoch {epoch} is not led here")
        if len(values) > self.values_max:
            raise RecordTooLarge(f"{len(values)} records")
        base = self._add(tuple(values))
        if self.lose_in_append:
            self.lose()
        return base

    def read(self, on_done: Callable[[KraftError | None], None]) -> None:
        if self.epoch is None:
            on_done(NotLeaderError("no read here"))
        else:
            self.post(lambda: on_done(None))

    # -- what the test does

    def _add(self, values: tuple[bytes, ...]) -> int:
        base = self.end
        self.batches.append((base, values))
        self.end += len(values) or 1
        return base

    def lead(self, epoch: int) -> None:
        """Win an election, commit the first record of the epoch, and say so."""
        self.epoch = epoch
        self._add(CONTROL)
        self.commit()
        self.machine.handle_leader_change(epoch, 1)

    def lose(self, *, leader_id: int | None = 2) -> None:
        self.epoch = None
        self.machine.handle_leader_change(99, leader_id)

    def cut(self) -> None:
        """What was not committed is replaced by somebody else's log."""
        self.batches = self.batches[: self.applied]
        self.end = sum(len(values) or 1 for _, values in self.batches)

    def run(self) -> None:
        """Do all that was posted, and what that posts."""
        while self.work:
            self.work.popleft()()

    def commit(self, count: int | None = None) -> None:
        """Commit so many batches more, or all."""
        until = len(self.batches) if count is None else self.applied + count
        while self.applied < until:
            base, values = self.batches[self.applied]
            self.applied += 1
            if values:
                self.machine.handle_commit([CommittedBatch(base, self.epoch or 0, 0, values)])

    def settle(self) -> None:
        """Run and commit until there is nothing left to do."""
        while self.work or self.applied < len(self.batches):
            self.run()
            self.commit()
