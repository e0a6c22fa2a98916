"""What has changed in a cluster between two looks at it.

The looks are at committed metadata, so nothing is told that did not happen; what came and went in
between is not seen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraftlog.admin_types import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    TopicDescription,
)
from kraftlog.types import Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """One change. `before` and `after` are what it was and is, as people read it.

    Kinds: controller, broker_registered, broker_restarted, broker_unregistered, broker_fenced,
    broker_unfenced, broker_stopping, topic_created, topic_deleted, partitions_added, leader, isr,
    replicas.
    """

    kind: str
    offset: int
    """Of the metadata log: all below it was seen."""
    broker: int | None = None
    topic: str | None = None
    partition: int | None = None
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        who = "" if self.broker is None else f" {self.broker}"
        where = f" {self.topic}" if self.topic else ""
        where += "" if self.partition is None else f"-{self.partition}"
        change = f": {self.before or 'nothing'} -> {self.after}" if self.after else ""
        return f"{self.kind}{who}{where}{change}"


@dataclass(frozen=True, slots=True)
class ClusterLook:
    """The cluster at one moment."""

    cluster: ClusterDescription
    topics: Mapping[str, TopicDescription]


def compare(before: ClusterLook, after: ClusterLook) -> Iterator[ClusterEvent]:
    """First who commands, then brokers, then topics by name."""
    offset = after.cluster.offset
    was, now = _active(before.cluster), _active(after.cluster)
    if was != now:
        yield ClusterEvent(kind="controller", offset=offset, before=was, after=now)
    yield from _brokers(before.cluster, after.cluster)
    for name in sorted(before.topics.keys() | after.topics.keys()):
        yield from _topic(name, before.topics.get(name), after.topics.get(name), offset)


def _active(cluster: ClusterDescription) -> str:
    return f"{cluster.controller_id} in epoch {cluster.epoch}"


def _brokers(before: ClusterDescription, after: ClusterDescription) -> Iterator[ClusterEvent]:
    old = {broker.broker_id: broker for broker in before.brokers}
    new = {broker.broker_id: broker for broker in after.brokers}
    for broker_id in sorted(old.keys() | new.keys()):
        for kind, cause in _broker(old.get(broker_id), new.get(broker_id)):
            yield ClusterEvent(kind=kind, offset=after.offset, broker=broker_id, after=cause)


def _broker(
    old: BrokerDescription | None, new: BrokerDescription | None
) -> Iterator[tuple[str, str]]:
    if new is None:
        yield "broker_unregistered", ""
        return
    if old is None:
        yield "broker_registered", ""
    elif old.incarnation_id != new.incarnation_id:
        yield "broker_restarted", ""
    # Who registers is fenced at first, so only the end of that is news.
    was_fenced = True if old is None else old.fenced
    if new.fenced and not was_fenced:
        yield "broker_fenced", new.fence_cause
    elif was_fenced and not new.fenced:
        yield "broker_unfenced", ""
    if new.in_controlled_shutdown and not (old is not None and old.in_controlled_shutdown):
        yield "broker_stopping", ""


def _topic(
    name: str, old: TopicDescription | None, new: TopicDescription | None, offset: int
) -> Iterator[ClusterEvent]:
    if old is not None and _id(old) != _id(new):
        yield ClusterEvent(kind="topic_deleted", offset=offset, topic=name)
        old = None
    if new is None:
        return
    if old is None:
        yield ClusterEvent(kind="topic_created", offset=offset, topic=name)
        return
    were, are = len(old.partitions), len(new.partitions)
    if were != are:
        yield ClusterEvent(
            kind="partitions_added", offset=offset, topic=name, before=str(were), after=str(are)
        )
    known = {state.partition: state for state in old.partitions}
    for state in new.partitions:
        if state.partition in known:
            yield from _partition(name, known[state.partition], state, offset)


def _id(topic: TopicDescription | None) -> Uuid | None:
    return None if topic is None else topic.topic_id


def _partition(
    topic: str, old: PartitionDescription, new: PartitionDescription, offset: int
) -> Iterator[ClusterEvent]:
    changes = (
        ("leader", _leader(old), _leader(new)),
        ("isr", _ids(old.isr), _ids(new.isr)),
        ("replicas", _ids(old.replicas), _ids(new.replicas)),
    )
    for kind, before, after in changes:
        if before != after:
            yield ClusterEvent(
                kind=kind,
                offset=offset,
                topic=topic,
                partition=new.partition,
                before=before,
                after=after,
            )


def _leader(state: PartitionDescription) -> str:
    leader = "none" if state.leader < 0 else str(state.leader)
    return f"{leader} in epoch {state.leader_epoch}"


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers)) or "none"
