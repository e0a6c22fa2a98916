"""A partition, its three replicas and its controller, without any disk or network.

The replicas are the real state machines over logs that are lists. Messages lie in a bag until
someone delivers, repeats or drops them, in any order. After every step the invariants P1 to P5, P7,
P9 and P11 are checked.
"""

from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile

from brokers.cluster import NO_LEADER, Assignment, BrokerInfo, PartitionId
from brokers.effects import Effect, MoveHighWatermark, Propose, StartLeading, StopLeading
from brokers.partition_state import Following, Leading, LogEnds, PartitionState
from brokers.progress import FollowerFetch
from brokers.refusals import Refused
from brokers.replica_fetcher import truncation_point
from brokers.requests import IsrChange, IsrResult
from kraftlog.types import EpochEnd
from tests.brokers.controller import Controller

PARTITION = PartitionId(b"t" * 16, 0)
REPLICAS = (1, 2, 3)
LAG_MS = 1_000


@dataclass(frozen=True, slots=True)
class Rec:
    epoch: int
    value: int


class ModelLog:
    """A list of records. Knows where epochs begin, and the one that its leader has begun."""

    def __init__(self) -> None:
        self.records: list[Rec] = []
        self.opened: tuple[int, int] | None = None

    @property
    def end_offset(self) -> int:
        return len(self.records)

    def starts(self) -> list[tuple[int, int]]:
        found, offset = [], 0
        for epoch, group in groupby(rec.epoch for rec in self.records):
            found.append((epoch, offset))
            offset += len(list(group))
        if self.opened and (not found or self.opened[0] > found[-1][0]):
            found.append(self.opened)
        return found

    def end_for_epoch(self, epoch: int) -> EpochEnd | None:
        starts = self.starts()
        if not starts or epoch > starts[-1][0]:
            return None
        if epoch == starts[-1][0]:
            return EpochEnd(epoch, self.end_offset)
        known = list(takewhile(lambda entry: entry[0] <= epoch, starts))
        return EpochEnd(known[-1][0] if known else epoch, starts[len(known)][1])

    def last_epoch(self) -> int | None:
        return self.records[-1].epoch if self.records else None


# -- messages


@dataclass(frozen=True, slots=True)
class Fetch:
    source: int
    target: int
    epoch: int
    offset: int
    last_epoch: int | None
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class Fetched:
    source: int
    target: int
    epoch: int
    offset: int
    last_epoch: int | None
    """What it answers: where the follower was, of which no two logs differ below. A real follower
    has one fetch under way, and drops what comes late for another.
    """
    records: tuple[Rec, ...] = ()
    high_watermark: int = -1
    diverging: EpochEnd | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Alter:
    source: int
    broker_epoch: int
    change: IsrChange


@dataclass(frozen=True, slots=True, eq=False)
class Altered:
    target: int
    change: IsrChange
    result: IsrResult


Message = Fetch | Fetched | Alter | Altered


# -- the replicas


class Replica:
    """A broker with its one partition. `brokers` of the state is this object: it answers from the
    metadata that it has applied.
    """

    def __init__(self, broker_id: int, world: "World") -> None:
        self.id = broker_id
        self.world = world
        self.log = ModelLog()
        self.alive = True
        self.broker_epoch = broker_id
        self.applied = -1
        self.checkpoint = 0
        self.state = self.new_state()

    def new_state(self) -> PartitionState:
        end = self.log.end_offset
        return PartitionState(
            partition=PARTITION,
            broker_id=self.id,
            brokers=self,
            lag_ms=LAG_MS,
            log=LogEnds(0, min(self.checkpoint, end), end, end),
            min_insync=self.world.controller.min_insync,
            name="t-0",
        )

    def broker(self, broker_id: int) -> BrokerInfo | None:
        return self.world.controller.log[self.applied].broker(broker_id)

    @property
    def leading(self) -> Leading | None:
        return self.state.role if isinstance(self.state.role, Leading) else None


@dataclass
class World:
    min_insync: int = 2
    now_ms: int = 0
    bag: list[Message] = field(default_factory=list)
    acked: dict[int, Rec] = field(default_factory=dict)
    leaders: dict[int, int] = field(default_factory=dict)
    high_watermarks: dict[int, int] = field(default_factory=dict)
    """Per leader epoch."""
    values: int = 0
    acks_below_min: int = 0

    def __post_init__(self) -> None:
        self.controller = Controller(REPLICAS, min_insync=self.min_insync)
        self.controller.put(Assignment(PARTITION, "t", 1, 0, 0, REPLICAS, REPLICAS))
        self.replicas = {each: Replica(each, self) for each in REPLICAS}
        for each in REPLICAS:
            self.apply_all(each)

    @property
    def now_assigned(self) -> Assignment:
        return self.controller.now.assignments[PARTITION]

    # -- steps

    def apply_next(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        self._apply(replica, min(replica.applied + 1, len(self.controller.log) - 1))

    def apply_all(self, broker_id: int) -> None:
        """All that there is, as one change."""
        self._apply(self.replicas[broker_id], len(self.controller.log) - 1)

    def _apply(self, replica: Replica, offset: int) -> None:
        if replica.alive and replica.applied < offset:
            replica.applied = offset
            assignment = self.controller.log[offset].assignments[PARTITION]
            effects = replica.state.apply(assignment, self.now_ms)
            self.carry_out(replica, effects + replica.state.brokers_changed(self.now_ms))

    def produce(self, broker_id: int) -> bool:
        replica = self.replicas[broker_id]
        role = replica.leading
        if not replica.alive or role is None or len(role.isr.members) < replica.state.needed_isr:
            return False
        self.values += 1
        replica.log.records.append(Rec(replica.state.leader_epoch, self.values))
        self.carry_out(replica, replica.state.appended(replica.log.end_offset, self.now_ms))
        return True

    def fetch(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        role, log = replica.state.role, replica.log
        if replica.alive and isinstance(role, Following) and role.leader != NO_LEADER:
            epoch, last = replica.state.leader_epoch, log.last_epoch()
            end, run = log.end_offset, replica.broker_epoch
            self.bag.append(Fetch(broker_id, role.leader, epoch, end, last, run))

    def check(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        if replica.alive:
            self.carry_out(replica, replica.state.check(self.now_ms))

    def resend(self, broker_id: int) -> None:
        """Proposals are repeated until they are answered."""
        replica = self.replicas[broker_id]
        change = getattr(replica.leading.isr, "change", None) if replica.leading else None
        if replica.alive and change is not None:
            self.bag.append(Alter(broker_id, replica.broker_epoch, change))

    def crash(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        replica.checkpoint = replica.state.high_watermark
        replica.alive = False

    def restart(self, broker_id: int, *, lost: int) -> None:
        """The process comes back; `lost` records of its tail do not (a power cut).

        It acts on no metadata older than its own registration: in there it may still lead with the
        records that it has lost.
        """
        replica = self.replicas[broker_id]
        now = self.now_assigned
        sole = not (set(now.isr) | set(now.elr)) - {broker_id}
        lost = 0 if sole else min(lost, replica.log.end_offset)
        if lost:
            del replica.log.records[replica.log.end_offset - lost :]
        replica.broker_epoch = self.controller.register(broker_id, clean=not lost)
        replica.log.opened = None
        replica.alive = True
        replica.state = replica.new_state()
        replica.applied = -1
        self.apply_all(broker_id)

    def unfence(self, broker_id: int) -> None:
        """A broker that has applied all metadata, its own registration included, is let in."""
        replica = self.replicas[broker_id]
        caught_up = replica.applied == len(self.controller.log) - 1
        if replica.alive and caught_up and self.controller.now.brokers[broker_id].fenced:
            self.controller.unfence(broker_id)

    def elect(self, broker_id: int) -> None:
        self.controller.elect(PARTITION, broker_id)

    def deliver(self, message: Message) -> None:
        match message:
            case Fetch():
                self._serve(self.replicas[message.target], message)
            case Fetched():
                self._take(self.replicas[message.target], message)
            case Alter():
                self._alter(message)
            case Altered():
                replica = self.replicas[message.target]
                if replica.alive:
                    effects = replica.state.altered(message.change, message.result, self.now_ms)
                    self.carry_out(replica, effects)

    def _alter(self, request: Alter) -> None:
        if self.controller.now.brokers[request.source].epoch == request.broker_epoch:
            result = self.controller.alter(request.source, request.change)
            self.bag.append(Altered(request.source, request.change, result))

    def _serve(self, leader: Replica, fetch: Fetch) -> None:
        state, log = leader.state, leader.log
        if not leader.alive or leader.leading is None or fetch.epoch != state.leader_epoch:
            return
        try:
            state.check_replica(fetch.source, fetch.broker_epoch)
        except Refused:
            return
        end = log.end_for_epoch(fetch.last_epoch) if fetch.last_epoch is not None else None
        reply = Fetched(leader.id, fetch.source, fetch.epoch, fetch.offset, fetch.last_epoch)
        if fetch.last_epoch is not None:
            assert end is not None, "a leader knows its own epoch"
            if end.epoch < fetch.last_epoch or end.end_offset < fetch.offset:
                self.bag.append(replace(reply, diverging=end))
                return
        counted = FollowerFetch(fetch.source, fetch.broker_epoch, fetch.offset, 0)
        self.carry_out(leader, state.fetched(counted, self.now_ms))
        records = tuple(log.records[fetch.offset : fetch.offset + 2])
        self.bag.append(replace(reply, records=records, high_watermark=state.high_watermark))

    def _take(self, follower: Replica, reply: Fetched) -> None:
        state, log = follower.state, follower.log
        if not follower.alive or not isinstance(state.role, Following):
            return
        if reply.epoch != state.leader_epoch:
            return
        if (reply.offset, reply.last_epoch) != (log.end_offset, log.last_epoch()):
            return
        if reply.diverging is not None:
            del log.records[truncation_point(log, reply.diverging) :]
            log.opened = None
            state.truncated(log.end_offset)
            return
        log.records.extend(reply.records)
        self.carry_out(follower, state.appended(log.end_offset, self.now_ms))
        self.carry_out(follower, state.heard_leader(reply.high_watermark))

    # -- effects

    def carry_out(self, replica: Replica, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case StartLeading(epoch, start):
                    assert self.leaders.setdefault(epoch, replica.id) == replica.id, "P4"
                    replica.log.opened = (epoch, start)
                case StopLeading():
                    replica.log.opened = None
                case MoveHighWatermark(offset):
                    self._committed(replica, offset)
                case Propose(change):
                    self.bag.append(Alter(replica.id, replica.broker_epoch, change))
                case _:
                    pass

    def _committed(self, replica: Replica, offset: int) -> None:
        role, epoch = replica.leading, replica.state.leader_epoch
        if role is None:
            return
        assert offset > self.high_watermarks.get(epoch, -1), "P2"
        assert len(role.isr.members) >= min(self.min_insync, len(REPLICAS)), "P9"
        self.high_watermarks[epoch] = offset
        for at in range(offset):
            known = self.acked.setdefault(at, replica.log.records[at])
            assert known == replica.log.records[at], f"P1: {at} was {known}"

    # -- invariants

    def check_invariants(self) -> None:
        now = self.now_assigned
        for candidate in {now.leader, *now.isr, *now.elr} - {NO_LEADER}:
            self._check_complete(self.replicas[candidate])
        for replica in self.replicas.values():
            epochs = [rec.epoch for rec in replica.log.records]
            assert epochs == sorted(epochs), "P7"
            assert replica.state.high_watermark <= replica.log.end_offset
        self._check_agreement()

    def _check_complete(self, replica: Replica) -> None:
        """P1, and P5: whoever may be elected has all that was acknowledged."""
        records = replica.log.records
        for offset, rec in self.acked.items():
            held = records[offset] if offset < len(records) else None
            assert held == rec, f"P1: {rec} at {offset} is {held} on broker {replica.id}"

    def _check_agreement(self) -> None:
        low = min(replica.state.high_watermark for replica in self.replicas.values())
        prefixes = {tuple(replica.log.records[:low]) for replica in self.replicas.values()}
        assert len(prefixes) == 1, f"P3: logs differ below {low}"

    # -- the end of all faults

    def heal(self) -> None:
        """Everybody is back, and every message arrives: all must converge (V2)."""
        for broker_id, replica in self.replicas.items():
            if not replica.alive:
                self.restart(broker_id, lost=0)
        for _ in range(30):
            self._settle_metadata()
            for broker_id in REPLICAS:
                self.unfence(broker_id)
            self._settle_metadata()
            self.now_ms += LAG_MS // 4
            for broker_id in REPLICAS:
                self.fetch(broker_id)
                self.check(broker_id)
                self.resend(broker_id)
            while self.bag:
                self.deliver(self.bag.pop(0))
            self.check_invariants()

    def _settle_metadata(self) -> None:
        for broker_id, replica in self.replicas.items():
            while replica.applied < len(self.controller.log) - 1:
                self.apply_next(broker_id)
