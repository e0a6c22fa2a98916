"""The random histories of test_histories.py compare both ways to a delta on every history."""

from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.delta import advance, diff
from metadata_log.image import EMPTY
from metadata_log.records import (
    ConfigRecord,
    FeatureLevel,
    NoOp,
    PartitionChange,
    RemoveTopic,
    Resource,
    ResourceType,
    UnregisterBroker,
)
from metadata_log.replay import load
from metadata_log.snapshot import write_records
from tests.metadata_log.clusters import Cluster

TOPIC = Resource(ResourceType.TOPIC, "t")


def test_records_tell_what_they_change() -> None:
    cluster = Cluster([1, 2, 3])
    one = cluster.create("t", (1, 2), (2, 1), (1, 2))
    two = cluster.create("u", (1, 2))
    image = cluster.image
    after, delta = advance(
        image,
        [
            PartitionChange(one, 2, leader=2),
            RemoveTopic(two),
            UnregisterBroker(3, image.brokers[3].epoch),
            ConfigRecord(TOPIC, "retention.ms", "5"),
        ],
        image.end_offset,
    )
    assert (delta.before, delta.after) == (image, after)
    assert delta.topics == {one: {2}}
    assert list(delta.removed_topics) == [two]
    assert delta.removed_topics[two] is image.topics[two]
    assert delta.removed_brokers == {3}
    assert delta.brokers == frozenset()
    assert delta.configs == {TOPIC}
    assert not delta.features_changed
    assert not delta.is_empty


def test_nothing_that_matters() -> None:
    cluster = Cluster([1])
    after, delta = advance(cluster.image, [NoOp()], cluster.image.end_offset)
    assert delta.is_empty
    assert after.end_offset == cluster.image.end_offset + 1
    assert diff(cluster.image, after).is_empty


def test_created_and_removed_in_one_step_was_never_there() -> None:
    cluster = Cluster([1])
    before = cluster.image
    topic_id = cluster.create("t", (1,), configs={"retention.ms": "5"})
    made = [each.record for each in cluster.log[before.end_offset :]]
    after, delta = advance(before, [*made, RemoveTopic(topic_id)], before.end_offset)
    assert delta.is_empty
    assert diff(before, after).is_empty


def test_a_loaded_snapshot_removes_what_it_does_not_have() -> None:  # KAFKA-14894
    cluster = Cluster([1, 2])
    old = cluster.create("old", (1, 2), configs={"retention.ms": "5"})
    stays = cluster.create("stays", (1, 2), (2, 1))
    behind = cluster.image
    cluster.fence(2)
    end = cluster.image.end_offset
    cluster.image, _ = advance(cluster.image, [RemoveTopic(old), FeatureLevel("x", 1)], end)
    new = cluster.create("new", (1,))
    loaded = load(write_records(cluster.image), cluster.image.end_offset)
    delta = diff(behind, loaded)
    assert delta.topics == {new: {0}, stays: {0, 1}}
    assert list(delta.removed_topics) == [old]
    assert delta.brokers == {2}
    assert delta.configs == {Resource(ResourceType.TOPIC, "old")}
    assert delta.features_changed


def test_from_nothing_everything_is_new() -> None:
    cluster = Cluster([1, 2])
    topic_id = cluster.create("t", (1, 2), (2, 1))
    delta = diff(EMPTY, cluster.image)
    assert delta.topics == {topic_id: {0, 1}}
    assert delta.brokers == {1, 2}
    back = diff(cluster.image, EMPTY)
    assert list(back.removed_topics) == [topic_id]
    assert back.removed_brokers == {1, 2}


def test_a_broker_is_told_again_what_it_knows() -> None:
    cluster = Cluster([1])
    broker = Resource(ResourceType.BROKER, "1")
    change = ConfigChange("leader.replication.throttled.rate", Operation.SET, "5")
    request = AlterConfigs((ResourceChanges(broker, (change,)),))
    cluster.decided(alter_configs(cluster.image, request))
    again = alter_configs(cluster.image, request)
    records = [each.record for each in again.records]
    assert len(records) == 1
    after, delta = advance(cluster.image, records, cluster.image.end_offset)
    assert delta.configs == {broker}
    assert diff(cluster.image, after).is_empty
