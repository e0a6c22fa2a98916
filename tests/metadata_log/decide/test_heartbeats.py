"""The table of heartbeats, as rows; the story is transcripts/heartbeats.txt."""

import pytest

from kraftlog.errors import StaleEpoch
from metadata_log.decide import fencing
from metadata_log.decide.fencing import begin_shutdown
from metadata_log.decide.heartbeats import (
    BrokerState,
    Heartbeat,
    HeartbeatReply,
    current_state,
    heartbeat,
    next_state,
)
from metadata_log.image import Role
from metadata_log.records import FenceCause
from metadata_log.snapshot import digest
from tests.metadata_log.clusters import Cluster

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
STOPPING, NOW = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW


def cluster_in(state: BrokerState, *, leads: bool) -> Cluster:
    cluster = Cluster([1, 2])
    if leads:
        cluster.create("t", (1, 2))
    if state is FENCED:
        cluster.fence(1)
    if state is STOPPING:
        cluster.decided(begin_shutdown(cluster.image, 1))
    assert current_state(cluster.image.brokers[1]) is state
    return cluster


def asked(
    cluster: Cluster, *, fence: bool = False, stop: bool = False, applied: int | None = None
) -> Heartbeat:
    return Heartbeat(
        broker_id=1,
        broker_epoch=cluster.image.brokers[1].epoch,
        applied_offset=cluster.image.end_offset if applied is None else applied,
        want_fence=fence,
        want_shut_down=stop,
    )


@pytest.mark.parametrize(
    ("state", "leads", "fence", "stop", "after"),
    [
        (FENCED, False, False, True, NOW),
        (FENCED, False, True, True, NOW),
        (FENCED, False, False, False, UNFENCED),
        (FENCED, False, True, False, FENCED),
        (UNFENCED, False, True, False, FENCED),
        (UNFENCED, True, True, False, FENCED),
        (UNFENCED, True, True, True, NOW),
        (UNFENCED, True, False, True, STOPPING),
        (UNFENCED, False, False, True, NOW),
        (UNFENCED, True, False, False, UNFENCED),
        (STOPPING, False, False, True, STOPPING),
        (STOPPING, False, True, True, STOPPING),
        (STOPPING, False, False, False, STOPPING),
    ],
)
def test_the_table(
    state: BrokerState, leads: bool, fence: bool, stop: bool, after: BrokerState
) -> None:
    cluster = cluster_in(state, leads=leads)
    request = asked(cluster, fence=fence, stop=stop)
    found = next_state(cluster.image, request, shutdown_offset=None, active_offset=0)
    assert found is after


def test_a_fenced_broker_has_to_know_that_it_is() -> None:  # R6
    cluster = Cluster([1])
    cluster.fence(1, FenceCause.METADATA_LAG)
    fenced_at = cluster.image.brokers[1].fenced_at
    for applied, after in ((fenced_at, FENCED), (fenced_at + 1, UNFENCED), (-1, FENCED)):
        request = asked(cluster, applied=applied)
        state = next_state(cluster.image, request, shutdown_offset=None, active_offset=0)
        assert state is after
        reply = heartbeat(cluster.image, request).response
        assert reply.is_caught_up == (after is UNFENCED)
        assert reply.is_fenced == (after is FENCED)


def test_a_broker_stops_once_all_others_have_learned_who_leads() -> None:  # R7
    cluster = cluster_in(UNFENCED, leads=True)
    stop = asked(cluster, stop=True)
    first = heartbeat(cluster.image, stop)
    cluster.decided(first)
    assert first.response.has_moved
    assert not first.response.should_shut_down
    moved = cluster.image.end_offset
    again = asked(cluster, stop=True)
    early, late = (
        heartbeat(cluster.image, again, shutdown_offset=moved, active_offset=active)
        for active in (moved - 1, moved)
    )
    assert (early.records, early.response.should_shut_down) == ((), False)
    assert late.response.should_shut_down
    cluster.decided(late)
    assert cluster.image.brokers[1].fence_cause is FenceCause.SHUTDOWN


def test_the_next_controller_does_not_know_when_and_waits() -> None:
    cluster = cluster_in(STOPPING, leads=True)
    request = asked(cluster, stop=True)
    decision = heartbeat(cluster.image, request, shutdown_offset=None, active_offset=10**9)
    assert decision.records == ()
    assert decision.response == HeartbeatReply(
        is_caught_up=True, is_fenced=False, should_shut_down=False, has_moved=True
    )


def test_the_usual_heartbeat_decides_nothing() -> None:
    cluster = cluster_in(UNFENCED, leads=True)
    decision = heartbeat(cluster.image, asked(cluster))
    assert decision.records == ()
    assert decision.agenda is None


def test_many_partitions_take_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "PARTITIONS_PER_EVENT_MAX", 10)
    cluster = Cluster([1, 2])
    cluster.create("t", partitions=21, replication_factor=2)
    request = asked(cluster, stop=True)
    decision = heartbeat(cluster.image, request)
    cluster.decided(decision)
    assert not decision.response.has_moved
    while decision.agenda is not None:
        decision = heartbeat(cluster.image, request, agenda=decision.agenda)
        cluster.decided(decision)
    assert decision.response.has_moved
    assert len(cluster.image.places(Role.ISR, 1)) == 0

    cluster.fence(2)
    assert len(cluster.image.places(Role.LEADERLESS)) == 21
    back = Heartbeat(
        broker_id=2,
        broker_epoch=cluster.image.brokers[2].epoch,
        applied_offset=cluster.image.end_offset,
    )
    decision = heartbeat(cluster.image, back)
    cluster.decided(decision)
    assert not decision.response.is_fenced
    while decision.agenda is not None:
        decision = heartbeat(cluster.image, back, agenda=decision.agenda)
        cluster.decided(decision)
    assert len(cluster.image.places(Role.LEADER, 2)) == 21


def test_a_stranger_changes_nothing() -> None:
    cluster = Cluster([1])
    seen = digest(cluster.image)
    for broker_id, epoch in ((1, 99), (9, 1), (0, 0), (-1, -1), (2**63, 2**63)):
        request = Heartbeat(broker_id=broker_id, broker_epoch=epoch, applied_offset=0)
        with pytest.raises(StaleEpoch):
            heartbeat(cluster.image, request)
    assert digest(cluster.image) == seen
