"""Is a cluster fine, and if not, why, and what to do next?

The grade is that of the worst problem: RED means that something cannot be read or written now,
YELLOW that one more failure may lead there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kraftlog.admin_types import ClusterDescription, QuorumDescription, TopicDescription
from kraftlog.errors import KraftError

Belief = QuorumDescription | KraftError
"""What one controller believes of the quorum, or why it does not say."""


class Grade(StrEnum):
    """From the best to the worst."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"

    @property
    def rank(self) -> int:
        return list(Grade).index(self)

    def is_as_good_as(self, wanted: "Grade") -> bool:
        return self.rank <= wanted.rank


GREEN, YELLOW, RED = Grade


@dataclass(frozen=True, slots=True)
class Problem:
    grade: Grade
    what: str
    hint: str
    """What to do next."""


@dataclass(frozen=True, slots=True)
class ClusterHealth:
    problems: tuple[Problem, ...] = ()

    @property
    def grade(self) -> Grade:
        """That of the worst problem."""
        return max((each.grade for each in self.problems), key=_rank, default=GREEN)

    def __str__(self) -> str:
        return "; ".join([self.grade.upper(), *(problem.what for problem in self.problems)])


def _rank(grade: Grade) -> int:
    return grade.rank


def leader_of(beliefs: Iterable[Belief]) -> QuorumDescription | None:
    """The leader of the newest epoch, if it is heard."""
    known = [each for each in beliefs if isinstance(each, QuorumDescription)]
    newest = max((each.epoch for each in known), default=0)
    leaders = [each for each in known if each.role == "leader" and each.epoch == newest]
    return leaders[0] if leaders else None


def judge_quorum(beliefs: Mapping[str, Belief]) -> list[Problem]:
    found = [
        Problem(YELLOW, f"controller at {address} does not answer", "kraftctl logs")
        for address, belief in beliefs.items()
        if isinstance(belief, KraftError)
    ]
    if beliefs and leader_of(beliefs.values()) is None:
        found.append(Problem(RED, "no controller leads", "kraftctl quorum why"))
    return found


def judge_brokers(cluster: ClusterDescription) -> list[Problem]:
    return [
        Problem(
            YELLOW,
            f"broker {broker.broker_id} is fenced: {broker.fence_cause or 'not caught up yet'}",
            "kraftctl node ls",
        )
        for broker in cluster.brokers
        if broker.fenced
    ]


def judge_partitions(topics: Iterable[TopicDescription]) -> list[Problem]:
    states = [each for topic in topics for each in topic.partitions]
    offline = sum(state.leader < 0 for state in states)
    under = sum(len(state.isr) < len(state.replicas) for state in states)
    found: list[Problem] = []
    if offline:
        found.append(Problem(RED, f"{offline} partitions have no leader", "kraftctl topic ls"))
    if under:
        found.append(
            Problem(YELLOW, f"{under} partitions are under-replicated", "kraftctl node ls")
        )
    return found
