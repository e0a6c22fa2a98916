"""The driver on an event loop. One task steps the core; everybody else leaves work in its inbox.

The inbox is bounded: a full one refuses the caller. All proposals of one round go into one batch.
Whatever ends the task, a broken invariant above all, ends the process: a node that goes on after
it has found itself wrong is worse than none.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from kraftlog.clock import Clock
from kraftlog.errors import (
    KraftError,
    NotLeaderError,
    RecordTooLarge,
    RequestTimedOut,
    ThrottledError,
)
from kraftlog.types import Buffer
from quorum.core.config import RaftConfig
from quorum.core.messages import (
    RaftRequest,
    Refusal,
    ReplicaKey,
    ReplicaRequest,
    Reply,
    Request,
)
from quorum.core.raft import RaftCore
from quorum.core.replica import Draw
from quorum.driver import Driver
from quorum.state_machine import StateMachine
from quorum.store import Download, Store

logger = logging.getLogger(__name__)

INBOX_MAX = 10_000
PROPOSALS_MAX = 20_000
PROPOSAL_BYTES_MAX = 64 << 20
"""Of proposals that are not committed yet."""
STEP_MS_MAX = 5
"""After so long the other tasks of the loop have their turn."""
RECORD_BYTES = 20
"""At most, of a record besides its value."""
BATCH_BYTES = 61

Work = Callable[[Driver], None]
OnReply = Callable[[Reply, Buffer], None]
OnProposed = Callable[[int | KraftError], None]
OnRead = Callable[[KraftError | None], None]
Observe = Callable[[float], None]


def _nobody_observes(_seconds: float) -> None:
    pass


class Transport(Protocol):
    """Carries requests to other nodes and brings back replies, or None when there is none."""

    def send(
        self,
        endpoint: str,
        request: ReplicaRequest,
        timeout_ms: int,
        on_reply: Callable[[Reply | None], None],
    ) -> None: ...

    async def run(self) -> None: ...


@dataclass(slots=True)
class NodeCounts:
    """What the node has done so far, for metrics."""

    flushes: int = 0
    batches_proposed: int = 0
    records_proposed: int = 0
    idle_seconds: float = 0.0
    """How long there was nothing to do."""
    requests_refused: int = 0


@dataclass(slots=True)
class _Proposal:
    token: int
    values: Sequence[bytes]
    size: int
    epoch: int | None
    on_done: OnProposed


class RaftNode:
    """One replica that runs. All methods are for the thread of the loop."""

    def __init__(
        self,
        config: RaftConfig,
        store: Store,
        machine: StateMachine,
        transport: Transport,
        *,
        clock: Clock,
        draw: Draw,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._transport = transport
        self._batch_bytes_max = config.batch_bytes_max
        self.timing = config.timing
        self._inbox: deque[Work] = deque()
        self._proposals: deque[_Proposal] = deque()
        self._open_proposals: dict[int, _Proposal] = {}
        self._open_bytes = 0
        self._batch_times: deque[tuple[int, float]] = deque()
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._timer_fired = False
        self._tokens = 0
        self._on_reply: dict[int, OnReply] = {}
        self._reads: dict[int, OnRead] = {}
        self._applied: list[tuple[int, asyncio.Future[None]]] = []
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="raft-flush")
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="raft-check")
        self.counts = NodeCounts()
        self.observe_commit: Observe = _nobody_observes
        """Is told how long each batch took from its append to its commit, in seconds."""
        self.observe_election: Observe = _nobody_observes
        """Is told how long nobody led, as far as this node knew, in seconds."""
        self._leaderless_since: float | None = None
        self.heard_ms: dict[ReplicaKey, int] = {}
        """When each voter has last asked or answered us."""
        self.store = store
        self.machine = machine
        self.driver = Driver(config, store, machine, outlet=self, clock=clock, draw=draw)
        self.led_epoch = self.core.epoch
        """The last epoch of which it knew a leader, or that in which it began."""

    @property
    def core(self) -> RaftCore:
        return self.driver.core

    # -- for others

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    @property
    def leaderless_ms(self) -> int | None:
        """For how long it has known of no leader; None while it knows one."""
        since = self._leaderless_since
        return None if since is None else int((self._loop.time() - since) * 1000)

    def handle_request(self, request: Request, on_reply: OnReply) -> None:
        """Raises ThrottledError when the inbox is full."""
        if isinstance(request, RaftRequest):
            self._hear(request.sender)
        token = self._token()
        self._post(lambda driver: driver.handle_request(token, request))
        self._on_reply[token] = on_reply

    def propose(
        self, values: Sequence[bytes], on_done: OnProposed, *, epoch: int | None = None
    ) -> None:
        """Append records together; `on_done` gets the offset of the first, once it is committed.

        An AmbiguousError tells it that they may be committed or not, any other error that they are
        not. `epoch`: the one in which they were decided on; in any other they are refused.
        """
        if not self.core.is_leader:
            raise self._not_leader()
        size = sum(map(len, values)) + RECORD_BYTES * len(values) + BATCH_BYTES
        if size > self._batch_bytes_max:
            raise RecordTooLarge(
                f"{len(values)} records make a batch of up to {size} bytes, over"
                f" {self._batch_bytes_max}",
                hint="propose fewer or smaller records at once",
            )
        is_full = len(self._open_proposals) >= PROPOSALS_MAX
        if is_full or self._open_bytes + size > PROPOSAL_BYTES_MAX:
            self.counts.requests_refused += 1
            raise ThrottledError("too many proposals wait", hint="try again, or slow down")
        proposal = _Proposal(self._token(), values, size, epoch, on_done)
        self._open_proposals[proposal.token] = proposal
        self._open_bytes += size
        self._proposals.append(proposal)
        self._wake.set()

    async def propose_and_wait(self, values: Sequence[bytes], *, epoch: int | None = None) -> int:
        done: asyncio.Future[int] = self._loop.create_future()

        def finish(result: int | KraftError) -> None:
            if done.done():
                return
            if isinstance(result, int):
                done.set_result(result)
            else:
                done.set_exception(result)

        self.propose(values, finish, epoch=epoch)
        return await done

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append one batch now, as the leader of an epoch; returns the offset of its first record.

        Only for work that came by `post`: that runs in the node's turn. What becomes of the batch
        the state machine hears, as of every other. RecordTooLarge and NotLeaderError come before
        anything has changed.
        """
        self.counts.batches_proposed += 1
        self.counts.records_proposed += len(values)
        return self.driver.append(values, epoch=epoch)

    @property
    def end_offset(self) -> int:
        return self.core.log.end_offset

    def post(self, work: Callable[[], None]) -> None:
        """Do something in the node's turn; ThrottledError when the inbox is full."""
        self._post(lambda _: work())

    def read(self, on_done: OnRead) -> None:
        """`on_done` gets None once the state machine has all that was committed before this call,
        or the reason why this node cannot tell. ThrottledError when the inbox is full.
        """
        token = self._token()
        self._post(lambda driver: driver.read(token))
        self._reads[token] = on_done

    async def read_barrier(self) -> None:
        """The same, to be waited for."""
        done: asyncio.Future[None] = self._loop.create_future()

        def finish(error: KraftError | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self.read(finish)
        await done

    async def wait_applied(self, end_offset: int) -> None:
        """Returns once the state machine has consumed all below `end_offset`."""
        if self.driver.applier.applied_offset < end_offset:
            done: asyncio.Future[None] = self._loop.create_future()
            self._applied.append((end_offset, done))
            await done

    async def call(self, work: Work) -> None:
        """Have the node do something in its turn, and wait for it."""
        done: asyncio.Future[None] = self._loop.create_future()

        def act(driver: Driver) -> None:
            work(driver)
            if not done.done():
                done.set_result(None)

        self._inbox.append(act)
        self._wake.set()
        await done

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens

    def _post(self, work: Work) -> None:
        if len(self._inbox) >= INBOX_MAX:
            self.counts.requests_refused += 1
            raise ThrottledError("the inbox of the node is full", hint="try again, or slow down")
        self._inbox.append(work)
        self._wake.set()

    def _not_leader(self) -> NotLeaderError:
        leader = self.core.leader
        hint = f"node {leader.key.node_id} at {leader.endpoint} leads" if leader else "try again"
        return NotLeaderError(f"epoch {self.core.epoch} is not led here", hint=hint)

    # -- the task

    async def run(self) -> None:
        """Until cancelled, or until something is wrong."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._transport.run(), name="raft transport")
                tasks.create_task(self._step_forever(), name="raft")
        finally:
            if self._timer:
                self._timer.cancel()
            for executor in (self._flusher, self._checker):
                await self._loop.run_in_executor(None, executor.shutdown)

    async def _step_forever(self) -> None:
        while True:
            self._wake.clear()
            self._step()
            self._set_timer()
            if self._inbox or self._proposals or self.driver.applier.has_work:
                await asyncio.sleep(0)
            else:
                since = self._loop.time()
                await self._wake.wait()
                self.counts.idle_seconds += self._loop.time() - since

    def _set_timer(self) -> None:
        """A timer that fires too early does no harm, so it is moved only to fire sooner."""
        wake_ms = self.core.wake_at_ms
        if self._timer and self._timer_ms <= wake_ms:
            return
        if self._timer:
            self._timer.cancel()
        wait_ms = max(wake_ms - self._clock.monotonic_ms(), 1)
        self._timer_ms = wake_ms
        self._timer = self._loop.call_later(wait_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_fired = True
        self._wake.set()

    def _step(self) -> None:
        driver, end_ms = self.driver, self._clock.monotonic_ms() + STEP_MS_MAX
        while self._inbox and self._clock.monotonic_ms() <= end_ms:
            self._inbox.popleft()(driver)
        if self._proposals:
            self._append_proposals(driver)
        if self._timer_fired:
            self._timer_fired = False
            driver.tick()
        while driver.applier.has_work and self._clock.monotonic_ms() <= end_ms:
            driver.apply()
        if self._applied:
            self._release_applied(driver.applier.applied_offset)
        self._watch_leader()

    def _hear(self, key: ReplicaKey | None) -> None:
        """For whoever asks who hears whom. Anybody can make up a key, so only voters are noted."""
        if key is not None and key in self.core.voters:
            self.heard_ms[key] = self.now_ms()

    def _watch_leader(self) -> None:
        """How long nobody leads that this node knows of."""
        if self.core.leader is None:
            if self._leaderless_since is None:
                self._leaderless_since = self._loop.time()
            return
        self.led_epoch = self.core.epoch
        if self._leaderless_since is not None:
            self.observe_election(self._loop.time() - self._leaderless_since)
            self._leaderless_since = None

    def _release_applied(self, applied_offset: int) -> None:
        for end_offset, done in self._applied:
            if end_offset <= applied_offset and not done.done():
                done.set_result(None)
        self._applied = [entry for entry in self._applied if not entry[1].done()]

    def _append_proposals(self, driver: Driver) -> None:
        """As many as fit into one batch; the rest has its turn in the next round."""
        if not driver.core.is_leader:
            while self._proposals:
                self._finish(self._proposals.popleft().token, self._not_leader())
            return
        chosen = self._choose(driver.core.epoch)
        if not chosen:
            return
        self.counts.batches_proposed += 1
        self.counts.records_proposed += sum(len(each.values) for each in chosen)
        self._batch_times.append((chosen[0].token, self._loop.time()))
        try:
            driver.propose([(each.token, each.values) for each in chosen], epoch=driver.core.epoch)
        except (NotLeaderError, RecordTooLarge) as error:
            for each in chosen:
                self._finish(each.token, error)

    def _choose(self, epoch: int) -> list[_Proposal]:
        chosen: list[_Proposal] = []
        room = self._batch_bytes_max
        while self._proposals and self._proposals[0].size <= room:
            proposal = self._proposals.popleft()
            if proposal.epoch not in (None, epoch):
                self._finish(proposal.token, self._not_leader())
                continue
            chosen.append(proposal)
            room -= proposal.size
        return chosen

    def _finish(self, token: int, result: int | KraftError) -> None:
        proposal = self._open_proposals.pop(token)
        self._open_bytes -= proposal.size
        proposal.on_done(result)

    # -- outlet of the driver

    def send(
        self, request_id: int, endpoint: str, request: ReplicaRequest, timeout_ms: int
    ) -> None:
        def on_reply(reply: Reply | None) -> None:
            if reply is not None and reply.refusal is not Refusal.WRONG_RECIPIENT:
                self._hear(request.recipient)
            # Replies are never refused: there is one per request of ours.
            self._inbox.append(lambda driver: driver.handle_reply(request_id, reply))
            self._wake.set()

        self._transport.send(endpoint, request, timeout_ms, on_reply)

    def reply(self, token: int, reply: Reply, records: Buffer) -> None:
        on_reply = self._on_reply.pop(token, None)
        if on_reply:
            on_reply(reply, records)

    def start_flush(self) -> None:
        self.counts.flushes += 1
        flush = self._loop.run_in_executor(self._flusher, self.store.flush)
        flush.add_done_callback(self._flush_done)

    def _flush_done(self, flush: asyncio.Future[int]) -> None:
        if not flush.cancelled():
            # A failure is raised in the node's own task, which ends the process.
            self._inbox.append(lambda driver: driver.flush_done(flush.result()))
            self._wake.set()

    def start_check(self, download: Download) -> None:
        check = self._loop.run_in_executor(self._checker, self.store.check_download, download)

        def done(check: asyncio.Future[None]) -> None:
            if not check.cancelled():
                # As with a flush: a disk that cannot be read or synced ends the process.
                self._inbox.append(lambda driver: self._check_done(driver, download, check))
                self._wake.set()

        check.add_done_callback(done)

    def _check_done(self, driver: Driver, download: Download, check: asyncio.Future[None]) -> None:
        check.result()
        driver.check_done(download)

    def proposed(self, token: int, offset: int) -> None:
        while self._batch_times and self._batch_times[0][0] <= token:
            self.observe_commit(self._loop.time() - self._batch_times.popleft()[1])
        self._finish(token, offset)

    def proposal_failed(self, token: int, error: Refusal) -> None:
        self._batch_times.clear()
        self._finish(
            token,
            RequestTimedOut(
                f"{error}: the records may be committed or not",
                hint="look whether they are there before you repeat them",
            ),
        )

    def read_ready(self, token: int) -> None:
        self._reads.pop(token)(None)

    def read_failed(self, token: int, error: Refusal) -> None:
        self._reads.pop(token)(NotLeaderError(f"no read here: {error}", hint="ask the leader"))
