"""A model of the controller: the rules by which the real one elects leaders, keeps ISR and ELR, and
judges changes of the ISR. It keeps every state that there ever was, as the metadata log does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from brokers.cluster import NO_LEADER, Assignment, BrokerInfo, ClusterChange, PartitionId
from brokers.requests import IsrChange, IsrResult
from brokers.settings import TopicSettings
from kraftlog.errors import ErrorCode, KraftError, StaleEpoch

PLAIN = TopicSettings()


@dataclass(frozen=True, slots=True)
class Metadata:
    """All metadata at one offset: a ClusterView."""

    assignments: dict[PartitionId, Assignment] = field(default_factory=dict)
    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    settings: dict[str, TopicSettings] = field(default_factory=dict)

    def assignment(self, partition: PartitionId) -> Assignment | None:
        return self.assignments.get(partition)

    def broker(self, broker_id: int) -> BrokerInfo | None:
        return self.brokers.get(broker_id)

    def topic_settings(self, topic: str) -> TopicSettings:
        return self.settings.get(topic, PLAIN)

    def change_since(self, before: "Metadata", broker_id: int) -> ClusterChange:
        """What a broker has to do to come from an earlier state to this one."""
        mine = {key: each for key, each in self.assignments.items() if broker_id in each.replicas}
        had = {key for key, each in before.assignments.items() if broker_id in each.replicas}
        return ClusterChange(
            removed=sorted(had - set(mine)),
            changed=[each for key, each in mine.items() if before.assignments.get(key) != each],
            brokers={
                each
                for each in {*self.brokers, *before.brokers}
                if self.brokers.get(each) != before.brokers.get(each)
            },
            configs={
                topic
                for topic in {*self.settings, *before.settings}
                if self.topic_settings(topic) != before.topic_settings(topic)
            },
        )


class Controller:
    def __init__(self, brokers: Iterable[int] = (), *, min_insync: int = 1) -> None:
        self.min_insync = min_insync
        self.log = [Metadata(brokers={each: BrokerInfo(each, epoch=each) for each in brokers})]
        self.next_epoch = 10

    @property
    def now(self) -> Metadata:
        return self.log[-1]

    def is_active(self, broker_id: int) -> bool:
        info = self.now.broker(broker_id)
        return info is not None and info.serves

    # -- topics

    def put(self, assignment: Assignment) -> None:
        """Write a partition as it is."""
        assignments = self.now.assignments | {assignment.id: assignment}
        self.log.append(replace(self.now, assignments=assignments))

    def remove(self, partition: PartitionId) -> None:
        kept = {key: each for key, each in self.now.assignments.items() if key != partition}
        self.log.append(replace(self.now, assignments=kept))

    def configure(self, topic: str, settings: TopicSettings) -> None:
        self.log.append(replace(self.now, settings=self.now.settings | {topic: settings}))

    # -- brokers

    def change_broker(self, info: BrokerInfo) -> None:
        self.log.append(replace(self.now, brokers=self.now.brokers | {info.broker_id: info}))

    def fence(self, broker_id: int) -> None:
        self.change_broker(replace(self.now.brokers[broker_id], fenced=True))
        self._leave(broker_id)

    def unfence(self, broker_id: int) -> None:
        self.change_broker(replace(self.now.brokers[broker_id], fenced=False))
        for partition, each in self.now.assignments.items():
            self.change(partition, each.isr)

    def register(self, broker_id: int, *, clean: bool) -> int:
        """A broker has started, and is fenced. Without a clean stop it may miss records."""
        before = self.now.brokers[broker_id]
        epoch, self.next_epoch = self.next_epoch, self.next_epoch + 1
        self.change_broker(replace(before, epoch=epoch, fenced=True, shutting_down=False))
        self._leave(broker_id, drop=() if clean else (broker_id,))
        return epoch

    def _leave(self, broker_id: int, drop: Sequence[int] = ()) -> None:
        for partition, each in self.now.assignments.items():
            self.change(partition, set(each.isr) - {broker_id}, drop=drop)

    # -- partitions

    def change(
        self,
        partition: PartitionId,
        isr: Iterable[int],
        *,
        drop: Iterable[int] = (),
        leader: int = 0,
    ) -> None:
        """A new ISR, with the ELR and the leader that follow from it (KIP-966)."""
        old = self.now.assignments[partition]
        wanted_isr, dropped = set(isr), set(drop)
        new_isr = tuple(each for each in old.replicas if each in wanted_isr)
        elr: tuple[int, ...] = ()
        if len(new_isr) < min(self.min_insync, len(old.replicas)):
            elr = tuple(sorted((set(old.elr) | set(old.isr)) - set(new_isr) - dropped))
        wanted = leader or old.leader
        if wanted not in new_isr:
            wanted = self._first_active(new_isr)
        if not new_isr:
            wanted = self._first_active(elr)
            new_isr = () if wanted == NO_LEADER else (wanted,)
            elr = tuple(each for each in elr if each != wanted)
        if (new_isr, elr, wanted) != (old.isr, old.elr, old.leader):
            self.put(
                replace(
                    old,
                    isr=new_isr,
                    elr=elr,
                    leader=wanted,
                    leader_epoch=old.leader_epoch + (wanted != old.leader),
                    partition_epoch=old.partition_epoch + 1,
                )
            )

    def _first_active(self, candidates: Iterable[int]) -> int:
        return next((each for each in candidates if self.is_active(each)), NO_LEADER)

    def elect(self, partition: PartitionId, leader: int) -> None:
        """As if by hand: only a member of the ISR that is active."""
        now = self.now.assignments[partition]
        if leader in now.isr and self.is_active(leader):
            self.change(partition, now.isr, leader=leader)

    def elect_uncleanly(self, partition: PartitionId, leader: int) -> None:
        old = self.now.assignments[partition]
        self.put(
            replace(
                old,
                isr=(leader,),
                elr=(),
                leader=leader,
                leader_epoch=old.leader_epoch + 1,
                partition_epoch=old.partition_epoch + 1,
                recovering=True,
            )
        )

    # -- changes of the ISR

    def alter_all(
        self, source: int, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> list[IsrResult]:
        if self.now.brokers[source].epoch != broker_epoch:
            raise StaleEpoch(f"broker epoch {broker_epoch}")
        return [self.alter(source, change) for change in changes]

    def alter(self, source: int, change: IsrChange) -> IsrResult:
        """Judge one change, in the order of the real controller's checks."""
        error = self._refusal(source, change)
        if error is not None:
            return IsrResult(change.partition, error=KraftError(error.name, code=error))
        self.change(change.partition, change.ids)
        now = self.now.assignments[change.partition]
        if now.recovering and not change.recovering:
            now = replace(now, recovering=False, partition_epoch=now.partition_epoch + 1)
            self.put(now)
        return IsrResult(
            now.id, now.leader, now.leader_epoch, now.partition_epoch, now.isr, now.recovering
        )

    def _refusal(self, source: int, change: IsrChange) -> ErrorCode | None:
        now = self.now.assignments.get(change.partition)
        if now is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if change.leader_epoch > now.leader_epoch or change.partition_epoch > now.partition_epoch:
            return ErrorCode.NOT_CONTROLLER
        if change.leader_epoch < now.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if source != now.leader:
            return ErrorCode.INVALID_REQUEST
        if change.partition_epoch < now.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if not change.ids <= set(now.replicas) or now.leader not in change.ids:
            return ErrorCode.INVALID_REQUEST
        for member in change.isr:
            info = self.now.brokers[member.broker_id]
            if not info.serves or member.broker_epoch not in (None, info.epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        return None
