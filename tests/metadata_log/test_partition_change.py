"""What becomes of a partition: ELR upkeep (KIP-966), leader epochs, reassignments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata_log.election import Election
from metadata_log.partition_change import AS_IT_IS, Target, change, without
from metadata_log.places import Place
from metadata_log.records import NO_LEADER, PartitionState, Recovery
from metadata_log.replay import merge
from tests.metadata_log.clusters import uuid

PLACE = Place(uuid("t", 1), 0)
FINE = PartitionState((1, 2, 3), (1, 2, 3), 1, 7, 9)


def changed(
    state: PartitionState, target: Target, *, alive: tuple[int, ...] = (1, 2, 3, 4), least: int = 2
) -> PartitionState:
    record = change(PLACE, state, target, acceptable=alive.__contains__, min_insync_replicas=least)
    return state if record is None else merge(state, record)


def test_what_is_as_it_should_be_makes_no_record() -> None:
    assert changed(FINE, AS_IT_IS) is FINE
    assert changed(FINE, Target(isr=(1, 2, 3), election=Election.UNCLEAN)) is FINE


@pytest.mark.parametrize(
    ("target", "alive", "leader_epoch_rises"),
    [
        (Target(isr=(1, 2)), (1, 2), False),  # a shrink bumps nothing (KAFKA-15021)
        (Target(isr=(2, 3)), (2, 3), True),  # another leader
        (Target(isr=()), (), True),  # no leader
        (Target(replicas=(1, 2, 3, 4), adding=(4,)), (1, 2, 3), False),
        (Target(replicas=(1, 2), isr=(1, 2)), (1, 2), True),  # 3 must not fetch any longer
        (Target(replicas=(3, 2, 1)), (1, 2, 3), False),  # only another order
        (Target(recovery=Recovery.RECOVERED), (1, 2, 3), None),
    ],
)
def test_when_epochs_rise(
    target: Target, alive: tuple[int, ...], leader_epoch_rises: bool | None
) -> None:
    after = changed(FINE, target, alive=alive)
    assert after.partition_epoch == FINE.partition_epoch + (leader_epoch_rises is not None)
    assert after.leader_epoch == FINE.leader_epoch + bool(leader_epoch_rises)


def test_whoever_leaves_below_the_minimum_is_eligible() -> None:
    enough = changed(FINE, Target(isr=(1, 2)))
    assert enough.elr == ()
    fewer = changed(enough, Target(isr=(1,)))
    assert fewer.elr == (2,)
    nobody = changed(fewer, Target(isr=()), alive=())
    assert (nobody.leader, nobody.elr, nobody.last_known_elr) == (NO_LEADER, (1, 2), (1,))
    back = changed(nobody, AS_IT_IS, alive=(2, 3))
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (2, (2,), (1,), ())
    assert back.recovery is Recovery.RECOVERED
    full = changed(back, Target(isr=(2, 3)))
    assert full.elr == ()


def test_an_eligible_replica_that_joins_is_eligible_no_more() -> None:
    few = FINE._replace(isr=(1,), elr=(2, 3))
    after = changed(few, Target(isr=(1, 2)), least=3)
    assert (after.isr, after.elr) == ((1, 2), (3,))


def test_an_unclean_stop_ends_eligibility() -> None:
    waiting = FINE._replace(isr=(), leader=NO_LEADER, elr=(1, 2), last_known_elr=(1,))
    after = changed(waiting, Target(lost=1), alive=())
    assert (after.elr, after.last_known_elr) == ((2,), (1,))
    last = changed(after, Target(lost=2), alive=())
    assert (last.elr, last.last_known_elr) == ((), (1,))
    assert changed(last, AS_IT_IS, alive=(2, 3)).leader == NO_LEADER
    returned = changed(last, AS_IT_IS, alive=(1, 2, 3))
    assert (returned.leader, returned.isr, returned.recovery) == (1, (1,), Recovery.RECOVERING)
    assert returned.last_known_elr == ()


def test_a_wiped_last_leader_is_not_elected_by_itself() -> None:
    waiting = FINE._replace(isr=(), leader=NO_LEADER, elr=(1,), last_known_elr=(1,))
    after = changed(waiting, Target(lost=1, wiped=1), alive=(1, 2, 3))
    assert (after.leader, after.elr, after.last_known_elr) == (NO_LEADER, (), (2, 3, 1))
    chosen = changed(after, Target(election=Election.UNCLEAN), alive=(1, 2, 3))
    assert (chosen.leader, chosen.recovery) == (2, Recovery.RECOVERING)


def test_a_leader_that_commits_alone_ends_the_eligibility_of_others() -> None:
    """The minimum was lowered to one while nobody led: 2 is not to be trusted once 1 commits."""
    waiting = FINE._replace(isr=(), leader=NO_LEADER, elr=(1, 2), last_known_elr=(1,))
    assert changed(waiting, AS_IT_IS, least=1).elr == ()
    assert changed(waiting, AS_IT_IS, least=2).elr == (2,)


def test_the_minimum_is_at_most_the_number_of_replicas() -> None:
    alone = PartitionState((1,), (1,), 1)
    after = changed(alone, Target(isr=()), alive=(), least=3)
    assert (after.elr, after.leader) == ((1,), NO_LEADER)
    assert changed(after, AS_IT_IS, least=3).isr == (1,)


def test_unclean_leaves_nobody_else() -> None:
    waiting = FINE._replace(isr=(), leader=NO_LEADER, elr=(1, 2), last_known_elr=(1,))
    after = changed(waiting, Target(election=Election.UNCLEAN), alive=(3,))
    assert (after.leader, after.isr, after.elr) == (3, (3,), ())
    assert after.recovery is Recovery.RECOVERING


def test_a_reassignment_completes_with_the_whole_target_in_sync() -> None:  # KAFKA-15665
    moving = PartitionState((3, 4, 1, 2), (1, 2), 1, adding=(3, 4), removing=(1, 2))
    half = changed(moving, Target(isr=(1, 3)))
    assert half.is_reassigning
    arrived = changed(half, Target(isr=(1, 3, 4)))
    assert arrived == PartitionState((3, 4), (3, 4), 3, 1, 2)


@given(
    st.permutations([1, 2, 3]),
    st.lists(st.sets(st.sampled_from([1, 2, 3])), max_size=8),
    st.integers(1, 3),
)
def test_eligible_and_in_sync_never_overlap_and_never_vanish(
    order: list[int], aliveness: list[set[int]], least: int
) -> None:
    """M9, whatever order brokers die and return in."""
    state = PartitionState(tuple(order), tuple(order), order[0])
    for alive in aliveness:
        isr = tuple(broker for broker in state.isr if broker in alive)
        state = changed(state, Target(isr=isr), alive=tuple(alive), least=least)
        assert not set(state.isr) & set(state.elr)
        assert state.isr or state.elr
        assert (state.leader == NO_LEADER) == (not state.isr)
        assert bool(state.last_known_elr) == (state.leader == NO_LEADER)


def test_without() -> None:
    assert without((3, 1, 2), (1,)) == (3, 2)
