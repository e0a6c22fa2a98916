"""One PartitionState as the leader, and the few words that its tests need."""

from dataclasses import replace

from brokers.cluster import Assignment, BrokerInfo, PartitionId
from brokers.effects import Effect, MoveHighWatermark, Propose
from brokers.partition_state import Leading, LogEnds, PartitionState
from brokers.progress import FollowerFetch, SessionClock
from brokers.requests import IsrChange, IsrResult
from kraftlog.errors import ErrorCode, KraftError

PARTITION = PartitionId(b"p" * 16, 0)
LAG_MS = 1_000
FIRST = Assignment(PARTITION, "t", 1, 5, 10, (1, 2, 3), (1, 2, 3))


class Brokers:
    """Brokers 1 to 3 with epochs 101 to 103, unless a test says otherwise."""

    def __init__(self) -> None:
        self.known = {each: BrokerInfo(each, 100 + each) for each in (1, 2, 3)}

    def broker(self, broker_id: int) -> BrokerInfo | None:
        return self.known.get(broker_id)

    def change(
        self, broker_id: int, *, fenced: bool = False, stops: bool = False, epoch: int | None = None
    ) -> None:
        info = self.known[broker_id]
        self.known[broker_id] = replace(
            info, fenced=fenced, shutting_down=stops, epoch=info.epoch if epoch is None else epoch
        )


class Leader:
    """Broker 1 leads; brokers 2 and 3 follow. `offset` is where all logs end at first."""

    def __init__(
        self,
        assignment: Assignment = FIRST,
        *,
        offset: int = 0,
        high_watermark: int = 0,
        min_insync: int = 1,
        flush_before_ack: bool = False,
    ) -> None:
        self.brokers = Brokers()
        self.now_ms = 0
        self.state = PartitionState(
            partition=PARTITION,
            broker_id=1,
            brokers=self.brokers,
            lag_ms=LAG_MS,
            log=LogEnds(0, high_watermark, offset, offset),
            min_insync=min_insync,
            flush_before_ack=flush_before_ack,
            name="t-0",
        )
        self.effects = self.state.apply(assignment, self.now_ms)

    @property
    def role(self) -> Leading:
        assert isinstance(self.state.role, Leading)
        return self.state.role

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    def append(self, count: int = 1) -> list[Effect]:
        return self.state.appended(self.state.end_offset + count, self.now_ms)

    def fetch(
        self, replica: int, offset: int, *, epoch: int = 0, clock: SessionClock | None = None
    ) -> list[Effect]:
        broker_epoch = epoch or 100 + replica
        self.state.check_replica(replica, broker_epoch)
        return self.state.fetched(
            FollowerFetch(replica, broker_epoch, offset, 0, clock), self.now_ms
        )

    def apply(
        self, *, isr: tuple[int, ...], partition_epoch: int, leader_epoch: int = 5, leader: int = 1
    ) -> list[Effect]:
        changed = replace(
            FIRST,
            isr=isr,
            partition_epoch=partition_epoch,
            leader_epoch=leader_epoch,
            leader=leader,
        )
        return self.state.apply(changed, self.now_ms)

    def check_after(self, ms: int) -> list[Effect]:
        self.now_ms += ms
        return self.state.check(self.now_ms)

    def confirm(self, change: IsrChange) -> list[Effect]:
        result = IsrResult(
            PARTITION, 1, change.leader_epoch, change.partition_epoch + 1, tuple(sorted(change.ids))
        )
        return self.state.altered(change, result, self.now_ms)

    def refuse(self, change: IsrChange, code: ErrorCode) -> list[Effect]:
        result = IsrResult(PARTITION, error=KraftError(code.name, code=code))
        return self.state.altered(change, result, self.now_ms)


def proposed(effects: list[Effect]) -> IsrChange | None:
    """The change that these effects ask for."""
    found = [effect.change for effect in effects if isinstance(effect, Propose)]
    assert len(found) <= 1
    return found[0] if found else None


def proposal(effects: list[Effect]) -> IsrChange:
    change = proposed(effects)
    assert change is not None
    return change


def moved_to(effects: list[Effect]) -> int | None:
    """Where these effects move the high watermark."""
    found = [effect.offset for effect in effects if isinstance(effect, MoveHighWatermark)]
    return found[-1] if found else None
