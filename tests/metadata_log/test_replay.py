"""R6: the state is a fold over the log, the same everywhere."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.types import Uuid
from metadata_log.image import EMPTY
from metadata_log.records import (
    BrokerChange,
    ConfigRecord,
    FeatureLevel,
    FenceCause,
    NoOp,
    PartitionChange,
    PartitionRecord,
    PartitionState,
    ProducerIds,
    Record,
    RegisterBroker,
    RemoveTopic,
    RequestDone,
    Resource,
    ResourceType,
    TopicRecord,
    UnregisterBroker,
)
from metadata_log.replay import UnappliableRecord, load, merge, replay, replay_all
from metadata_log.rules import broken
from metadata_log.snapshot import digest, write_records
from tests.metadata_log.clusters import Cluster, uuid
from tests.metadata_log.generated import partition_changes, records, states
from tests.metadata_log.test_records import broker

T1, T2 = uuid("topic", 1), uuid("topic", 2)
STATE = PartitionState((1, 2), (1, 2), 1)


@given(states, partition_changes)
def test_epochs_rise_by_kafkas_rule(old: PartitionState, change: PartitionChange) -> None:
    new = merge(old, change)
    assert new.partition_epoch == old.partition_epoch + 1
    assert new.leader_epoch == old.leader_epoch + (0 if change.leader is None else 1)
    for name in ("leader", "isr", "replicas", "adding", "removing", "elr", "last_known_elr"):
        wanted = getattr(change, name)
        assert getattr(new, name) == (getattr(old, name) if wanted is None else wanted)


def test_one_by_one_or_all_at_once_is_the_same() -> None:
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2, 3), (2, 3, 1))
    cluster.fence(1)
    log = [each.record for each in cluster.log]
    image = EMPTY
    for offset, record in enumerate(log):
        image = replay(image, record, offset)
    assert image == cluster.image == replay_all(EMPTY, log, 0)
    assert digest(image) == digest(cluster.image)


def test_an_old_image_stays_as_it_was() -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    before, seen = cluster.image, digest(cluster.image)
    cluster.fence(1)
    cluster.fence(2)
    assert digest(before) == seen != digest(cluster.image)


def test_offsets_may_skip_but_never_go_back() -> None:
    """Control records of the quorum take offsets, too."""
    image = replay(EMPTY, NoOp(), 7)
    assert image.end_offset == 8
    with pytest.raises(UnappliableRecord, match="offset 7 comes after 7"):
        replay(image, NoOp(), 7)


BASE: list[Record] = [
    RegisterBroker(broker(FenceCause.NEVER_UNFENCED)),
    TopicRecord("a.b", T1),
    PartitionRecord(T1, 0, STATE),
    ProducerIds(1, 1, 1_000),
]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (TopicRecord("a.b", T2), "its name is that of topic"),
        (TopicRecord("a_b", T2), "or collides"),
        (TopicRecord("c", T1), "its id is taken"),
        (PartitionRecord(T2, 0, STATE), "no such topic"),
        (PartitionRecord(T1, 0, STATE), "the next partition is 1"),
        (PartitionRecord(T1, 2, STATE), "the next partition is 1"),
        (PartitionRecord(T1, -1, STATE), "the next partition is 1"),
        (PartitionRecord(T1, 1, PartitionState((), (), -1)), "no replicas"),
        (PartitionChange(T2, 0, leader=1), "no such topic"),
        (PartitionChange(T1, 1, leader=1), "no such partition"),
        (PartitionChange(T1, -1, leader=1), "no such partition"),
        (RemoveTopic(T2), "no such topic"),
        (BrokerChange(broker_id=1, broker_epoch=2, fenced=False), "registered with epoch 1"),
        (BrokerChange(broker_id=2, broker_epoch=1, fenced=False), "not registered"),
        (BrokerChange(broker_id=1, broker_epoch=1, fenced=True), "fenced has a cause"),
        (UnregisterBroker(1, 2), "registered with epoch 1"),
        (UnregisterBroker(2, 1), "not registered"),
        (FeatureLevel("metadata.version", 0), "no such level"),
        (FeatureLevel("x", -1), "no such level"),
        (ProducerIds(1, 1, 1_000), "ids below 1000 are taken"),
        (ProducerIds(1, 1, 0), "ids below 1000 are taken"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_by_name(record: Record, why: str) -> None:
    image = replay_all(EMPTY, BASE, 0)
    seen = digest(image)
    with pytest.raises(UnappliableRecord, match=why):
        replay(image, record, image.end_offset)
    with pytest.raises(UnappliableRecord, match=why):
        replay_all(EMPTY, [*BASE, record], 0)
    assert digest(image) == seen  # M4


def test_a_new_incarnation_has_a_higher_epoch() -> None:  # M6
    image = replay_all(EMPTY, BASE, 0)
    again = broker(FenceCause.NEVER_UNFENCED)
    assert replay(image, RegisterBroker(again), 9).brokers[1].epoch == 1
    cluster = Cluster([1])
    stranger = cluster.image.brokers[1]
    with pytest.raises(UnappliableRecord, match="does not rise"):
        replay(cluster.image, RegisterBroker(again), cluster.image.end_offset)
    assert cluster.image.brokers[1] is stranger


def test_a_registration_remembers_where_it_stands() -> None:
    image = replay(EMPTY, BASE[0], 5)
    assert image.brokers[1].fenced_at == 5
    unfenced = BrokerChange(broker_id=1, broker_epoch=1, fenced=False)
    image = replay(image, unfenced, 6)
    assert image.brokers[1].fenced_at == 5
    fenced = BrokerChange(
        broker_id=1, broker_epoch=1, fenced=True, fence_cause=FenceCause.METADATA_LAG
    )
    image = replay(image, fenced, 9)
    assert image.brokers[1].fenced_at == 9
    assert image.brokers[1].fence_cause is FenceCause.METADATA_LAG


def test_a_removed_topic_takes_its_configs_along_and_frees_its_name() -> None:
    resource = Resource(ResourceType.TOPIC, "a.b")
    image = replay_all(EMPTY, [*BASE, ConfigRecord(resource, "k", "v")], 0)
    assert dict(image.topic_config("a.b")) == {"k": "v"}
    image = replay_all(image, [RemoveTopic(T1), TopicRecord("a_b", T2)], image.end_offset)
    assert len(image.configs) == 0
    assert [topic.name for topic in image.sorted_topics()] == ["a_b"]
    assert image.partition_count == 0
    assert len(image.index) == 0


def test_created_changed_and_removed_in_one_step() -> None:
    step: list[Record] = [
        RemoveTopic(T1),
        TopicRecord("a.b", T2),
        PartitionRecord(T2, 0, STATE),
        PartitionChange(T2, 0, leader=2),
        RemoveTopic(T2),
        TopicRecord("a.b", T1),
        PartitionRecord(T1, 0, STATE),
    ]
    image = replay_all(EMPTY, [*BASE, *step], 0)
    one_by_one = replay_all(EMPTY, BASE, 0)
    for record in step:
        one_by_one = replay(one_by_one, record, one_by_one.end_offset)
    assert image == one_by_one
    assert [topic.id for topic in image.topics.values()] == [T1]
    assert not [line for line in broken(image) if "index" in line or "names" in line]


@given(st.lists(records, max_size=12))
def test_any_records_are_applied_or_refused_by_name(given_records: list[Record]) -> None:
    image = EMPTY
    for record in given_records:
        try:
            image = replay(image, record, image.end_offset)
        except UnappliableRecord:
            continue
    loaded = load(write_records(image), image.end_offset)
    assert digest(loaded) == digest(image)


def test_memory_is_flat_under_churn() -> None:
    """KAFKA-18063: what is deleted is gone, from the indexes too."""
    cluster = Cluster([1, 2, 3])
    empty = cluster.image
    ids: list[Uuid] = []
    for number in itertools.count():
        ids.append(cluster.create(f"t{number}", (1, 2, 3), (2, 3, 1)))
        if number >= 2:
            gone = RemoveTopic(ids.pop(0))
            cluster.image = replay(cluster.image, gone, cluster.image.end_offset)
        if number == 30:
            break
    for topic_id in ids:
        cluster.image = replay(cluster.image, RemoveTopic(topic_id), cluster.image.end_offset)
    assert digest(cluster.image) == digest(empty)
    assert len(cluster.image.index) == len(empty.index) == 0
    assert len(cluster.image.ids_by_name) == 0


def test_a_request_is_remembered() -> None:
    done = RequestDone(b"client", 1, b"result")
    image = replay(EMPTY, done, 0)
    assert image.requests.find(b"client", 1) == done
