from metadata_log.image import EMPTY, Role, fold, index_key
from metadata_log.places import Place
from tests.metadata_log.clusters import Cluster, uuid


def test_an_empty_image_knows_nothing() -> None:
    assert EMPTY.topic("t") is None
    assert EMPTY.partition(uuid("t", 1), 0) is None
    assert EMPTY.colliding("t") is None
    assert not EMPTY.is_active(1)
    assert len(EMPTY.places(Role.LEADER, 1)) == 0
    assert dict(EMPTY.topic_config("t")) == {}
    assert EMPTY.end_offset == 0


def test_topics_are_found_by_name_and_id() -> None:
    cluster = Cluster([1, 2])
    topic_id = cluster.create("a.b", (1, 2), (2, 1))
    image = cluster.image
    topic = image.topic("a.b")
    assert topic is not None
    assert topic.id == topic_id
    assert image.topics[topic_id] is topic
    assert image.topic("a_b") is None
    assert image.colliding("a_b") == "a.b"
    assert image.colliding("a.b") is None
    assert image.partition(topic_id, 1) is image.at(Place(topic_id, 1))
    for missing in (-1, 2):
        assert image.partition(topic_id, missing) is None
    assert image.partition_count == 2


def test_what_a_broker_is_to_partitions_is_found_by_broker() -> None:
    cluster = Cluster([1, 2])
    topic_id = cluster.create("t", (1, 2), (2, 1))
    first, second = Place(topic_id, 0), Place(topic_id, 1)
    assert list(cluster.image.places(Role.LEADER, 1)) == [first]
    assert list(cluster.image.places(Role.ISR, 1)) == [first, second]
    cluster.fence(1)
    assert list(cluster.image.places(Role.REPLICA, 1)) == [first, second]
    assert list(cluster.image.places(Role.ISR, 1)) == []
    assert list(cluster.image.places(Role.DISPLACED)) == [first]
    cluster.fence(2)
    assert list(cluster.image.places(Role.ELR, 2)) == [first, second]
    assert list(cluster.image.places(Role.LEADERLESS)) == [first, second]
    assert cluster.image.brokers_with(Role.ELR) == [2]
    assert cluster.image.brokers_with(Role.REPLICA) == [1, 2]
    assert cluster.image.active() == frozenset()


def test_brokers_and_topics_have_an_order() -> None:
    cluster = Cluster([3, 1, 2])
    cluster.create("b", (1,))
    cluster.create("a", (1,))
    assert [broker.id for broker in cluster.image.sorted_brokers()] == [1, 2, 3]
    assert [topic.name for topic in cluster.image.sorted_topics()] == ["b", "a"]


def test_no_two_indexes_share_a_key() -> None:
    keys = {index_key(role, broker) for role in Role for broker in range(5)}
    assert len(keys) == len(Role) * 5
    assert fold("a.b_c") == "a_b_c"
