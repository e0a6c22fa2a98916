"""One replica of a partition: who leads, who is in sync, what is committed. Pure.

Inputs are method calls: metadata, appends, fetches of followers, answers of the controller, time.
Each returns effects, which the caller carries out in their order. There is no clock, no disk and no
task in here, so that a simulator can drive it; the ends of the log are told, not looked up.

    high watermark of a leader   the lowest end of all in the maximal ISR (brokers/isr.py), and of
                                 those who are caught up, may join, and would otherwise chase it for
                                 ever. Not moved while the ISR is below min.insync.replicas: this is
                                 what makes the members of the ELR complete (KIP-966). Never falls.
    of a follower                what its leader told, as far as its own log goes. Falls only when
                                 the log itself is cut.

What a leader knows of its followers begins anew with every leader epoch, even if the same broker
leads again: another may have led in between and had them cut their logs.
"""

from dataclasses import dataclass, field

from brokers.cluster import NO_LEADER, Assignment, BrokerLookup, PartitionId
from brokers.effects import (
    BelowMinIsr,
    Effect,
    MoveHighWatermark,
    Propose,
    StartFollowing,
    StartLeading,
    StopFollowing,
    StopLeading,
)
from brokers.isr import (
    OVERTAKEN,
    REVERTED,
    CommittedIsr,
    IsrState,
    PendingExpand,
    PendingRecovered,
    PendingShrink,
)
from brokers.progress import NEVER_MS, UNKNOWN_OFFSET, FollowerFetch, Progress
from brokers.refusals import LeaderHint, stale_replica, unknown_replica
from brokers.requests import IsrChange, IsrMember, IsrResult
from kraftlog._check import invariant

INELIGIBLE_PAUSE_MS = 50
"""Our metadata and the controller's differ: ask again only after some of it may have come."""

# -- roles


@dataclass(slots=True)
class Leading:
    epoch_start: int
    isr: IsrState
    followers: dict[int, Progress]
    recovering: bool = False
    """Elected uncleanly, and the controller has not heard yet that we are in charge."""
    propose_after_ms: int = NEVER_MS


@dataclass(slots=True)
class Following:
    leader: int


@dataclass(slots=True)
class Unassigned:
    """Before the first metadata."""


Role = Leading | Following | Unassigned


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where a log stands when a replica begins."""

    start_offset: int = 0
    high_watermark: int = 0
    flushed_offset: int = 0
    end_offset: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionState:
    """`brokers` answers from the metadata that is applied; when that changes, `brokers_changed`."""

    partition: PartitionId
    broker_id: int
    brokers: BrokerLookup
    lag_ms: int
    log: LogEnds = field(default_factory=LogEnds)
    min_insync: int = 1
    flush_before_ack: bool = False
    name: object = ""

    role: Role = field(default_factory=Unassigned, init=False)
    assignment: Assignment | None = field(default=None, init=False)
    leader_epoch: int = field(default=-1, init=False)
    partition_epoch: int = field(default=-1, init=False)
    start_offset: int = field(init=False)
    high_watermark: int = field(init=False)
    flushed_offset: int = field(init=False)
    end_offset: int = field(init=False)

    def __post_init__(self) -> None:
        self.start_offset = self.log.start_offset
        self.high_watermark = self.log.high_watermark
        self.flushed_offset = self.log.flushed_offset
        self.end_offset = self.log.end_offset

    # -- what others ask

    @property
    def leader_hint(self) -> LeaderHint | None:
        if self.assignment is None:
            return None
        return LeaderHint(self.assignment.leader, self.leader_epoch)

    @property
    def needed_isr(self) -> int:
        """min.insync.replicas, but never more than there are replicas."""
        replicas = len(self.assignment.replicas) if self.assignment else 1
        return min(self.min_insync, replicas)

    @property
    def counted_end(self) -> int:
        """How far our own copy counts."""
        return self.flushed_offset if self.flush_before_ack else self.end_offset

    def is_settled(self) -> bool:
        """Nothing will change here by mere passing of time."""
        role = self.role
        if not isinstance(role, Leading):
            return True
        if (
            role.recovering
            or not isinstance(role.isr, CommittedIsr)
            or len(role.isr.members) <= len(role.followers)
        ):
            return False
        return all(each.end_offset >= self.end_offset for each in role.followers.values())

    def is_sure_to_lead(self, now_ms: int, window_ms: int) -> bool:
        """Whether the in-sync replicas alone, without the controller, prove that nobody else leads
        (brokers/gate.py).
        """
        role = self.role
        if not isinstance(role, Leading):
            return False
        others = role.isr.maximal - {self.broker_id}
        if not others:
            return self.needed_isr == 1
        heard = [role.followers.get(each, Progress()).proven_ms() for each in others]
        return all(now_ms - proven_ms <= window_ms for proven_ms in heard)

    def low_watermark(self) -> int:
        """What no replica that is alive has any more, seen by the leader."""
        role = self.role
        starts = [self.start_offset]
        if isinstance(role, Leading):
            for replica_id, progress in role.followers.items():
                info = self.brokers.broker(replica_id)
                if info is not None and not info.fenced:
                    starts.append(progress.start_offset)
        return min(starts)

    # -- metadata

    def apply(self, assignment: Assignment, now_ms: int) -> list[Effect]:
        """Take in what the metadata log says; what is older than what we know is ignored.

        The same partition epoch may come a second time: the answer to our own AlterPartition is
        often quicker than the log. A change that is on its way by then stays pending, since the
        controller may have made it already.
        """
        if (
            assignment.leader_epoch < self.leader_epoch
            or assignment.partition_epoch < self.partition_epoch
        ):
            return []
        new_epoch = assignment.leader_epoch > self.leader_epoch
        news = assignment.partition_epoch > self.partition_epoch
        self.assignment = assignment
        self.leader_epoch = assignment.leader_epoch
        self.partition_epoch = assignment.partition_epoch
        if assignment.leader == self.broker_id:
            return self._lead(assignment, new_epoch=new_epoch, news=news, now_ms=now_ms)
        return self._follow(assignment.leader, new_epoch=new_epoch)

    def _lead(
        self, assignment: Assignment, *, new_epoch: bool, news: bool, now_ms: int
    ) -> list[Effect]:
        role = self.role
        effects: list[Effect] = []
        if new_epoch or not isinstance(role, Leading):
            effects += self._leave_role()
            role = self.role = _new_leading(self.broker_id, assignment, self.end_offset, now_ms)
            effects.append(StartLeading(assignment.leader_epoch, self.end_offset))
        else:
            role.followers = {
                each: role.followers.get(each, Progress())
                for each in assignment.replicas
                if each != self.broker_id
            }
            if news:
                role.isr = CommittedIsr(frozenset(assignment.isr))
                role.recovering = assignment.recovering
        return effects + self._after_isr_change(role, now_ms)

    def _follow(self, leader: int, *, new_epoch: bool) -> list[Effect]:
        role = self.role
        if isinstance(role, Following) and not new_epoch and role.leader == leader:
            return []
        effects = self._leave_role()
        self.role = Following(leader)
        if leader != NO_LEADER:
            effects.append(StartFollowing(leader, self.leader_epoch))
        return effects

    def _leave_role(self) -> list[Effect]:
        match self.role:
            case Leading():
                return [StopLeading()]
            case Following():
                return [StopFollowing()]
            case Unassigned():
                return []

    def brokers_changed(self, now_ms: int) -> list[Effect]:
        """Others were fenced, unfenced or registered: who may count or join has changed."""
        role = self.role
        return self._after_isr_change(role, now_ms) if isinstance(role, Leading) else []

    def _after_isr_change(self, role: Leading, now_ms: int) -> list[Effect]:
        effects = self._shrink(role, self._gone(role), now_ms)
        if len(role.isr.members) < self.needed_isr:
            effects.append(BelowMinIsr(len(role.isr.members), self.needed_isr))
        effects += self._advance(role, now_ms) + self._expand(role, now_ms)
        return effects + self._report_recovered(role, now_ms)

    def set_policy(self, *, min_insync: int, flush_before_ack: bool, now_ms: int) -> list[Effect]:
        """The topic's configs changed. Before `flush_before_ack` is turned on, flush."""
        self.min_insync = min_insync
        self.flush_before_ack = flush_before_ack
        role = self.role
        return self._after_isr_change(role, now_ms) if isinstance(role, Leading) else []

    # -- our own log

    def appended(self, end_offset: int, now_ms: int) -> list[Effect]:
        """The log has grown, as leader or as follower."""
        role = self.role
        if not isinstance(role, Leading):
            self.end_offset = end_offset
            return []
        before, self.end_offset = self.end_offset, end_offset
        for replica_id, progress in role.followers.items():
            if progress.end_offset == before:
                role.followers[replica_id] = progress.before_growth(before)
        return self._advance(role, now_ms)

    def flushed(self, offset: int, now_ms: int) -> list[Effect]:
        """All below `offset` is durable here."""
        self.flushed_offset = min(offset, self.end_offset)
        role = self.role
        if self.flush_before_ack and isinstance(role, Leading):
            return self._advance(role, now_ms)
        return []

    def truncated(self, end_offset: int) -> None:
        """The log was cut; only a follower's is."""
        invariant(not isinstance(self.role, Leading), "a leader cut its log", partition=self.name)
        self.end_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)

    def restarted(self, offset: int) -> None:
        """The log was emptied and goes on at `offset`: so does the high watermark (KAFKA-9491)."""
        invariant(not isinstance(self.role, Leading), "a leader drops its log", partition=self.name)
        self.start_offset = self.high_watermark = self.flushed_offset = self.end_offset = offset

    def start_moved(self, offset: int) -> None:
        """Records below `offset` are gone."""
        self.start_offset = max(self.start_offset, offset)
        self.high_watermark = max(self.high_watermark, self.start_offset)

    # -- as follower

    def heard_leader(self, high_watermark: int) -> list[Effect]:
        """The leader told its high watermark, and its log and ours do not part (KAFKA-14704)."""
        if not isinstance(self.role, Following):
            return []
        known = min(high_watermark, self.end_offset)
        if known <= self.high_watermark:
            return []
        self.high_watermark = known
        return [MoveHighWatermark(known)]

    # -- as leader

    def check_replica(self, replica_id: int, broker_epoch: int) -> None:
        """Raises Refused for a fetch that must not count: by no replica of ours, or by a process
        that is no longer the registered one.
        """
        role = self.role
        progress = role.followers.get(replica_id) if isinstance(role, Leading) else None
        if progress is None:
            raise unknown_replica(self.name, replica_id)
        info = self.brokers.broker(replica_id)
        registered = info.epoch if info else -1
        current = max(registered, -1 if progress.broker_epoch is None else progress.broker_epoch)
        if broker_epoch < current:
            raise stale_replica(self.name, replica_id, broker_epoch, current)

    def fetched(self, fetch: FollowerFetch, now_ms: int) -> list[Effect]:
        """A follower asks for `offset`, so it has all below it. Only after `check_replica`, and
        only if its log does not part from ours (KAFKA-13141).
        """
        role = self.role
        if not isinstance(role, Leading):
            return []
        progress = role.followers[fetch.replica_id]
        role.followers[fetch.replica_id] = progress.after_fetch(
            fetch, leader_end=self.end_offset, now_ms=now_ms
        )
        return self._expand(role, now_ms, fetch.replica_id) + self._advance(role, now_ms)

    def forgotten(self, replica_id: int) -> None:
        """A follower's session no longer has this partition."""
        role = self.role
        if isinstance(role, Leading) and replica_id in role.followers:
            role.followers[replica_id] = role.followers[replica_id].without_session()

    def check(self, now_ms: int) -> list[Effect]:
        """Time has passed: drop who fell behind, and wait no longer for who did not join."""
        role = self.role
        if not isinstance(role, Leading):
            return []
        late = {each for each in role.isr.members if self._is_late(role, each, now_ms)}
        effects = self._shrink(role, late | self._gone(role), now_ms)
        effects += self._advance(role, now_ms) + self._expand(role, now_ms)
        return effects + self._report_recovered(role, now_ms)

    def _is_late(self, role: Leading, replica_id: int, now_ms: int) -> bool:
        progress = role.followers.get(replica_id)
        return progress is not None and not progress.is_caught_up(
            self.end_offset, now_ms=now_ms, lag_ms=self.lag_ms
        )

    def _gone(self, role: Leading) -> set[int]:
        """Members that are fenced, shutting down or not registered leave at once."""
        return {
            each for each in role.isr.members if each != self.broker_id and not self._serves(each)
        }

    def _serves(self, replica_id: int) -> bool:
        info = self.brokers.broker(replica_id)
        return info is not None and info.serves

    def _may_join(self, replica_id: int, progress: Progress) -> bool:
        """Judged by one snapshot of its progress: end and broker epoch of the same fetch."""
        info = self.brokers.broker(replica_id)
        return info is not None and info.serves and info.epoch == progress.broker_epoch

    def _shrink(self, role: Leading, leaving: set[int], now_ms: int) -> list[Effect]:
        if not leaving or not isinstance(role.isr, CommittedIsr) or now_ms < role.propose_after_ms:
            return []
        change = self._change(role, role.isr.members - leaving)
        role.isr = PendingShrink(role.isr, change)
        return [Propose(change)]

    def _expand(self, role: Leading, now_ms: int, fetching: int = NO_LEADER) -> list[Effect]:
        """Ask in whoever has reached the high watermark and the start of our epoch: the one that
        fetches just now, and others that have everything and were heard of late.
        """
        isr = role.isr
        if (
            not isinstance(isr, CommittedIsr)
            or len(isr.members) > len(role.followers)
            or now_ms < role.propose_after_ms
        ):
            return []
        reached = max(self.high_watermark, role.epoch_start)
        joining = {
            each
            for each, progress in role.followers.items()
            if each not in isr.members
            and progress.end_offset >= reached
            and (each == fetching or self._is_waiting(progress, now_ms))
            and self._may_join(each, progress)
        }
        if not joining:
            return []
        change = self._change(role, isr.members | joining)
        role.isr = PendingExpand(isr, change)
        return [Propose(change)]

    def _report_recovered(self, role: Leading, now_ms: int) -> list[Effect]:
        """What an unclean election lost is lost once we lead (KIP-704). Any change says so too."""
        is_free = isinstance(role.isr, CommittedIsr) and now_ms >= role.propose_after_ms
        if not role.recovering or not is_free:
            return []
        change = self._change(role, role.isr.members)
        role.isr = PendingRecovered(CommittedIsr(role.isr.members), change)
        return [Propose(change)]

    def _is_waiting(self, progress: Progress, now_ms: int) -> bool:
        """Idle with all that there is: it will not mention this partition again of itself."""
        heard_ms = progress.clock.heard_ms if progress.clock else NEVER_MS
        return progress.end_offset >= self.end_offset and now_ms - heard_ms <= self.lag_ms

    def _change(self, role: Leading, members: frozenset[int]) -> IsrChange:
        epochs = {each: progress.broker_epoch for each, progress in role.followers.items()}
        isr = tuple(IsrMember(each, epochs.get(each)) for each in sorted(members))
        return IsrChange(self.partition, self.leader_epoch, self.partition_epoch, isr)

    def _advance(self, role: Leading, now_ms: int) -> list[Effect]:
        if len(role.isr.members) < self.needed_isr:
            return []
        committed = self.counted_end
        for replica_id, progress in role.followers.items():
            if progress.end_offset < committed and (
                replica_id in role.isr.maximal or self._is_joining(replica_id, progress, now_ms)
            ):
                committed = progress.end_offset
        if committed <= self.high_watermark:
            return []
        self.high_watermark = committed
        return [MoveHighWatermark(committed)]

    def _is_joining(self, replica_id: int, progress: Progress, now_ms: int) -> bool:
        """It is caught up and will be asked in. One that may not join is not waited for
        (KAFKA-15021).
        """
        return (
            progress.end_offset > UNKNOWN_OFFSET
            and now_ms - progress.caught_up_ms <= self.lag_ms
            and self._may_join(replica_id, progress)
        )

    # -- the controller's answers

    def altered(self, change: IsrChange, result: IsrResult, now_ms: int) -> list[Effect]:
        """An answer to a proposal. One whose proposal is no longer ours lost a race, and says
        nothing that the metadata log does not say too.
        """
        role = self.role
        if not isinstance(role, Leading) or not self.is_pending(change):
            return []
        if result.error is None:
            return self._confirmed(role, result, now_ms)
        if result.error.code in REVERTED:
            role.isr = CommittedIsr(role.isr.members)
            role.propose_after_ms = now_ms + INELIGIBLE_PAUSE_MS
            return self._after_isr_change(role, now_ms)
        if result.error.code in OVERTAKEN:
            return []  # the controller knows more than we do, and the metadata log will tell
        return [Propose(change)]

    def is_pending(self, change: IsrChange) -> bool:
        """Whether this proposal still stands."""
        isr = self.role.isr if isinstance(self.role, Leading) else None
        return (
            isinstance(isr, PendingExpand | PendingShrink | PendingRecovered)
            and isr.change is change
        )

    def _confirmed(self, role: Leading, result: IsrResult, now_ms: int) -> list[Effect]:
        if (
            result.leader_epoch != self.leader_epoch
            or result.partition_epoch < self.partition_epoch
        ):
            return []
        self.partition_epoch = result.partition_epoch
        role.isr = CommittedIsr(frozenset(result.isr))
        role.recovering = result.recovering
        return self._after_isr_change(role, now_ms)


def _new_leading(broker_id: int, assignment: Assignment, end_offset: int, now_ms: int) -> Leading:
    followers = {
        each: Progress(caught_up_ms=now_ms if each in assignment.isr else NEVER_MS)
        for each in assignment.replicas
        if each != broker_id
    }
    isr = CommittedIsr(frozenset(assignment.isr))
    return Leading(end_offset, isr, followers, recovering=assignment.recovering)
