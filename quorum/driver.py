"""Carries out what the core wants, in order: the whole safety contract of the I/O side.

It does no waiting of its own. Whoever owns it (the asyncio node, or the simulator) gives it an
Outlet for everything that takes time, and brings back what came of it. What must be durable before
the next effect is durable when the call returns: the election state, truncations, a loaded
snapshot. A flush is not waited for: one runs at a time, and the next takes all that was appended
meanwhile (group commit).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from kraftlog._check import invariant
from kraftlog.clock import Clock
from kraftlog.errors import RecordTooLarge
from kraftlog.types import Buffer
from quorum.batches import encode_records
from quorum.core.config import RaftConfig
from quorum.core.effects import (
    Append,
    AppendSnapshotChunk,
    CheckSnapshot,
    Committed,
    DropLogBelow,
    DropSnapshot,
    Effect,
    FinishSnapshot,
    Flush,
    LeaderChanged,
    LeadershipGained,
    LeadershipLost,
    ReadFailed,
    ReadReady,
    SaveElection,
    Send,
    SendRecords,
    SendReply,
    SendSnapshotChunk,
    StartSnapshot,
    TruncateLog,
)
from quorum.core.messages import (
    Proposal,
    Refusal,
    ReplicaKey,
    ReplicaRequest,
    Reply,
    Request,
    SnapshotId,
)
from quorum.core.raft import RaftCore
from quorum.core.replica import Draw
from quorum.state_machine import Applier, StateMachine
from quorum.store import Download, Store


class Outlet(Protocol):
    """Everything that takes time. None of these waits."""

    def send(
        self, request_id: int, endpoint: str, request: ReplicaRequest, timeout_ms: int
    ) -> None:
        """Ends in `Driver.handle_reply`, with None if there is no answer in that time."""
        ...

    def reply(self, token: int, reply: Reply, records: Buffer) -> None: ...

    def start_flush(self) -> None:
        """Run `Driver.flush` off the loop, then `Driver.flush_done` on it."""
        ...

    def start_check(self, download: Download) -> None:
        """Run `Driver.check_download` off the loop, then `Driver.check_done` on it."""
        ...

    def proposed(self, token: int, offset: int) -> None:
        """A proposal is committed; its first record has this offset."""
        ...

    def proposal_failed(self, token: int, error: Refusal) -> None:
        """Leadership was lost first. It may still be committed by the next leader."""
        ...

    def read_ready(self, token: int) -> None:
        """The state machine has consumed all that was committed when the read came."""
        ...

    def read_failed(self, token: int, error: Refusal) -> None: ...


@dataclass(frozen=True, slots=True)
class _Pending:
    token: int
    base_offset: int
    last_offset: int


class Driver:
    def __init__(
        self,
        config: RaftConfig,
        store: Store,
        machine: StateMachine,
        *,
        outlet: Outlet,
        clock: Clock,
        draw: Draw,
    ) -> None:
        self._config = config
        self._store = store
        self._outlet = outlet
        self._clock = clock
        self.applier = Applier(store, machine, config.key.node_id)
        self._flush_version: int | None = None
        self._flush_wanted = False
        self._pending: deque[_Pending] = deque()
        self._reads: deque[tuple[int, int]] = deque()
        self.core = RaftCore(
            config, store.view, store.election, draw=draw, now_ms=clock.monotonic_ms()
        )
        self.perform()

    def apply_lag_seconds(self) -> float:
        """How old the newest applied record is; 0 while no newer one is known as committed."""
        if not self.applier.has_work:
            return 0.0
        return max(self._clock.wall_ms() - self.applier.applied_timestamp_ms, 0) / 1000

    # -- inputs

    def tick(self) -> None:
        self.core.tick(self._now())
        self.perform()

    def handle_request(self, token: int, request: Request) -> None:
        self.core.handle_request(token, request, self._now())
        self.perform()

    def handle_reply(self, request_id: int, reply: Reply | None) -> None:
        self.core.handle_reply(request_id, reply, self._now())
        self.perform()

    def propose(self, proposals: Sequence[tuple[int, Sequence[bytes]]], *, epoch: int) -> None:
        """Append all of these, each with its own token, as one batch.

        NotLeaderError and RecordTooLarge come before anything has changed. Any other error comes
        from the disk, after the core has counted the records: it must end the process.
        """
        values = [value for _, records in proposals for value in records]
        offset = self._append(values, epoch)
        for token, records in proposals:
            self._pending.append(_Pending(token, offset, offset + len(records) - 1))
            offset += len(records)
        self.perform()

    def append(self, values: Sequence[bytes], *, epoch: int) -> int:
        """One batch that nobody waits for, the state machine excepted; returns its offset.

        The errors are those of `propose`.
        """
        offset = self._append(values, epoch)
        self.perform()
        return offset

    def _append(self, values: Sequence[bytes], epoch: int) -> int:
        data = encode_records(values, timestamp=self._clock.wall_ms())
        if len(data) > self._config.batch_bytes_max:
            raise RecordTooLarge(
                f"{len(values)} records make a batch of {len(data)} bytes, over"
                f" {self._config.batch_bytes_max}",
                hint="propose fewer or smaller records at once",
            )
        batch = [Proposal(data, len(values))]
        return self.core.propose(batch, epoch=epoch, now_ms=self._now())

    def read(self, token: int) -> None:
        self.core.read(token, self._now())
        self.perform()

    def resign(self, heir: ReplicaKey | None = None) -> None:
        self.core.resign(self._now(), heir)
        self.perform()

    def snapshot_written(self, snapshot: SnapshotId) -> None:
        """Our own snapshot is on disk. A newer one of the leader may have come meanwhile."""
        start = self.core.log.start_offset
        if snapshot.end_offset < start:
            self._store.remove_snapshot(snapshot)
        elif snapshot.end_offset > start:
            self._store.add_snapshot(snapshot)
            self.core.snapshot_created(snapshot, self._now())
            self.perform()

    def drop_log_below(self, snapshot: SnapshotId) -> None:
        self.core.drop_log_below(snapshot, self._now())
        self.perform()

    def flush(self) -> int:
        """Off the loop."""
        return self._store.flush()

    def flush_done(self, end_offset: int) -> None:
        version = self._flush_version
        invariant(version is not None, "a flush that nobody asked for")
        self._flush_version = None
        log = self.core.log
        if version == log.version:
            self.core.flushed(end_offset, version, self._now())
        # A flush takes all that is there when it begins, so the next one may have become needless;
        # or the log was cut meanwhile, and what is left was not counted.
        self._flush_wanted = log.flushed_offset < log.end_offset
        self._start_flush()
        self.perform()

    def check_download(self, download: Download) -> None:
        """Off the loop."""
        self._store.check_download(download)

    def check_done(self, download: Download) -> None:
        if self._store.end_check(download):
            is_sound = download.checked is not None
            self.core.snapshot_checked(download.id, self._now(), is_sound=is_sound)
            self.perform()

    def apply(self) -> None:
        """One slice of committed records to the state machine."""
        self.applier.step()
        self._release_reads()

    # -- effects

    def _now(self) -> int:
        return self._clock.monotonic_ms()

    def perform(self) -> None:
        """Carry out all effects; some bring new ones."""
        while effects := self.core.take_effects():
            for effect in effects:
                self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendRecords() | SendSnapshotChunk() | SendReply() | Send():
                self._perform_message(effect)
            case SaveElection(election=election):
                self._store.save_election(election)
            case Append(batches=batches, fetched=fetched):
                self._store.append(batches, fetched=fetched)
            case Flush():
                self._flush_wanted = True
                self._start_flush()
            case TruncateLog(end_offset=end_offset):
                self._store.truncate(end_offset)
            case DropLogBelow(snapshot=snapshot):
                self._store.drop_below(snapshot)
            case StartSnapshot() | AppendSnapshotChunk() | CheckSnapshot():
                self._perform_download(effect)
            case FinishSnapshot() | DropSnapshot():
                self._end_download(effect)
            case _:
                self._perform_news(effect)

    def _start_flush(self) -> None:
        if self._flush_wanted and self._flush_version is None:
            self._flush_wanted = False
            self._flush_version = self.core.log.version
            self._outlet.start_flush()

    def _perform_message(self, effect: SendRecords | SendSnapshotChunk | SendReply | Send) -> None:
        match effect:
            case Send(request_id, endpoint, _, request, timeout_ms):
                self._outlet.send(request_id, endpoint, request, timeout_ms)
            case SendReply(token=token, reply=reply):
                self._outlet.reply(token, reply, b"")
            case SendRecords(token, fetch_reply, offset, end_offset, max_bytes):
                records = self._store.read(offset, end_offset=end_offset, max_bytes=max_bytes)
                self._outlet.reply(token, fetch_reply, records)
            case SendSnapshotChunk(token, chunk, max_bytes):
                size, data = self._store.read_chunk(chunk.snapshot, chunk.position, max_bytes)
                refusal = None if data else Refusal.POSITION_OUT_OF_RANGE
                self._outlet.reply(
                    token, replace(chunk, size=size, data=data, refusal=refusal), b""
                )

    def _perform_download(
        self, effect: StartSnapshot | AppendSnapshotChunk | CheckSnapshot
    ) -> None:
        match effect:
            case StartSnapshot(snapshot=snapshot):
                self._store.start_download(snapshot)
            case AppendSnapshotChunk(snapshot, position, data):
                self._store.append_chunk(snapshot, position, data)
            case CheckSnapshot(snapshot=snapshot):
                self._outlet.start_check(self._store.begin_check(snapshot))

    def _end_download(self, effect: FinishSnapshot | DropSnapshot) -> None:
        match effect:
            case DropSnapshot():
                self._store.drop_download()
            case FinishSnapshot(snapshot=snapshot):
                found = self._store.finish_download(snapshot)
                self.core.snapshot_loaded(snapshot, found.voters, self._now())
                self.applier.load(found)

    def _perform_news(self, effect: Effect) -> None:
        match effect:
            case Committed(high_watermark=high_watermark):
                self.applier.commit(high_watermark)
                self._release_proposals(high_watermark)
            case LeaderChanged(epoch=epoch, leader_id=leader_id):
                self.applier.change_leader(epoch, leader_id)
            case LeadershipGained(epoch=epoch, start_offset=start_offset):
                self.applier.gain_leadership(epoch, start_offset)
            case LeadershipLost():
                self._fail_proposals()
            case ReadReady(tokens=tokens, end_offset=end_offset):
                self._reads.extend((end_offset, token) for token in tokens)
                self._release_reads()
            case ReadFailed(tokens=tokens, refusal=refusal):
                for token in tokens:
                    self._outlet.read_failed(token, refusal)
            case _:
                invariant(False, "an effect that nobody performs", effect=effect)

    def _release_proposals(self, high_watermark: int) -> None:
        while self._pending and self._pending[0].last_offset < high_watermark:
            done = self._pending.popleft()
            self._outlet.proposed(done.token, done.base_offset)

    def _fail_proposals(self) -> None:
        while self._pending:
            self._outlet.proposal_failed(self._pending.popleft().token, Refusal.LEADERSHIP_LOST)

    def _release_reads(self) -> None:
        while self._reads and self._reads[0][0] <= self.applier.applied_offset:
            self._outlet.read_ready(self._reads.popleft()[1])
