"""How often the ISRs of the partitions that this broker leads shrank and grew."""

from brokers.partition_state import Leading, PartitionState


class IsrCounts:
    def __init__(self) -> None:
        self.shrinks = 0
        self.expands = 0

    def note(self, before: frozenset[int], state: PartitionState) -> None:
        """`before` is what `committed_isr` gave before the last news. A new leader counts what it
        was elected with, too: nobody else does when the old leader died.
        """
        after = committed_isr(state)
        if before and after and isinstance(state.role, Leading):
            self.shrinks += bool(before - after)
            self.expands += bool(after - before)


def committed_isr(state: PartitionState) -> frozenset[int]:
    """What the controller has committed, as far as we know; empty: we know nothing."""
    if isinstance(state.role, Leading):
        return state.role.isr.members
    return frozenset(state.assignment.isr if state.assignment else ())
