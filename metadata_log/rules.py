"""The rules that hold in every image, and between an image and a later one.

Names are those of docs/INVARIANTS.md. Tests and the simulator ask after each event; a process does
not, since `broken` looks at everything.
"""

from collections.abc import Iterator

from kraftlog.config import Config
from kraftlog.types import TopicPartition
from metadata_log.effective import BUILT_IN, TopicRules, rules_of
from metadata_log.image import Image, Role, Topic, fold
from metadata_log.places import Place
from metadata_log.records import NO_LEADER, Broker, PartitionState


def broken(image: Image, static: Config = BUILT_IN) -> list[str]:
    """Every rule that this image breaks, with what breaks it."""
    rules = rules_of(image, static)
    found = [
        f"{rule} {TopicPartition(topic.name, partition)}: {state}"
        for topic in image.sorted_topics()
        for partition, state in enumerate(topic.partitions)
        for rule in _of_partition(image, state, rules(topic.name))
    ]
    return [*found, *_of_index(image), *_of_brokers(image)]


def broken_since(before: Image, after: Image) -> list[str]:
    """Every rule about what may change that was broken on the way from one image to a later."""
    found = [] if after.end_offset >= before.end_offset else ["M5 the offset falls"]
    for broker_id in sorted(before.brokers):
        found += _of_broker_since(before.brokers[broker_id], after.brokers.get(broker_id))
    for topic in before.sorted_topics():
        later = after.topics.get(topic.id)
        if later is not None:
            found += _of_topic_since(topic, later)
    if after.next_producer_id < before.next_producer_id:
        found.append("producer ids are given out twice")
    return found


# -- M7 and M9, partition by partition


def _of_partition(image: Image, state: PartitionState, rules: TopicRules) -> Iterator[str]:
    replicas = set(state.replicas)
    if not replicas or len(replicas) < len(state.replicas):
        yield "M9 replicas are some brokers, each once"
    if state.leader != NO_LEADER and state.leader not in state.isr:
        yield "M9 the leader is in the ISR"
    if not state.isr and state.leader != NO_LEADER:
        yield "M9 the ISR is empty only without a leader"
    if not replicas.issuperset(state.isr) or not replicas.issuperset(state.elr):
        yield "M9 ISR and ELR are subsets of the replicas"
    if set(state.isr) & set(state.elr):
        yield "M9 ISR and ELR are disjoint"
    if not (rules.unclean or state.isr or state.elr or state.last_known_elr):
        yield "M9 somebody has the records"
    yield from _beyond_m9(image, state, rules)


def _beyond_m9(image: Image, state: PartitionState, rules: TopicRules) -> Iterator[str]:
    """What follows from how we decide, though M9 does not ask for it."""
    if not all(image.is_active(broker) or _leaves(image, broker) for broker in state.isr):
        yield "M7 every member of the ISR is registered, unfenced and not shutting down"
    if state.isr and state.leader == NO_LEADER:
        yield "a partition with an ISR has a leader"
    min_isr = min(rules.min_insync_replicas, len(state.replicas))
    if state.elr and len(state.isr) >= min_isr:
        yield "with enough replicas in sync there is no ELR"
    if bool(state.last_known_elr) != (state.leader == NO_LEADER):
        yield "the last leader is known as long as there is none"
    if not set(state.adding) | set(state.removing) <= set(state.replicas):
        yield "what is added or removed is a replica"


def _leaves(image: Image, broker_id: int) -> bool:
    """On its way out: its shutdown has begun, and its ISRs are being left step by step."""
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.in_controlled_shutdown and not broker.is_fenced


# -- what is derived must follow from what it is derived from


def _of_index(image: Image) -> Iterator[str]:
    wanted: dict[tuple[Role, int], set[Place]] = {}
    count = 0
    for topic in image.topics.values():
        for partition, state in enumerate(topic.partitions):
            count += 1
            for role, broker in _roles(state):
                wanted.setdefault((role, broker), set()).add(Place(topic.id, partition))
    for (role, broker), places in sorted(wanted.items()):
        found = image.places(role, broker)
        if set(found) != places or len(found) != len(places):
            yield f"the index {role.name} of {broker} is wrong"
    if len(image.index) != len(wanted) or image.partition_count != count:
        yield "an index is left over, or partitions are miscounted"
    names = {fold(topic.name): topic.id for topic in image.topics.values()}
    if dict(image.ids_by_name) != names or len(names) != len(image.topics):
        yield "topic names are wrong"


def _roles(state: PartitionState) -> Iterator[tuple[Role, int]]:
    for role, brokers in (
        (Role.REPLICA, state.replicas),
        (Role.ISR, state.isr),
        (Role.ELR, state.elr),
    ):
        yield from ((role, broker) for broker in brokers)
    if state.leader == NO_LEADER:
        yield Role.LEADERLESS, 0
    else:
        yield Role.LEADER, state.leader
    if state.leader not in (NO_LEADER, state.replicas[0]):
        yield Role.DISPLACED, 0
    if state.is_reassigning:
        yield Role.REASSIGNING, 0


def _of_brokers(image: Image) -> Iterator[str]:
    owners: dict[object, int] = {}
    for broker in image.sorted_brokers():
        for directory in broker.log_dirs:
            if owners.setdefault(directory, broker.id) != broker.id:
                yield f"directory {directory} belongs to two brokers"
        if broker.epoch > image.end_offset:
            yield f"M6 broker {broker.id} has an epoch from the future"


# -- over time


def _of_broker_since(before: Broker, after: Broker | None) -> Iterator[str]:
    if after is None:
        return
    if after.incarnation_id == before.incarnation_id and after.epoch != before.epoch:
        yield f"M6 broker {before.id} changed its epoch without registering"
    if after.incarnation_id != before.incarnation_id and after.epoch <= before.epoch:
        yield f"M6 broker {before.id} registered without a higher epoch"


def _of_topic_since(before: Topic, after: Topic) -> Iterator[str]:
    if len(after.partitions) < len(before.partitions):
        yield f"{before.name} lost partitions"
        return
    for partition, (old, new) in enumerate(zip(before.partitions, after.partitions, strict=False)):
        where = TopicPartition(before.name, partition)
        if new.leader_epoch < old.leader_epoch or new.partition_epoch < old.partition_epoch:
            yield f"M9 {where}: an epoch falls: {old} to {new}"
        if new.leader != old.leader and new.leader_epoch == old.leader_epoch:
            yield f"M9 {where}: another leader in the same leader epoch: {old} to {new}"
        if new != old and new.partition_epoch == old.partition_epoch:
            yield f"M9 {where}: another state with the same partition epoch: {old} to {new}"
