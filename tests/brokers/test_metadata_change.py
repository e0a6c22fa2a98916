"""What a change means for broker 1."""

from brokers.cluster import ClusterChange, PartitionId
from brokers.metadata_change import Gathered, cluster_change
from metadata_log.delta import advance, diff
from metadata_log.image import Image
from metadata_log.records import BrokerChange, PartitionChange, Record, RemoveTopic
from tests.brokers.images import (
    broker_config,
    image_of,
    registered,
    topic,
    topic_config,
    uuid,
)
from tests.loops import run

BASE = image_of(
    *(registered(broker_id) for broker_id in (1, 2, 3)),
    topic("a", [1, 2], [2, 3]),
    topic("b", [2, 1]),
)


def change_by(*batches: list[Record], before: Image = BASE) -> ClusterChange:
    """What broker 1 is told after these batches, all at once."""
    gathered, image = Gathered(), before
    for batch in batches:
        image, delta = advance(image, batch, image.end_offset)
        gathered.add(delta)
    return run(cluster_change(gathered, before, image, 1))


def place(name: str, partition: int = 0) -> PartitionId:
    return PartitionId(uuid(name).raw, partition)


def test_only_partitions_of_this_broker_are_told() -> None:
    change = change_by(
        [PartitionChange(uuid("a"), 0, leader=2)], [PartitionChange(uuid("a"), 1, leader=3)]
    )
    assert [each.id for each in change.changed] == [place("a")]
    assert change.changed[0].leader == 2
    assert change.removed == []


def test_several_changes_become_the_latest_state() -> None:
    change = change_by(
        [PartitionChange(uuid("a"), 0, leader=2)],
        [PartitionChange(uuid("a"), 0, isr=(2,))],
        [PartitionChange(uuid("a"), 0, leader=1, isr=(1, 2))],
    )
    [only] = change.changed
    assert (only.leader, only.leader_epoch, only.partition_epoch) == (1, 2, 3)


def test_a_partition_that_moved_away_is_removed_and_one_that_came_is_new() -> None:
    change = change_by(
        [PartitionChange(uuid("a"), 0, replicas=(2, 3), isr=(2,), leader=2)],
        [PartitionChange(uuid("a"), 1, replicas=(2, 3, 1))],
    )
    assert change.removed == [place("a")]
    assert [each.id for each in change.changed] == [place("a", 1)]


def test_a_deleted_topic_is_removed_whatever_happened_to_it_before() -> None:
    change = change_by([PartitionChange(uuid("a"), 0, leader=2)], [RemoveTopic(uuid("a"))])
    assert (change.removed, change.changed) == ([place("a")], [])


def test_a_topic_that_came_and_went_in_between_is_not_heard_of() -> None:
    change = change_by(topic("c", [1]), [RemoveTopic(uuid("c"))])
    assert (change.removed, change.changed) == ([], [])


def test_brokers_that_changed() -> None:
    change = change_by([BrokerChange(broker_id=3, broker_epoch=30, in_controlled_shutdown=True)])
    assert set(change.brokers) == {3}


def test_configs_of_topics_and_of_all_brokers() -> None:
    change = change_by(topic_config("a", {"segment.bytes": "999"}))
    assert set(change.configs) == {"a"}
    change = change_by(broker_config({"log.segment.bytes": "999"}))
    assert set(change.configs) == {"a", "b"}


def test_a_snapshot_removes_what_it_does_not_contain() -> None:
    gathered = Gathered()
    after = image_of(registered(1), topic("b", [2, 1]), topic("d", [1]))
    gathered.add(diff(BASE, after))
    change = run(cluster_change(gathered, BASE, after, 1))
    assert change.removed == [place("a")]
    assert [each.id for each in change.changed] == [place("d")]
    assert set(change.brokers) == {2, 3}
