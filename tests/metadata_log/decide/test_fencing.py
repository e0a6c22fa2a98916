"""Leaving and coming back, in steps: here of ten. The stories of transcripts/ show the rules."""

import pytest

from metadata_log.decide import PARTITIONS_PER_EVENT_MAX, fencing
from metadata_log.decide.fencing import begin_shutdown, fence, unfence, unregister
from metadata_log.decide.topics import TopicRef, delete_topics
from metadata_log.image import Role
from metadata_log.places import Agenda
from metadata_log.records import BrokerChange, FenceCause, PartitionChange, UnregisterBroker
from tests.metadata_log.clusters import WHY, Cluster

COUNT, STEP = 23, 10


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(fencing, "PARTITIONS_PER_EVENT_MAX", STEP)
    cluster = Cluster([1, 2, 3])
    cluster.create("t", partitions=COUNT, replication_factor=3)
    return cluster


def test_those_it_leads_go_first_and_the_registration_last(cluster: Cluster) -> None:  # R4
    """M7: at no offset is a fenced broker in an ISR."""
    led = set(cluster.image.places(Role.LEADER, 1))
    agenda: Agenda | None = None
    steps = []
    while True:
        decision = fence(cluster.image, 1, FenceCause.SESSION_TIMEOUT, WHY, agenda=agenda)
        steps.append([each.record for each in decision.records])
        done = cluster.decided(decision)  # checks every rule in between
        agenda = decision.agenda
        assert done == (agenda is None) == cluster.image.brokers[1].is_fenced
        if agenda is None:
            break
    assert [len(step) for step in steps] == [10, 10, 4]
    order = [record for step in steps for record in step]
    assert isinstance(order[-1], BrokerChange)
    first = [r for r in order[: len(led)] if isinstance(r, PartitionChange)]
    assert {(r.topic_id, r.partition) for r in first} == led
    assert all(r.leader in (2, 3) for r in first)
    assert len(cluster.image.places(Role.ISR, 1)) == 0


def test_who_joins_an_isr_between_two_steps_is_taken_out_again(cluster: Cluster) -> None:
    first = fence(cluster.image, 1, FenceCause.SESSION_TIMEOUT, WHY)
    cluster.decided(first)
    gone = next(iter(cluster.image.places(Role.REPLICA, 1)))
    assert 1 not in cluster.image.at(gone).isr
    cluster.alter("t", 1, 2, 3, partition=gone.partition)
    agenda, rounds = first.agenda, 0
    while agenda is not None:
        decision = fence(cluster.image, 1, FenceCause.SESSION_TIMEOUT, WHY, agenda=agenda)
        cluster.decided(decision)
        agenda, rounds = decision.agenda, rounds + 1
    assert cluster.image.brokers[1].is_fenced
    assert rounds == 3


def test_unfenced_first_then_what_waited_for_it(cluster: Cluster) -> None:
    for broker in (1, 2, 3):
        cluster.fence(broker)
    decision = unfence(cluster.image, 3, WHY)
    records = [each.record for each in decision.records]
    assert isinstance(records[0], BrokerChange)
    assert len(records) == 1 + STEP
    assert decision.agenda is not None
    assert len(decision.agenda) == COUNT - STEP
    cluster.unfence(3)
    assert len(cluster.image.places(Role.LEADER, 3)) == COUNT


def test_fenced_again_before_all_elections_were_held(cluster: Cluster) -> None:
    for broker in (1, 2, 3):
        cluster.fence(broker)
    decision = unfence(cluster.image, 3, WHY)
    cluster.decided(decision)
    cluster.fence(3)
    late = unfence(cluster.image, 3, WHY, agenda=decision.agenda)
    assert (late.records, late.agenda) == ((), None)


def test_partitions_deleted_between_two_steps_are_no_concern(cluster: Cluster) -> None:
    cluster.create("u", (1, 2))
    first = fence(cluster.image, 1, FenceCause.SESSION_TIMEOUT, WHY)
    cluster.decided(first)
    cluster.decided(delete_topics(cluster.image, (TopicRef(name="t"),)))
    second = fence(cluster.image, 1, FenceCause.SESSION_TIMEOUT, WHY, agenda=first.agenda)
    cluster.decided(second)
    last = fence(cluster.image, 1, FenceCause.SESSION_TIMEOUT, WHY, agenda=second.agenda)
    assert cluster.decided(last)
    assert cluster.state("u").isr == (2,)


def test_a_shutdown_marks_the_broker_first(cluster: Cluster) -> None:  # R7
    decision = begin_shutdown(cluster.image, 1)
    cluster.decided(decision)
    assert isinstance(decision.records[0].record, BrokerChange)
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert not cluster.image.brokers[1].is_fenced
    while decision.agenda is not None:
        decision = begin_shutdown(cluster.image, 1, agenda=decision.agenda)
        cluster.decided(decision)
    assert len(cluster.image.places(Role.LEADER, 1)) == 0
    assert not [each for each in decision.records if isinstance(each.record, BrokerChange)]


def test_unregistering_takes_steps_too(cluster: Cluster) -> None:
    agenda: Agenda | None = None
    while True:
        decision = unregister(cluster.image, 1, agenda=agenda)
        cluster.decided(decision)
        agenda = decision.agenda
        gone = any(isinstance(each.record, UnregisterBroker) for each in decision.records)
        assert gone == (agenda is None) == (1 not in cluster.image.brokers)
        if agenda is None:
            return


def test_two_that_fall_silent_together_see_each_others_effects() -> None:  # KAFKA-13173
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2, 3))
    cluster.fence(1)
    cluster.fence(2)
    assert cluster.state("t").isr == (3,)
    assert cluster.state("t").leader == 3


def test_a_step_is_of_a_thousand_at_most() -> None:
    assert PARTITIONS_PER_EVENT_MAX <= 1_000
