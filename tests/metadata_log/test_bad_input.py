"""Whatever a request holds, it is carried out or refused by a named error. A refusal leaves the
image as it was (M4), and what is carried out leaves it sound.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kraftlog.errors import InvalidRegistration, KraftError
from kraftlog.types import TopicPartition, Uuid
from metadata_log.decide import Decision
from metadata_log.decide.brokers import Registration, register
from metadata_log.decide.configs import (
    AlterConfigs,
    ConfigChange,
    Operation,
    ResourceChanges,
    alter_configs,
)
from metadata_log.decide.elections import ElectLeaders, elect_leaders
from metadata_log.decide.features import FeatureUpdate, UpdateFeatures, update_features
from metadata_log.decide.fencing import unregister
from metadata_log.decide.heartbeats import Heartbeat, heartbeat
from metadata_log.decide.partitions import (
    AlterPartitions,
    IsrChange,
    IsrMember,
    alter_partitions,
)
from metadata_log.decide.producer_ids import allocate_producer_ids
from metadata_log.decide.reassign import Reassignment, reassign
from metadata_log.decide.topics import (
    CreatePartitions,
    CreateTopics,
    NewPartitions,
    NewTopic,
    TopicRef,
    create_partitions,
    create_topics,
    delete_topics,
)
from metadata_log.election import Election
from metadata_log.image import Image
from metadata_log.records import FeatureRange, Listener, Recovery, Resource, ResourceType
from metadata_log.snapshot import digest
from tests.metadata_log.clusters import CLUSTER_ID, Cluster, Dice, uuid

R = TypeVar("R")

int32s = st.sampled_from([0, 1, 2, 3, -1, 9, 2**31 - 1, -(2**31)]) | st.integers(
    -(2**31), 2**31 - 1
)
int64s = st.sampled_from([0, 1, 2, 4, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
names = st.sampled_from(["t", "u", "", ".", "..", "t\0", "a/b", "x" * 249, "x" * 250, "é", "\n"])
texts = names | st.text(st.characters(codec="utf-8"), max_size=5)
uuids = st.sampled_from([uuid("topic", 1), Uuid(bytes(16))]) | st.binary(
    min_size=16, max_size=16
).map(Uuid)
brokers = st.lists(int32s, max_size=4).map(tuple)
config_names = st.sampled_from(
    ["retention.ms", "cleanup.policy", "min.insync.replicas", "log.retention.ms", "log.dirs"]
)


def cluster() -> Cluster:
    made = Cluster([1, 2, 3], dice=Dice(1))
    made.create("t", (1, 2, 3), (2, 3, 1))
    made.create("u", (1,), configs={"min.insync.replicas": "2"})
    made.fence(3)
    return made


CLUSTER = cluster()
IMAGE = CLUSTER.image
DIGEST = digest(IMAGE)


def judge(decide: Callable[[Image], Decision[R]]) -> None:
    """Decide on the same image each time; apply what was decided to a copy."""
    try:
        decision = decide(IMAGE)
    except KraftError as error:
        assert 0 < len(str(error)) < 1_000  # noqa: PT017 - either outcome is right
    else:
        copy = Cluster()
        copy.image, copy.log = IMAGE, list(CLUSTER.log)
        copy.decided(decision)


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    yield
    assert digest(IMAGE) == DIGEST  # M4


@given(
    st.builds(
        Registration,
        broker_id=st.none() | int32s,
        cluster_id=st.just(CLUSTER_ID) | uuids,
        incarnation_id=uuids,
        listeners=st.lists(st.builds(Listener, texts, texts, int32s), max_size=3).map(tuple),
        log_dirs=st.lists(uuids, max_size=3).map(tuple),
        features=st.just((FeatureRange("metadata.version", 1, 1),))
        | st.lists(st.builds(FeatureRange, texts, int32s, int32s), max_size=2).map(tuple),
        rack=st.none() | texts,
        previous_epoch=st.none() | int64s,
    ),
    st.booleans(),
)
def test_registrations(request: Registration, alive: bool) -> None:
    judge(
        lambda image: register(
            image,
            request,
            cluster_id=CLUSTER_ID,
            next_offset=image.end_offset,
            alive=alive,
            taken=(101,),
        )
    )


@given(
    st.builds(
        Heartbeat,
        broker_id=int32s,
        broker_epoch=int64s,
        applied_offset=int64s,
        want_fence=st.booleans(),
        want_shut_down=st.booleans(),
    )
)
def test_heartbeats(request: Heartbeat) -> None:
    judge(lambda image: heartbeat(image, request))
    known = image_epoch(request.broker_id)
    if known is not None:
        judge(lambda image: heartbeat(image, replace(request, broker_epoch=known)))
    judge(lambda image: unregister(image, request.broker_id))
    judge(lambda image: allocate_producer_ids(image, request.broker_id, request.broker_epoch))


def image_epoch(broker_id: int) -> int | None:
    broker = IMAGE.brokers.get(broker_id)
    return broker.epoch if broker is not None else None


@given(
    st.lists(
        st.builds(
            NewTopic,
            name=texts,
            partitions=st.none() | int32s,
            replication_factor=st.none() | int32s,
            assignments=st.lists(brokers, max_size=2).map(tuple),
            configs=st.dictionaries(config_names | texts, texts, max_size=2),
        ),
        max_size=3,
    ).map(tuple),
    st.booleans(),
)
@example((NewTopic(name="v", partitions=2**31 - 1),), False)
@example((NewTopic(name="v", replication_factor=2**31 - 1),), False)
@example((NewTopic(name="v", assignments=((),)),), False)
def test_new_topics(topics: tuple[NewTopic, ...], dry: bool) -> None:
    request = CreateTopics(topics, validate_only=dry)
    judge(lambda image: create_topics(image, request, draw=Dice(1)))


@given(texts, int32s, st.lists(brokers, max_size=2).map(tuple), uuids)
def test_other_requests_about_topics(
    name: str, count: int, assignments: tuple[tuple[int, ...], ...], topic_id: Uuid
) -> None:
    grow = CreatePartitions((NewPartitions(name, count, assignments),))
    judge(lambda image: create_partitions(image, grow, draw=Dice(1)))
    refs = (TopicRef(name=name), TopicRef(topic_id=topic_id), TopicRef())
    judge(lambda image: delete_topics(image, refs))


@given(
    int32s,
    st.lists(
        st.builds(
            IsrChange,
            topic_id=uuids,
            partition=int32s,
            leader_epoch=int32s,
            partition_epoch=int32s,
            isr=st.lists(st.builds(IsrMember, int32s, st.none() | int64s), max_size=4).map(tuple),
            recovery=st.sampled_from(Recovery),
        ),
        max_size=3,
    ).map(tuple),
)
def test_isr_changes(sender: int, changes: tuple[IsrChange, ...]) -> None:
    epoch = image_epoch(sender)
    request = AlterPartitions(sender, 7 if epoch is None else epoch, changes)
    judge(lambda image: alter_partitions(image, request))


@given(
    st.sampled_from(Election),
    st.none() | st.lists(st.builds(TopicPartition, texts, int32s), max_size=3).map(tuple),
    st.none() | brokers,
)
def test_elections_and_reassignments(
    election: Election,
    partitions: tuple[TopicPartition, ...] | None,
    target: tuple[int, ...] | None,
) -> None:
    judge(lambda image: elect_leaders(image, ElectLeaders(election, partitions)))
    wishes = tuple(Reassignment(partition, target) for partition in partitions or ())
    judge(lambda image: reassign(image, wishes))


@given(
    st.builds(Resource, st.sampled_from(ResourceType), st.sampled_from(["t", "", "1", "x"])),
    st.lists(
        st.builds(ConfigChange, config_names | texts, st.sampled_from(Operation), texts), max_size=3
    ).map(tuple),
    texts,
    int32s,
)
def test_configs_and_features(
    resource: Resource, changes: tuple[ConfigChange, ...], feature: str, level: int
) -> None:
    request = AlterConfigs((ResourceChanges(resource, changes),))
    judge(lambda image: alter_configs(image, request))
    for name in (feature, "metadata.version"):
        update = UpdateFeatures((FeatureUpdate(name, level, unsafe=True),))
        judge(lambda image, update=update: update_features(image, update))  # type: ignore[misc]


@pytest.mark.parametrize(
    "given_parts",
    [
        {"rack": "r" * 1_000_000},
        {"log_dirs": tuple(uuid("dir", n) for n in range(10_000))},
        {"features": tuple(FeatureRange(str(n), 1, 1) for n in range(10_000))},
        {"listeners": (Listener("A", "h" * 10_000, 1),)},
    ],
    ids=["rack", "log_dirs", "features", "listeners"],
)
def test_a_registration_is_of_bounded_size(given_parts: dict[str, object]) -> None:
    request = replace(CLUSTER.registration(7), **given_parts)  # type: ignore[arg-type]
    with pytest.raises(InvalidRegistration, match="more than 255 characters"):
        CLUSTER.registered(request)
