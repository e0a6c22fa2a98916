"""The rules P1 to P11 and M8, checked on the broker that has just moved and on what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from brokers.cluster import PartitionId
from brokers.partition import Partition
from brokers.partition_state import Leading
from brokers.replica_manager import ReplicaManager
from brokers.requests import (
    ACKS_ALL,
    FetchReply,
    FetchRequest,
    ProduceReply,
    ProduceRequest,
)
from chaos.sim.partitions_broker import SESSION_MS, SETTINGS, RealBroker
from chaos.sim.partitions_ledger import Copy, Entry, PartitionLedger
from chaos.sim.sightings import Sightings
from kraftlog._check import invariant
from kraftlog.record_batch import read_batches
from metadata_log.image import Image

SERVES_FENCED_MS = SESSION_MS * 1.4
"""A session by the slowest clock, after it was fenced by the fastest."""


class Watched(Protocol):
    """What the rules have to know of the cluster."""

    def now(self) -> float: ...
    def isr(self, partition: PartitionId) -> Sequence[int]:
        """As the quorum has committed it."""
        ...

    def broker(self, broker_id: int) -> RealBroker | None: ...


@dataclass(slots=True)
class Seen:
    """What was last observed of one copy, over all lives of its broker."""

    copy: Copy
    life: int = -1
    partition: Partition | None = None
    leader_epoch: int = -1
    leads: int = -1
    high_watermark: int = 0
    end: int = 0
    lost: bool = False
    """Its disk lost something since it last joined the ISR."""


@dataclass(slots=True)
class Shared:
    """One partition, over all brokers."""

    ledger: PartitionLedger
    leaders: dict[int, int] = field(default_factory=dict)
    copies: dict[int, Seen] = field(default_factory=dict)


class PartitionRules:
    def __init__(self, cluster: Watched, sightings: Sightings) -> None:
        self._cluster = cluster
        self._sightings = sightings
        self.shared: dict[PartitionId, Shared] = {}
        self._fenced_since: dict[int, float] = {}
        self.acked = 0

    def _of(self, partition: PartitionId) -> Shared:
        shared = self.shared.get(partition)
        if shared is None:
            shared = self.shared[partition] = Shared(PartitionLedger(partition.partition))
        return shared

    def seen(self, partition: PartitionId, broker_id: int) -> Seen:
        shared = self._of(partition)
        seen = shared.copies.get(broker_id)
        if seen is None:
            seen = shared.copies[broker_id] = Seen(Copy(shared.ledger))
        return seen

    # -- a broker has moved

    def look(self, broker: RealBroker) -> None:
        if broker.manager is None or broker.is_closing:
            return
        hosted = broker.manager.table.hosted
        for place, shared in self.shared.items():
            seen = shared.copies.get(broker.node.node_id)
            knows = seen is not None and (seen.life == broker.node.life or broker.applied_offset)
            if seen is not None and knows and place not in hosted:
                seen.copy.reload(None)  # taken away, with its log
                seen.partition, seen.high_watermark, seen.leads, seen.end = None, 0, -1, 0
        for partition in list(hosted.values()):
            self._look_at(broker, partition)

    def _look_at(self, broker: RealBroker, partition: Partition) -> None:
        state = partition.state
        seen = self.seen(partition.id, broker.node.node_id)
        is_new = seen.life != broker.node.life
        if not is_new and seen.partition is not partition:
            # It was taken away and given back since: that is another copy.
            seen.copy.reload(partition.log)
            seen.high_watermark, seen.leads, seen.end = 0, -1, partition.end_offset
        seen.partition = partition
        if is_new or partition.end_offset < seen.end:
            self._check_cut(broker, partition, seen, is_start=is_new)
        elif partition.log is not None and partition.end_offset > seen.copy.end:
            seen.copy.extend(partition.log)
        seen.end = partition.end_offset
        self._check_watermark(broker, partition, seen)
        seen.leader_epoch = state.leader_epoch
        if isinstance(state.role, Leading) and seen.leads != state.leader_epoch:
            self._check_elected(broker, partition, seen)
        seen.leads = state.leader_epoch if isinstance(state.role, Leading) else -1

    def _check_cut(
        self, broker: RealBroker, partition: Partition, seen: Seen, *, is_start: bool
    ) -> None:
        """P11: what is cut was not committed. P1: nor does a restart lose what is durable."""
        gone = seen.copy.reload(partition.log)
        ledger = self._of(partition.id).ledger
        epoch = None if is_start else partition.state.leader_epoch
        cut = [entry for entry in gone if ledger.is_committed(entry, epoch)]
        facts = {"broker": broker.node.name, "partition": partition.name, "gone": cut[:3]}
        if is_start:
            invariant(not cut or seen.lost, "P1 a restart lost a committed record", **facts)
            seen.life, seen.high_watermark, seen.leads = broker.node.life, 0, -1
        else:
            invariant(not cut, "P11 a committed record was cut", **facts)
            self._sightings.note("replica cut where it diverged")
            seen.high_watermark = min(seen.high_watermark, partition.high_watermark)

    def _check_watermark(self, broker: RealBroker, partition: Partition, seen: Seen) -> None:
        end, was = partition.high_watermark, seen.high_watermark
        same = seen.leads == partition.state.leader_epoch
        facts = {"broker": broker.node.name, "partition": partition.name, "was": was, "now": end}
        invariant(end >= was or not same, "P2 a high watermark fell", **facts)
        if end > was and end <= seen.copy.end:
            self._commit(partition, seen.copy.between(was, end), broker.node.name)
        seen.high_watermark = end

    def _commit(self, partition: Partition, entries: list[Entry], who: str) -> None:
        """P1: what is committed now is with the whole ISR, whatever a leader takes for its ISR."""
        ledger = self._of(partition.id).ledger
        known = ledger.end
        ledger.commit(entries, who, partition.state.leader_epoch)
        for entry in entries:
            if entry.base_offset >= known:
                self._check_held(partition.id, entry, "P1 committed, not by the whole ISR", who)

    def _check_held(self, place: PartitionId, entry: Entry, rule: str, who: str) -> None:
        for member in self._cluster.isr(place):
            seen = self.seen(place, member)
            held = seen.copy.holds(entry) or seen.lost
            facts = {"partition": place.partition, "broker": who, "entry": entry}
            invariant(held, rule, member=member, **facts)

    def _check_elected(self, broker: RealBroker, partition: Partition, seen: Seen) -> None:
        """P4: one leader in an epoch. P1: it has all that was committed before: it may learn late
        that it leads, when others have led after it.
        """
        shared, epoch = self._of(partition.id), partition.state.leader_epoch
        leader = shared.leaders.setdefault(epoch, broker.node.node_id)
        facts = {"partition": partition.name, "epoch": epoch, "broker": broker.node.name}
        invariant(leader == broker.node.node_id, "P4 two leaders in one epoch", one=leader, **facts)
        lacks = seen.copy.lacks(before_epoch=epoch)
        invariant(lacks is None, "P1 a leader lacks a committed record", lacks=lacks, **facts)
        self._sightings.note("replica began to lead")

    # -- the metadata has moved

    def on_commit(self, before: Image, after: Image) -> None:
        for broker in after.brokers.values():
            if broker.is_fenced:
                self._fenced_since.setdefault(broker.id, self._cluster.now())
            else:
                self._fenced_since.pop(broker.id, None)
        for topic in after.topics.values():
            known = before.topics.get(topic.id)
            if known is None or known is topic:
                continue
            for number, (was, now) in enumerate(
                zip(known.partitions, topic.partitions, strict=False)
            ):
                for joined in sorted(set(now.isr) - set(was.isr)):
                    place = PartitionId(topic.id.raw, number)
                    self._check_joined(place, joined, after, elected=was.leader == -1)

    def _check_joined(
        self, place: PartitionId, broker_id: int, image: Image, *, elected: bool
    ) -> None:
        """P5: who joins the ISR has all that is committed."""
        broker = self._cluster.broker(broker_id)
        registered = image.brokers.get(broker_id)
        if broker is None or broker.manager is None or broker.is_closing or registered is None:
            return
        partition = broker.manager.table.hosted.get(place)
        if broker.incarnation != registered.incarnation_id or partition is None:
            return
        seen = self.seen(place, broker_id)
        self._look_at(broker, partition)
        lacks = seen.copy.lacks()
        facts = {"partition": partition.name, "broker": broker.node.name, "lacks": lacks}
        invariant(lacks is None, "P5 joins the ISR below the high watermark", **facts)
        if not elected:
            seen.lost = False
            self._sightings.note("replica joined the ISR")

    # -- what a broker answers

    def on_served(
        self,
        broker: RealBroker,
        request: ProduceRequest | FetchRequest,
        reply: ProduceReply | FetchReply,
    ) -> None:
        if isinstance(request, ProduceRequest) and isinstance(reply, ProduceReply):
            self._check_produced(broker, request, reply)
        elif isinstance(request, FetchRequest) and isinstance(reply, FetchReply):
            self._check_fetched(broker, request, reply)

    def _check_produced(
        self, broker: RealBroker, request: ProduceRequest, reply: ProduceReply
    ) -> None:
        for result in reply.parts:
            if result.error is not None or broker.manager is None:
                continue
            partition = broker.manager.table.hosted[result.partition]
            if request.acks == ACKS_ALL:
                self._look_at(broker, partition)
                self._check_ack(broker, partition, result.base_offset)
            else:
                self._check_serves(broker, partition)

    def _check_ack(self, broker: RealBroker, partition: Partition, base_offset: int) -> None:
        state, ledger = partition.state, self._of(partition.id).ledger
        entry = ledger.committed.get(base_offset)
        facts: dict[str, object] = {"partition": partition.name, "broker": broker.node.name}
        facts |= {"offset": base_offset, "hw": partition.high_watermark}
        invariant(entry is not None, "P1 acknowledged, not committed", **facts)
        role = state.role
        if entry is None or not isinstance(role, Leading):
            return
        members = role.isr.members
        needed = min(partition.settings.min_insync_replicas, len(role.followers) + 1)
        enough = len(members) >= needed
        invariant(enough, "P9 acknowledged with too few in sync", isr=members, **facts)
        rule = "P1 acknowledged, not by the whole ISR"
        self._check_held(partition.id, entry, rule, broker.node.name)
        self.acked += 1
        self._sightings.note("record acknowledged by all")

    def _check_fetched(self, broker: RealBroker, request: FetchRequest, reply: FetchReply) -> None:
        if broker.manager is None:
            return
        if request.replica is not None:
            self._check_fenced(broker.manager, request, reply)
            return
        for result in reply.parts:
            partition = broker.manager.table.hosted.get(result.partition)
            if result.error is not None or partition is None:
                continue
            self._check_serves(broker, partition)
            if not result.records:
                continue
            self._look_at(broker, partition)
            ledger = self._of(partition.id).ledger
            for batch in read_batches(result.records):
                known = ledger.committed.get(batch.base_offset)
                below = batch.next_offset <= partition.high_watermark
                facts = {"partition": partition.name, "batch": batch.base_offset, "known": known}
                invariant(below, "P6 a consumer reads above the high watermark", **facts)
                same = known is not None and known.crc == batch.crc
                invariant(same, "P6 a consumer reads what was not committed", **facts)
            self._sightings.note("records consumed")
            if not partition.is_leader:
                self._sightings.note("records consumed from a follower")

    def _check_fenced(
        self, manager: ReplicaManager, request: FetchRequest, reply: FetchReply
    ) -> None:
        """P4: a replica that follows another epoch is refused."""
        asked = {part.partition: part.leader_epoch for part in request.parts}
        for result in reply.parts:
            partition = manager.table.hosted.get(result.partition)
            if partition is None or result.error is not None or result.partition not in asked:
                continue
            current, epoch = partition.state.leader_epoch, asked[result.partition]
            facts = {"partition": partition.name, "epoch": epoch, "current": current}
            invariant(epoch == current, "P4 a fetch of another epoch is answered", **facts)

    def on_told_end(self, broker: RealBroker, place: PartitionId, end: int) -> None:
        if broker.manager is None:
            return
        partition = broker.manager.table.hosted[place]
        self._check_serves(broker, partition)
        below = end <= partition.high_watermark
        facts = {"partition": partition.name, "end": end, "hw": partition.high_watermark}
        invariant(below, "P6 an end above the high watermark", **facts)

    def _check_serves(self, broker: RealBroker, partition: Partition) -> None:
        """M8, for all that does not rest on the whole ISR."""
        since = self._fenced_since.get(broker.node.node_id)
        if since is None or self._cluster.now() - since < SERVES_FENCED_MS:
            return
        now_ms = broker.node.clock.monotonic_ms()
        sure = partition.state.is_sure_to_lead(now_ms, SETTINGS.heard_window_ms)
        facts = {"broker": broker.node.name, "fenced_ms": self._cluster.now() - since}
        invariant(sure, "M8 serves although it is fenced", **facts)

    # -- disks

    def data_lost(self, broker_id: int) -> None:
        for shared in self.shared.values():
            if broker_id in shared.copies:
                shared.copies[broker_id].lost = True

    def check_end(self, broker: RealBroker) -> None:
        """P1, P3, P7: its logs, read anew, hold all that was committed below its high watermark."""
        if broker.manager is None:
            return
        for partition in list(broker.manager.table):
            seen = self.seen(partition.id, broker.node.node_id)
            gone = seen.copy.reload(partition.log)
            entries = seen.copy.between(0, min(partition.high_watermark, seen.copy.end))
            ledger = self._of(partition.id).ledger
            ledger.commit(entries, broker.node.name, partition.state.leader_epoch)
            facts = {"partition": partition.name, "gone": gone[:3]}
            invariant(not gone, "P11 a record vanished", **facts)
