"""Who leads a partition.

A replica is *acceptable* if it is registered, not fenced and not shutting down; the caller says so.
It is a *valid* leader if it is acceptable and holds every committed record for sure: it is in the
ISR, or, with nobody in the ISR, in the ELR (R11). With no valid leader the last known one may come
back, if it is acceptable and nobody else is known to have more; and where the topic allows it, any
acceptable replica. These two may have lost records, so they are called unclean.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from metadata_log.records import NO_LEADER

Acceptable = Callable[[int], bool]


class Election(Enum):
    PREFERRED = "preferred"
    """The first replica, if it is valid."""
    ONLINE = "online"
    """Whoever leads now, as long as it is valid."""
    UNCLEAN = "unclean"
    """Any acceptable replica rather than none."""


class Candidates(NamedTuple):
    """What an election is about: the partition as it will be, and who leads it now."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    leader: int
    last_known: tuple[int, ...]


class Elected(NamedTuple):
    leader: int
    is_unclean: bool


NOBODY = Elected(NO_LEADER, is_unclean=False)


def elect(candidates: Candidates, election: Election, acceptable: Acceptable) -> Elected:
    """The leader to be, who may be the one that leads already."""
    for replica in _in_order(candidates, election):
        if is_valid(replica, candidates, acceptable):
            return Elected(replica, is_unclean=False)
    if _can_return(candidates, acceptable):
        return Elected(candidates.last_known[0], is_unclean=True)
    if election is Election.UNCLEAN:
        # Of those that may lack something, whoever led last has the most.
        for replica in (*candidates.last_known, *candidates.replicas):
            if replica in candidates.replicas and acceptable(replica):
                return Elected(replica, is_unclean=True)
    return NOBODY


def is_valid(replica: int, candidates: Candidates, acceptable: Acceptable) -> bool:
    safe = candidates.isr or candidates.elr
    return replica in safe and acceptable(replica)


def _in_order(candidates: Candidates, election: Election) -> tuple[int, ...]:
    if election is Election.PREFERRED:
        return (candidates.replicas[0], candidates.leader, *candidates.replicas)
    return (candidates.leader, *candidates.replicas)


def _can_return(candidates: Candidates, acceptable: Acceptable) -> bool:
    """The last leader is the best there is once nobody is sure to have everything. It must be alive
    (KAFKA-19522), and still be a replica.
    """
    if candidates.isr or candidates.elr or len(candidates.last_known) != 1:
        return False
    last = candidates.last_known[0]
    return last in candidates.replicas and acceptable(last)
