"""The checker itself: every rule is broken once on purpose, and found."""

from dataclasses import replace

import pytest

from metadata_log.image import Image, Role
from metadata_log.places import Place, Places
from metadata_log.records import NoOp, PartitionState
from metadata_log.replay import Draft
from metadata_log.rules import broken, broken_since
from metadata_log.vector import Vector
from tests.metadata_log.clusters import Cluster, uuid

FINE = PartitionState((1, 2, 3), (1, 2), 1, 5, 5)


def cluster_with(state: PartitionState) -> Image:
    """An image with one partition in a state that no decision would lead to."""
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
    cluster.fence(3)
    draft = Draft(cluster.image)
    draft._topic(cluster.place("t").topic_id, NoOp(), 0).change(0, cluster.state("t"), state)
    return draft.finish()


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (FINE._replace(leader=3), "M9 the leader is in the ISR"),
        (FINE._replace(isr=()), "M9 the ISR is empty only without a leader"),
        (FINE._replace(isr=(1, 4)), "M9 ISR and ELR are subsets"),
        (FINE._replace(isr=(1,), elr=(4,)), "M9 ISR and ELR are subsets"),
        (FINE._replace(isr=(1,), elr=(1, 2)), "M9 ISR and ELR are disjoint"),
        (FINE._replace(isr=(), leader=-1), "M9 somebody has the records"),
        (FINE._replace(replicas=(1, 2, 2)), "M9 replicas are some brokers, each once"),
        (FINE._replace(isr=(1, 3)), "M7 every member of the ISR"),
        (FINE._replace(leader=-1, last_known_elr=(1,)), "with an ISR has a leader"),
        (FINE._replace(elr=(3,)), "there is no ELR"),
        (FINE._replace(last_known_elr=(1,)), "the last leader is known"),
        (FINE._replace(adding=(9,)), "what is added or removed is a replica"),
    ],
)
def test_a_broken_partition_is_found(state: PartitionState, rule: str) -> None:
    assert any(rule in line for line in broken(cluster_with(state)))


def test_a_sound_partition_is_sound() -> None:
    assert broken(cluster_with(FINE)) == []
    waiting = FINE._replace(isr=(), leader=-1, elr=(1,), last_known_elr=(1,))
    assert broken(cluster_with(waiting)) == []


def test_a_wrong_index_is_found() -> None:
    image = cluster_with(FINE)
    key = next(iter(image.index))
    wrong = image.index.insert(key, Places.of([Place(uuid("t", 9), 1)]))
    assert any("index" in line for line in broken(replace(image, index=wrong)))
    assert any("left over" in line for line in broken(replace(image, partition_count=9)))
    lost = image.ids_by_name.discard("t")
    assert any("names" in line for line in broken(replace(image, ids_by_name=lost)))
    assert len(image.places(Role.LEADER, 1)) == 1


def test_a_shared_directory_and_an_epoch_from_the_future_are_found() -> None:
    image = cluster_with(FINE)
    stolen = replace(image.brokers[2], log_dirs=image.brokers[1].log_dirs)
    both = replace(image, brokers=image.brokers.insert(2, stolen))
    assert any("belongs to two brokers" in line for line in broken(both))
    early = replace(image, end_offset=1)
    assert any("M6" in line for line in broken(early))


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (FINE._replace(leader_epoch=4), "an epoch falls"),
        (FINE._replace(partition_epoch=4, isr=(1,)), "an epoch falls"),
        (FINE._replace(leader=2, partition_epoch=6), "another leader in the same leader epoch"),
        (FINE._replace(isr=(1,)), "another state with the same partition epoch"),
    ],
)
def test_a_way_that_leads_back_is_found(state: PartitionState, rule: str) -> None:
    before, after = cluster_with(FINE), cluster_with(state)
    assert any(rule in line for line in broken_since(before, after))


def test_what_may_not_fall_is_watched() -> None:
    image = cluster_with(FINE)
    assert broken_since(image, image) == []
    assert broken_since(image, replace(image, end_offset=1)) == ["M5 the offset falls"]
    given = replace(image, next_producer_id=1_000)
    assert broken_since(given, image) == ["producer ids are given out twice"]
    same_run = replace(image.brokers[1], epoch=99)
    changed = replace(image, brokers=image.brokers.insert(1, same_run))
    assert any("without registering" in line for line in broken_since(image, changed))
    old_epoch = replace(image.brokers[1], incarnation_id=uuid("run", 99))
    changed = replace(image, brokers=image.brokers.insert(1, old_epoch))
    assert any("without a higher epoch" in line for line in broken_since(image, changed))
    grown = Cluster([1])
    topic_id = grown.create("t", (1,), (1,))
    topic = grown.image.topics[topic_id]
    shorter = replace(topic, partitions=Vector[PartitionState]().changed({0: FINE}))
    lost = replace(grown.image, topics=grown.image.topics.insert(topic_id, shorter))
    assert broken_since(grown.image, lost) == ["t lost partitions"]
