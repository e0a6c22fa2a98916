"""AlterPartition. A story tells the order of checks, alter-partition-is-checked-in-order.txt; here
every pair of mistakes is answered with the earlier one.
"""

import itertools
from dataclasses import fields, replace

import pytest

from kraftlog.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KraftError,
    NewLeaderElected,
    NotController,
    PolicyViolation,
    StaleEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from metadata_log.decide import partitions
from metadata_log.decide.partitions import (
    AlterPartitions,
    IsrChange,
    IsrMember,
    alter_partitions,
)
from metadata_log.decide.reassign import Reassignment, reassign
from metadata_log.records import Recovery
from metadata_log.snapshot import digest
from tests.metadata_log.clusters import Cluster, partition, uuid

# A mistake each, in the order in which they are checked.
MISTAKES: list[tuple[str, type[KraftError]]] = [
    ("topic", UnknownTopicId),
    ("partition", UnknownTopicOrPartition),
    ("future epoch", NotController),
    ("old leader epoch", FencedLeaderEpoch),
    ("not the leader", InvalidRequest),
    ("old partition epoch", InvalidUpdateVersion),
    ("not a replica", InvalidRequest),
    ("recovering", InvalidRequest),
    ("fenced member", IneligibleReplica),
]


def cluster_with_history() -> Cluster:
    """t-0 is led by 2 in leader epoch 1, partition epoch 2; 3 is fenced."""
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2, 3))
    cluster.fence(1)
    cluster.unfence(1)
    cluster.fence(3)
    return cluster


def wrong(change: IsrChange, mistakes: list[str]) -> tuple[int, IsrChange]:
    """A request with these mistakes; of two in one field the first stays."""
    versions = {
        "topic": replace(change, topic_id=uuid("nowhere", 1)),
        "partition": replace(change, partition=9),
        "future epoch": replace(change, partition_epoch=99),
        "old leader epoch": replace(change, leader_epoch=0),
        "old partition epoch": replace(change, partition_epoch=0),
        "not a replica": replace(change, isr=(*change.isr, IsrMember(9))),
        "recovering": replace(change, recovery=Recovery.RECOVERING),
        "fenced member": replace(change, isr=(*change.isr, IsrMember(3))),
    }
    made = change
    for mistake in reversed(mistakes):
        version = versions.get(mistake, change)
        differing = {
            each.name: getattr(version, each.name)
            for each in fields(change)
            if getattr(version, each.name) != getattr(change, each.name)
        }
        made = replace(made, **differing)
    return (1 if "not the leader" in mistakes else 2), made


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_mistake_is_the_answer(count: int) -> None:
    cluster = cluster_with_history()
    seen = digest(cluster.image)
    for chosen in itertools.combinations(MISTAKES, count):
        sender, change = wrong(cluster.isr_change("t", 2), [name for name, _ in chosen])
        epoch = cluster.image.brokers[sender].epoch
        decision = alter_partitions(cluster.image, AlterPartitions(sender, epoch, (change,)))
        assert decision.records == ()
        assert type(decision.response[0].error) is chosen[0][1], chosen
        with pytest.raises(StaleEpoch):
            alter_partitions(cluster.image, AlterPartitions(sender, epoch + 1, (change,)))
    assert digest(cluster.image) == seen  # M4


def test_what_is_right_is_done() -> None:
    cluster = cluster_with_history()
    state = cluster.alter("t", 1, 2)
    assert (state.isr, state.leader_epoch, state.partition_epoch) == ((1, 2), 1, 3)
    assert cluster.state("t") == state


def test_one_partition_does_not_keep_the_others() -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2), (1, 2))
    wishes = (
        replace(cluster.isr_change("t", 1), partition=7),
        cluster.isr_change("t", 1, partition=1),
    )
    request = AlterPartitions(1, cluster.image.brokers[1].epoch, wishes)
    refused, done = cluster.decided(alter_partitions(cluster.image, request))
    assert refused.error is not None
    assert done.value == cluster.state("t", 1)
    assert cluster.state("t", 1).isr == (1,)


def test_a_rebooted_replica_is_not_let_in_on_old_fetches() -> None:  # KAFKA-14617
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    old = cluster.image.brokers[2].epoch
    cluster.fence(2)
    cluster.start(2)
    change = replace(cluster.isr_change("t", 1, 2), isr=(IsrMember(1), IsrMember(2, old)))
    with pytest.raises(IneligibleReplica, match=f"broker epoch {old}"):
        cluster.altered(1, change)


def test_a_completed_reassignment_is_done_and_told() -> None:
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2))
    wish = Reassignment(partition("t"), (3,))
    cluster.decided(reassign(cluster.image, (wish,)))
    change = cluster.isr_change("t", 1, 3)
    request = AlterPartitions(1, cluster.image.brokers[1].epoch, (change,))
    (outcome,) = cluster.decided(alter_partitions(cluster.image, request))
    assert isinstance(outcome.error, NewLeaderElected)
    assert outcome.value == cluster.state("t")
    assert cluster.state("t").replicas == (3,)


def test_too_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "RECORDS_PER_REQUEST_MAX", 1)
    cluster = Cluster([1])
    cluster.create("t", (1,), (1,))
    wishes = (cluster.isr_change("t", 1), cluster.isr_change("t", 1, partition=1))
    request = AlterPartitions(1, cluster.image.brokers[1].epoch, wishes)
    with pytest.raises(PolicyViolation):
        alter_partitions(cluster.image, request)
