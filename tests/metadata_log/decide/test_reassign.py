"""The story is transcripts/reassignment.txt."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog.errors import (
    InvalidReplicaAssignment,
    InvalidRequest,
    NewLeaderElected,
    NoReassignmentInProgress,
    PolicyViolation,
)
from metadata_log.decide import reassign as module
from metadata_log.decide.reassign import Reassignment, ongoing, reassign
from tests.metadata_log.clusters import Cluster, partition

targets = st.permutations([1, 2, 3, 4]).flatmap(
    lambda order: st.integers(1, 3).map(lambda count: tuple(order[:count]))
)


def wish(cluster: Cluster, target: tuple[int, ...] | None) -> Exception | None:
    decision = reassign(cluster.image, (Reassignment(partition("t"), target),))
    return cluster.decided(decision)[0].error


@given(targets, st.lists(targets, min_size=1, max_size=3), st.booleans())
def test_whatever_is_wished_on_the_way_it_arrives_or_goes_back(
    start: tuple[int, ...], wishes: list[tuple[int, ...]], cancelled: bool
) -> None:
    cluster = Cluster([1, 2, 3, 4])
    cluster.create("t", start)
    for target in wishes:
        assert wish(cluster, target) is None
        state = cluster.state("t")
        assert set(state.replicas) >= set(target)
        if not state.is_reassigning:
            start = state.replicas  # all of the target was in sync already
        assert set(state.replicas) - set(state.adding) == set(start)
    if cancelled:
        error = wish(cluster, None)
        assert error is None or isinstance(error, NoReassignmentInProgress)
        assert set(cluster.state("t").replicas) == set(start)
    elif cluster.state("t").is_reassigning:
        with contextlib.suppress(NewLeaderElected):
            cluster.alter("t", *cluster.state("t").replicas)
        assert cluster.state("t").replicas == wishes[-1]
    assert not cluster.state("t").is_reassigning


def test_all_or_some_that_go_on() -> None:
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2), (1, 2))
    wish(cluster, (3, 2))
    assert [str(where) for where, _ in ongoing(cluster.image)] == ["t-0"]
    assert ongoing(cluster.image, (partition("t", 1),)) == []
    ((_, state),) = ongoing(cluster.image, (partition("t"),))
    assert (state.adding, state.removing) == ((3,), (1,))


def test_named_twice_and_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([1, 2])
    cluster.create("t", (1,))
    one = Reassignment(partition("t"), (2,))
    done, refused = reassign(cluster.image, (one, one)).response
    assert done.error is None
    assert isinstance(refused.error, InvalidRequest)
    monkeypatch.setattr(module, "RECORDS_PER_REQUEST_MAX", 1)
    with pytest.raises(PolicyViolation):
        reassign(cluster.image, (one, one))


def test_a_leaderless_partition_can_be_moved_and_taken_back() -> None:
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1, 2))
    cluster.fence(1)
    cluster.fence(2)
    assert wish(cluster, (3,)) is None
    assert cluster.state("t").leader == -1
    assert wish(cluster, None) is None
    assert cluster.state("t").replicas == (1, 2)
    assert cluster.state("t").elr == (2,)


def test_who_is_added_stays_while_too_few_others_are_in_sync() -> None:
    """Partition seed 3012: what two had acknowledged was left to one, and then power went there."""
    cluster = Cluster([1, 2, 3, 4])
    cluster.create("t", (1, 2), configs={"min.insync.replicas": "2"})
    assert wish(cluster, (3, 4, 1)) is None
    cluster.alter("t", 1, 3)
    for back in (None, (4, 1)):
        error = wish(cluster, back)
        assert isinstance(error, InvalidReplicaAssignment)
        assert "1 in-sync replicas are left, and min.insync.replicas asks for 2" in str(error)
    cluster.alter("t", 1, 2, 3)
    assert wish(cluster, None) is None
    assert cluster.state("t").isr == (1, 2)


def test_the_replication_factor_can_change() -> None:
    cluster = Cluster([1, 2, 3])
    cluster.create("t", (1,))
    assert wish(cluster, (1, 2, 3)) is None
    cluster.alter("t", 1, 2, 3)
    assert cluster.state("t").replicas == (1, 2, 3)
    assert wish(cluster, (2,)) is None
    assert cluster.state("t").replicas == (2,)  # in sync already: at once
    assert cluster.state("t").leader == 2
