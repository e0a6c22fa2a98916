"""From what a partition should become to the record that makes it so.

Every change of a partition, whatever its cause, goes through `change`: it completes a reassignment
that can be completed, keeps the ELR, elects, and sees to it that the leader epoch rises where it
must. The order matters: who is eligible depends on the ISR, and who leads on both.
"""

from typing import NamedTuple

from metadata_log.election import Acceptable, Candidates, Election, elect
from metadata_log.places import Place
from metadata_log.records import NO_LEADER, PartitionChange, PartitionState, Recovery


class Target(NamedTuple):
    """What is asked of a partition; None: as it is."""

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovery: Recovery | None = None
    election: Election = Election.ONLINE
    lost: int | None = None
    """A broker that came back from an unclean stop: it may lack anything that was not flushed."""
    wiped: int | None = None
    """A broker that came back without its disk: it has nothing."""


AS_IT_IS = Target()


def change(
    place: Place,
    state: PartitionState,
    target: Target,
    *,
    acceptable: Acceptable,
    min_insync_replicas: int,
) -> PartitionChange | None:
    """The record that brings the partition there; None if it is there already."""
    wanted = complete_reassignment(_merged(state, target))
    min_isr = min(min_insync_replicas, len(wanted.replicas))
    wanted = _keep_elr(state, wanted, min_isr, target.lost)
    wanted = _forget_last(wanted, target.wiped)
    wanted = _elect(wanted, target.election, acceptable, min_isr)
    wanted = _remember_leader(state, wanted)
    if wanted == state:
        return None
    return _difference(place, state, wanted)


def _merged(state: PartitionState, target: Target) -> PartitionState:
    # Not by _replace, which takes three times as long: whole brokers go through here.
    return PartitionState(
        state.replicas if target.replicas is None else target.replicas,
        state.isr if target.isr is None else target.isr,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.elr,
        state.last_known_elr,
        state.adding if target.adding is None else target.adding,
        state.removing if target.removing is None else target.removing,
        state.recovery if target.recovery is None else target.recovery,
    )


def complete_reassignment(wanted: PartitionState) -> PartitionState:
    """Once all target replicas are in sync, those that are to be removed go (KAFKA-15665)."""
    if not wanted.is_reassigning:
        return wanted
    replicas = without(wanted.replicas, wanted.removing)
    isr = without(wanted.isr, wanted.removing)
    if not replicas or not set(replicas) <= set(isr):
        return wanted
    return wanted._replace(replicas=replicas, isr=isr, adding=(), removing=())


def _keep_elr(
    state: PartitionState, wanted: PartitionState, min_isr: int, lost: int | None
) -> PartitionState:
    """KIP-966. With enough replicas in sync nobody else is needed. With fewer the high watermark
    stands still, so whoever was in sync when it stopped has every committed record and keeps it,
    unless it stopped without flushing.
    """
    if len(wanted.isr) >= min_isr:
        return wanted._replace(elr=()) if wanted.elr else wanted
    if not state.elr and state.isr == wanted.isr:
        return wanted
    eligible = [
        replica
        for replica in (*state.elr, *without(state.isr, state.elr))
        if replica not in wanted.isr and replica in wanted.replicas and replica != lost
    ]
    return wanted._replace(elr=tuple(sorted(eligible)))


def _forget_last(wanted: PartitionState, wiped: int | None) -> PartitionState:
    """A last leader that lost its disk has nothing to come back with, while others have something.
    With all of them named, the wiped one last, nobody is elected without being told to, and then
    one of the others.
    """
    if wiped is None or wanted.last_known_elr != (wiped,):
        return wanted
    others = without(wanted.replicas, (wiped,))
    return wanted._replace(last_known_elr=(*others, wiped))


def _elect(
    wanted: PartitionState, election: Election, acceptable: Acceptable, min_isr: int
) -> PartitionState:
    candidates = Candidates(
        wanted.replicas, wanted.isr, wanted.elr, wanted.leader, wanted.last_known_elr
    )
    elected = elect(candidates, election, acceptable)
    if elected.is_unclean:
        return wanted._replace(
            leader=elected.leader, isr=(elected.leader,), elr=(), recovery=Recovery.RECOVERING
        )
    if elected.leader in wanted.elr:
        # From here on this leader alone may move the high watermark if the minimum is one; then
        # the others are no longer sure to have everything.
        elr = without(wanted.elr, (elected.leader,)) if min_isr > 1 else ()
        return wanted._replace(leader=elected.leader, isr=(elected.leader,), elr=elr)
    if elected.leader == wanted.leader:
        return wanted
    return PartitionState(wanted.replicas, wanted.isr, elected.leader, *wanted[3:])


def _remember_leader(state: PartitionState, wanted: PartitionState) -> PartitionState:
    """The last leader is known exactly as long as there is none."""
    if wanted.leader != NO_LEADER:
        return wanted._replace(last_known_elr=()) if wanted.last_known_elr else wanted
    if state.leader != NO_LEADER:
        return wanted._replace(last_known_elr=(state.leader,))
    return wanted


def _difference(place: Place, state: PartitionState, wanted: PartitionState) -> PartitionChange:
    """Only what differs. The leader is named, and so the leader epoch rises, also where the same
    leader goes on without some of the replicas: they must not be able to fetch any longer.
    """
    leaves = wanted.replicas != state.replicas and bool(without(state.replicas, wanted.replicas))
    leader_changes = wanted.leader != state.leader or leaves
    return PartitionChange(
        topic_id=place.topic_id,
        partition=place.partition,
        leader=wanted.leader if leader_changes else None,
        isr=wanted.isr if wanted.isr != state.isr else None,
        replicas=wanted.replicas if wanted.replicas != state.replicas else None,
        adding=wanted.adding if wanted.adding != state.adding else None,
        removing=wanted.removing if wanted.removing != state.removing else None,
        elr=wanted.elr if wanted.elr != state.elr else None,
        last_known_elr=(
            wanted.last_known_elr if wanted.last_known_elr != state.last_known_elr else None
        ),
        recovery=wanted.recovery if wanted.recovery != state.recovery else None,
    )


def without(brokers: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    """The first without the second, in their order."""
    return tuple(broker for broker in brokers if broker not in gone)
