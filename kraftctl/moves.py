"""Partitions on the move: what they wait for, and which would wait for ever.

A move is over once all replicas of the target are in sync. One on a broker that is down holds it
up, also where that broker was to keep what it has; and where nobody leads nothing can be copied.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kraftctl.exit_codes import Conflict
from kraftctl.session import Session
from kraftlog.admin_types import ClusterDescription, OngoingReassignment, PartitionDescription
from kraftlog.errors import TimeoutError_
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    from kraftlog.admin import Admin

POLL_SECONDS = 0.2
STILL_SECONDS = 2.0
"""After so long without any progress it is said what is waited for."""

Plan = Mapping[TopicPartition, tuple[int, ...]]
States = Mapping[TopicPartition, PartitionDescription]


def states_of(admin: "Admin", topics: Iterable[str]) -> States:
    found = admin.describe_topics(sorted(set(topics))).ok.values()
    return {
        TopicPartition(topic.name, each.partition): each
        for topic in found
        for each in topic.partitions
    }


def refuse_stuck(plan: Plan, states: States, cluster: ClusterDescription) -> None:
    """Conflict where a plan could not be carried out before somebody comes back."""
    lost = sorted(place for place in plan if states[place].leader < 0)
    if lost:
        raise Conflict(
            f"{lost[0]} has no leader: there is nothing that could be copied",
            hint="start its brokers again, or delete the topic; kraftctl node ls shows who is down",
        )
    fenced = _fenced(cluster)
    waits = Counter(each for target in plan.values() for each in target if each in fenced)
    for broker, count in waits.most_common(1):
        raise Conflict(
            f"broker {broker} is fenced ({fenced[broker]}) and is to stay a replica of {count}"
            f" partitions: they could not finish moving",
            hint=f"start it again, or drain it first: kraftctl node drain {broker}",
        )


def waiting_for(
    moves: Mapping[TopicPartition, OngoingReassignment],
    states: States,
    cluster: ClusterDescription,
) -> str:
    """In words: who is to be in sync and is not, and where nobody leads."""
    lacking: Counter[int] = Counter()
    lost = []
    for place, each in moves.items():
        if place not in states:
            continue  # its topic was deleted
        lacking.update(set(each.replicas) - set(each.removing) - set(states[place].isr))
        lost += [place] if states[place].leader < 0 else []
    fenced = _fenced(cluster)
    parts = [
        f"broker {broker} in {count}, "
        + (f"which is fenced ({fenced[broker]})" if broker in fenced else "which copies")
        for broker, count in sorted(lacking.items())
    ]
    parts += [f"a leader of {place}" for place in sorted(lost)[:1]]
    return "; ".join(parts)


def wait_moved(
    session: Session, admin: "Admin", places: Sequence[TopicPartition], deadline: float
) -> None:
    """Until nothing of it moves any more; says how much is left, and what it waits for."""
    left, told_at = -1, time.monotonic()
    while True:
        moves = admin.list_reassignments(places)
        if len(moves) != left:
            left, told_at = len(moves), time.monotonic()
            session.output.note(f"{len(places) - left} of {len(places)} have moved")
        if not moves:
            return
        is_late = time.monotonic() > deadline
        if is_late or time.monotonic() > told_at + STILL_SECONDS:
            states = states_of(admin, (place.topic for place in moves))
            why = waiting_for(moves, states, admin.describe_cluster())
            if is_late:
                raise _still_moving(len(moves), len(places), why)
            session.output.note(f"waiting for {why}" if why else "waiting")
            told_at = deadline  # once is enough, until there is progress
        time.sleep(POLL_SECONDS)


def _still_moving(left: int, total: int, why: str) -> TimeoutError_:
    then = f": they wait for {why}" if why else ""
    return TimeoutError_(
        f"{left} of {total} partitions still move{then}",
        hint="they go on moving: kraftctl partition reassign --status; --cancel stops them",
    )


def _fenced(cluster: ClusterDescription) -> dict[int, str]:
    return {
        each.broker_id: each.fence_cause or "not caught up yet"
        for each in cluster.brokers
        if each.fenced
    }
