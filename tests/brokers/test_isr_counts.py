"""What becomes of ISRs, counted by those who lead."""

from brokers.isr_counts import IsrCounts, committed_isr
from tests.brokers.states import Leader, proposal


def _counted(leader: Leader, before: frozenset[int]) -> tuple[int, int]:
    counts = IsrCounts()
    counts.note(before, leader.state)
    return counts.shrinks, counts.expands


def test_a_leader_counts_what_the_controller_did() -> None:
    leader = Leader()
    before = committed_isr(leader.state)
    leader.apply(isr=(1, 2), partition_epoch=11)
    assert _counted(leader, before) == (1, 0)
    before = committed_isr(leader.state)
    leader.apply(isr=(1, 3), partition_epoch=12)
    assert _counted(leader, before) == (1, 1)
    assert _counted(leader, committed_isr(leader.state)) == (0, 0)


def test_what_it_asked_for_counts_once_it_is_committed() -> None:
    leader = Leader()
    leader.apply(isr=(1, 2), partition_epoch=11)
    leader.append(3)
    before = committed_isr(leader.state)
    change = proposal(leader.fetch(3, 3))
    assert _counted(leader, before) == (0, 0)
    leader.confirm(change)
    assert _counted(leader, before) == (0, 1)
    before = committed_isr(leader.state)
    leader.apply(isr=(1, 2, 3), partition_epoch=12)  # the same again, from the metadata log
    assert _counted(leader, before) == (0, 0)


def test_a_new_leader_counts_what_it_was_elected_with() -> None:
    leader = Leader()
    leader.apply(isr=(1, 2, 3), partition_epoch=11, leader_epoch=6, leader=2)
    before = committed_isr(leader.state)
    leader.apply(isr=(1, 3), partition_epoch=12, leader_epoch=7)
    assert _counted(leader, before) == (1, 0)


def test_others_do_not_count_and_nothing_is_known_before_the_first_news() -> None:
    leader = Leader()
    before = committed_isr(leader.state)
    leader.apply(isr=(2, 3), partition_epoch=11, leader_epoch=6, leader=2)
    assert _counted(leader, before) == (0, 0)
    assert _counted(Leader(), frozenset()) == (0, 0)
