"""Is a cluster fine, and if not, why, and what to do next?

The grade is that of the worst problem: RED means that something cannot be read or written now,
YELLOW that one more failure may lead there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from kraftlog.admin_types import (
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
    Voter,
)
from kraftlog.errors import KraftError
from kraftlog.types import Uuid

MIN_ISR = "min.insync.replicas"
ELECTIONS = 2
"""A controller that the leader has not heard of for so many elections does not follow it."""
ELECTION_MS = 1_000
"""Of a controller that does not say how long its elections take."""

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
    leader = leader_of(beliefs.values())
    if beliefs and leader is None:
        found.append(Problem(RED, "no controller leads", "kraftctl quorum why"))
    known = [each for each in beliefs.values() if isinstance(each, QuorumDescription)]
    told = [*_rival_leaders(known), *(_strays(leader, known) if leader else ())]
    return found + [Problem(YELLOW, each, "kraftctl quorum why") for each in told]


def _rival_leaders(known: Iterable[QuorumDescription]) -> Iterator[str]:
    """Within one epoch there is one leader at most."""
    named: dict[int, dict[int, list[int]]] = {}
    for each in known:
        if each.leader is not None:
            by_leader = named.setdefault(each.epoch, {})
            by_leader.setdefault(each.leader.node_id, []).append(each.node.node_id)
    for epoch, by_leader in sorted(named.items()):
        if len(by_leader) > 1:
            told = "; ".join(
                f"{leader} by {', '.join(map(str, sorted(who)))}"
                for leader, who in sorted(by_leader.items())
            )
            yield f"controllers name different leaders of epoch {epoch}: {told}"


def _strays(leader: QuorumDescription, known: Iterable[QuorumDescription]) -> Iterator[str]:
    """Voters that answer and do not follow. While one changes over, the leader hears of it."""
    progress = {_key(each.voter): each for each in leader.voters}
    for each in known:
        seen = progress.get(_key(each.node))
        if seen is None or each is leader or _follows(each, leader):
            continue
        if seen.heard_ago_ms is not None and seen.heard_ago_ms <= _settling_ms(leader):
            continue
        believes = f"{each.leader.node_id} leads" if each.leader else "nobody leads"
        yield (
            f"controller {each.node.node_id} believes that {believes} epoch {each.epoch}, while"
            f" {leader.node.node_id} leads epoch {leader.epoch} and does not hear it"
        )


def _follows(each: QuorumDescription, leader: QuorumDescription) -> bool:
    named = each.leader.node_id if each.leader else None
    return (each.epoch, named) == (leader.epoch, leader.node.node_id)


def _settling_ms(leader: QuorumDescription) -> int:
    return ELECTIONS * (leader.election_timeout_ms or ELECTION_MS)


def _key(voter: Voter) -> tuple[int, Uuid]:
    return voter.node_id, voter.directory_id


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


def short_topics(topics: Iterable[TopicDescription]) -> list[str]:
    """Those with a partition of which some replica is not in sync."""
    return [topic.name for topic in topics if any(map(_is_short, topic.partitions))]


def _is_short(state: PartitionDescription) -> bool:
    return len(state.isr) < len(state.replicas)


def needed_in_sync(
    configs: Mapping[ConfigResource, Mapping[str, ConfigEntry]],
) -> dict[str, int]:
    """min.insync.replicas of each topic."""
    return {each.name: int(entries[MIN_ISR].value) for each, entries in configs.items()}


def under_min_isr(topics: Iterable[TopicDescription], needed: Mapping[str, int]) -> int:
    """How many partitions with a leader refuse acks=all; `needed`: min.insync.replicas of those
    topics that are short.
    """
    return sum(
        state.leader >= 0 and len(state.isr) < min(needed.get(topic.name, 0), len(state.replicas))
        for topic in topics
        for state in topic.partitions
    )


def judge_partitions(
    topics: Collection[TopicDescription], needed: Mapping[str, int] = MappingProxyType({})
) -> list[Problem]:
    """`needed`: see `under_min_isr`."""
    states = [each for topic in topics for each in topic.partitions]
    offline = sum(state.leader < 0 for state in states)
    under = sum(map(_is_short, states))
    refusing = under_min_isr(topics, needed)
    found: list[Problem] = []
    if offline:
        found.append(Problem(RED, f"{offline} partitions have no leader", "kraftctl topic ls"))
    if refusing:
        text = f"{refusing} partitions take no acks=all: fewer in sync than min.insync.replicas"
        found.append(Problem(RED, text, "kraftctl node ls"))
    if under:
        found.append(
            Problem(YELLOW, f"{under} partitions are under-replicated", "kraftctl node ls")
        )
    return found
