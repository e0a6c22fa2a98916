"""What counts while a change of the ISR is on its way."""

from brokers.cluster import PartitionId
from brokers.isr import CommittedIsr, PendingExpand, PendingShrink
from brokers.requests import IsrChange, IsrMember

NOW = CommittedIsr(frozenset({1, 2}))


def change(*members: int) -> IsrChange:
    isr = tuple(IsrMember(each) for each in members)
    return IsrChange(PartitionId(b"p" * 16, 0), 1, 1, isr)


def test_who_is_to_join_counts_already() -> None:
    pending = PendingExpand(NOW, change(1, 2, 3))
    assert pending.members == {1, 2}
    assert pending.maximal == {1, 2, 3}


def test_who_is_to_leave_counts_still() -> None:
    pending = PendingShrink(NOW, change(1))
    assert pending.members == pending.maximal == {1, 2}


def test_what_is_committed_is_all_there_is() -> None:
    assert NOW.maximal == {1, 2}
