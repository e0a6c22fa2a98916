"""R11: who may lead. The clever order against a dumb one that tries every replica."""

from hypothesis import given
from hypothesis import strategies as st

from metadata_log.election import Candidates, Elected, Election, elect, is_valid
from metadata_log.records import NO_LEADER

replicas = st.permutations([1, 2, 3, 4]).flatmap(
    lambda order: st.integers(1, 4).map(lambda count: tuple(order[:count]))
)


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    chosen = draw(replicas)
    some = st.lists(st.sampled_from(chosen), unique=True).map(tuple)
    isr = draw(some)
    elr = tuple(broker for broker in draw(some) if broker not in isr)
    leader = draw(st.sampled_from([*isr, NO_LEADER]))
    last = draw(st.just(()) | st.sampled_from([1, 2, 3, 4]).map(lambda broker: (broker,)))
    return Candidates(chosen, isr, elr, leader, last)


@given(candidates(), st.sampled_from(Election), st.sets(st.sampled_from([1, 2, 3, 4])))
def test_only_the_safe_lead_unless_unclean_is_allowed(  # R11
    given_candidates: Candidates, election: Election, alive: set[int]
) -> None:
    some, elected = given_candidates, elect(given_candidates, election, alive.__contains__)
    safe = [b for b in some.replicas if b in (some.isr or some.elr) and b in alive]
    if safe:
        assert not elected.is_unclean
        assert elected.leader in safe
        preferred = election is Election.PREFERRED and some.replicas[0] in safe
        if preferred:
            assert elected.leader == some.replicas[0]
        else:
            assert elected.leader == (some.leader if some.leader in safe else safe[0])
        return
    last = [b for b in some.last_known if b in some.replicas and b in alive]
    if last and not some.isr and not some.elr:
        assert elected == Elected(last[0], is_unclean=True)
    elif election is Election.UNCLEAN:
        live = [b for b in (*last, *some.replicas) if b in alive]
        assert elected == (Elected(live[0], True) if live else Elected(NO_LEADER, False))
    else:
        assert elected == Elected(NO_LEADER, is_unclean=False)


def test_a_leader_is_always_alive() -> None:  # KAFKA-19522
    nobody_sure = Candidates((1, 2), (), (), NO_LEADER, (1,))
    assert elect(nobody_sure, Election.ONLINE, lambda _: False).leader == NO_LEADER
    assert elect(nobody_sure, Election.ONLINE, {1}.__contains__) == Elected(1, is_unclean=True)


def test_several_that_led_last_wait_for_somebody_to_choose() -> None:
    nobody_sure = Candidates((1, 2), (), (), NO_LEADER, (2, 1))
    assert elect(nobody_sure, Election.ONLINE, {1, 2}.__contains__).leader == NO_LEADER
    assert elect(nobody_sure, Election.UNCLEAN, {1, 2}.__contains__) == Elected(2, is_unclean=True)


def test_eligible_replicas_count_only_without_any_in_sync() -> None:
    some = Candidates((1, 2, 3), (1,), (2,), 1, ())
    assert is_valid(1, some, lambda _: True)
    assert not is_valid(2, some, lambda _: True)
    assert is_valid(2, some._replace(isr=()), lambda _: True)
