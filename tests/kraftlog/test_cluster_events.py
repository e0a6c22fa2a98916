from dataclasses import replace

from kraftlog.admin_types import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    TopicDescription,
)
from kraftlog.cluster_events import ClusterLook, compare
from kraftlog.types import Uuid

ID, OTHER_ID = Uuid(b"i" * 16), Uuid(b"j" * 16)
BROKER = BrokerDescription(1, 9, ID, "b1", 19101, None, False, False, "", None, 0, 0, 0)
PARTITION = PartitionDescription(0, 1, 4, 5, (1, 2), (1, 2))
TOPIC = TopicDescription("t", ID, (PARTITION,), {})
CLUSTER = ClusterDescription(ID, 101, 7, (BROKER,), 1, 1, {}, 42)
LOOK = ClusterLook(CLUSTER, {"t": TOPIC})


def changes(after: ClusterLook, before: ClusterLook = LOOK) -> list[str]:
    return [str(event) for event in compare(before, after)]


def with_brokers(*brokers: BrokerDescription) -> ClusterLook:
    return replace(LOOK, cluster=replace(CLUSTER, brokers=brokers))


def with_partitions(*partitions: PartitionDescription) -> ClusterLook:
    return replace(LOOK, topics={"t": replace(TOPIC, partitions=partitions)})


def test_nothing_has_changed() -> None:
    later = replace(LOOK, cluster=replace(CLUSTER, offset=50))
    assert changes(later) == []


def test_another_controller() -> None:
    after = replace(LOOK, cluster=replace(CLUSTER, controller_id=102, epoch=8, offset=44))
    (event,) = compare(LOOK, after)
    assert (event.kind, event.offset) == ("controller", 44)
    assert str(event) == "controller: 101 in epoch 7 -> 102 in epoch 8"


def test_brokers_come_and_go() -> None:
    fenced = replace(BROKER, fenced=True, fence_cause="SESSION")
    assert changes(with_brokers(fenced)) == ["broker_fenced 1: nothing -> SESSION"]
    assert changes(LOOK, with_brokers(fenced)) == ["broker_unfenced 1"]
    assert changes(with_brokers()) == ["broker_unregistered 1"]
    assert changes(LOOK, with_brokers()) == ["broker_registered 1", "broker_unfenced 1"]
    assert changes(with_brokers(replace(BROKER, incarnation_id=OTHER_ID))) == ["broker_restarted 1"]
    stopping = with_brokers(replace(BROKER, in_controlled_shutdown=True))
    assert changes(stopping) == ["broker_stopping 1"]
    assert changes(stopping, stopping) == []


def test_a_broker_that_registers_is_fenced_and_that_is_no_news() -> None:
    after = with_brokers(replace(BROKER, fenced=True))
    assert changes(after, with_brokers()) == ["broker_registered 1"]


def test_topics_come_and_go() -> None:
    none = replace(LOOK, topics={})
    assert changes(LOOK, none) == ["topic_created t"]
    assert changes(none) == ["topic_deleted t"]
    anew = replace(LOOK, topics={"t": replace(TOPIC, topic_id=OTHER_ID)})
    assert changes(anew) == ["topic_deleted t", "topic_created t"]
    assert changes(with_partitions(PARTITION, replace(PARTITION, partition=1))) == [
        "partitions_added t: 1 -> 2"
    ]


def test_partitions_change() -> None:
    moved = replace(PARTITION, leader=2, leader_epoch=5, isr=(2,), replicas=(2, 3))
    assert changes(with_partitions(moved)) == [
        "leader t-0: 1 in epoch 4 -> 2 in epoch 5",
        "isr t-0: 1,2 -> 2",
        "replicas t-0: 1,2 -> 2,3",
    ]
    alone = replace(PARTITION, leader=-1, isr=())
    assert changes(with_partitions(alone)) == [
        "leader t-0: 1 in epoch 4 -> none in epoch 4",
        "isr t-0: 1,2 -> none",
    ]
