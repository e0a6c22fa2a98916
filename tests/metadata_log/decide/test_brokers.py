"""Registration: R1, R2, R5. The story is transcripts/registration.txt."""

from dataclasses import replace

import pytest

from kraftlog.errors import (
    DuplicateBrokerRegistration,
    InvalidRegistration,
    StaleEpoch,
    UnsupportedVersion,
)
from metadata_log.decide import brokers
from metadata_log.decide.brokers import check_epoch, register
from metadata_log.decide.fencing import unregister
from metadata_log.decide.topics import CreatePartitions, NewPartitions, create_partitions
from metadata_log.image import Role
from metadata_log.records import FenceCause, Listener, RegisterBroker
from metadata_log.snapshot import digest
from tests.metadata_log.clusters import CLUSTER_ID, Cluster, uuid


def test_a_given_id_is_kept_and_a_missing_one_handed_out() -> None:  # R1
    cluster = Cluster([2])
    assert cluster.register(7).broker_id == 7
    assert cluster.register(None).broker_id == 1
    assert cluster.register(None).broker_id == 3


def test_an_id_that_is_still_in_replica_lists_is_not_handed_out() -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    cluster.fence(1)
    assert len(cluster.image.places(Role.REPLICA, 1)) == 1
    cluster.decided(unregister(cluster.image, 1))
    assert cluster.register(None).broker_id == 3


def test_a_second_one_is_refused_while_the_first_is_alive() -> None:  # R1
    cluster = Cluster([1])
    seen = digest(cluster.image)
    with pytest.raises(DuplicateBrokerRegistration, match="which is alive"):
        cluster.registered(cluster.registration(1), alive=True)
    assert digest(cluster.image) == seen  # M4


def test_a_new_one_takes_over_the_partitions_of_the_old() -> None:  # R2, R5
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    cluster.fence(1)
    cluster.start(1)
    assert cluster.state("t").replicas == (1, 2)
    assert cluster.state("t").isr == (2,)
    cluster.alter("t", 1, 2)
    assert cluster.state("t").isr == (1, 2)


def test_an_unclean_restart_before_the_session_ends_leaves_every_isr_in_the_same_step() -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2), (2, 1))
    cluster.register(1)
    assert cluster.image.brokers[1].is_fenced
    assert [cluster.state("t", number).isr for number in (0, 1)] == [(2,), (2,)]


def test_many_partitions_are_left_in_steps_and_the_registration_comes_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(brokers, "PARTITIONS_PER_EVENT_MAX", 10)
    cluster = Cluster([1, 2])
    cluster.create("t", (1, 2))
    request = CreatePartitions((NewPartitions("t", 15),))
    cluster.decided(create_partitions(cluster.image, request, draw=cluster.dice))
    asked = cluster.registration(1)
    first = register(
        cluster.image,
        asked,
        cluster_id=CLUSTER_ID,
        next_offset=cluster.image.end_offset,
        alive=False,
    )
    assert first.response is None
    assert first.agenda is not None
    assert len(first.records) == 10
    cluster.decided(first)
    answer = cluster.registered(asked)
    assert answer.broker_epoch == cluster.image.brokers[1].epoch
    last = cluster.log[-1].record
    assert isinstance(last, RegisterBroker)
    assert cluster.image.brokers[1].epoch <= cluster.image.brokers[1].fenced_at


def test_a_repeat_changes_nothing_and_news_do_not_fence() -> None:  # KAFKA-16757
    cluster = Cluster([])
    request = cluster.registration(1)
    first = cluster.registered(request)
    cluster.unfence(1)
    before = cluster.image
    assert cluster.registered(request, alive=True) == first
    assert cluster.image.end_offset == before.end_offset
    moved = replace(request, listeners=(Listener("CLIENT", "elsewhere", 1),))
    assert cluster.registered(moved, alive=True) == first
    broker = cluster.image.brokers[1]
    assert not broker.is_fenced
    assert broker.listeners[0].host == "elsewhere"
    assert broker.fenced_at == before.brokers[1].fenced_at


def test_an_operators_fence_outlasts_a_restart() -> None:
    cluster = Cluster([1])
    cluster.fence(1, FenceCause.OPERATOR)
    cluster.register(1)
    assert cluster.image.brokers[1].fence_cause is FenceCause.OPERATOR


def test_epochs_are_checked() -> None:  # M6
    cluster = Cluster([1])
    epoch = cluster.image.brokers[1].epoch
    assert check_epoch(cluster.image, 1, epoch) is cluster.image.brokers[1]
    for broker_id, wrong in ((1, epoch + 1), (1, -1), (2, epoch)):
        with pytest.raises(StaleEpoch):
            check_epoch(cluster.image, broker_id, wrong)


@pytest.mark.parametrize(
    "listeners",
    [
        (),
        (Listener("A", "h", 1), Listener("A", "h", 2)),
        (Listener("A", "", 1),),
        (Listener("A", "h", 0),),
        (Listener("A", "h", 65_536),),
        (Listener("A", "h", -1),),
    ],
)
def test_addresses_must_be_such(listeners: tuple[Listener, ...]) -> None:
    cluster = Cluster()
    with pytest.raises(InvalidRegistration):
        cluster.registered(replace(cluster.registration(1), listeners=listeners))


def test_a_directory_belongs_to_one_broker() -> None:
    cluster = Cluster([1])
    stolen = replace(cluster.registration(2), log_dirs=(uuid("dir", 1),))
    with pytest.raises(InvalidRegistration, match="belongs to broker 1"):
        cluster.registered(stolen)
    nameless = replace(cluster.registration(None), log_dirs=(uuid("dir", 1),))
    with pytest.raises(InvalidRegistration, match="belongs to broker 1"):
        cluster.registered(nameless)


def test_a_broker_without_the_finalized_features_stays_out() -> None:
    cluster = Cluster()
    with pytest.raises(UnsupportedVersion, match="supports none"):
        cluster.registered(replace(cluster.registration(1), features=()))
