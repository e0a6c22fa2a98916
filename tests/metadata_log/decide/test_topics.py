"""R22. The story is transcripts/topics.txt."""

import pytest

from kraftlog.config import load
from kraftlog.config_keys import Scope
from kraftlog.errors import (
    InvalidReplicaAssignment,
    InvalidRequest,
    InvalidTopic,
    KraftError,
    PolicyViolation,
)
from metadata_log.decide import topics
from metadata_log.decide.fencing import begin_shutdown
from metadata_log.decide.topics import (
    CreatePartitions,
    CreateTopics,
    NewPartitions,
    NewTopic,
    TopicRef,
    create_partitions,
    create_topics,
    delete_topics,
    find_topic,
)
from metadata_log.records import PartitionRecord
from metadata_log.snapshot import digest
from tests.metadata_log.clusters import Cluster, Dice


def create(cluster: Cluster, *wishes: NewTopic) -> list[KraftError | None]:
    decision = create_topics(cluster.image, CreateTopics(wishes), draw=cluster.dice)
    return [outcome.error for outcome in cluster.decided(decision)]


def test_defaults_come_from_the_controllers_configuration() -> None:  # R22
    cluster = Cluster([1, 2, 3])
    cluster.static = load(
        Scope.CONTROLLER, flags={"num.partitions": "4", "default.replication.factor": "2"}
    )
    cluster.create("t")
    topic = cluster.image.topic("t")
    assert topic is not None
    assert [len(state.replicas) for state in topic.partitions] == [2] * 4


def test_the_answer_tells_what_was_made() -> None:
    cluster = Cluster([1, 2])
    request = CreateTopics((NewTopic(name="t", partitions=3, replication_factor=2),))
    decision = create_topics(cluster.image, request, draw=Dice(1))
    (outcome,) = cluster.decided(decision)
    assert outcome.value is not None
    assert (outcome.value.partitions, outcome.value.replication_factor) == (3, 2)
    assert outcome.value.topic_id in cluster.image.topics
    looked = create_topics(
        cluster.image,
        CreateTopics((NewTopic(name="u", partitions=3),), validate_only=True),
        draw=Dice(1),
    )
    assert looked.records == ()
    assert looked.response[0].value is not None
    assert looked.response[0].value.topic_id is None


def test_one_that_is_refused_does_not_keep_the_others() -> None:
    cluster = Cluster([1])
    errors = create(cluster, NewTopic(name="a"), NewTopic(name="b/"), NewTopic(name="c"))
    assert [type(error) for error in errors] == [type(None), InvalidTopic, type(None)]
    assert cluster.image.topic("a") is not None
    assert cluster.image.topic("c") is not None


def test_a_broker_that_is_leaving_gets_nothing_new() -> None:
    cluster = Cluster([1, 2, 3])
    cluster.decided(begin_shutdown(cluster.image, 1))
    cluster.create("t", partitions=10, replication_factor=2)
    assert {b for n in range(10) for b in cluster.state("t", n).replicas} == {2, 3}
    cluster.create("u", (2, 1))
    assert cluster.state("u").isr == (2,)
    (error,) = create(cluster, NewTopic(name="v", assignments=((1,),)))
    assert isinstance(error, InvalidReplicaAssignment)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a b", "a/b", "a\0b", "a\nb", "../x", "é", "a" * 250, "b" * 10**6, "\ud800"],
)
def test_illegal_names(name: str) -> None:
    cluster = Cluster([1])
    seen = digest(cluster.image)
    (error,) = create(cluster, NewTopic(name=name))
    assert isinstance(error, InvalidTopic)
    assert len(str(error)) < 250
    assert digest(cluster.image) == seen  # M4


def test_the_longest_name() -> None:
    cluster = Cluster([1])
    assert create(cluster, NewTopic(name="a" * 249)) == [None]


def test_names_that_differ_in_dots_only_collide_within_a_request_too() -> None:
    cluster = Cluster([1])
    errors = create(cluster, NewTopic(name="a.b"), NewTopic(name="a_b"), NewTopic(name="a-b"))
    assert [type(error) for error in errors] == [type(None), InvalidTopic, type(None)]


def test_too_much_for_one_batch_is_refused_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-17870, AutoMQ #2057: nothing that cannot be appended is decided."""
    cluster = Cluster([1])
    many = tuple(NewTopic(name=f"t{n}", partitions=5_001) for n in range(2))
    with pytest.raises(PolicyViolation, match="10002 partitions"):
        create_topics(cluster.image, CreateTopics(many), draw=Dice(1))
    monkeypatch.setattr(topics, "RECORDS_PER_REQUEST_MAX", 5)
    with pytest.raises(PolicyViolation, match="6 records"):
        create(cluster, NewTopic(name="t", partitions=5))
    grow = CreatePartitions((NewPartitions("t", 20_000),))
    cluster.create("t", (1,))
    with pytest.raises(PolicyViolation, match="19999 partitions"):
        create_partitions(cluster.image, grow, draw=Dice(1))
    refs = tuple(TopicRef(name="t") for _ in range(10))
    decision = delete_topics(cluster.image, refs)
    assert len(decision.records) == 1


def test_a_list_that_names_a_topic_twice_is_refused() -> None:
    cluster = Cluster([1])
    cluster.create("t", (1,))
    with pytest.raises(InvalidRequest, match="'x' is named twice"):
        create(cluster, NewTopic(name="x"), NewTopic(name="x", partitions=9))
    twice = CreatePartitions((NewPartitions("t", 2), NewPartitions("t", 3)))
    with pytest.raises(InvalidRequest):
        create_partitions(cluster.image, twice, draw=Dice(1))


def test_more_partitions_have_as_many_replicas_as_the_first_will_have() -> None:
    cluster = Cluster([1, 2, 3, 4])
    cluster.create("t", (1, 2))
    request = CreatePartitions((NewPartitions("t", 5),))
    cluster.decided(create_partitions(cluster.image, request, draw=Dice(5)))
    assert [len(cluster.state("t", n).replicas) for n in range(5)] == [2] * 5
    looked = create_partitions(
        cluster.image, CreatePartitions((NewPartitions("t", 6),), validate_only=True), draw=Dice(1)
    )
    assert looked.records == ()


def test_partition_records_come_in_order() -> None:
    cluster = Cluster([1])
    cluster.create("t", partitions=70)
    numbers = [e.record.partition for e in cluster.log if isinstance(e.record, PartitionRecord)]
    assert numbers == list(range(70))


def test_a_topic_is_found_by_id_or_name() -> None:
    cluster = Cluster([1])
    topic_id = cluster.create("t", (1,))
    assert find_topic(cluster.image, TopicRef(topic_id=topic_id, name="wrong")).name == "t"
    assert find_topic(cluster.image, TopicRef(name="t")).id == topic_id


def test_who_asked_is_in_every_cause_and_bounded() -> None:
    cluster = Cluster([1])
    request = CreateTopics((NewTopic(name="t", partitions=2),))
    decision = create_topics(cluster.image, request, draw=Dice(1), by="by " + "x" * 10**6)
    assert {len(each.cause.text) for each in decision.records} == {len("create topics ") + 80}
    decision = create_topics(cluster.image, request, draw=Dice(1), by="by admin 7")
    assert {str(each.cause) for each in decision.records} == {
        "admin request: create topics by admin 7"
    }
